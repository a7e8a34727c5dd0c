"""An actor at work: its mailbox and its workers.

A worker is a task that awaits one handler after another, so a message costs no task of its own. A message to an
actor that is idle does not even wait for its worker to be scheduled: see ``framewire.node.worker``.

While an actor is at work it is looked at every now and then: how fast it works, which handlers are late, and
whether its workers wait for each other.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from framewire.errors import NodeStopped, NoRoute, Overloaded, UsageError
from framewire.node.actor import Actor, Handler, Kind, handlers_of
from framewire.node.clock import Timer
from framewire.node.core import Core, Flow, handling
from framewire.node.deadletters import Reason
from framewire.node.desk import Desk
from framewire.node.life import PATIENCE, Life
from framewire.node.load import LoadEstimate
from framewire.node.mailbox import Mailbox, Overflow, Refusal, Room
from framewire.node.parcel import Parcel
from framewire.node.worker import CutShort, Worker
from framewire.routing import Route
from framewire.wire import MessageId

__all__ = ["Cell"]

log = logging.getLogger("framewire.node")

_IN_A_ROW = 100
"""Messages that a worker handles before it lets others on the event loop have a go."""
_INLINE_DEPTH = 32
"""Inline handlers that may call one another; deeper ones go through the mailbox."""
_LOOK_S, _SLOW_LOOK_S = 0.025, 1.0
"""Seconds between two looks at an actor at work, and at one where nothing changes."""
_DEEPEST = 16
"""Handlers that may be begun by one another before the event loop must come round."""
_NESTED = 64
"""Handlers of one flow that a reentrant actor may be in at a time."""


class Cell:
    """One hosted actor."""

    def __init__(
        self,
        core: Core,
        make: Callable[[], Actor],
        *,
        prepare: Callable[[Actor], None],
        withdraw: Callable[[Cell], None],
        gone: Callable[[Cell], None],
        concurrency: int | None = None,
        mailbox: int | None = None,
        overflow: Overflow | None = None,
        local: bool = False,
        cancel_late: bool | None = None,
        reentrant: bool | None = None,
    ) -> None:
        self.core = core
        self.local = local
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.route = Route(b"\x01" + uuid.uuid4().bytes)
        self._withdraw = withdraw
        self._gone = gone
        self._life = Life(core, make, prepare)
        self.name = self._life.name
        self._desk = Desk(self, self._failed)
        self._inline: dict[MessageId, Handler] = {}
        self.by_kind: dict[MessageId, Handler] = {}
        """Its handlers, each under one message: a handler for many partitions has many."""
        self._partitions: dict[str, list[bytes]] = {}
        self._bind()
        self.concurrency = self.actor.concurrency if concurrency is None else concurrency
        if self.concurrency < 1:
            raise UsageError(f"concurrency: {self.concurrency}; at least one message must be handled at a time")
        self.cancel_late = self.actor.cancel_late if cancel_late is None else cancel_late
        self.reentrant = self.actor.reentrant if reentrant is None else reentrant
        limit = self.actor.mailbox if mailbox is None else mailbox
        self._idle: deque[Worker] = deque()
        self.mailbox = Mailbox(
            core.settings.mailbox if limit is None else limit,
            overflow or self.actor.overflow or core.settings.overflow,
            most=core.settings.max_queued,
            most_bytes=core.settings.max_queued_bytes,
            now=core.now,
            idle=self._idle,
            arrived=self._arrived,
            refused=self._refused,
            filled=self._filled,
            pressed=self._leads_here,
        )
        self.load = LoadEstimate(self.concurrency, core.now())
        self._look_timer: Timer | None = None
        self._pause_s = _LOOK_S
        self._seen = (0, 0)
        self._look_due = 0.0
        self._stuck_s = 0.0
        self.sources: set[Cell] = set()
        """Actors of this node that have sent to this one while it was full."""
        self.full: set[Cell] = set()
        """Actors that flows of this one lead to and that are full: while there are any, no flow begins here."""
        self._paced: set[asyncio.Future[None]] = set()
        self.restarts = 0
        self._restarting: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self.workers: set[Worker] = set()
        self.asking = 0
        """Asks that its handlers are at."""
        self._may_start = True
        self._paused = True
        self._held = True
        self._resumed = asyncio.Event()
        self._inline_limit = 0
        self._quiet: list[asyncio.Future[None]] = []

    @property
    def actor(self) -> Actor:
        """The actor as it is now: a restart may have made another."""
        return self._life.actor

    @property
    def cell(self) -> Cell:
        """Itself: what runs inline has no worker (``Flow.owner``)."""
        return self

    @property
    def handlers(self) -> dict[MessageId, Handler]:
        """What it handles now, and how."""
        return self._desk.handlers

    @property
    def busy(self) -> int:
        """Messages that it is handling."""
        return self._desk.busy

    @property
    def active(self) -> list[Worker]:
        """The workers that handle a message."""
        return [worker for worker in self.workers if worker.parcel is not None]

    @property
    def all_wait(self) -> bool:
        """Whether every worker that there may be waits for an answer."""
        return not self._may_start and all(worker.waits for worker in self.workers)

    @property
    def _times(self) -> Mapping[MessageId, float]:
        """Seconds that a message takes itself, where it is quick."""
        return self.load.handling if len(self.by_kind) == len(self.handlers) else _Times(self)

    # --- taking messages

    def accept(self, parcel: Parcel, *, at_once: bool = True) -> Room | None:
        """Take a message in; what is returned is done when there is room for it.

        It may be handled before this returns, unless ``at_once`` is false.
        """
        if at_once:
            if self._inline and (handler := self._inline.get(parcel.message_id)) is not None:
                if self.core.depth < self._inline_limit:
                    return self._desk.handle_inline(handler, parcel)
            elif self._idle and not self._held and (core := self.core).budget and core.depth < _DEEPEST:
                core.budget -= 1
                self._run_now(parcel)
                return None
        if self.reentrant and self._is_inside(parcel):
            self._start(spare=parcel)
            return None
        taken = self.mailbox.put(parcel)
        if taken is None:
            if self.asking:
                self._suspect()
            return None
        if isinstance(taken, Refusal):
            refused: Room = self.loop.create_future()
            refused.set_exception(self._refused(parcel, taken))
            refused.exception()
            return refused
        self._watch()
        return self.core.limited(taken, parcel)

    def accept_all(self, parcels: list[Parcel]) -> None:
        """Take in several that came together from another node."""
        if self._inline or self.reentrant or not self.mailbox.put_all(parcels):
            for parcel in parcels:
                self.accept(parcel)
        else:
            for _ in range(min(len(parcels), self.concurrency)):
                self._arrived()
            if self.asking:
                self._suspect()

    def _suspect(self) -> None:
        """Search for a deadlock if a message of a flow under way waits while all workers wait for answers."""
        if self.mailbox.under_way and self.all_wait:
            self.core.deadlocks.suspect(likely=True)

    def _run_now(self, parcel: Parcel) -> None:
        """Let an idle worker start at once. Where one is idle the mailbox is empty: nobody is overtaken."""
        worker, core, mailbox = self._idle.pop(), self.core, self.mailbox
        core.depth += 1
        try:
            finished = worker.run_now(self._desk.handle(parcel, worker))
        except BaseException:
            worker.task.cancel()  # the program is to end, and only a worker that ended is replaced
            raise
        finally:
            core.depth -= 1
        if not finished:
            if self._look_timer is None:
                self._watch()
            return
        if mailbox.under_way or mailbox.ready or mailbox.inside:  # without a call, as nearly all messages come here
            worker.wake()
        else:
            self._idle.append(worker)
            if self._quiet and not self._desk.busy:
                self._tell_quiet()

    def _arrived(self) -> None:
        if self._idle:
            self._idle.pop().wake()
        elif self._may_start:
            self._start()
        elif self._paced:  # a handler that only waits for the way to another node is to go on
            for pace in self._paced:
                _set(pace)

    def _start(self, spare: Parcel | None = None) -> None:
        """Start a worker; one for a message of its own is beyond the actor's concurrency."""
        work = self._work if spare is None else partial(self._work_on, spare)
        worker = self._life.context.run(
            Worker, self.loop, work, f"framewire {self.name}", self, spare=spare is not None
        )
        self.workers.add(worker)
        self._may_start = sum(not worker.spare for worker in self.workers) < self.concurrency
        worker.task.add_done_callback(lambda _: self._lost(worker))

    def _lost(self, worker: Worker) -> None:
        """A worker ended. That is as it should be where the actor is stopped; otherwise it is replaced."""
        self.workers.discard(worker)
        self._may_start = sum(not worker.spare for worker in self.workers) < self.concurrency
        if worker in self._idle:
            self._idle.remove(worker)
        if self._desk.cut_off is None:
            if len(self.mailbox):
                self._arrived()
            if self._quiet and not self._desk.busy:
                self._tell_quiet()

    def _is_inside(self, parcel: Parcel) -> bool:
        """Whether a handler here waits for an answer within the flow of a message."""
        flow = parcel.correlation_id
        inside = [
            worker
            for worker in self.workers
            if worker.asking and worker.parcel is not None and worker.parcel.correlation_id == flow
        ]
        return 0 < len(inside) < _NESTED and not self._paused

    def _refused(self, parcel: Parcel, refusal: Refusal) -> Overloaded:
        error = self._error(parcel, refusal)
        self.core.undeliverable(parcel, Reason.OVERLOADED, error)
        return error

    def _error(self, parcel: Parcel, refusal: Refusal) -> Overloaded:
        return self.core.overloaded(parcel, f"the mailbox of {self.name} {refusal.detail}", refusal.retry_after)

    # --- load

    def _filled(self, is_full: bool) -> None:
        """Let no flow begin, on the actors whose flows lead here, while this one is full."""
        if not is_full:
            self._let_begin()
            return
        for cell in self._upstream():
            cell.full.add(self)
            cell.hold_new()

    def _let_begin(self) -> None:
        """Let flows begin again on all actors that wait for this one, also where what was in between is gone."""
        for cell in self.core.cells.values():
            if self in cell.full:
                cell.full.discard(self)
                cell.hold_new()

    def _upstream(self) -> set[Cell]:
        found: set[Cell] = set()
        search = [self]
        while search:
            for cell in search.pop().sources - found:
                found.add(cell)
                search.append(cell)
        return found - {self}

    def _leads_here(self) -> None:
        """Take note of the actor whose handler has sent a message here while this one is full."""
        flow = handling.get()
        for source in (self.core.inline, flow.cell if isinstance(flow, Flow) else None):
            if (
                source is not None
                and source is not self
                and source.core is self.core
                and source not in self.sources
            ):
                self.sources.add(source)
                self._filled(True)

    def hold_new(self) -> None:
        """Keep flows from beginning here while an actor that they lead to is full, and let them go on otherwise."""
        delay = max((len(cell.mailbox) * cell.mailbox.service for cell in self.full), default=0.0)
        self.mailbox.close_to_new(bool(self.full), delay)
        self._held = self._paused or bool(self.full)
        self._inline_limit = 0 if self._held or len(self.mailbox) else _INLINE_DEPTH
        if not self.full:
            for _ in range(min(self.mailbox.takeable, self.concurrency)):
                self._arrived()

    async def pace(self, room: Room) -> None:
        """Wait for the way to another node, but only while nobody waits for this actor."""
        if len(self.mailbox):
            return
        pace = self.loop.create_future()
        self._paced.add(pace)
        room.add_done_callback(lambda _: _set(pace))
        try:
            await pace
        finally:
            self._paced.discard(pace)

    def _watch(self) -> None:
        """Look at the actor while it is at work."""
        if self._look_timer is None:
            self._pause_s = _LOOK_S
            self.load.resume(self.core.now())
            self.mailbox.use(self.load.service, self._times)
            self._look_after(_LOOK_S)

    def _look(self) -> None:
        self._look_timer = None
        now = self.core.now()
        busy, next_deadline = False, math.inf
        for worker in self.workers:
            if worker.parcel is None:
                continue
            busy = True
            if worker.cut_short is None:
                if worker.parcel.deadline <= now:
                    self.cut_short(worker, CutShort.LATE)
                else:
                    next_deadline = min(next_deadline, worker.parcel.deadline)
        queued, done = len(self.mailbox), sum(handler.figures.handled for handler in self.by_kind.values())
        if not busy or done != self._seen[0]:
            self._stuck_s = 0.0
        elif now - self._look_due < _LOOK_S:  # a look that is late tells of the event loop and not of the handler
            self._stuck_s += self._pause_s
        self.load.look(self.by_kind.items(), now, now - self._look_due, self._stuck_s, queued)
        self.mailbox.use(self.load.service, self._times)
        if self.full:
            self.hold_new()
        if self._stuck_s and self.all_wait and len(self.mailbox):
            self.core.deadlocks.suspect()
        if self._desk.cut_off is not None or not (self._desk.busy or queued or self.mailbox.waiting):
            return
        self._pause_s = _LOOK_S if self._seen != (done, queued) else min(2 * self._pause_s, _SLOW_LOOK_S)
        self._seen = (done, queued)
        self._look_after(max(min(self._pause_s, next_deadline - now), 0.001))

    def _look_after(self, pause: float) -> None:
        self._look_due = self.core.now() + pause
        self._look_timer = self.core.clock.call_later(pause, self._look)

    def cut_short(self, worker: Worker, why: CutShort) -> None:
        """Cancel what a worker handles; a handler in a thread is told by its context."""
        handler = None if worker.parcel is None else self.handlers.get(worker.parcel.message_id)
        if worker.cut_short is not None or handler is None or (why is CutShort.LATE and not self.cancel_late):
            return
        worker.cut_short = why
        worker.tidy = False
        if handler.kind is not Kind.THREAD:
            worker.task.cancel()

    # --- handling them

    async def _work(self, worker: Worker) -> None:
        mailbox, cancelled = self.mailbox, self.core.cancellations.known
        in_a_row = 0
        self._watch()
        await self._resumed.wait()
        while True:
            parcel = mailbox.take()
            if parcel is None:
                if self._quiet and not self._desk.busy:
                    self._tell_quiet()
                if not self._inline_limit and not self._held:
                    self._inline_limit = _INLINE_DEPTH
                self._idle.append(worker)
                await worker.called()
                in_a_row = 0
                self.core.breathe()
                if self._look_timer is None:
                    self._watch()
            elif not (cancelled and self.core.cancellations.drops(parcel)):
                await self._desk.handle(parcel, worker)
                in_a_row += 1
                if in_a_row == _IN_A_ROW:
                    in_a_row = 0
                    await asyncio.sleep(0)
                    self._watch()
            if self._paused:
                if self._desk.cut_off is not None:
                    return  # its handler took no notice of being cut off
                if self._quiet and not self._desk.busy:
                    self._tell_quiet()
                await self._resumed.wait()
                self._watch()

    async def _work_on(self, parcel: Parcel, worker: Worker) -> None:
        """Handle one message beside those that the actor is at."""
        self._watch()
        await self._desk.handle(parcel, worker)

    def _failed(self, in_a_row: int) -> None:
        after = self.actor.restart.after
        if after is not None and in_a_row >= after and not self._paused:
            log.warning("%s failed %d times in a row and is restarted", self.name, in_a_row)
            self._pause()
            self._restarting = self._life.task(self._restart(), "restarts")

    # --- living

    async def start(self) -> None:
        """Run the actor's ``started`` hook, more than once if need be, and begin to handle messages."""
        await self._life.begin()
        self._open()

    def start_at_once(self) -> None:
        """The same for an actor without a hook."""
        self._life.begin_at_once()
        self._open()

    def _open(self) -> None:
        self._paused = False
        self._held = bool(self.full)
        # What waits goes first, so nothing is handled inline until a worker finds the mailbox empty.
        self._inline_limit = 0 if self._held or len(self.mailbox) else _INLINE_DEPTH
        self._resumed.set()

    def _pause(self) -> None:
        self._paused = self._held = True
        self._resumed.clear()
        self._inline_limit = 0

    async def _restart(self) -> None:
        while self._desk.busy:  # the hook is called after the last message, and other workers may have one
            await self._next_quiet()
        self.restarts += 1
        self._desk.failures = 0
        await self._life.end(self.core.settings.stop_timeout)
        try:
            self._life.renew()
            self._bind()
            await self._life.begin()
        except Exception:
            log.exception("%s does not start again and is given up", self.name)
            self._restarting = None
            self._withdraw(self)
            await self.stop(Reason.HANDLER_GONE, NoRoute(f"{self.name} failed too often"))
            self._gone(self)
        else:
            self._open()

    def _bind(self) -> None:
        """Take over the handlers of a new actor, with the figures of the one before."""
        before, handlers = self._desk.handlers, handlers_of(self.actor, self._partitions)
        for message_id in before.keys() & handlers.keys():
            handlers[message_id].figures = before[message_id].figures
        self._desk.handlers = handlers
        self.by_kind = {handler.message_id: handler for handler in handlers.values()}
        self._inline = {key: handler for key, handler in handlers.items() if handler.kind is Kind.INLINE}

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left to wait for: the mailbox is empty and no handler runs, or all is over."""
        return self._desk.cut_off is not None or not (self._desk.busy or len(self.mailbox))

    async def quiet(self) -> None:
        """Wait for that."""
        while not self.is_quiet:
            await self._next_quiet()

    async def _next_quiet(self) -> None:
        quiet = self.loop.create_future()
        self._quiet.append(quiet)
        await quiet

    def _tell_quiet(self) -> None:
        for waiting in self._quiet:
            _set(waiting)
        self._quiet.clear()

    def discard(self, reason: Reason, error: NoRoute | NodeStopped) -> None:
        """Tell everyone in the mailbox that they will not be handled."""
        for parcel in self.mailbox.clear(error):
            self.core.undeliverable(parcel, reason, type(error)(error.detail))

    def works_in(self, task: asyncio.Task[Any] | None) -> bool:
        """Whether a task is one of this actor's workers."""
        return any(worker.task is task for worker in self.workers)

    async def stop(self, reason: Reason, error: NoRoute | NodeStopped, patience: float = PATIENCE) -> None:
        """End the workers, whatever they do, and run the actor's ``stopping`` hook.

        Whatever is not handled by now gets the error. A handler or a hook that does not end when it is cancelled
        is left to itself after a while.
        """
        if self._desk.cut_off is not None:
            await self._over.wait()
            return
        self._desk.cut_off = (reason, error)
        self._pause()
        self._idle.clear()
        self.discard(reason, error)
        if self._look_timer is not None:
            self._look_timer.cancel()
            self._look_timer = None
        self._let_begin()
        for cell in self.core.cells.values():
            cell.sources.discard(self)
        tasks = {worker.task for worker in self.workers} | ({self._restarting} if self._restarting else set())
        try:
            await self._life.ended(tasks, 0, patience)
            self.discard(reason, error)  # what they sent one another at the last moment
            await self._life.end(patience)
        finally:
            self._over.set()
            self._tell_quiet()


class _Times(Mapping[MessageId, float]):
    """The same where handlers are for many partitions: a message takes as long in each."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def __getitem__(self, message: MessageId) -> float:
        return self._cell.load.handling[self._cell.handlers[message].message_id]

    def __iter__(self) -> Iterator[MessageId]:
        return iter(self._cell.handlers)

    def __len__(self) -> int:
        return len(self._cell.handlers)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
