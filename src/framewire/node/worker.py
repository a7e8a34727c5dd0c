"""A task that works for an actor, and that can start on something before its turn comes.

A message to an idle actor would wait for the event loop to come round to the worker, although the actor could
handle it at once, and most handlers are done before they first wait for anything. So the sender takes the first
step in the worker's stead: in the worker's context and as the worker's task, so that whatever the handler does
with those (timeouts, cancellation, context variables) is the worker's. If the handler has to wait, the worker
takes over from there. It makes a local ask about twice as fast (bench/node.py).
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import _enter_task, _leave_task  # for task implementations, says "Extending asyncio"
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from enum import Enum
from types import coroutine as generator_coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from framewire.node.cell import Cell
    from framewire.node.parcel import Parcel
    from framewire.node.promises import Pending

__all__ = ["CutShort", "Worker"]

Work = Coroutine[Any, Any, None]


class CutShort(Enum):
    """Why a handler is cancelled before it has ended."""

    LATE = "its deadline has passed"
    CANCELLED = "its caller has given up"


class Worker:
    """One task of an actor. ``work`` is what it does all day; it calls ``called`` when it has nothing to do."""

    __slots__ = (
        "_begun",
        "_call",
        "_context",
        "_loop",
        "asking",
        "asks",
        "cell",
        "cut_short",
        "parcel",
        "spare",
        "task",
        "tidy",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[Worker], Work],
        name: str,
        cell: Cell,
        *,
        spare: bool = False,
    ) -> None:
        self.cell = cell
        self.parcel: Parcel | None = None
        """What it handles, or has handled last."""
        self.asks: dict[Pending, None] = {}
        """What its handler has asked for and waits for."""
        self.asking = 0
        """How many asks its handler is at."""
        self.tidy = True
        """Whether its handler has neither asked nor been cut short."""
        self.cut_short: CutShort | None = None
        """Why its handler has been cancelled, until that has ended."""
        self.spare = spare
        """Whether it is beyond the actor's concurrency, and ends with its message."""
        self._loop = loop
        self._context = copy_context()
        self._call: asyncio.Future[None] | None = None
        self._begun: tuple[Work, Any] | None = None
        self.task = loop.create_task(work(self), name=name, context=self._context)

    @property
    def waits(self) -> bool:
        """Whether its handler waits for an answer that is not there."""
        return any(not ask.done for ask in self.asks)

    def tidy_up(self) -> None:
        """Forget what the handler that has ended left: asks of tasks that it started, and that it was cut short."""
        self.asks.clear()
        self.asking = 0
        if self.cut_short is not None:
            self.cut_short = None
            if self.task.cancelling():
                self.task.uncancel()
        self.tidy = True

    async def called(self) -> None:
        """Wait until there is something to do, and finish what was begun in the meantime."""
        self._call = self._loop.create_future()
        cancelled = None
        try:
            await self._call
        except asyncio.CancelledError as error:
            if self._begun is None:
                raise
            cancelled = error
        if self._begun is not None:
            (work, waits_for), self._begun = self._begun, None
            if cancelled is not None and waits_for is not None and waits_for.cancel():
                cancelled = None  # as in a task: what is waited for is cancelled, and tells the one who waits
            await _resumed(work, waits_for, cancelled)

    def wake(self) -> None:
        """Call the worker, for which it must have been idle."""
        if self._call is not None and not self._call.done():
            self._call.set_result(None)

    def run_now(self, work: Work) -> bool:
        """Begin some work in an idle worker's stead; whether it is finished already."""
        loop, task = self._loop, self.task
        caller = asyncio.current_task(loop)
        if caller is not None:
            _leave_task(loop, caller)
        _enter_task(loop, task)
        try:
            waits_for = self._context.run(work.send, None)
        except StopIteration:
            return True
        finally:
            _leave_task(loop, task)
            if caller is not None:
                _enter_task(loop, caller)
        self._begun = (work, waits_for)
        self.wake()
        return False


@generator_coroutine
def _resumed(work: Work, waits_for: Any, cancelled: BaseException | None) -> Generator[Any, None, None]:
    try:
        if cancelled is not None:
            waits_for = work.throw(cancelled)
        while True:
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is for the work
                waits_for = work.throw(error)
            else:
                waits_for = work.send(None)
    except StopIteration:
        return
