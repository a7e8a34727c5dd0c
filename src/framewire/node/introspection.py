"""What a node can say about itself, to its own process and to whoever asks by message."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from framewire.node.actor import Actor, handles
from framewire.node.clock import Clock, Timer
from framewire.node.core import Core, Counters
from framewire.node.payloads import message

if TYPE_CHECKING:
    from framewire.node.cell import Cell
    from framewire.node.hub import MessageHub
    from framewire.node.stalls import StallWatch

__all__ = [
    "ActorStats",
    "HandlerStats",
    "Introspection",
    "NodeInfo",
    "NodeStats",
    "PendingStats",
    "Rates",
    "stats",
]

_WINDOW = 10
"""Seconds over which rates are averaged."""


class HandlerStats(msgspec.Struct, kw_only=True):
    """What one handler has done. Times are in seconds."""

    name: str
    message: str
    handled: int
    failed: int
    seconds: float
    longest: float


class ActorStats(msgspec.Struct, kw_only=True):
    """One actor and its mailbox."""

    name: str
    identity: str
    queued: int
    waiting: int
    busy: int
    limit: int
    overflow: str
    restarts: int
    handlers: list[HandlerStats]


class PendingStats(msgspec.Struct, kw_only=True):
    """A promise that is still open."""

    message: str
    target: str
    age: float
    flow: str


@message("FRAMEWIRE.NODESTATS")
class NodeStats(msgspec.Struct, kw_only=True):
    """The state of a node at one moment. ``rates`` are per second, over the last ten."""

    node: str
    uptime: float
    totals: dict[str, int]
    rates: dict[str, float]
    actors: list[ActorStats]
    pending: list[PendingStats]
    dead_letters: dict[str, int]
    peers: list[str]
    stalls: int
    captured: int = 0
    """Messages that are recorded, on disk."""
    capture_dropped: int = 0
    """Messages that should have been recorded, and were not."""


@message("FRAMEWIRE.NODEINFO")
class NodeInfo(msgspec.Struct):
    """Ask a node for its ``NodeStats``; ``pending`` limits how many open promises it lists."""

    pending: int = 100


class Introspection(Actor):
    """The actor on every node that answers ``NodeInfo``."""

    @handles(NodeInfo, inline=True)
    def info(self, asked: NodeInfo) -> NodeStats:
        return self.node.stats(pending=asked.pending)


class Rates:
    """How fast the counters of a node grow."""

    def __init__(self, clock: Clock, counters: Counters) -> None:
        self._clock = clock
        self._counters = counters
        self._samples: deque[tuple[float, dict[str, int]]] = deque(maxlen=_WINDOW + 1)
        self._timer: Timer | None = None

    def start(self) -> None:
        self._samples.append((self._clock.time(), totals(self._counters)))
        self._timer = self._clock.call_later(1.0, self.start)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def per_second(self) -> dict[str, float]:
        now, current = self._clock.time(), totals(self._counters)
        then, before = self._samples[0] if self._samples else (now, current)
        seconds = now - then
        return {name: (count - before[name]) / seconds if seconds > 0 else 0.0 for name, count in current.items()}


def totals(counters: Counters) -> dict[str, int]:
    return {name: getattr(counters, name) for name in Counters.__slots__}


def stats(
    core: Core,
    *,
    uptime: float,
    cells: list[Cell],
    hubs: list[MessageHub],
    rates: Rates,
    peers: tuple[bytes, ...],
    watch: StallWatch | None,
    pending: int,
) -> NodeStats:
    """Everything that a node knows about itself now."""
    now = core.now()
    recorder = core.tap.recorder if core.tap is not None else None
    open_promises = sorted((waiting for hub in hubs for waiting in hub.pending), key=lambda w: w.started)
    return NodeStats(
        node=core.identity.decode("ascii", errors="backslashreplace"),
        uptime=uptime,
        totals={**totals(core.counters), "pending": len(open_promises)},
        rates=rates.per_second(),
        actors=[_actor_stats(cell) for cell in cells],
        pending=[
            PendingStats(
                message=str(waiting.parcel.message_id),
                target=waiting.target,
                age=now - waiting.started,
                flow=waiting.parcel.correlation_id.decode("ascii", errors="backslashreplace"),
            )
            for waiting in open_promises[: max(pending, 0)]
        ],
        dead_letters={str(reason): count for reason, count in core.dead_letters.counts.items()},
        peers=[peer.decode("ascii", errors="backslashreplace") for peer in peers],
        stalls=watch.stalls if watch is not None else 0,
        # A recorder may be anything that takes messages; the one of framewire.capture counts them.
        captured=getattr(recorder, "captured", 0),
        capture_dropped=getattr(recorder, "dropped", 0),
    )


def _actor_stats(cell: Cell) -> ActorStats:
    return ActorStats(
        name=cell.name,
        identity=cell.route.receiver.hex(),
        queued=len(cell.mailbox),
        waiting=cell.mailbox.waiting,
        busy=cell.busy,
        limit=cell.mailbox.limit,
        overflow=cell.mailbox.overflow,
        restarts=cell.restarts,
        handlers=[
            HandlerStats(
                name=handler.name,
                message=str(message_id),
                handled=handler.figures.handled,
                failed=handler.figures.failed,
                seconds=handler.figures.seconds,
                longest=handler.figures.longest,
            )
            for message_id, handler in cell.handlers.items()
        ],
    )
