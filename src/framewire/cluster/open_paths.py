"""Places for sockets whose path was left open, as in ``ipc://*``.

ZeroMQ would make a directory for each wherever the process happens to be, and leave it there if anything else is in
it. Here all of them share one among the system's temporary files, and it is removed with everything in it.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref

__all__ = ["OpenPaths"]


class OpenPaths:
    """The paths of one node or server. What was not closed is removed when the process ends in good order."""

    def __init__(self) -> None:
        self._count = 0
        self._remove: weakref.finalize[[str], OpenPaths] | None = None
        self._directory = ""

    def settle(self, uri: str) -> str:
        """The same address, or one that nobody has where it leaves the path open."""
        if uri != "ipc://*":
            return uri
        if self._remove is None:
            self._directory = tempfile.mkdtemp(prefix="framewire-")
            self._remove = weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        self._count += 1
        return f"ipc://{self._directory}/{self._count}"

    def close(self) -> None:
        """Remove what was made."""
        if self._remove is not None:
            self._remove()
