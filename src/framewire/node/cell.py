"""An actor at work: its mailbox and its workers.

A worker is a task that awaits one handler after another, so a message costs no task of its own. A message to an
actor that is idle does not even wait for its worker to be scheduled: see ``framewire.node.worker``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any

from framewire.errors import BadBody, Expired, MessageError, NodeStopped, NoRoute, UsageError
from framewire.node.actor import Actor, Handler, Kind, handlers_of
from framewire.node.context import Context
from framewire.node.core import Core, handling
from framewire.node.deadletters import Reason
from framewire.node.flow import following
from framewire.node.life import PATIENCE, Life
from framewire.node.mailbox import Mailbox, Overflow, Room, together
from framewire.node.parcel import Parcel
from framewire.node.threads import TooLateError, in_thread
from framewire.node.worker import Worker
from framewire.routing import Route
from framewire.wire import MessageId, TraceOptions

__all__ = ["Cell"]

log = logging.getLogger("framewire.node")

_IN_A_ROW = 100
"""Messages that a worker handles before it lets others on the event loop have a go."""
_INLINE_DEPTH = 32
"""Inline handlers that may call one another; deeper ones go through the mailbox."""


_SEVERAL = (list, tuple)
"""What a handler returns several messages in."""


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
        self.handlers: dict[MessageId, Handler] = {}
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
        self.busy = 0
        self.restarts = 0
        self._failures = 0
        self._restarting: asyncio.Task[None] | None = None
        self._cut_off: tuple[Reason, NoRoute | NodeStopped] | None = None
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

    # --- taking messages

    def accept(self, parcel: Parcel, *, at_once: bool = True) -> Room | None:
        """Take a message in; what is returned is done when there is room for it.

        It may be handled before this returns, unless ``at_once`` is false.
        """
        if at_once:
            if self._inline and (handler := self._inline.get(parcel.message_id)) is not None:
                if self.core.depth < self._inline_limit:
                    return self._handle_inline(handler, parcel)
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
            finished = worker.run_now(self._handle(parcel))
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
            if self._quiet and not self.busy:
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
        if len(self.mailbox) and self._cut_off is None:
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
                if self._quiet and not self.busy:
                    self._tell_quiet()
                if not self._inline_limit and not self._paused:
                    self._inline_limit = _INLINE_DEPTH
                self._idle.append(worker)
                await worker.called()
                in_a_row = 0
                self.core.breathe()
            else:
                await self._handle(parcel)
                in_a_row += 1
                if in_a_row == _IN_A_ROW:
                    in_a_row = 0
                    await asyncio.sleep(0)
            if self._paused:
                if self._cut_off is not None:
                    return  # its handler took no notice of being cut off
                if self._quiet and not self.busy:
                    self._tell_quiet()
                await self._resumed.wait()

    async def _handle(self, parcel: Parcel) -> None:
        core = self.core
        started = core.now()
        handler = self.handlers.get(parcel.message_id)
        if handler is None or parcel.deadline <= started:
            self._unfit(parcel, started)
            return
        try:
            payload = parcel.read(handler.message_type)
        except BadBody as problem:
            core.undeliverable(parcel, Reason.BAD_BODY, problem)
            return
        if core.tap is not None:
            core.tap.delivered(self.route.receiver, parcel)
        self.busy += 1
        try:
            arguments = (payload, Context(self, parcel)) if handler.takes_context else (payload,)
            if handler.kind is Kind.COROUTINE:
                result = await handler.function(*arguments)
            elif handler.kind is Kind.STREAM:
                result = None
                async with contextlib.aclosing(handler.function(*arguments)) as items:
                    async for item in items:
                        await self._emit(parcel, item)
            elif handler.kind is Kind.THREAD:
                result = await in_thread(core, parcel, handler, arguments)
            else:
                result = handler.function(*arguments)
            if result is not None:
                if isinstance(result, _SEVERAL):
                    await self._emit(parcel, result)
                elif (room := core.send(following(core, self.name, parcel, result))) is not None:
                    await _patiently(room)
        except asyncio.CancelledError as problem:
            if self._cut_off is not None:
                reason, error = self._cut_off
                core.undeliverable(parcel, reason, type(error)(f"its handler was cut off: {error.detail}"))
                raise
            self._failed(handler, parcel, problem)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # whoever wants this task to end is heard; another worker takes its place
        except (KeyboardInterrupt, SystemExit):
            raise
        except TooLateError:
            self._unfit(parcel, core.now())
            return
        except BaseException as problem:  # noqa: BLE001 - a handler may raise anything
            self._failed(handler, parcel, problem)
        else:
            self._failures = 0
        finally:
            self.busy -= 1
        self._count(handler, parcel, started)

    def _handle_inline(self, handler: Handler, parcel: Parcel) -> Room | None:
        started = self.core.now()
        if parcel.deadline <= started:
            self._unfit(parcel, started)
            return None
        try:
            payload = parcel.read(handler.message_type)
        except BadBody as problem:
            self.core.undeliverable(parcel, Reason.BAD_BODY, problem)
            return None
        if self.core.tap is not None:
            self.core.tap.delivered(self.route.receiver, parcel)
        rooms = []
        self.core.depth += 1
        try:
            arguments = (payload, Context(self, parcel)) if handler.takes_context else (payload,)
            result = handler.function(*arguments)
            if result is not None:
                results = self._results(parcel, result)
                rooms = [room for sent in results if (room := self.core.send(sent)) is not None]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as problem:  # noqa: BLE001 - a handler may raise anything
            self._failed(handler, parcel, problem)
        else:
            self._failures = 0
        finally:
            self.core.depth -= 1
        self._count(handler, parcel, started)
        return together(rooms, theirs=False) if rooms else None

    def _unfit(self, parcel: Parcel, now: float) -> None:
        """A parcel that came too late, or for a handler that is no longer there."""
        if parcel.deadline <= now:
            late = f"reached {self.name} {now - parcel.deadline:.3f} s too late"
            self.core.undeliverable(parcel, Reason.EXPIRED, Expired(late))
        else:
            self.core.undeliverable(parcel, Reason.HANDLER_GONE, NoRoute(f"{self.name} no longer handles it"))

    async def _emit(self, parcel: Parcel, result: Any) -> None:
        """Send what a handler returned or yielded."""
        for sent in self._results(parcel, result):
            room = self.core.send(sent)
            if room is not None:
                await _patiently(room)

    def _results(self, parcel: Parcel, result: Any) -> tuple[Parcel, ...]:
        if isinstance(result, _SEVERAL):
            return tuple([following(self.core, self.name, parcel, payload) for payload in result])
        return (following(self.core, self.name, parcel, result),)

    def _count(self, handler: Handler, parcel: Parcel, started: float) -> None:
        core, figures = self.core, handler.figures
        took = core.now() - started
        figures.handled += 1
        figures.seconds += took
        if took > figures.longest:  # noqa: PLR1730 - max() takes twice as long, and this is for every message
            figures.longest = took
        core.counters.handled += 1
        if parcel.trace_options:
            self._trace_handled(handler, parcel, took)

    def _trace_handled(self, handler: Handler, parcel: Parcel, took: float) -> None:
        if parcel.trace_options & TraceOptions.ROUTING:
            detail = f"by {handler.name} in {took:.6f} s"
            self.core.trace.step("handled", parcel.message_id, parcel.correlation_id, detail)

    # --- failing

    def _failed(self, handler: Handler, parcel: Parcel, problem: BaseException) -> None:
        handler.figures.failed += 1
        self.core.counters.failed += 1
        self._failures += 1
        told = self.core.tell_failure(parcel, problem, actor=handler.name)
        # A caller gets the traceback with its RemoteError; without one, the log is all there is.
        level = logging.DEBUG if told else logging.WARNING
        log.log(level, "%s failed on %s", handler.name, parcel.message_id, exc_info=problem)
        after = self.actor.restart.after
        if after is not None and self._failures >= after and not self._paused:
            log.warning("%s failed %d times in a row and is restarted", self.name, self._failures)
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
        while self.busy:  # the hook is called after the last message, and other workers may have one
            await self._next_quiet()
        self.restarts += 1
        self._failures = 0
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
        before, self.handlers = self.handlers, handlers_of(self.actor)
        for message_id in before.keys() & self.handlers.keys():
            self.handlers[message_id].figures = before[message_id].figures
        self._inline = {key: handler for key, handler in self.handlers.items() if handler.kind is Kind.INLINE}

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left to wait for: the mailbox is empty and no handler runs, or all is over."""
        return self._cut_off is not None or not (self.busy or len(self.mailbox))

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
        if self._cut_off is not None:
            await self._over.wait()
            return
        self._cut_off = (reason, error)
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


async def _patiently(room: Room) -> None:
    # What is refused is a dead letter by now, and whoever waits for it has been told.
    with contextlib.suppress(MessageError):
        await room
