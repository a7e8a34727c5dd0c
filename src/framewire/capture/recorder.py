"""A recorder of one node: what ``Node(capture=...)`` is given."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framewire.capture.settings import CaptureSettings, settings_from
from framewire.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from framewire.capture.ledger import Take
    from framewire.capture.waiting import Waiting
    from framewire.capture.writing import Sealer, Writer

__all__ = ["Capture", "CaptureStats"]

log = logging.getLogger("framewire.capture")

_LONGEST_IDENTITY = (255 - len("recorder=")) // 2
"""Bytes of a node's identity that fit the name of a directory, in hex."""
_CLOSING = 60.0
"""Seconds that closing waits for the disk."""


@dataclass(frozen=True, slots=True)
class CaptureStats:
    """What a recorder has done."""

    captured: int
    """Messages on disk."""
    waiting: int
    """Messages that are not there yet."""
    dropped: int
    """Messages that should be there and never will: there was no room for them."""
    left_out: int
    """Messages that the settings leave out."""
    segments: int
    """Segments that were sealed, those that a crash left among them."""
    problem: str | None
    """What is wrong with the disk now."""


class Capture:
    """Records everything that a node sends, receives, delivers and buries, as Parquet below a directory.

    ``path`` is a directory, or a URI such as ``s3://bucket/captures``; with ``filesystem``, any pyarrow
    filesystem, it is a path there. The options are those of ``CaptureSettings``. A recorder is for one node and
    for one life.
    """

    record: Take
    """Takes one message in. It is the node's event loop that calls it."""

    def __init__(self, path: str | os.PathLike[str], *, filesystem: Any = None, **options: Any) -> None:
        problems: list[str] = []
        self.settings = CaptureSettings()
        try:
            self.settings = settings_from(options)
        except ConfigError as wrong:
            problems += wrong.problems
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            problems.append(f"path: {path!r}; must be a directory, or a URI such as s3://bucket/captures")
        if problems:
            raise ConfigError("capture settings", problems)
        try:
            from framewire.capture.columns import warm_up  # noqa: PLC0415 - pyarrow comes with it
            from framewire.capture.places import Place  # noqa: PLC0415 - same
            from framewire.capture.waiting import Waiting  # noqa: PLC0415 - same
            from framewire.capture.writing import Sealer, Writer  # noqa: F401, PLC0415 - loaded before it matters
        except ModuleNotFoundError as missing:
            raise UsageError(
                f"recording needs {missing.name}, which is not installed: pip install 'framewire[spark]'"
            ) from missing
        warm_up()
        self._place = Place(path, filesystem, self.settings.spool)
        self._waiting: Waiting = Waiting(self.settings)
        self._threads: tuple[Writer, Sealer] | None = None
        self._closed = False
        self.record = self._waiting.taker()

    def __repr__(self) -> str:
        return f"Capture({self._place.name!r})"

    @property
    def path(self) -> str:
        return self._place.name

    def open(self, node: bytes) -> None:
        """Begin to record for a node. Whatever the disk is like, this does not fail: it is tried again."""
        from framewire.capture.writing import Sealer, Writer  # noqa: PLC0415 - pyarrow comes with it

        if self._threads is not None:
            raise UsageError(f"{self!r} records a node already, or has; make one for each node")
        if len(node) > _LONGEST_IDENTITY:
            raise UsageError(
                f"identity: {len(node)} bytes are too many for a node that is recorded, as directories are named "
                f"after it; {_LONGEST_IDENTITY} is the most"
            )
        sealer = Sealer(self._place, self.settings)
        writer = Writer(node, self._place, self.settings, self._waiting, sealer)
        self._threads = writer, sealer
        sealer.start()
        writer.start()

    def close(self) -> None:
        """Write and seal what is still open."""
        if self._threads is None or self._closed:
            return
        self._closed = True
        writer, sealer = self._threads
        self._waiting.close()
        deadline = time.monotonic() + _CLOSING
        writer.end()
        for thread in (writer, sealer):
            thread.join(max(0.0, deadline - time.monotonic()))
        if writer.is_alive() or sealer.is_alive():
            log.error(
                "capture to %s: the disk did not answer for %.0f s; what is open there can be had with "
                "`framewire capture recover`",
                self.path,
                _CLOSING,
            )

    @property
    def stats(self) -> CaptureStats:
        """What it has done so far, and what is wrong with the disk, if anything is."""
        problem, written, segments = None, 0, 0
        if self._threads is not None:
            writer, sealer = self._threads
            problem = writer.complaints.problem or sealer.complaints.problem
            written, segments = writer.written, sealer.segments
        waiting = self._waiting
        return CaptureStats(written, len(waiting), waiting.dropped, waiting.left_out, segments, problem)

    @property
    def captured(self) -> int:
        """Messages on disk."""
        return self.stats.captured

    @property
    def dropped(self) -> int:
        """Messages that should be on disk and never will be."""
        return self.stats.dropped
