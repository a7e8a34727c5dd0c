"""An actor at work: its mailbox and its workers.

A worker is a task that awaits one handler after another, so a message costs no task of its own. A message to an
actor that is idle does not even wait for its worker to be scheduled: see ``framewire.node.worker``.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any

from framewire.errors import NodeStopped, NoRoute, UsageError
from framewire.node.actor import Actor, Handler, Kind, handlers_of
from framewire.node.core import Core, handling
from framewire.node.deadletters import Reason
from framewire.node.desk import Desk
from framewire.node.life import PATIENCE, Life
from framewire.node.mailbox import Mailbox, Overflow, Room
from framewire.node.parcel import Parcel
from framewire.node.worker import Worker
from framewire.routing import Route
from framewire.wire import MessageId

__all__ = ["Cell"]

log = logging.getLogger("framewire.node")

_IN_A_ROW = 100
"""Messages that a worker handles before it lets others on the event loop have a go."""
_INLINE_DEPTH = 32
"""Inline handlers that may call one another; deeper ones go through the mailbox."""


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
        self._bind()
        self.concurrency = self.actor.concurrency if concurrency is None else concurrency
        if self.concurrency < 1:
            raise UsageError(f"concurrency: {self.concurrency}; at least one message must be handled at a time")
        limit = self.actor.mailbox if mailbox is None else mailbox
        self.mailbox = Mailbox(
            core.settings.mailbox if limit is None else limit,
            overflow or self.actor.overflow or core.settings.overflow,
            arrived=self._arrived,
            refused=self._refused,
        )
        self.restarts = 0
        self._restarting: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._workers: set[Worker] = set()
        self._idle: deque[Worker] = deque()
        self._paused = True
        self._resumed = asyncio.Event()
        self._inline_limit = 0
        self._quiet: list[asyncio.Future[None]] = []

    @property
    def actor(self) -> Actor:
        """The actor as it is now: a restart may have made another."""
        return self._life.actor

    @property
    def handlers(self) -> dict[MessageId, Handler]:
        """What it handles now, and how."""
        return self._desk.handlers

    @property
    def busy(self) -> int:
        """Messages that it is handling."""
        return self._desk.busy

    # --- taking messages

    def accept(self, parcel: Parcel, *, at_once: bool = True) -> Room | None:
        """Take a message in; what is returned is done when there is room for it.

        It may be handled before this returns, unless ``at_once`` is false.
        """
        if at_once:
            if self._inline and (handler := self._inline.get(parcel.message_id)) is not None:
                if self.core.depth < self._inline_limit:
                    return self._desk.handle_inline(handler, parcel)
            elif self._idle and not self._paused and self.core.may_run_now():
                self._run_now(parcel)
                return None
        taken = self.mailbox.put(parcel)
        if taken is True:
            return None
        if taken is False:
            refusal: Room = self.loop.create_future()
            refusal.set_exception(self.core.overloaded(parcel, self._full()))
            refusal.exception()
            return refusal
        return self.core.limited(taken, parcel)

    def accept_all(self, parcels: list[Parcel]) -> None:
        """Take in several that came together from another node."""
        if self._inline or not self.mailbox.put_all(parcels):
            for parcel in parcels:
                self.accept(parcel)
        else:
            for _ in range(min(len(parcels), self.concurrency)):
                self._arrived()

    def _run_now(self, parcel: Parcel) -> None:
        """Let an idle worker start at once. Where one is idle the mailbox is empty: nobody is overtaken."""
        worker = self._idle.pop()
        self.core.depth += 1
        try:
            finished = worker.run_now(self._desk.handle(parcel))
        except BaseException:
            worker.task.cancel()  # the program is to end, and only a worker that ended is replaced
            raise
        finally:
            self.core.depth -= 1
        if not finished:
            return
        if len(self.mailbox):
            worker.wake()
        else:
            self._idle.append(worker)
            if self._quiet and not self._desk.busy:
                self._tell_quiet()

    def _arrived(self) -> None:
        if self._idle:
            self._idle.pop().wake()
        elif len(self._workers) < self.concurrency:
            worker = self._life.context.run(Worker, self.loop, self._work, name=f"framewire {self.name}")
            self._workers.add(worker)
            worker.task.add_done_callback(lambda _: self._lost(worker))

    def _lost(self, worker: Worker) -> None:
        """A worker ended. That is as it should be where the actor is stopped; otherwise it is replaced."""
        self._workers.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        if len(self.mailbox) and self._desk.cut_off is None:
            self._arrived()

    def _refused(self, parcel: Parcel) -> None:
        self.core.undeliverable(parcel, Reason.OVERLOADED, self.core.overloaded(parcel, self._full()))

    def _full(self) -> str:
        return f"the mailbox of {self.name} is full ({self.mailbox.limit}, {self.mailbox.overflow})"

    # --- handling them

    async def _work(self, worker: Worker) -> None:
        mailbox = self.mailbox
        in_a_row = 0
        handling.set(True)
        await self._resumed.wait()
        while True:
            parcel = mailbox.take()
            if parcel is None:
                if self._quiet and not self._desk.busy:
                    self._tell_quiet()
                if not self._inline_limit and not self._paused:
                    self._inline_limit = _INLINE_DEPTH
                self._idle.append(worker)
                await worker.called()
                in_a_row = 0
                self.core.breathe()
            else:
                await self._desk.handle(parcel)
                in_a_row += 1
                if in_a_row == _IN_A_ROW:
                    in_a_row = 0
                    await asyncio.sleep(0)
            if self._paused:
                if self._desk.cut_off is not None:
                    return  # its handler took no notice of being cut off
                if self._quiet and not self._desk.busy:
                    self._tell_quiet()
                await self._resumed.wait()

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
        # What waits goes first, so nothing is handled inline until a worker finds the mailbox empty.
        self._inline_limit = 0 if len(self.mailbox) else _INLINE_DEPTH
        self._resumed.set()

    def _pause(self) -> None:
        self._paused = True
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
        before, handlers = self._desk.handlers, handlers_of(self.actor)
        for message_id in before.keys() & handlers.keys():
            handlers[message_id].figures = before[message_id].figures
        self._desk.handlers = handlers
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
            if not waiting.done():
                waiting.set_result(None)
        self._quiet.clear()

    def discard(self, reason: Reason, error: NoRoute | NodeStopped) -> None:
        """Tell everyone in the mailbox that they will not be handled."""
        for parcel in self.mailbox.clear(error):
            self.core.undeliverable(parcel, reason, type(error)(error.detail))

    def works_in(self, task: asyncio.Task[Any] | None) -> bool:
        """Whether a task is one of this actor's workers."""
        return any(worker.task is task for worker in self._workers)

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
        tasks = {worker.task for worker in self._workers} | ({self._restarting} if self._restarting else set())
        try:
            await self._life.ended(tasks, 0, patience)
            self.discard(reason, error)  # what they sent one another at the last moment
            await self._life.end(patience)
        finally:
            self._over.set()
            self._tell_quiet()
