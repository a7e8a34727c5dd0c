"""Notices when files of a program change: for development, so a look at their times every now and then will do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

__all__ = ["changes"]

_INTERVAL = 0.3
_SKIPPED = ("__pycache__", "node_modules")

_Seen = dict[str, tuple[int, int]]


async def changes(directory: Path, also: Path | None = None) -> AsyncIterator[list[str]]:
    """The Python files below a directory, and one other, that have changed since the last look."""
    before = await asyncio.to_thread(_seen, directory, also)
    while True:
        await asyncio.sleep(_INTERVAL)
        now = await asyncio.to_thread(_seen, directory, also)
        changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        before = now
        if changed:
            yield changed


def _seen(directory: Path, also: Path | None) -> _Seen:
    found: _Seen = {}
    for path in (*_python_files(directory), *([str(also)] if also is not None else ())):
        try:
            status = os.stat(path)  # noqa: PTH116 - thousands of files a second; a Path for each takes longer
        except OSError:
            continue  # gone between two looks
        found[path] = (status.st_mtime_ns, status.st_size)
    return found


def _python_files(directory: Path) -> Iterator[str]:
    for root, directories, files in os.walk(directory):
        directories[:] = [
            name
            for name in directories
            if not name.startswith(".") and name not in _SKIPPED and not Path(root, name, "pyvenv.cfg").exists()
        ]
        for name in files:
            if name.endswith(".py"):
                yield os.path.join(root, name)  # noqa: PTH118 - same
