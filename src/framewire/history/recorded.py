"""The messages of a flow as nodes recorded them: every field, with the frames where the lake keeps them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framewire.history.counting import bounded
from framewire.history.flows import Flow
from framewire.history.following import Following
from framewire.history.windows import Conditions
from framewire.spark.stories import days_of
from framewire.wire.message import readable

__all__ = ["Recorded", "Told", "recorded"]

_COLUMNS = (
    "at", "node_name", "direction", "peer", "reason", "message", "identity", "version", "partition", "flow", "body",
    "body_frames", "ttl_ticks", "distribution", "trace_options", "receiver_identity", "receiver_node_identity",
    "callback_receiver_identity", "callback_receiver_node_identity", "callback_key", "callback_points", "routing",
    "hops", "domain", "signature", "signature_state", "socket_identity", "wire_version", "answer", "exception",
    "frames",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recorded:
    """A message as one node saw it. Bytes are as in the frames."""

    at: dt.datetime
    """By the clock of the node."""
    node: str
    direction: str
    """sent, received, delivered or dead."""
    peer: bytes | None
    reason: str | None
    message: str
    identity: bytes
    version: int | None
    partition: bytes
    flow: str | None
    body: bytes | None
    body_frames: tuple[bytes, ...] | None
    """The frames of the body where it has none or several; None for one."""
    ttl_ticks: int | None
    distribution: int | None
    trace_options: int | None
    receiver_identity: bytes | None
    receiver_node_identity: bytes | None
    callback_receiver_identity: bytes | None
    callback_receiver_node_identity: bytes | None
    callback_key: int | None
    callback_points: tuple[Mapping[str, Any], ...]
    """Each with identity, version and partition."""
    routing: tuple[Mapping[str, Any], ...]
    """Each with uri and identity, the first router first."""
    hops: int | None
    domain: str | None
    signature: bytes | None
    signature_state: str | None
    socket_identity: bytes | None
    wire_version: int | None
    answer: bool | None
    exception: Mapping[str, str] | None
    """Of a KINO.EXCEPTION: type, text, actor, node and about."""
    frames: tuple[bytes, ...] | None
    """All frames, if the pipeline was told to keep them."""

    @property
    def peer_name(self) -> str | None:
        """The other node, or the receiver of what was delivered, as text."""
        return None if self.peer is None else readable(self.peer)


@dataclass(frozen=True, slots=True)
class Told:
    """Some of the messages of a flow, in the order of their times."""

    messages: tuple[Recorded, ...]
    more: bool


def recorded(lake: Following, flow: Flow, *, limit: int = 500, bodies: bool = True) -> Told:
    """What nodes recorded of a flow, bodies and frames of it or not."""
    days = days_of({"started_at": flow.started_at, "ended_at": flow.ended_at})
    where = Conditions().add("correlation_id = ?", flow.correlation_id)
    if days is not None:
        where.add("date between ? and ?", *days)
    hidden = () if bodies else ("body", "body_frames", "frames", "exception")
    columns = ", ".join(f'null as "{name}"' if name in hidden else f'"{name}"' for name in _COLUMNS)
    # A node that is quick does several things in one microsecond, in this order.
    order = "\"at\", node_name, list_position(['received', 'delivered', 'dead', 'sent'], direction)"
    rows = lake.select(columns, "messages", where, f"order by {order} limit ?", bounded(limit) + 1)
    return Told(tuple(map(_recorded, rows[:limit])), len(rows) > limit)


def _recorded(row: tuple[Any, ...]) -> Recorded:
    facts = dict(zip(_COLUMNS, row, strict=True))
    facts["node"] = facts.pop("node_name")
    for name in ("body_frames", "frames"):
        facts[name] = None if facts[name] is None else tuple(facts[name])
    for name in ("callback_points", "routing"):
        facts[name] = tuple(facts[name] or ())
    return Recorded(**facts)
