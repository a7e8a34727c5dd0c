"""Open segments: files that grow by a batch at a time, and are worth reading wherever they end.

An open segment is an Arrow IPC stream in the spool directory. Each batch is written in one go, so that a process
may be killed at any moment: at worst the last batch is incomplete, and is left out. A writer that fails half-way (a
full disk) cuts the file back to the last whole batch.

Whoever writes a segment holds a lock on it, which the system releases when the process ends, however it ends.
So a segment that can be locked was left by someone, and anyone may seal it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from framewire.capture.columns import SCHEMA
from framewire.capture.places import new_ulid

__all__ = ["OpenSegment", "SpoolReader", "abandoned", "open_segments", "ulid_of"]

_SUFFIX = ".arrows"
_AT_ONCE = 1000
"""Batches that the system takes in one go."""
_NODE = b"framewire.node"


class OpenSegment:
    """A segment of this process: locked, and growing."""

    def __init__(self, path: Path, descriptor: int, size: int = 0) -> None:
        self.path = path
        self.size = size
        self._descriptor = descriptor

    @classmethod
    def create(cls, directory: Path, node: bytes) -> OpenSegment:
        """Begin a segment."""
        directory.mkdir(parents=True, exist_ok=True)
        while True:
            path = directory / f"{new_ulid()}{_SUFFIX}"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
            if _lock(descriptor):
                break
            os.close(descriptor)  # someone who looked for abandoned segments was quicker, and removes it
        segment = cls(path, descriptor)
        try:
            segment.append([SCHEMA.with_metadata({_NODE: node}).serialize()])
        except OSError:
            segment.remove()
            raise
        return segment

    @property
    def ulid(self) -> str:
        return ulid_of(self.path)

    def reader(self) -> SpoolReader:
        """What reads it back, even if somebody has removed its name."""
        return SpoolReader(os.fdopen(os.dup(self._descriptor), "rb"))

    def append(self, batches: Iterable[Any]) -> None:
        """Write serialized batches, all or none of them."""
        left, end = deque(memoryview(batch) for batch in batches), self.size
        try:
            while left:
                written = os.pwritev(self._descriptor, list(islice(left, _AT_ONCE)), end)
                end += written
                while left and written >= len(left[0]):
                    written -= len(left.popleft())
                if written:
                    left[0] = left[0][written:]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
            raise
        self.size = end

    def remove(self) -> None:
        """It is sealed, or empty: nobody needs it any more."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Leave it to whoever comes next."""
        os.close(self._descriptor)


class SpoolReader:
    """Reads a segment that may still grow."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 0
        self._schema: pa.Schema | None = None

    @property
    def node(self) -> bytes:
        """The node that recorded it; empty until that was read."""
        return self._schema.metadata[_NODE] if self._schema is not None else b""

    def read(self) -> list[pa.RecordBatch]:
        """The batches that are complete, and were not read before."""
        self._file.seek(self._offset)
        source = pa.BufferReader(self._file.read())
        batches = []
        while True:
            start = source.tell()
            try:
                message = pa.ipc.read_message(source)
                if self._schema is None:
                    self._schema = pa.ipc.read_schema(message)
                else:
                    batch = pa.ipc.read_record_batch(message, self._schema)
                    batch.validate(full=True)
                    batches.append(batch)
            except (EOFError, pa.ArrowException, OSError):
                self._offset += start
                return batches

    def close(self) -> None:
        self._file.close()


def ulid_of(path: Path) -> str:
    """The name of a segment in the spool."""
    return path.name.removesuffix(_SUFFIX)


def open_segments(directory: Path) -> list[Path]:
    """The segments in a spool, the oldest first, whoever they belong to."""
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == _SUFFIX)
    except (FileNotFoundError, NotADirectoryError):
        return []


def abandoned(directory: Path) -> Iterator[OpenSegment]:
    """The segments that nobody writes any more; each of them is now this process's."""
    for path in open_segments(directory):
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            continue  # sealed meanwhile
        if _lock(descriptor):
            yield OpenSegment(path, descriptor, os.fstat(descriptor).st_size)
        else:
            os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock a file that is still there; whether that was possible."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(descriptor).st_nlink > 0
