"""What the parts of a node share: settings, clock, counters, dead letters, and telling callers of failures."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import msgspec

from framewire import errors
from framewire.node.cancelling import Cancellations
from framewire.node.clock import Clock, LoopClock
from framewire.node.conduct import Conduct
from framewire.node.deadletters import DeadLetters, Reason
from framewire.node.deadlocks import DeadlockSearch
from framewire.node.exceptions import EXCEPTION, ExceptionMessage, exception_from, shortened
from framewire.node.mailbox import Overflow, Room
from framewire.node.parcel import Callback, Parcel
from framewire.node.payloads import type_of
from framewire.node.samples import Samples
from framewire.node.tap import Tap
from framewire.node.thread_pool import HandlerThreads
from framewire.node.tracing import Trace
from framewire.node.worker import Worker
from framewire.security import KeyRing, Replays
from framewire.wire import RouterAddress

if TYPE_CHECKING:
    from framewire.node.cell import Cell
    from framewire.node.likeness import Likeness
    from framewire.node.parcel import Stencil

__all__ = ["Core", "Flow", "Hook", "Settings", "handling", "settings_from"]

T = TypeVar("T")


class Hook:
    """Stands in for a flow while a hook of an actor runs: it may send while its node stops, as handlers may."""

    __slots__ = ("under_way",)

    worker = None
    is_over = False

    def __init__(self, *, under_way: bool = False) -> None:
        self.under_way = under_way
        """Whether a handler waits for the hook: then what it sends must not wait for room."""


Carried = tuple[int, "tuple[RouterAddress, ...]", "Likeness | Stencil | None"]
"""Trace options and routing of a message, and what it has in common with others."""


class Flow(msgspec.Struct, eq=False):
    """The flow that a handler works in: what the messages inherit that are sent within it.

    One for each message that is handled, and without its payload: a task that the handler has started may keep it
    for long.
    """

    owner: Worker | Cell
    """The worker that runs the handler; the actor for one that runs inline."""
    correlation_id: bytes
    deadline: float
    """When the time of the flow is over, on the clock of the node that handles the message."""
    carried: Carried | None
    """What else its messages inherit; None for a flow of this node that is not traced, as most are."""
    ended: bool = False
    """Whether the handler has ended; tasks that it started may go on."""

    under_way = True
    """What is sent within it belongs to a flow that was admitted."""

    @property
    def worker(self) -> Worker | None:
        """The worker that runs the handler; None for one that runs inline."""
        return self.owner if isinstance(self.owner, Worker) else None

    @property
    def cell(self) -> Cell:
        """The actor that handles the message."""
        return self.owner.cell

    @property
    def is_over(self) -> bool:
        """Whether nothing belongs to it any more: its handler has ended, and its time is over."""
        return self.ended and self.deadline <= self.cell.core.now()

    def deadline_on(self, core: Core) -> float:
        """Return when its time is over on the clock of a node, which need not be the one that handles it."""
        mine = self.cell.core
        if mine is core or self.deadline == math.inf:
            return self.deadline
        return core.now() + self.deadline - mine.now()


handling: ContextVar[Flow | Hook | None] = ContextVar("framewire_handling", default=None)
"""The flow of the handler that the code runs in, also in tasks and threads that the handler has started with its
context; None outside of handlers.

What is sent in a handler belongs to a flow that was admitted, and handlers may finish while a node stops.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that a node can be told, with what it does if it is not."""

    timeout: float = 30.0
    """Seconds that ask, send and gather wait unless told otherwise; also the longest wait for room."""
    mailbox: int = 1000
    """Messages that begin a flow and that an actor's mailbox holds."""
    overflow: Overflow = "wait"
    """What a full mailbox does with more: wait, reject or drop_oldest."""
    max_queued: int = 100_000
    """Messages that a mailbox, or the queue to a peer, holds at most, flows under way included."""
    max_queued_bytes: int = 256 * 1024 * 1024
    """The bytes of those beyond ``mailbox``, or beyond ``send_queue``."""
    promises: int = 100_000
    """Promises that a hub may have open at a time; more are refused as ``Overloaded``."""
    threads: int = 8
    """Threads for handlers that are plain functions."""
    max_threads: int = 256
    """Threads that there are at most while handlers wait in theirs."""
    keep_dead_letters: int = 100
    """Dead letters that are kept at hand."""
    route_grace: float | None = None
    """Seconds that a message is held for which there is no route, while the other nodes are asked. None for 10 s
    where its last handler has just left with notice and may be back, and 1 s where none was known."""
    hold: int = 10_000
    """Messages that are held like this at a time."""
    stall_after: float | None = 1.0
    """Seconds after which a handler that blocks the event loop is reported; None for never."""
    stop_timeout: float = 10.0
    """Seconds that stopping waits for what is still running."""
    max_hops: int = 64
    """Nodes that a message may pass before it is taken to go in circles."""
    replay_window: float = 60.0
    """Seconds for which signed messages are remembered, to tell when one is sent once more; 0 for not at all."""
    replay_memory: int = 100_000
    """Signed messages that are remembered at most."""

    @property
    def restart_grace(self) -> float:
        """Seconds that a message is held whose last handler has left with notice."""
        return 10.0 if self.route_grace is None else self.route_grace

    @property
    def discovery_grace(self) -> float:
        """Seconds that a message is held which nobody was known to handle."""
        return 1.0 if self.route_grace is None else self.route_grace

    def __post_init__(self) -> None:
        problems = [
            f"{name}: {value!r}; must be {accepted}"
            for name, accepted, good in (
                ("timeout", "a positive number of seconds", _positive),
                ("mailbox", "a whole number, at least 1", _count(1)),
                ("overflow", "wait, reject or drop_oldest", lambda value: value in get_args(Overflow)),
                ("promises", "a whole number, at least 1", _count(1)),
                ("max_queued", "a whole number, at least 1", _count(1)),
                ("max_queued_bytes", "a whole number, at least 1", _count(1)),
                ("threads", "a whole number, at least 1", _count(1)),
                ("max_threads", "a whole number, at least 1", _count(1)),
                ("keep_dead_letters", "a whole number, 0 or more", _count(0)),
                ("route_grace", "0 or more seconds or None", lambda v: v is None or _seconds(v)),
                ("hold", "a whole number, 0 or more", _count(0)),
                ("stall_after", "a positive number of seconds or None", lambda v: v is None or _positive(v)),
                ("stop_timeout", "0 or more seconds", _seconds),
                ("max_hops", "1 to 65534", _count(1, 0xFFFE)),  # one more must still fit its 16 bits
                ("replay_window", "0 or more seconds", _seconds),
                ("replay_memory", "a whole number, at least 2", _count(2)),
            )
            if not good(value := getattr(self, name))
        ]
        if problems:
            raise errors.ConfigError("node settings", problems)


def settings_from(options: dict[str, Any]) -> Settings:
    """Settings by name; ``ConfigError`` with all problems at once."""
    unknown = options.keys() - set(Settings.__slots__)
    if unknown:
        known = ", ".join(sorted(Settings.__slots__))
        raise errors.ConfigError(
            "node settings", [f"{name}: no such setting; there are {known}" for name in sorted(unknown)]
        )
    return Settings(**options)


def _seconds(value: object) -> bool:
    return isinstance(value, int | float) and value >= 0 and math.isfinite(value)


def _positive(value: object) -> bool:
    return _seconds(value) and value != 0


def _count(least: int, most: float = math.inf) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and least <= value <= most


_BUDGET = 100


@dataclass(slots=True)
class Counters:
    """What a node has done since it started."""

    sent: int = 0
    """Messages that its hubs and handlers sent."""
    handled: int = 0
    failed: int = 0
    received: int = 0
    """Messages from other nodes."""
    forwarded: int = 0
    """Messages to other nodes."""
    replies: int = 0
    """Promises that ended with a reply."""
    entries_dropped: int = 0
    """Routing entries that were left out of messages to other nodes, as those had more than 255."""
    turned_away: int = 0
    """Connections that were not let in: plaintext, or without a key that is allowed (CURVE)."""


@dataclass(slots=True)
class Core:
    """One node's shared parts."""

    identity: bytes
    settings: Settings
    clock: Clock = field(default_factory=LoopClock)
    keyring: KeyRing | None = None
    counters: Counters = field(default_factory=Counters)
    tap: Tap | None = None
    """Where recorded messages go, if anyone records."""
    threads: HandlerThreads | None = None
    cells: dict[bytes, Cell] = field(default_factory=dict)
    """The actors of this node by their identity."""
    depth: int = 0
    """How many handlers were started by the handler that is running now; see ``framewire.node.worker``."""
    inline: Cell | None = None
    """The actor whose inline handler is running now."""
    budget: int = _BUDGET
    """How many more messages may be handled at once, before the event loop must come round."""
    send: Callable[[Parcel], Room | None] = field(init=False)
    """How a parcel gets under way; the router's, once there is one."""
    answer: Callable[[str, Parcel, object], Room | None] = field(init=False)
    """How what an actor made of a parcel does."""
    held: Callable[[], Iterable[Parcel]] = field(init=False)
    """Messages that are held for a route; the router's, once there is one."""
    has_peers: Callable[[], bool] = field(init=False)
    """Whether other nodes are known; the router's, once there is one."""
    sender: Callable[[bytes, tuple[RouterAddress, ...]], RouterAddress | None] = field(
        init=False, default=lambda _, routing: routing[-1] if routing else None
    )
    """The routing entry of the node that a peer's message came from; the router's, once there is one."""
    now: Callable[[], float] = field(init=False)
    dead_letters: DeadLetters = field(init=False)
    trace: Trace = field(init=False)
    conduct: Conduct = field(init=False)
    replays: Replays | None = field(init=False, default=None)
    samples: Samples = field(default_factory=Samples)
    cancellations: Cancellations = field(init=False)
    deadlocks: DeadlockSearch = field(init=False)

    def __post_init__(self) -> None:
        self.now = self.clock.time
        if self.settings.replay_window:
            self.replays = Replays(self.settings.replay_window, self.settings.replay_memory)
        self.dead_letters = DeadLetters(self.settings.keep_dead_letters, self.now)
        self.trace = Trace(self.identity, self.now)
        self.conduct = Conduct(self.now)
        self.cancellations = Cancellations(self)
        self.deadlocks = DeadlockSearch(self)

    def sender_of(self, peer: bytes, routing: tuple[RouterAddress, ...]) -> bytes:
        """Return the node that a peer's message came from; the peer itself where no entry names one."""
        entry = self.sender(peer, routing)
        return peer if entry is None else entry.identity

    def hold_on(self) -> None:
        """Let messages wait for their workers: where there are many, it takes half as long as running them now."""
        self.budget = 0

    def breathe(self) -> None:
        """The event loop has come round."""
        self.budget = _BUDGET

    def undeliverable(self, parcel: Parcel, reason: Reason, error: errors.MessageError) -> None:
        """Record that a parcel goes nowhere, and tell whoever waits for an answer to it."""
        if reason is Reason.BAD_BODY and parcel.message_id == EXCEPTION and self._tell_shorter(parcel):
            return
        error.message_id = error.message_id or parcel.message_id
        error.correlation_id = error.correlation_id or parcel.correlation_id
        error.node = error.node or self.identity
        self.dead_letters.add(reason, error.detail, parcel)
        self.tell_failure(parcel, error)

    def tell_failure(self, parcel: Parcel, error: BaseException, *, actor: str = "") -> bool:
        """Send an exception to the callback receiver of a parcel; whether it has one."""
        callback = parcel.callback
        if callback is None or EXCEPTION not in callback.points or parcel.message_id == EXCEPTION:
            return False
        told = exception_from(error, actor=actor, node=self.identity, about=parcel.message_id)
        self._send_exception(told, parcel, callback)
        return True

    def _tell_shorter(self, parcel: Parcel) -> bool:
        """Send an exception that was too large to leave once more, without what can be left out; whether it can."""
        callback = parcel.callback
        try:
            short = shortened(parcel.read(type_of(ExceptionMessage)))
        except errors.BadBody:
            return False
        if short is None or callback is None:
            return False
        self._send_exception(short, parcel, callback)
        return True

    def _send_exception(self, told: ExceptionMessage, parcel: Parcel, callback: Callback) -> None:
        self.send(
            Parcel(
                EXCEPTION,
                told,
                correlation_id=parcel.correlation_id,
                callback=callback,
                # The answer must get through even where the question's time is over.
                deadline=self.now() + self.settings.timeout,
                receiver=callback.receiver,
                receiver_node=callback.node,
                routing=parcel.routing,
                trace_options=parcel.trace_options,
            )
        )

    def limited(self, room: Room, parcel: Parcel) -> Room:
        """A wait for room that ends with ``Overloaded`` when the parcel's time, or the node's patience, is over."""
        now = self.now()
        patience = min(parcel.deadline - now, self.settings.timeout)

        def give_up() -> None:
            if not room.done():
                room.set_exception(self.overloaded(parcel, f"waited {patience:.1f} s for room"))
                room.exception()  # whoever sent it may be gone
                self.undeliverable(parcel, Reason.OVERLOADED, self.overloaded(parcel, "no room in time"))

        timer = self.clock.call_later(patience, give_up)
        room.add_done_callback(lambda _: timer.cancel())
        return room

    def in_thread(self, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Run a function in the node's threads."""
        if self.threads is None:
            raise errors.NodeStopped("this node has no threads any more", node=self.identity)
        return asyncio.wrap_future(self.threads.submit(function, *args))

    async def sleep(self, seconds: float) -> None:
        """Wait for a while on the node's clock."""
        woken = asyncio.get_running_loop().create_future()
        timer = self.clock.call_later(seconds, woken.set_result, None)
        try:
            await woken
        finally:
            timer.cancel()

    def overloaded(self, parcel: Parcel, detail: str, retry_after: float | None = None) -> errors.Overloaded:
        error = errors.Overloaded(
            detail, message_id=parcel.message_id, correlation_id=parcel.correlation_id, node=self.identity
        )
        if retry_after is not None:
            error.retry_after = retry_after
        return error
