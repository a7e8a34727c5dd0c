"""The threads behind a recorder: one that writes what was recorded, one that seals what was written.

They are two, so that a segment can be sealed for as long as that takes, wherever it goes, while what a kill would
lose stays as little as it should be. Whatever goes wrong with the disk, the writer keeps what it has in hand and
tries again: how much may pile up meanwhile is the queue's business, and what the queue refuses is counted
there.
"""

from __future__ import annotations

import dataclasses
import logging
import queue
import threading
import time
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from framewire.capture.bodies import cut_body
from framewire.capture.columns import Block, Records, batch_of, rows_of
from framewire.capture.places import Place
from framewire.capture.retention import prune
from framewire.capture.sealing import Draft, seal
from framewire.capture.settings import CaptureSettings
from framewire.capture.spool import OpenSegment, abandoned
from framewire.capture.waiting import Waiting

__all__ = ["Complaints", "Sealer", "Writer"]

log = logging.getLogger("framewire.capture")

_AT_ONCE = 4
"""Pieces that are written in one go: a busy node lets the writer have the interpreter once every 10 ms."""
_HURRY = 2000
"""Records behind which the writer does not let the node go first any more, but takes turns with it."""
_HASTE = 0.5
"""The share of the time that a message may wait after which writing begins."""
_RETRY = 1.0
"""Seconds between attempts to seal what could not be sealed."""
_MOST_DRAFTS = 1
"""Drafts that may wait in memory; segments that come after them are read when it is their turn."""


class _Held(NamedTuple):
    """A batch that is to be written."""

    batch: pa.RecordBatch
    content: pa.Buffer
    """The same as it is written."""


class _Opened(NamedTuple):
    """A segment that is being written, the file that it will be, and when it was begun."""

    segment: OpenSegment
    draft: Draft
    began: float


class Complaints:
    """What is wrong with the disk: the last problem at hand, the log never flooded."""

    def __init__(self, place: str, *, every: float = 1.0) -> None:
        self._place = place
        self._every = every
        self._last = float("-inf")
        self.problem: str | None = None

    def add(self, what: str, problem: BaseException) -> None:
        """Something could not be done; it will be tried again."""
        self.problem = f"{what}: {problem}"
        if time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            log.warning("capture to %s: %s: %s; trying again", self._place, what, problem)

    def settle(self) -> None:
        """It works again."""
        if self.problem is not None:
            self.problem = None
            log.info("capture to %s works again", self._place)


class Writer(threading.Thread):
    """Writes what waits to the open segment, often, and hands the segment on when it is full or old enough."""

    def __init__(
        self, node: bytes, place: Place, settings: CaptureSettings, waiting: Waiting, sealer: Sealer
    ) -> None:
        super().__init__(name="framewire capture writer", daemon=True)
        self.written = 0
        self.complaints = Complaints(place.name)
        self._node = node
        self._place = place
        self._settings = settings
        self._waiting = waiting
        self._sealer = sealer
        self._opened: _Opened | None = None
        self._in_hand: list[_Held] = []
        self._blocks: list[Block] = []
        """What batches were made of that are in hand or in the draft."""
        self._ending = threading.Event()

    def run(self) -> None:
        interval = self._settings.batch_seconds * _HASTE
        while not self._ending.is_set():
            self._waiting.wake.wait(interval)
            self._waiting.wake.clear()
            self._write_all()
            self._rotate()
            if self._in_hand:
                self._ending.wait(interval)  # the disk does not take it, and a full queue must not make this spin
        self._write_all()
        if self._in_hand:
            self._give_up()
        self._hand_on()
        self._sealer.end()

    def end(self) -> None:
        """Write what waits, and end."""
        self._ending.set()
        self._waiting.wake.set()

    def _write_all(self) -> None:
        while True:
            try:
                if not self._in_hand:
                    self._take()
                if not self._in_hand:
                    return
                self._append()
            except Exception as problem:  # noqa: BLE001 - whatever it is, this thread must not end of it
                self.complaints.add("cannot write", problem)
                return

    def _take(self) -> None:
        """Get the next batches in hand."""
        for _ in range(_AT_ONCE):
            records = self._waiting.take()
            if records is None:
                break
            if not self._hold(records):
                self._hold_singly(records)
            if isinstance(records, Block):
                break  # that was all there is
            # Lists become columns with the interpreter in hand: between any two of them the node has its turn.
            if self._waiting.left() < _HURRY:
                time.sleep(0)
        if not self._in_hand:
            self._waiting.written()

    def _hold(self, records: Block | Records) -> bool:
        """Get records in hand as a batch; not if any of them is nothing that can be written."""
        try:
            batch = self._batch(records)
            # In one step without the interpreter: a busy node is slow to let it go, each time it is asked for.
            self._in_hand.append(_Held(batch, batch.serialize()))
        except Exception:
            log.debug("%d messages cannot become a batch", rows_of(records), exc_info=True)
            return False
        if isinstance(records, Block):
            self._blocks.append(records)
        return True

    def _hold_singly(self, records: Block | Records) -> None:
        """Get those in hand that can be written."""
        for single in (records if isinstance(records, Records) else records.listed()).singles():
            if not self._hold(single):
                self._waiting.lose(1)
                log.error("a message cannot be recorded: %.200r", single)

    def _batch(self, records: Block | Records) -> pa.RecordBatch:
        limit = self._settings.body_limit
        if limit is not None and isinstance(records, Records):
            is_traced = self._waiting.is_traced
            cut = [frames if is_traced(frames) else cut_body(frames, limit) for frames in records.messages()]
            records = dataclasses.replace(records, frames=list(chain.from_iterable(cut)))
        return batch_of(self._node, records)

    def _append(self) -> None:
        if self._opened is None:
            segment = OpenSegment.create(self._place.spool, self._node)
            self._opened = _Opened(segment, Draft(self._node), time.monotonic())
        segment, draft, _ = self._opened
        segment.append(held.content for held in self._in_hand)
        written, self._in_hand = self._in_hand, []
        self.written += sum(held.batch.num_rows for held in written)
        self._waiting.written()
        self.complaints.settle()
        for held in written:
            draft.add(held.batch, held.content.size)
        self._rotate()
        if draft.settled:
            self._waiting.reuse(self._blocks)
            self._blocks = []

    def _rotate(self) -> None:
        settings, opened = self._settings, self._opened
        if opened is not None and (
            opened.segment.size >= settings.seal_bytes or time.monotonic() - opened.began >= settings.seal_seconds
        ):
            self._hand_on()

    def _give_up(self) -> None:
        while self._waiting.take() is not None:
            pass
        lost = len(self._waiting)
        self._waiting.lose_all()
        self._in_hand = []
        log.error("capture to %s: %d messages could not be written before the end", self._place.name, lost)

    def _hand_on(self) -> None:
        if self._opened is not None:
            segment, draft, _ = self._opened
            draft.finish()
            self._sealer.seal(segment, draft)
            self._opened = None


class Sealer(threading.Thread):
    """Seals segments: first those that a crash left, then those of its node; then removes what is too old."""

    def __init__(self, place: Place, settings: CaptureSettings) -> None:
        super().__init__(name="framewire capture sealer", daemon=True)
        self.segments = 0
        self.complaints = Complaints(place.name)
        self._place = place
        self._settings = settings
        self._coming: queue.SimpleQueue[tuple[OpenSegment, Draft | None] | None] = queue.SimpleQueue()
        self._left: list[tuple[OpenSegment, Draft | None]] = []

    def seal(self, segment: OpenSegment, draft: Draft) -> None:
        """Seal a segment when its turn comes."""
        waiting = len(self._left) + self._coming.qsize()
        self._coming.put((segment, draft if waiting < _MOST_DRAFTS else None))

    def end(self) -> None:
        """Seal what is there, and end. What cannot be sealed stays where it is, for whoever comes next."""
        self._coming.put(None)

    def run(self) -> None:
        self._adopt()
        ending = False
        while not ending:
            try:
                coming = self._coming.get(timeout=_RETRY if self._left else None)
            except queue.Empty:
                coming = None
            else:
                ending = coming is None
            if coming is not None:
                self._left.append(coming)
            del coming
            self._seal_all(stubborn=ending)
        for segment, _ in self._left:
            segment.close()

    def _adopt(self) -> None:
        try:
            for segment in abandoned(self._place.spool):
                log.info("sealing %s, which was left open", segment.path)
                self._left.append((segment, None))
        except OSError as problem:
            self.complaints.add("cannot look for what was left open", problem)
        self._seal_all()

    def _seal_all(self, *, stubborn: bool = False) -> None:
        """Seal what is left, until something fails; that is the last to be tried the next time."""
        for _ in range(len(self._left)):
            segment, draft = self._left.pop(0)
            try:
                seal(self._place, segment, draft)
            except Exception as problem:  # noqa: BLE001 - any filesystem may be the target, with errors of its own
                self.complaints.add("cannot seal a segment", problem)
                self._left.append((segment, None))  # it may take long, and memory is short
                if not stubborn:
                    return
            else:
                self.segments += 1
                self.complaints.settle()
                self._prune()

    def _prune(self) -> None:
        if self._settings.keep_seconds is None and self._settings.keep_bytes is None:
            return
        try:
            prune(self._place, keep_seconds=self._settings.keep_seconds, keep_bytes=self._settings.keep_bytes)
        except Exception as problem:  # noqa: BLE001 - same
            self.complaints.add("cannot remove old segments", problem)
