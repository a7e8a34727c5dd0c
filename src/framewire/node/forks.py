"""What becomes of nodes and clients in a forked child: they are of no use there, and say so.

A fork copies the memory of a process, but none of its threads, and libzmq's sockets may only be used by the process
that made them. So each node and client of the parent is marked in the child as soon as there is one; nothing is
checked per message, which would cost every ask a system call.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

from framewire.errors import UsageError

__all__ = ["Forkable", "forked_error", "mark_when_forked"]


class Forkable(Protocol):
    """An object that only the process which made it can use."""

    def forked(self) -> None:
        """Mark as the copy in a forked child, where every use raises ``UsageError``."""


_made: WeakSet[Forkable] = WeakSet()
"""All that there are in this process. A fork is an event of the whole process, so this is not a node's own."""
_registered = False


def mark_when_forked(made: Forkable) -> None:
    """Have an object marked in every child that is forked from now on, for as long as it lives."""
    global _registered  # noqa: PLW0603 - what is registered with the interpreter cannot be taken back
    if not _registered and hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        _registered = True
        os.register_at_fork(after_in_child=_mark_all)
    _made.add(made)


def forked_error(kind: str) -> UsageError:
    """Say why an object of a parent cannot be used in the process that runs now."""
    return UsageError(
        f"this {kind} was made in the process that process {os.getpid()} was forked from, and cannot be used here: "
        f"its threads and sockets were left behind. Make a new one after the fork (docs/embedding.md)"
    )


def _mark_all() -> None:
    for made in list(_made):
        made.forked()
    _made.clear()
