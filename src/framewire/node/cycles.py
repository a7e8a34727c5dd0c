"""Asks that wait for themselves on one node: found when they begin to wait, and ended with ``Deadlock``.

A worker waits for an answer. The message that it has asked with waits for a worker of an actor, or is being handled
by one, and that worker may wait for an answer in turn. Where all of this leads back to actors all of whose workers
wait like this, nobody would ever go on. What was passed on from actor to actor, or went to other nodes, is found a
moment later (``framewire.node.deadlocks``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TypeVar

from framewire.errors import Deadlock
from framewire.node.deadlocks import cycle_text, is_deadlocked
from framewire.node.worker import Worker

if TYPE_CHECKING:
    from framewire.node.cell import Cell
    from framewire.node.parcel import Parcel
    from framewire.node.promises import Pending, Promise

__all__ = ["asking"]

T = TypeVar("T")


class asking:  # noqa: N801 - used as a statement: with asking(worker) as asked: await asked(hub.start(...))
    """What a handler is in while it asks and waits for the answer."""

    __slots__ = ("_began", "_parcel", "_promise", "_worker")

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._parcel = worker.parcel
        self._promise: Pending | None = None
        self._began = 0.0

    def __enter__(self) -> Self:
        self._worker.asking += 1
        self._worker.cell.asking += 1
        self._worker.tidy = False
        return self

    async def __call__(self, promise: Promise[T]) -> T:
        """Await the answer, unless it would have to wait for the handler."""
        worker = self._worker
        if not promise.done:
            self._promise, self._began = promise, promise.started
            worker.asks[promise] = None
            if worker.cell.all_wait:
                core, found = worker.cell.core, _deadlock(worker, promise)
                # Where a flow was passed on, something else may still answer it, here or on another node.
                if found is not None and not core.has_peers() and is_deadlocked(core, promise):
                    promise.fail_with(found)
                elif found is not None or len(worker.cell.mailbox):
                    core.deadlocks.suspect(likely=bool(worker.cell.mailbox.under_way))
        return await promise

    def __exit__(self, *_: object) -> None:
        self._worker.cell.asking -= 1
        if self._worker.parcel is self._parcel:  # else a task has outlived its handler, and nothing is left of it
            self._worker.asking -= 1
        if self._promise is not None:
            self._worker.asks.pop(self._promise, None)
            cell = self._worker.cell
            cell.load.asked += cell.core.now() - self._began


def _deadlock(worker: Worker, promise: Pending) -> Deadlock | None:
    """The error for an ask of a worker's handler that can only be answered after itself."""
    reached, search = {worker: None}, [worker]
    while search:
        for ask in search.pop().asks:
            for carrier in _carriers(ask):
                others = [carrier] if isinstance(carrier, Worker) else carrier.workers if carrier.all_wait else ()
                for other in others:
                    if other not in reached:
                        reached[other] = None
                        search.append(other)
    stuck = set(reached)

    def is_stuck(ask: Pending) -> bool:
        places = _carriers(ask)
        return (
            not ask.done
            and bool(places)
            and all(
                place in stuck if isinstance(place, Worker) else place.all_wait and place.workers <= stuck
                for place in places
            )
        )

    while gone := {one for one in stuck if not any(map(is_stuck, one.asks))}:
        stuck -= gone
    if worker not in stuck or not is_stuck(promise):
        return None
    return Deadlock(cycle_text(_path(worker, promise, is_stuck)))


def _path(worker: Worker, promise: Pending, is_stuck: Callable[[Pending], bool]) -> list[str]:
    """Name the actors of a cycle, from the one that asks to the first that is met again."""
    names, seen = [worker.cell.name], {worker.cell}
    while True:
        place = _carriers(promise)[0]
        cell = place.cell if isinstance(place, Worker) else place
        names.append(cell.name)
        if cell in seen:
            return names
        seen.add(cell)
        following = [place] if isinstance(place, Worker) else list(cell.workers)
        promise = next(ask for one in following for ask in one.asks if is_stuck(ask))


def _carriers(promise: Pending) -> list[Worker | Cell]:
    """Look for the message of an ask where it was sent to; nothing where it has gone to another node."""
    route, callback = promise.parcel.sent_to, promise.parcel.callback
    cell = None if route is None or route.node else promise.core.cells.get(route.receiver)
    if cell is None or callback is None:
        return []
    handles = (callback.receiver, callback.key)
    return [worker for worker in cell.workers if worker.asks and _answers(worker.parcel) == handles] or [cell]


def _answers(parcel: Parcel | None) -> tuple[bytes, int] | None:
    """The promise that a message, or what comes of it, may answer."""
    if parcel is None or parcel.callback is None:
        return None
    return parcel.callback.receiver, parcel.callback.key
