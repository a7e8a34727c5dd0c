"""What all pages share: the lake, the live cluster, and how much may be shown."""

from __future__ import annotations

from dataclasses import dataclass

from framewire.dashboard.bodies import Bodies
from framewire.dashboard.questions import Questions
from framewire.dashboard.watching import Watch

__all__ = ["Board"]


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard: either or both of a lake and a live cluster."""

    lake: str | None = None
    questions: Questions | None = None
    watch: Watch | None = None
    rendezvous: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    """Where the live cluster is."""
    bodies: Bodies | None = None
    """How contents of messages are read; None where they are not to be shown."""

    async def start(self) -> None:
        """Look at the cluster from now on, if there is one."""
        if self.watch is not None:
            self.watch.start()

    async def stop(self) -> None:
        """Leave the cluster and close the lake."""
        if self.watch is not None:
            await self.watch.stop()
        if self.questions is not None:
            self.questions.close()
