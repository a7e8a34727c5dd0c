"""Where captures lie: a directory, here or on any filesystem that pyarrow knows, and the sealed segments in it."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import os
import posixpath
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from framewire.errors import UsageError

__all__ = ["Place", "Segment", "new_ulid", "time_of_ulid"]

_OPEN = ".open"
_OBJECT_STORES = ("s3", "gcs", "abfs")
"""Where a file is not there until it has been written as a whole, and renaming is copying."""
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of recorded messages."""

    path: str
    """From the directory of captures on."""
    size: int
    began: float
    """When recording it began, in seconds since 1970."""

    @property
    def ulid(self) -> str:
        """What tells it from all others."""
        return posixpath.basename(self.path).removeprefix("segment-").removesuffix(".parquet")

    @property
    def recorder(self) -> bytes:
        """The node that recorded it; empty where the path does not say."""
        for part in self.path.split("/"):
            if part.startswith("recorder="):
                with contextlib.suppress(ValueError):
                    return bytes.fromhex(part.removeprefix("recorder="))
        return b""


class Place:
    """A directory of captures."""

    def __init__(self, target: str | os.PathLike[str], filesystem: Any = None, spool: Any = None) -> None:
        self.name = os.fspath(target)
        self.filesystem, self.root = _found(self.name, filesystem)
        self.is_local = isinstance(self.filesystem, fs.LocalFileSystem)
        self.spool = Path(spool) if spool is not None else self._spool()
        """Where open segments lie; always local."""

    def _spool(self) -> Path:
        if self.is_local:
            return Path(self.root, _OPEN)
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        # Of the place, so that a node that starts there finds what another has left.
        digest = hashlib.sha256(f"{self.filesystem.type_name}:{self.root}".encode()).hexdigest()[:16]
        return Path(state, "framewire", "spool", digest)

    def exists(self) -> bool:
        return bool(self.filesystem.get_file_info(self.root).type != fs.FileType.NotFound)

    def segments(self) -> list[Segment]:
        """The sealed segments, the oldest first; a path that is a file is the only one."""
        whole = self.filesystem.get_file_info(self.root)
        if whole.type == fs.FileType.File:
            return [Segment("", whole.size, _began(self.root, whole))]
        return sorted(self._listed(), key=lambda segment: (segment.began, segment.path))

    def _listed(self) -> Iterator[Segment]:
        for found in self._infos():
            path = found.path[len(self.root) :].lstrip("/")
            hidden = any(part.startswith((".", "_")) for part in path.split("/"))
            if found.type == fs.FileType.File and path.endswith(".parquet") and not hidden:
                yield Segment(path, found.size, _began(path, found))

    def _infos(self) -> list[Any]:
        selector = fs.FileSelector(self.root, allow_not_found=True, recursive=True)
        for _ in range(_TRIES):
            # A directory that is removed while it is looked at fails the whole listing.
            with contextlib.suppress(FileNotFoundError):
                return list(self.filesystem.get_file_info(selector))
        return list(self.filesystem.get_file_info(selector))

    def path(self, segment: str) -> str:
        """Where a segment lies, for the filesystem."""
        return posixpath.join(self.root, segment) if segment else self.root

    def put(self, path: str, content: pa.Buffer) -> None:
        """Write a file that readers see whole or not at all."""
        final = self.path(path)
        directory, name = posixpath.split(final)
        if self.filesystem.type_name in _OBJECT_STORES:
            self._write(final, content)
            return
        self.filesystem.create_dir(directory, recursive=True)
        # Spark and pyarrow pass over names that begin with a dot. DuckDB does not, but looks at how they end.
        hidden = posixpath.join(directory, f".{name}.sealing")
        if self.is_local:
            with open(hidden, "wb") as file:  # noqa: PTH123 - a path of the filesystem, as all others here
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(hidden, final)  # noqa: PTH105 - same
        else:
            self._write(hidden, content)
            self.filesystem.move(hidden, final)

    def _write(self, path: str, content: pa.Buffer) -> None:
        with self.filesystem.open_output_stream(path) as stream:
            stream.write(content)

    def remove(self, segment: Segment) -> None:
        """Remove a segment, and the directories that are empty without it."""
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(self.path(segment.path))
        directory = posixpath.dirname(segment.path)
        while self.is_local and directory:
            try:
                os.rmdir(self.path(directory))  # noqa: PTH106 - a path of the filesystem
            except OSError:
                break
            directory = posixpath.dirname(directory)


def _found(target: str, filesystem: Any) -> tuple[Any, str]:
    try:
        if filesystem is not None:
            return filesystem, target.rstrip("/")
        if "://" in target:
            found, path = fs.FileSystem.from_uri(target)
            return found, path.rstrip("/")
    except (pa.ArrowInvalid, OSError, ImportError) as problem:
        raise UsageError(
            f"{target!r} is no place for captures: {problem}. Give a directory, or a URI that pyarrow knows, "
            f"such as s3://bucket/captures"
        ) from problem
    return fs.LocalFileSystem(), str(Path(target).expanduser().absolute())


def _began(path: str, found: Any) -> float:
    name = posixpath.basename(path).removeprefix("segment-").removesuffix(".parquet")
    told = time_of_ulid(name)
    if told is not None:
        return told
    changed: dt.datetime | None = found.mtime
    return changed.timestamp() if changed is not None else 0.0


_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid() -> str:
    """A name that no other segment has, and that sorts by the time it was made."""
    number = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    return "".join(_DIGITS[number >> shift & 31] for shift in range(125, -1, -5))


def time_of_ulid(ulid: str) -> float | None:
    """When a name was made, in seconds since 1970; None if it is no such name."""
    if len(ulid) != 26 or not set(ulid) <= set(_DIGITS):
        return None
    number = 0
    for digit in ulid[:10]:
        number = number << 5 | _DIGITS.index(digit)
    return number / 1000
