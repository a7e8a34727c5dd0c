"""What of a batch was sent already, on disk, so that a batch that is written again is not sent again.

A ledger is a directory that all writers reach: here, or on any filesystem that pyarrow knows. Each batch has a
directory in it, with files of digests while it is under way, and with the file ``done`` instead when it is through.
A message is noted when it is known to be through. A writer that is killed may not have noted its last second, and
those messages are sent again: at least once, then, and not at most once.
"""

from __future__ import annotations

import json
import posixpath
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from framewire.errors import UsageError

__all__ = ["Ledger", "Notes"]

_DIGEST = 16
_SECONDS = 1.0
_AT_ONCE = 5000
_DONE = "done"


class Ledger:
    """One batch of a ledger."""

    def __init__(self, directory: str, batch: str) -> None:
        try:
            if "://" in directory:
                self._files, root = fs.FileSystem.from_uri(directory)
            else:
                self._files, root = fs.LocalFileSystem(), str(Path(directory).expanduser().absolute())
        except (pa.ArrowInvalid, OSError, ImportError) as problem:
            raise UsageError(
                f"ledger: {directory!r} cannot be used: {problem}. Give a directory that all workers share, or a "
                f"URI that pyarrow knows, such as s3://bucket/ledger"
            ) from problem
        self._place = posixpath.join(root, f"batch={quote(batch, safe='')}")

    def done(self) -> dict[str, Any] | None:
        """What was noted when the batch was through; None if it is not."""
        place = posixpath.join(self._place, _DONE)
        if self._files.get_file_info(place).type != fs.FileType.File:
            return None
        with self._files.open_input_stream(place) as stream:
            told: dict[str, Any] = json.loads(stream.read().decode() or "{}")
        return told

    def sent(self, part: int) -> Counter[bytes]:
        """The digests of what one part of the batch has sent, and how often."""
        found: Counter[bytes] = Counter()
        for name, path in self._listed():
            if name.startswith(f"{part}-") and name.endswith(".sent"):
                with self._files.open_input_stream(path) as stream:
                    noted = stream.read()
                whole = range(0, len(noted) - len(noted) % _DIGEST, _DIGEST)
                found.update(noted[place : place + _DIGEST] for place in whole)
        return found

    def notes(self, part: int) -> Notes:
        """Where one part of the batch notes what it has sent."""
        return Notes(self._write, part)

    def finish(self, told: dict[str, Any]) -> None:
        """Note that the batch is through. Its digests are not needed any more."""
        self._write(_DONE, json.dumps(told).encode())
        for name, path in self._listed():
            if name.endswith(".sent"):
                self._files.delete_file(path)

    def _listed(self) -> list[tuple[str, str]]:
        selector = fs.FileSelector(self._place, allow_not_found=True)
        return [(posixpath.basename(info.path), info.path) for info in self._files.get_file_info(selector)]

    def _write(self, name: str, content: bytes) -> None:
        """Write a file that is there as a whole or not at all."""
        self._files.create_dir(self._place, recursive=True)
        draft = posixpath.join(self._place, f".{name}.draft")
        with self._files.open_output_stream(draft) as stream:
            stream.write(content)
        self._files.move(draft, posixpath.join(self._place, name))


class Notes:
    """What a writer has sent, put down every second."""

    def __init__(self, write: Callable[[str, bytes], None], part: int) -> None:
        self._write = write
        self._part, self._attempt, self._number = part, uuid.uuid4().hex, 0
        self._waiting: list[bytes] = []
        self._last = time.monotonic()

    def add(self, digest: bytes) -> None:
        """Note one message."""
        self._waiting.append(digest)
        if len(self._waiting) >= _AT_ONCE or time.monotonic() - self._last >= _SECONDS:
            self.flush()

    def flush(self) -> None:
        """Put down what is noted."""
        if self._waiting:
            self._write(f"{self._part}-{self._attempt}-{self._number}.sent", b"".join(self._waiting))
            self._number += 1
            self._waiting.clear()
        self._last = time.monotonic()
