"""Asks that wait for themselves over several actors or nodes: found by a look at who waits for whom, everywhere.

An actor all of whose workers wait for answers, while messages wait for it, may be part of such a cycle. Then all
nodes are asked what waits there. What is found in two looks, one after the other, was so all the time in between:
an ask that has ended never comes back. So a cycle that is in both of them lasts until somebody ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from framewire.errors import Deadlock, FramewireError
from framewire.node.payloads import message

if TYPE_CHECKING:
    from framewire.node.cell import Cell
    from framewire.node.core import Core
    from framewire.node.parcel import Parcel
    from framewire.node.promises import Pending

__all__ = [
    "DeadlockSearch",
    "WaitGraph",
    "WaitingActor",
    "WaitingWorker",
    "Waits",
    "cycle_text",
    "is_deadlocked",
    "wait_graph",
]

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.025, 0.5
"""Seconds between two searches on several nodes: while they find nothing, each comes later than the one before."""
_SHARE = 20
"""A search has at most so small a part of the time."""
_BETWEEN_LOOKS_S = 0.005
"""Seconds from one look to the next: what is under way meanwhile arrives."""
_MAX_AT_WORK = 5000
"""Asks of one node that something is at work for; where there are more, nothing is taken to be stuck."""
_MAX_QUEUED = 1000
"""Messages of one actor that are told of."""


@message("FRAMEWIRE.WAITS")
class Waits(msgspec.Struct):
    """Asks a node which of its actors wait, and for what; and what is at work or will be, if that is wanted."""

    at_work: bool = False


class WaitingWorker(msgspec.Struct, frozen=True):
    """A handler that waits: the ask that it works for, and those that it has made, as digests."""

    handles: bytes
    asks: tuple[bytes, ...]


class WaitingActor(msgspec.Struct, frozen=True):
    """An actor with handlers that wait; ``queued`` are the asks that wait for it where all its workers do."""

    name: str
    workers: tuple[WaitingWorker, ...]
    queued: tuple[bytes, ...]


@message("FRAMEWIRE.WAITGRAPH")
class WaitGraph(msgspec.Struct):
    """What waits on one node, and the asks that something works for there; ``is_cut`` where those are too many."""

    actors: list[WaitingActor]
    at_work: list[bytes] = []
    is_cut: bool = False


def wait_graph(core: Core, *, at_work: bool = False) -> WaitGraph:
    """What waits on a node now."""
    waiting = [_waiting(core, cell) for cell in core.cells.values() if any(w.waits for w in cell.workers)]
    asks = list(islice(_at_work(core), _MAX_AT_WORK + 1)) if at_work else []
    return WaitGraph(waiting, asks[:_MAX_AT_WORK], len(asks) > _MAX_AT_WORK)


def _at_work(core: Core) -> Iterator[bytes]:
    """The asks whose messages go on: they are handled, wait for an actor that can, or are held for a route."""
    for cell in core.cells.values():
        for worker in cell.active:
            if not worker.waits and (ask := _digest(worker.parcel)):
                yield ask
        if not cell.all_wait:
            yield from filter(None, map(_digest, cell.mailbox))
    yield from filter(None, map(_digest, core.held()))


def _waiting(core: Core, cell: Cell) -> WaitingActor:
    secret = core.keyring is not None and any(core.keyring.domain_of(key.identity) for key in cell.by_kind)
    queued: list[bytes] = []
    if cell.all_wait:
        for parcel in cell.mailbox:
            if (ask := _digest(parcel)) and len(queued) < _MAX_QUEUED:
                queued.append(ask)
    return WaitingActor(
        "" if secret else cell.name,
        tuple(
            WaitingWorker(_digest(worker.parcel), tuple(_digest(ask.parcel) for ask in worker.asks if not ask.done))
            for worker in cell.workers
            if worker.waits
        ),
        tuple(queued),
    )


def _digest(parcel: Parcel | None) -> bytes:
    """Name the ask that a message works for, by something that tells nobody what it was made of."""
    if parcel is None or parcel.callback is None:
        return b""
    named = b"%d %s %s" % (parcel.callback.key, parcel.callback.receiver, parcel.correlation_id)
    return blake2b(named, digest_size=16).digest()


class _Graph:
    """All that waits, on all nodes."""

    def __init__(self, graphs: Iterable[WaitGraph]) -> None:
        self.names: dict[WaitingWorker, str] = {}
        self.searching: set[WaitingWorker] = set()
        """Those of actors that messages wait for: their nodes search, too."""
        self._at_work: set[bytes] = set()
        self._is_cut = False
        self._handled: dict[bytes, list[WaitingWorker]] = {}
        self._queued: dict[bytes, list[WaitingActor]] = {}
        for graph in graphs:
            for actor in graph.actors:
                for worker in actor.workers:
                    self.names[worker] = actor.name
                    self._handled.setdefault(worker.handles, []).append(worker)
                if actor.queued:
                    self.searching.update(actor.workers)
                for ask in actor.queued:
                    self._queued.setdefault(ask, []).append(actor)
            self._at_work.update(graph.at_work)
            self._is_cut = self._is_cut or graph.is_cut
        self._handled.pop(b"", None)
        self.stuck = set() if self._is_cut else set(self.names)
        self._keep_stuck()

    def _keep_stuck(self) -> None:
        while gone := {worker for worker in self.stuck if not any(map(self.is_stuck, worker.asks))}:
            self.stuck -= gone

    def free(self, worker: WaitingWorker) -> None:
        """Take a worker to go on; those that wait for nobody else are then free, too."""
        self.stuck.discard(worker)
        self._keep_stuck()

    def is_stuck(self, ask: bytes) -> bool:
        """Whether all that may still answer an ask waits for something that does not come."""
        handled, queued = self._handled.get(ask, ()), self._queued.get(ask, ())
        return (
            ask not in self._at_work
            and bool(handled or queued)
            and all(
                worker in self.stuck
                for worker in (*handled, *(worker for actor in queued for worker in actor.workers))
            )
        )

    def holders(self, ask: bytes) -> list[WaitingWorker]:
        """The workers that an ask waits for."""
        queued = [worker for actor in self._queued.get(ask, ()) for worker in actor.workers]
        return [*self._handled.get(ask, ()), *queued]

    def path(self, worker: WaitingWorker, ask: bytes) -> list[str]:
        """The names of the actors that an ask leads to, up to the first that is met again."""
        names = [self.names[worker]]
        seen = {worker}
        while True:
            [worker, *_] = self.holders(ask)
            names.append(self.names[worker])
            if worker in seen:
                return names
            seen.add(worker)
            ask = next(filter(self.is_stuck, worker.asks))


class DeadlockSearch:
    """Looks for cycles on behalf of one node, one search at a time."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._task: asyncio.Task[None] | None = None
        self._again = False
        # Suspicions that are likely have pauses of their own: those that are not must not delay them.
        self._pauses = {False: _FIRST_PAUSE_S, True: _FIRST_PAUSE_S}
        self._not_before = {False: 0.0, True: 0.0}
        self.ask_all: Callable[[Waits], Awaitable[Iterable[WaitGraph]]] | None = None
        """Asks all nodes, this one included; None while there are no others."""

    def suspect(self, *, likely: bool = False) -> None:
        """Begin a search, unless there is one or the last was a short time ago.

        It is ``likely`` where a message of a flow under way waits for an actor all of whose workers wait. After a
        search that has found a cycle the next such one begins at once: behind it may be others like it.
        """
        if self._task is not None:
            self._again = self._again or likely
        elif self._core.now() >= self._not_before[likely]:
            searching = self._search(likely=likely)
            self._task = asyncio.get_running_loop().create_task(searching, name="framewire deadlock search")

    def confirm(self) -> None:
        """Search if another node suspects a cycle that actors of this node may be in."""
        if self._task is None and any(cell.all_wait and len(cell.mailbox) for cell in self._core.cells.values()):
            self.suspect(likely=True)

    def close(self) -> None:
        """Search no more."""
        self._not_before = dict.fromkeys(self._not_before, float("inf"))
        if self._task is not None:
            self._task.cancel()

    async def _search(self, *, likely: bool) -> None:
        began, found = time.perf_counter(), False
        try:
            with contextlib.suppress(FramewireError):
                found = await self._found()
        finally:
            self._task = None
            self._paused(likely=likely, found=found, took=time.perf_counter() - began)
            again, self._again = self._again, False
            if again:  # what is likely has come to be so after the search had begun
                self.suspect(likely=True)

    def _paused(self, *, likely: bool, found: bool, took: float) -> None:
        """Set when the next search may begin."""
        now, pauses = self._core.now(), self._pauses
        if found:
            self._pauses = dict.fromkeys(pauses, _FIRST_PAUSE_S)
            self._not_before[False] = max(self._not_before[False], now + _FIRST_PAUSE_S)
        else:
            pauses[likely] = min(2 * pauses[likely], _LONGEST_PAUSE_S)
            pause = pauses[likely] if self._core.has_peers() else _SHARE * took
            self._not_before[likely] = max(self._not_before[likely], now + pause)

    async def _found(self) -> bool:
        if not self._core.has_peers():
            first = second = _Graph([wait_graph(self._core, at_work=True)])  # nothing can be on its way
        else:
            first = _Graph(await self._look(at_work=False))
            if not first.stuck:
                return False
            await asyncio.sleep(_BETWEEN_LOOKS_S)
            second = _Graph(await self._look(at_work=True))
        ended = False
        # Every node that searches comes to this, and all of them choose the same asks; their own nodes end them.
        while stuck := second.stuck & first.stuck & second.searching:
            ask, worker = max(
                ((ask, worker) for worker in stuck for ask in worker.asks if second.is_stuck(ask)),
                key=lambda found: found[0],
            )
            self._end(ask, second.path(worker, ask))
            second.free(worker)
            ended = True
        return ended

    def _end(self, ask: bytes, names: list[str]) -> None:
        for cell in self._core.cells.values():
            for asker in cell.workers:
                for promise in asker.asks:
                    if _digest(promise.parcel) == ask:
                        promise.fail_with(Deadlock(cycle_text(names)))
                        return

    async def _look(self, *, at_work: bool) -> Iterable[WaitGraph]:
        if self.ask_all is None:
            return [wait_graph(self._core, at_work=at_work)]
        return await self.ask_all(Waits(at_work))


def is_deadlocked(core: Core, promise: Pending) -> bool:
    """Whether nothing on this node is at work for an ask that waits for itself."""
    return _Graph([wait_graph(core, at_work=True)]).is_stuck(_digest(promise.parcel))


def cycle_text(names: list[str]) -> str:
    """Tell of a cycle by the names of its actors."""
    shown = [name or "an actor" for name in names]
    return (
        f"{' asks '.join(shown)}: each waits for the next, so that no answer can come "
        f"(reentrant=True on {shown[-1]} lets calls in whose flow it is in already)"
    )
