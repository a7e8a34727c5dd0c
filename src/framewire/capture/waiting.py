"""The records that wait to be written: bounded, and honest about what there was no room for.

Whether there is room is not looked at for every message. The ledger that they wait in adds up what they weigh, and
asks only when that is past a mark, which is set such that there is room for sure before.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from framewire.capture.choosing import choice_of
from framewire.capture.columns import Block, Records, rows_of
from framewire.capture.ledger import RECORD_WEIGHT, Take, open_ledger
from framewire.capture.schema import Direction
from framewire.capture.settings import CaptureSettings
from framewire.capture.tracing import TracedFlows

__all__ = ["Waiting"]

log = logging.getLogger("framewire.capture")

_LOOK = 800_000
"""Bytes after which it is looked at least whether the writer should be woken: some hundreds of messages."""
_MOST_SPARE = 4
"""Blocks whose memory is kept to be used again."""


class Waiting:
    """What was recorded and is not written yet."""

    def __init__(self, settings: CaptureSettings) -> None:
        self._settings = settings
        self._ledger = open_ledger(self._admit, self._refuse, whole=settings.body_limit is None)
        self._traced = TracedFlows() if settings.traced else None
        self._gone = 0
        """How much of what was put there is written. Only the writer changes it."""
        self._taken = 0
        """Records that the writer has in hand."""
        self._spare: list[Block] = []
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
        return len(self._ledger) + self._taken

    def left(self) -> int:
        """Records that the writer has not taken yet."""
        return len(self._ledger)

    @property
    def dropped(self) -> int:
        """Messages that should have been recorded and were not."""
        return self._refused + self._lost

    # --- on the event loop

    def taker(self) -> Take:
        """The function that takes messages in."""
        record, chosen, traced = self._ledger.record, choice_of(self._settings), self._traced
        if chosen is None and traced is not None and self._settings.body_limit is None:
            return record  # all is recorded, and whole

        def is_wanted(direction: str, frames: Sequence[bytes]) -> bool:
            if traced is None:
                if direction == Direction.TRACE:
                    return False
            elif traced.includes(frames):
                return True
            return chosen is None or chosen(direction, frames)

        def record_chosen(
            direction: str, peer: bytes, frames: Sequence[bytes], reason: str | None = None, at: int = 0
        ) -> None:
            if is_wanted(direction, frames):
                record(direction, peer, frames, reason, at)
            else:
                self.left_out += 1

        return record_chosen

    def _admit(self, weight: int) -> bool:
        ledger, settings = self._ledger, self._settings
        if self._is_full(weight) and not (settings.on_full == "wait" and self._got_room(weight)):
            ledger.mark = 0
            self._refused += 1
            self.wake.set()
            return False
        waiting, most = len(self) + 1, settings.queue_records
        weight_left = settings.queue_bytes - (ledger.put - self._gone)
        records_left = (most // 2 if 2 * waiting < most else most) - waiting
        ledger.mark = ledger.put + max(0, min(weight_left, records_left * RECORD_WEIGHT, _LOOK))
        if ledger.put - self._gone > self._wake_step or 2 * waiting >= most:
            self.wake.set()
        return True

    def _is_full(self, weight: int) -> bool:
        waiting = len(self)
        # Where nothing waits, even a message that is larger than all the room may have it.
        return (
            self._closed
            or waiting >= self._settings.queue_records
            or (waiting > 0 and self._ledger.put - self._gone > self._settings.queue_bytes and weight > 0)
        )

    def _got_room(self, weight: int) -> bool:
        if self._closed or not self._patient:
            return False  # nobody writes any more, or it has waited in vain before and nothing was written since
        self.wake.set()
        with self._room:
            self._patient = self._room.wait_for(lambda: not self._is_full(weight), self._settings.wait_limit)
        return self._patient

    def _refuse(self, direction: str, peer: bytes, frames: Sequence[bytes], reason: str | None) -> None:
        """Count what the ledger cannot take, unless it only has its bytes in something else than bytes."""
        try:
            exact = [bytes(memoryview(frame)) for frame in frames]
        except TypeError:
            exact = []
        if exact and not all(isinstance(frame, bytes) for frame in frames):
            self._ledger.record(direction, peer, exact, reason)
            return
        self._refused += 1
        log.error("a message cannot be recorded: %.200r", (direction, peer, reason, frames))

    def close(self) -> None:
        """Take nothing more: nobody would write it."""
        self._closed = True
        self._ledger.mark = 0

    # --- on the writer's thread

    def is_traced(self, frames: Sequence[bytes]) -> bool:
        """Whether a message that was taken belongs to a traced flow, of which bodies are kept."""
        return self._traced is not None and self._traced.holds(frames)

    def take(self) -> Block | Records | None:
        """Some of the oldest records, for writing them; they count as waiting until ``written`` is called."""
        if not self._ledger:
            return None
        taken = self._ledger.take(self._spare.pop() if self._spare else None)
        if taken is None:
            return None
        records = taken if isinstance(taken, Records) else Block(*taken)
        self._taken += rows_of(records)
        return records

    def reuse(self, blocks: list[Block]) -> None:
        """Nobody reads these any more: their memory may be used for what comes."""
        self._spare = (self._spare + blocks)[-_MOST_SPARE:]

    def written(self) -> None:
        """What was taken is no longer here, and there is room again."""
        weight = self._ledger.put - self._gone
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
