"""What a node can say about itself, to its own process and to whoever asks by message.

These are messages like any other, so the rules of domains hold for them: whoever puts FRAMEWIRE.* into a domain
decides who may ask. Where they are in none, anybody may, and then nothing is told that has to do with a message of
a domain.
"""

from __future__ import annotations

import os
import socket
from collections import Counter, deque
from collections.abc import Iterable
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from framewire._version import __version__
from framewire.node.actor import Actor, Handler, handles
from framewire.node.cancelling import MAX_CANCELLED, Cancel
from framewire.node.clock import Clock, Timer
from framewire.node.context import Context
from framewire.node.core import Core, Counters
from framewire.node.deadlocks import WaitGraph, Waits, wait_graph
from framewire.node.reports import (
    ActorStats,
    FlowInfo,
    FlowSteps,
    HandlerStats,
    LetterStats,
    NodeInfo,
    NodeStats,
    PendingStats,
    Ping,
    Pong,
    StepStats,
    TrafficStats,
    WayStats,
)
from framewire.node.samples import Samples
from framewire.node.tracing import TraceStep
from framewire.wire import MessageId
from framewire.wire.message import readable

if TYPE_CHECKING:
    from framewire.node.cell import Cell
    from framewire.node.deadletters import DeadLetter
    from framewire.node.hub import MessageHub
    from framewire.node.stalls import Stall, StallWatch
    from framewire.node.transport import Transport

__all__ = [
    "ActorStats",
    "FlowInfo",
    "FlowSteps",
    "HandlerStats",
    "Introspection",
    "LetterStats",
    "NodeInfo",
    "NodeStats",
    "PendingStats",
    "Ping",
    "Pong",
    "Rates",
    "StepStats",
    "TrafficStats",
    "WayStats",
    "stats",
]

T = TypeVar("T", HandlerStats, PendingStats, LetterStats, StepStats, WayStats)

_WINDOW = 10
"""Seconds over which rates are averaged."""
_STEPS = 1000
"""Steps of traced messages that a node remembers."""
_MOST = 10_000
"""Open promises that are listed, whatever is asked for."""
_WAYS = 200
"""Messages to other nodes that are told of."""
_LONGEST = 500
"""Characters of a dead letter's detail: a peer must not make the answer long."""


class Introspection(Actor):
    """The actor on every node that answers ``NodeInfo``, ``FlowInfo`` and ``Ping``."""

    def __init__(self) -> None:
        self._steps: deque[TraceStep] = deque(maxlen=_STEPS)
        self._stalled: Counter[str] = Counter()

    async def started(self) -> None:
        self.node.on_trace(self._steps.append)
        if self._core.settings.stall_after is not None:
            self.node.on_stall(self._stall)

    @handles(NodeInfo, inline=True)
    def info(self, asked: NodeInfo, ctx: Context) -> NodeStats:
        told = self.node.stats(pending=min(asked.pending, _MOST))
        told.stalled = dict(self._stalled)
        told.uri = self.node.uri
        if asked.letters > 0:
            told.letters = _letters(self._core, list(self.node.dead_letters)[: -asked.letters - 1 : -1])
        if self._may_know_all(ctx):
            return told
        hidden = {handler.name for actor in told.actors for handler in actor.handlers if handler.domain}
        told.pending = _open(told.pending)
        told.letters = _open(told.letters)
        told.ways = _open(told.ways)
        told.stalled = {name: count for name, count in told.stalled.items() if name not in hidden}
        told.actors = [actor for actor in told.actors if not actor.handlers or _open(actor.handlers)]
        for actor in told.actors:
            actor.handlers = _open(actor.handlers)
        return told

    @handles(FlowInfo, inline=True)
    def flow(self, asked: FlowInfo, ctx: Context) -> FlowSteps:
        core = self._core
        now = core.now()
        steps = [
            StepStats(
                step=step.step,
                age=now - step.at,
                message=str(step.message_id),
                detail=step.detail,
                domain=_domain(core, step.message_id),
            )
            for step in self._steps
            if step.correlation_id == asked.flow
        ]
        return FlowSteps(node=readable(core.identity), steps=steps if self._may_know_all(ctx) else _open(steps))

    @handles(Cancel, inline=True)
    def cancel(self, cancelled: Cancel, ctx: Context) -> None:
        if ctx.source:  # this node has done so before it told the others
            self._core.cancellations.apply(cancelled.asks[:MAX_CANCELLED])

    @handles(Waits, inline=True)
    def waits(self, asked: Waits) -> WaitGraph:
        if asked.at_work:  # another node has found a cycle, and only the nodes that are in it can end it
            self._core.deadlocks.confirm()
        return wait_graph(self._core, at_work=asked.at_work)

    @handles(Ping, inline=True)
    def ping(self, _: Ping) -> Pong:
        return Pong(readable(self._core.identity))

    @property
    def _core(self) -> Core:
        return self.node._core  # noqa: SLF001 - this actor is a part of the node

    def _may_know_all(self, ctx: Context) -> bool:
        """Whether the question is the node's own, or came with the key of a domain."""
        return not ctx.source or bool(_domain(self._core, ctx.message_id))

    def _stall(self, stall: Stall) -> None:
        self._stalled[stall.handler] += 1


def _open(entries: Iterable[T]) -> list[T]:
    """Those that belong to no domain."""
    return [entry for entry in entries if not entry.domain]


def _domain(core: Core, message_id: MessageId) -> str:
    return "" if core.keyring is None else core.keyring.domain_of(message_id.identity)


class Rates:
    """How fast the counters of a node grow."""

    def __init__(self, clock: Clock, counters: Counters, samples: Samples) -> None:
        self._clock = clock
        self._counters = counters
        self._sampled = samples
        self._samples: deque[tuple[float, dict[str, int]]] = deque(maxlen=_WINDOW + 1)
        self._timer: Timer | None = None

    def start(self) -> None:
        now, current = self._clock.time(), totals(self._counters)
        if self._samples:
            then, before = self._samples[-1]
            self._sampled.adapt((current["forwarded"] - before["forwarded"]) / max(now - then, 0.1))
        self._samples.append((now, current))
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
    transport: Transport | None,
    pending: int,
    state: str = "",
) -> NodeStats:
    """Everything that a node knows about itself now."""
    now = core.now()
    recorder = core.tap.recorder if core.tap is not None else None
    # Each hub has its own in order: the oldest of 100,000 are found without sorting them all.
    waiting_by_hub = [list(hub.pending) for hub in hubs]
    oldest = islice(merge(*waiting_by_hub, key=lambda waiting: waiting.started), max(pending, 0))
    return NodeStats(
        node=readable(core.identity),
        uptime=uptime,
        totals={**totals(core.counters), "pending": sum(map(len, waiting_by_hub))},
        rates=rates.per_second(),
        actors=[_actor_stats(core, cell) for cell in cells],
        pending=[
            PendingStats(
                message=str(waiting.parcel.message_id),
                target=waiting.target,
                age=now - waiting.started,
                flow=readable(waiting.parcel.correlation_id),
                sent_to=readable(route.node) if (route := waiting.parcel.sent_to) is not None else "",
                domain=_domain(core, waiting.parcel.message_id),
            )
            for waiting in oldest
        ],
        dead_letters={str(reason): count for reason, count in core.dead_letters.counts.items()},
        peers=list(map(readable, peers)),
        stalls=watch.stalls if watch is not None else 0,
        # A recorder may be anything that takes messages; the one of framewire.capture counts them.
        captured=getattr(recorder, "captured", 0),
        capture_dropped=getattr(recorder, "dropped", 0),
        refused={
            readable(peer): {str(reason): count for reason, count in counts.items()}
            for peer, counts in core.conduct.counts.items()
        },
        # So may a transport; the one over sockets counts what goes to whom.
        traffic={
            readable(peer): TrafficStats(sent=told.sent, dropped=told.dropped, waiting=told.waiting)
            for peer, told in getattr(transport, "traffic", {}).items()
        },
        ways=[
            WayStats(
                node=readable(node),
                message=str(message_id),
                sent=found.sent,
                p50=found.quantile(0.5),
                p95=found.quantile(0.95),
                domain=_domain(core, message_id),
            )
            for node, message_id, found in core.samples.busiest(_WAYS)
        ],
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        state=state,
    )


def _letters(core: Core, letters: Iterable[DeadLetter]) -> list[LetterStats]:
    now = core.now()
    return [
        LetterStats(
            reason=letter.reason,
            detail=letter.detail[:_LONGEST],
            age=now - letter.at,
            message="" if letter.message is None else str(letter.message.message_id),
            flow="" if letter.message is None else readable(letter.message.correlation_id),
            domain="" if letter.message is None else _domain(core, letter.message.message_id),
        )
        for letter in letters
    ]


def _described(message_id: MessageId, handler: Handler) -> str:
    if handler.partitions == 1:
        return str(message_id)
    return f"{MessageId(message_id.identity, message_id.version)} [{handler.partitions:,} partitions]"


def _actor_stats(core: Core, cell: Cell) -> ActorStats:
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
                message=_described(message_id, handler),
                handled=handler.figures.handled,
                failed=handler.figures.failed,
                seconds=handler.figures.seconds,
                longest=handler.figures.longest,
                domain=_domain(core, message_id),
                partitions=handler.partitions,
            )
            for message_id, handler in cell.by_kind.items()
        ],
        concurrency=cell.concurrency,
        local=cell.local,
    )
