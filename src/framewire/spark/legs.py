"""The messages of one flow, put together from the rows that tell of them, and placed on one line of time.

Each node wrote down times by a clock of its own. The lake knows how far two clocks are apart wherever messages went
both ways, so all times of a story are by the clock of the node that the flow began on, as far as that can be known.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from framewire.wire.message import readable

__all__ = ["Leg", "Step", "Story", "story_of"]

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the lake's times are all UTC, without a zone


@dataclass(slots=True)
class Leg:
    """One message of a flow: where it went and what became of it. Times are microseconds since 1970."""

    message: str
    identity: bytes
    partition: bytes
    version: int | None
    from_node: bytes
    from_name: str
    to_node: bytes
    to_name: str
    fate: str | None
    """delivered, dead, sent (passed on), vanished (received, and no more), lost (never received); None if open."""
    reason: str | None = None
    failed: bool = False
    to_hub: bool = False
    receiver: bytes = b""
    sent: float | None = None
    received: float | None = None
    handed: float | None = None
    """When an actor or a hub got it, or it died."""
    done: float | None = None
    """When its handler had done the next thing in the flow, as far as that is known."""

    @property
    def began(self) -> float:
        """The first that is known of it."""
        return next((at for at in (self.sent, self.received, self.handed) if at is not None), 0.0)

    @property
    def ended(self) -> float:
        """The last that is known of it."""
        return max([at for at in (self.sent, self.received, self.handed, self.done) if at is not None], default=0.0)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a node noted of a traced message."""

    at: float
    """Microseconds since 1970."""
    node_name: str
    message: str
    step: str
    detail: str


@dataclass(frozen=True, slots=True)
class Story:
    """A flow and its messages, in the order in which they began."""

    facts: Mapping[str, Any]
    """The flow's row of the table ``flows``."""
    legs: Sequence[Leg]
    left_out: int = 0
    """What the lake knows of the flow beyond what was asked for: hops, handlings, dead letters, losses, steps."""
    trace: Sequence[Step] = ()
    """The steps of its messages that were traced, in order."""

    @property
    def began(self) -> float:
        """When it began, by the clock that all times are told by."""
        return min((leg.began for leg in self.legs), default=_micros(self.facts["started_at"]) or 0.0)

    @property
    def ended(self) -> float:
        """When the last was known of it."""
        return max((leg.ended for leg in self.legs), default=self.began + (self.facts["duration_us"] or 0))


def story_of(facts: dict[str, Any], events: Iterable[dict[str, Any]], left_out: int) -> Story:
    """A flow out of its row and the hops, handlings, dead letters, losses and steps of it, each in order."""
    by_kind = defaultdict(list)
    for event in events:
        by_kind[event["kind"]].append(event)
    clocks = _Clocks(facts["origin"], by_kind["hop"])
    legs = _Legs(clocks)
    for event in by_kind["hop"]:
        legs.hop(event)
    for event in by_kind["handling"]:
        legs.handling(event)
    for event in by_kind["dead"]:
        legs.dead(event)
    for event in by_kind["loss"]:
        legs.add(event, sent=clocks.told(event["sent_at"], event["from_node"]))
    trace = [
        Step(
            clocks.told(event["sent_at"], event["from_node"]) or 0.0,
            event["from_name"],
            event["message"],
            event["fate"] or "",
            event["reason"] or "",
        )
        for event in by_kind["step"]
    ]
    legs_of = sorted(legs.all, key=lambda leg: leg.began)
    return Story(facts, legs_of, left_out, sorted(trace, key=lambda step: step.at))


class _Clocks:
    """How far the clocks of a flow's nodes are ahead of its origin's, found along its own hops."""

    def __init__(self, origin: bytes, hops: Iterable[Mapping[str, Any]]) -> None:
        ahead: dict[bytes, dict[bytes, float | None]] = defaultdict(dict)
        for hop in hops:
            one, other, skew = hop["from_node"], hop["to_node"], hop["skew_us"]
            if skew is not None or other not in ahead[one]:
                ahead[one][other], ahead[other][one] = skew, None if skew is None else -skew
        self._offsets: dict[bytes, float] = {}
        waiting = deque([(origin, 0.0)])
        while waiting:
            node, offset = waiting.popleft()
            if node in self._offsets:
                continue
            self._offsets[node] = offset
            for other, skew in ahead[node].items():
                # Pairs whose clocks nobody could compare are taken to agree, but only where no other way leads.
                if skew is None:
                    waiting.append((other, offset))
                else:
                    waiting.appendleft((other, offset + skew))

    def told(self, at: dt.datetime | None, node: bytes) -> float | None:
        """A time that a node wrote down, by the clock of the origin."""
        micros = _micros(at)
        return None if micros is None else micros - self._offsets.get(node, 0.0)


@dataclass(slots=True)
class _Legs:
    """The messages of a flow while they are put together."""

    clocks: _Clocks
    all: list[Leg] = field(default_factory=list)
    _arrived: dict[object, deque[Leg]] = field(default_factory=lambda: defaultdict(deque))
    _died: dict[object, deque[Leg]] = field(default_factory=lambda: defaultdict(deque))
    _names: dict[bytes, str] = field(default_factory=dict)

    def add(self, event: Mapping[str, Any], **times: float | None) -> Leg:
        named = ("message", "identity", "partition", "version", "from_node", "to_node", "fate", "reason")
        facts: dict[str, Any] = {name: event[name] for name in named} | times
        leg = Leg(
            **facts, from_name=event["from_name"] or "", to_name=event["to_name"] or readable(event["to_node"])
        )
        leg.failed, leg.to_hub, leg.receiver = (
            bool(event["failed"]),
            bool(event["to_hub"]),
            event["receiver"] or b"",
        )
        self._names[leg.to_node] = leg.to_name
        self.all.append(leg)
        return leg

    def hop(self, event: Mapping[str, Any]) -> None:
        sender, receiver = event["from_node"], event["to_node"]
        leg = self.add(
            event,
            sent=self.clocks.told(event["sent_at"], sender),
            received=self.clocks.told(event["received_at"], receiver),
        )
        self._names[sender] = leg.from_name
        self._arrived[sender, receiver, leg.message, event["received_at"]].append(leg)
        if leg.fate == "dead":
            leg.handed = self.clocks.told(event["fate_at"], receiver)
            self._died[receiver, leg.message, event["fate_at"]].append(leg)

    def handling(self, event: Mapping[str, Any]) -> None:
        node, source = event["to_node"], event["from_node"]
        handed = self.clocks.told(event["handed_at"], node)
        came = self._arrived.get((source, node, event["message"], event["received_at"]))
        if came:
            leg = came.popleft()
        else:
            # It never left its node, or its sender was not recorded.
            name = self._names.get(source, readable(source)) if source else event["to_name"]
            local = {**event, "from_node": source or node, "from_name": name}
            leg = self.add(local, received=self.clocks.told(event["received_at"], node))
        leg.fate, leg.handed, leg.to_hub, leg.receiver = (
            "delivered",
            handed,
            bool(event["to_hub"]),
            event["receiver"],
        )
        leg.failed = leg.failed or bool(event["failed"])
        if handed is not None and event["service_us"] is not None:
            leg.done = handed + event["service_us"]

    def dead(self, event: Mapping[str, Any]) -> None:
        known = self._died.get((event["to_node"], event["message"], event["fate_at"]))
        if known:
            known.popleft().reason = event["reason"]
        else:
            self.add(event, handed=self.clocks.told(event["fate_at"], event["to_node"]))


def _micros(at: dt.datetime | None) -> float | None:
    return None if at is None else float((at - _EPOCH) // dt.timedelta(microseconds=1))
