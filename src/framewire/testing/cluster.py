"""Several nodes in one process, connected by a network in memory, for the length of a test."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from framewire.errors import UsageError
from framewire.node import Node
from framewire.node.clock import Clock, LoopClock
from framewire.testing.faults import Faults
from framewire.testing.journal import Journal
from framewire.testing.network import MemoryNetwork
from framewire.testing.transport import MemoryTransport

__all__ = ["Cluster"]

_LOOK_AGAIN = 0.001
"""Seconds between two looks at a cluster that is not quiet: a handler in a thread tells nobody when it is done."""


class Cluster:
    """Nodes that know each other. Use it with ``async with``.

    ``seed`` is for the faults, ``limit`` and ``lost_after`` are those of ``MemoryNetwork``, and all other settings
    are those of ``Node``, for every node. Nodes are called node-0, node-1 and so on, in the order they join.
    """

    def __init__(
        self,
        size: int = 1,
        *,
        seed: int | None = None,
        faults: Faults | None = None,
        clock: Clock | None = None,
        limit: int = 1000,
        lost_after: float = 0.0,
        **settings: Any,
    ) -> None:
        if size < 0:
            raise UsageError(f"size: {size}; a cluster has no fewer than 0 nodes")
        chosen = faults or Faults()
        if seed is not None:
            chosen = dataclasses.replace(chosen, seed=seed)
        self.clock: Clock = clock or LoopClock()
        self.network = MemoryNetwork(faults=chosen, clock=self.clock, limit=limit, lost_after=lost_after)
        self._size = size
        self._settings = settings
        self._all: list[Node] = []
        self._running: list[Node] = []

    # --- who is there

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that are running, in the order they joined."""
        return tuple(self._running)

    def __getitem__(self, index: int) -> Node:
        """The node that joined as the first (0), the second (1) and so on, whether or not it still runs."""
        return self._all[index]

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    @property
    def journal(self) -> Journal:
        """What the network did to which message."""
        return self.network.journal

    # --- who comes and goes

    async def join(self, **options: Any) -> Node:
        """Start one more node. Options are those of ``Node`` and go before the cluster's settings."""
        defaults = {"identity": f"node-{len(self._all)}", "clock": self.clock, "signals": False}
        node = Node(transport=MemoryTransport(self.network), **{**defaults, **self._settings, **options})
        try:
            await node.start()
        except BaseException:
            await node.stop(timeout=0)
            raise
        self._all.append(node)
        self._running.append(node)
        return node

    async def leave(self, node: Node | int) -> None:
        """Stop a node in good order: it finishes what it does and says goodbye."""
        leaving = self._found(node)
        await leaving.stop()
        self._running.remove(leaving)

    async def kill(self, node: Node | int, *, lost_after: float | None = None) -> None:
        """Take a node away without a goodbye; the others notice after a while, or never for ``math.inf``.

        The hooks of its actors run, for this process lives on, but nothing that they send gets out.
        """
        killed = self._found(node)
        self.network.kill(killed.identity, lost_after=lost_after)
        self._running.remove(killed)
        await killed.stop(timeout=0)

    # --- what goes wrong

    def disturb(self, faults: Faults, sender: Node | int | None = None, receiver: Node | int | None = None) -> None:
        """Let these faults work from now on: everywhere, or on the links of a certain sender or receiver."""
        self.network.disturb(faults, self._identity(sender), self._identity(receiver))

    def partition(
        self, one: Iterable[Node | int], other: Iterable[Node | int], *, lost_after: float | None = None
    ) -> None:
        """Cut two groups of nodes off from each other; they notice after a while, or never for ``math.inf``."""
        groups = [[self._found(node).identity for node in group] for group in (one, other)]
        self.network.partition(*groups, lost_after=lost_after)

    def heal(self) -> None:
        """Let everybody reach everybody again."""
        self.network.heal()

    # --- when it is quiet

    async def settled(self, timeout: float = 5.0, *, handlers: bool = True) -> None:  # noqa: ASYNC109 - real seconds
        """Wait until everyone knows what everyone handles, nothing is under way, and no handler is at work.

        ``handlers=False`` leaves handlers and mailboxes out. Raises ``TimeoutError`` with what still goes on after
        so many real seconds: what waits for a manual clock waits for ``advance``.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        quiet = 0
        while quiet < 2:  # what arrives last may start something new in the next turn
            unsettled = [*self.network.unsettled(), *(self._at_work() if handlers else ())]
            quiet = 0 if unsettled else quiet + 1
            if unsettled and loop.time() > deadline:
                raise TimeoutError(f"not settled after {timeout:.1f} s:\n  " + "\n  ".join(unsettled))
            await asyncio.sleep(_LOOK_AGAIN if unsettled else 0)

    def _at_work(self) -> Iterator[str]:
        for node in self._running:
            stats = node.stats(pending=0)
            for actor in stats.actors:
                if actor.busy or actor.queued or actor.waiting:
                    queued = actor.queued + actor.waiting
                    yield f"{stats.node}: {actor.name} is at work on {actor.busy} messages, {queued} more wait"

    # --- how it lives

    async def __aenter__(self) -> Self:
        try:
            for _ in range(self._size):
                await self.join()
            await self.settled()
        except BaseException:
            await self._stop(timeout=0)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A test that has failed should say so now, not when the last handler is done.
        await self._stop(timeout=None if error is None else 0)
        if error is None and self.network.failures:
            raise ExceptionGroup("nodes raised when the network handed them something", self.network.failures)

    async def _stop(self, timeout: float | None) -> None:  # noqa: ASYNC109 - passed on to the nodes
        running, self._running = self._running, []
        await asyncio.gather(*(node.stop(timeout) for node in running))

    def _found(self, node: Node | int) -> Node:
        found = self._all[node] if isinstance(node, int) else node
        if found not in self._running:
            raise UsageError(f"{found.identity.decode(errors='replace')}: no such node runs in this cluster")
        return found

    def _identity(self, node: Node | int | None) -> bytes | None:
        return None if node is None else self._found(node).identity
