"""How an actor handles one message: read, handed to its function, answered, counted; and what if that fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from framewire.errors import BadBody, Expired, NodeStopped, NoRoute, Overloaded
from framewire.node.actor import Handler, Kind
from framewire.node.context import Context
from framewire.node.core import Flow, handling
from framewire.node.deadletters import Reason
from framewire.node.flow import following
from framewire.node.mailbox import Room, together
from framewire.node.parcel import Parcel
from framewire.node.threads import TooLateError, in_thread
from framewire.node.worker import CutShort, Worker
from framewire.wire import MessageId, TraceOptions

if TYPE_CHECKING:
    from framewire.node.cell import Cell

__all__ = ["Desk"]

log = logging.getLogger("framewire.node")

_COROUTINE = Kind.COROUTINE
_IN_A_ROW = 100
"""Messages that a handler may yield before others on the event loop have a go."""
_SEVERAL = (list, tuple)
"""What a handler returns several messages in."""


class Desk:
    """Where the messages of one actor are handled. ``failed`` is called with how many failed in a row."""

    def __init__(self, cell: Cell, failed: Callable[[int], None]) -> None:
        self._cell = cell
        self._core = cell.core
        self._name = cell.name
        self._receiver = cell.route.receiver
        self._struck = failed
        self.handlers: dict[MessageId, Handler] = {}
        self.busy = 0
        """Messages that are being handled."""
        self._emitted = 0
        self.failures = 0
        """How many failed since the last that did not."""
        self.cut_off: tuple[Reason, NoRoute | NodeStopped] | None = None
        """Why handlers are cut off, once they are."""

    async def handle(self, parcel: Parcel, worker: Worker) -> None:
        """Handle a message, and send what comes of it."""
        core = self._core
        started = core.now()
        handler = self.handlers.get(parcel.message_id)
        if handler is None or parcel.deadline <= started:
            self._unfit(parcel, started)
            return
        message_type = handler.message_type
        payload = parcel.payload
        if type(payload) is not message_type.python_type:
            try:
                payload = parcel.read(message_type)
            except BadBody as problem:
                core.undeliverable(parcel, Reason.BAD_BODY, problem)
                return
        if core.tap is not None:
            core.tap.delivered(self._receiver, parcel, started)
        self.busy += 1
        worker.parcel = parcel
        carried = None
        if parcel.routing or parcel.trace_options:
            carried = (parcel.trace_options, parcel.routing, parcel.like or parcel.stencil)
        flow = Flow(worker, parcel.correlation_id, parcel.deadline, carried)
        handling.set(flow)
        try:
            if handler.kind is _COROUTINE:  # a member of an enumeration takes longer to look up than this name
                function = handler.function
                if handler.takes_context:
                    result = await function(payload, Context(self._cell, parcel, flow))
                else:
                    result = await function(payload)
            else:
                result = await self._result(handler, parcel, payload, flow)
            if result is not None:
                if isinstance(result, _SEVERAL):
                    await self._emit(parcel, result)
                elif (room := core.answer(self._name, parcel, result)) is not None:
                    await self._cell.pace(room)
        except asyncio.CancelledError as problem:
            if self.cut_off is not None:
                reason, error = self.cut_off
                core.undeliverable(parcel, reason, type(error)(f"its handler was cut off: {error.detail}"))
                raise
            if worker.cut_short is not None:
                self._cut_short(handler, parcel, worker.cut_short)
                worker.tidy_up()
            else:
                self._failed(handler, parcel, problem)
            if worker.task.cancelling():
                raise  # whoever wants this task to end is heard; another worker takes its place
        except (KeyboardInterrupt, SystemExit):
            raise
        except TooLateError:
            self._unfit(parcel, core.now())
            return
        except BaseException as problem:  # noqa: BLE001 - a handler may raise anything
            if isinstance(problem, Overloaded):
                self._cell.load.refused(parcel.message_id, core.now() - started)
            self._failed(handler, parcel, problem)
        else:
            self.failures = 0
        finally:
            self.busy -= 1
            worker.parcel = None
            flow.ended = True
            if not worker.tidy:
                worker.tidy_up()
        # Here and not in a call, as there is one of these for every message: see _count.
        figures, took = handler.figures, core.now() - started
        figures.handled += 1
        figures.seconds += took
        if took > figures.longest:  # noqa: PLR1730 - max() takes twice as long
            figures.longest = took
        core.counters.handled += 1
        if parcel.trace_options:
            self._trace_handled(handler, parcel, took)

    async def _result(self, handler: Handler, parcel: Parcel, payload: Any, flow: Flow) -> Any:
        """Run a handler that is no plain coroutine function, and send what it yields."""
        arguments = (payload, Context(self._cell, parcel, flow)) if handler.takes_context else (payload,)
        if handler.kind is Kind.THREAD:
            return await in_thread(self._core, parcel, handler, arguments)
        if handler.kind is not Kind.STREAM:
            return handler.function(*arguments)
        async with contextlib.aclosing(handler.function(*arguments)) as items:
            async for item in items:
                await self._emit(parcel, item)
        return None

    def handle_inline(self, handler: Handler, parcel: Parcel) -> Room | None:
        """The same at once; what is returned is done when there is room for what came of it."""
        started = self._core.now()
        if parcel.deadline <= started:
            self._unfit(parcel, started)
            return None
        try:
            payload = parcel.read(handler.message_type)
        except BadBody as problem:
            self._core.undeliverable(parcel, Reason.BAD_BODY, problem)
            return None
        if self._core.tap is not None:
            self._core.tap.delivered(self._receiver, parcel, started)
        rooms = []
        outer, self._core.inline = self._core.inline, self._cell
        self._core.depth += 1
        carried = None
        if parcel.routing or parcel.trace_options:
            carried = (parcel.trace_options, parcel.routing, parcel.like or parcel.stencil)
        flow = Flow(self._cell, parcel.correlation_id, parcel.deadline, carried)
        sender = handling.set(flow)  # an inline handler runs in the context of whoever sends
        try:
            arguments = (payload, Context(self._cell, parcel, flow)) if handler.takes_context else (payload,)
            result = handler.function(*arguments)
            if result is not None:
                results = self._results(parcel, result)
                rooms = [room for sent in results if (room := self._core.send(sent)) is not None]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as problem:  # noqa: BLE001 - a handler may raise anything
            self._failed(handler, parcel, problem)
        else:
            self.failures = 0
        finally:
            flow.ended = True
            handling.reset(sender)
            self._core.depth -= 1
            self._core.inline = outer
        self._count(handler, parcel, started)
        return together(rooms, theirs=False) if rooms else None

    def _unfit(self, parcel: Parcel, now: float) -> None:
        """A parcel that came too late, or for a handler that is no longer there."""
        if parcel.deadline <= now:
            late = f"reached {self._name} {now - parcel.deadline:.3f} s too late"
            self._core.undeliverable(parcel, Reason.EXPIRED, Expired(late))
        else:
            self._core.undeliverable(parcel, Reason.HANDLER_GONE, NoRoute(f"{self._name} no longer handles it"))

    async def _emit(self, parcel: Parcel, result: Any) -> None:
        """Send what a handler returned or yielded."""
        for sent in self._results(parcel, result):
            room = self._core.send(sent)
            if room is not None:
                await self._cell.pace(room)
                continue
            self._emitted += 1
            if not self._emitted % _IN_A_ROW:
                await asyncio.sleep(0)  # a handler that yields without end leaves others their turns

    def _cut_short(self, handler: Handler, parcel: Parcel, why: CutShort) -> None:
        """Record that a handler was cancelled; who has given up is not told."""
        detail = f"{handler.name} was cancelled: {why.value}"
        if why is CutShort.LATE:
            self._core.undeliverable(parcel, Reason.EXPIRED, Expired(detail))
        else:
            self._core.dead_letters.add(Reason.CANCELLED, detail, parcel)

    def _results(self, parcel: Parcel, result: Any) -> tuple[Parcel, ...]:
        if isinstance(result, _SEVERAL):
            return tuple([following(self._core, self._name, parcel, payload) for payload in result])
        return (following(self._core, self._name, parcel, result),)

    def _count(self, handler: Handler, parcel: Parcel, started: float) -> None:
        core, figures = self._core, handler.figures
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
            self._core.trace.step("handled", parcel.message_id, parcel.correlation_id, detail)

    def _failed(self, handler: Handler, parcel: Parcel, problem: BaseException) -> None:
        handler.figures.failed += 1
        self._core.counters.failed += 1
        self.failures += 1
        told = self._core.tell_failure(parcel, problem, actor=handler.name)
        # A caller gets the traceback with its RemoteError; without one, the log is all there is.
        level = logging.DEBUG if told else logging.WARNING
        log.log(level, "%s failed on %s", handler.name, parcel.message_id, exc_info=problem)
        self._struck(self.failures)
