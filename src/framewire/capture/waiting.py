"""The records that wait to be written: bounded, and cheap to add to.

``record`` runs on the node's event loop for every message, so it does nothing but append to flat lists (about
half a microsecond, see bench/capture.py). When there are some hundreds of records in the lists they are handed
over as they are, and new lists begun.

No lock is needed. The loop only appends, with ``counts`` last; the writer takes lists that were handed over or,
where there are none, what ``counts`` says is complete from the front of the others. Each of these steps is a
single one for the interpreter.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from framewire.capture.choosing import choice_of
from framewire.capture.columns import Records
from framewire.capture.settings import CaptureSettings

__all__ = ["Take", "Waiting"]

_RECORD = 120
_FRAME = 50
"""Memory that a record and each of its frames take, roughly: an object, its place in a list, a short content."""
_FEW_FRAMES = 32
"""Frames of a message whose large content is where the formats put bodies: third from the top, or last."""
_PIECE = 500
"""Records that are handed over at a time, at least: the node waits about half a millisecond while they become
columns."""
_PIECE_WEIGHT = _PIECE * (_RECORD + 30 * _FRAME)


class Take(Protocol):
    """What a node calls with each message."""

    def __call__(
        self, direction: str, peer: bytes, frames: Sequence[bytes], reason: str | None = None, at: int = 0
    ) -> None: ...


class Waiting:
    """What was recorded and is not written yet."""

    def __init__(self, settings: CaptureSettings) -> None:
        self._settings = settings
        self._records = Records()
        """What the event loop adds to. Only it changes which that is."""
        self._handed: deque[Records] = deque()
        """What it added to before."""
        self._put = 0
        """The weight of all that ever came in. Only the event loop changes it."""
        self._gone = 0
        """How much of that is written. Only the writer changes it."""
        self._mark = 0
        """When ``_put`` is past this, there may be no room."""
        self._taken = 0
        """Records that the writer has in hand."""
        self._wake_step = min(8 * 1024 * 1024, settings.queue_bytes // 4)
        self._room = threading.Condition()
        self._patient = True
        self._closed = False
        self.wake = threading.Event()
        """Set when the writer should not wait any longer."""
        self._refused = 0
        self._lost = 0
        self.left_out = 0
        """Messages that the settings leave out."""

    def __len__(self) -> int:
        return self.left() + self._taken

    def left(self) -> int:
        """Records that the writer has not taken yet."""
        return sum(map(len, tuple(self._handed))) + len(self._records)

    @property
    def dropped(self) -> int:
        """Messages that should have been recorded and were not."""
        return self._refused + self._lost

    # --- on the event loop

    def taker(self) -> Take:
        """The function that takes messages in."""
        frames_of, times, directions, peers, reasons, counts = _adders(self._records)
        now = time.time_ns

        def record(
            direction: str, peer: bytes, frames: Sequence[bytes], reason: str | None = None, at: int = 0
        ) -> None:
            nonlocal frames_of, times, directions, peers, reasons, counts
            count = len(frames)
            if 2 < count <= _FEW_FRAMES:
                weight = _RECORD + count * _FRAME + len(frames[2]) + len(frames[-1])
            else:
                weight = _RECORD + count * _FRAME + sum(map(len, frames))
            self._put += weight
            if self._put > self._mark:
                if not self._admit(weight):
                    return
                frames_of, times, directions, peers, reasons, counts = _adders(self._records)
            frames_of(frames)
            times(at or now())
            directions(direction)
            peers(peer)
            reasons(reason)
            counts(count)

        chosen = choice_of(self._settings)
        if chosen is None:
            return record

        def record_chosen(
            direction: str, peer: bytes, frames: Sequence[bytes], reason: str | None = None, at: int = 0
        ) -> None:
            if chosen(direction, frames):
                record(direction, peer, frames, reason, at)
            else:
                self.left_out += 1

        return record_chosen

    def _admit(self, weight: int) -> bool:
        """Whether there is room for one more; called whenever that is not certain."""
        if self._is_full(weight) and not (self._settings.on_full == "wait" and self._got_room(weight)):
            self._put -= weight
            self._mark = 0
            self._refused += 1
            self.wake.set()
            return False
        weight_left = self._settings.queue_bytes - (self._put - self._gone)
        records_left = self._settings.queue_records - len(self) - 1
        self._mark = self._put + max(0, min(weight_left, records_left * _RECORD, _PIECE_WEIGHT))
        if len(self._records) >= _PIECE:
            full, self._records = self._records, Records()
            self._handed.append(full)
        if self._put - self._gone > self._wake_step or 2 * len(self) > self._settings.queue_records:
            self.wake.set()
        return True

    def _is_full(self, weight: int) -> bool:
        waiting = len(self)
        # Where nothing waits, even a message that is larger than all the room may have it.
        return (
            self._closed
            or waiting >= self._settings.queue_records
            or (waiting > 0 and self._put - self._gone > self._settings.queue_bytes and weight > 0)
        )

    def _got_room(self, weight: int) -> bool:
        if self._closed or not self._patient:
            return False  # nobody writes any more, or it has waited in vain before and nothing was written since
        self.wake.set()
        with self._room:
            self._patient = self._room.wait_for(lambda: not self._is_full(weight), self._settings.wait_limit)
        return self._patient

    def close(self) -> None:
        """Take nothing more: nobody would write it."""
        self._closed = True
        self._mark = 0

    # --- on the writer's thread

    def take(self) -> Records:
        """Some of the oldest records, for writing them; they count as waiting until ``written`` is called."""
        records = self._records
        # In this order: lists that are handed over meanwhile are older than those that the loop goes on with.
        taken = self._handed.popleft() if self._handed else _taken_from(records)
        self._taken += len(taken)
        return taken

    def written(self) -> None:
        """What was taken is no longer here; there is room again."""
        weight = self._put - self._gone
        left = self.left()
        # With nothing left the reckoning starts anew, so that its roundings do not add up.
        self._gone += weight * self._taken // (self._taken + left) if left else weight
        self._taken = 0
        with self._room:
            self._patient = True
            self._room.notify_all()

    def lose(self, count: int) -> None:
        """Some of what was taken can never be written."""
        self._lost += count
        self._taken -= count

    def lose_all(self) -> None:
        """Nothing of what was taken can be written."""
        self.lose(self._taken)
        self.written()


def _adders(records: Records) -> tuple[Any, ...]:
    return (
        records.frames.extend,
        records.at.append,
        records.directions.append,
        records.peers.append,
        records.reasons.append,
        records.counts.append,
    )


def _taken_from(records: Records) -> Records:
    """What is complete in lists that may be added to meanwhile."""
    count = len(records.counts)
    frames = sum(records.counts[:count])
    taken = Records(
        records.at[:count],
        records.directions[:count],
        records.peers[:count],
        records.reasons[:count],
        records.frames[:frames],
        records.counts[:count],
    )
    del records.counts[:count], records.at[:count], records.directions[:count], records.peers[:count]
    del records.reasons[:count], records.frames[:frames]
    return taken
