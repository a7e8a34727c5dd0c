"""What was recorded and not taken by the writer yet, in two makes that give the same columns.

The compiled one copies the frames of a message to where Arrow wants them as it is recorded, which takes a quarter
of a microsecond and leaves little to be made of it later. The other, for where there was no compiler or
``FRAMEWIRE_PURE=1`` is set, and for messages whose bodies are to be cut before anything else happens to them, keeps
the frames as they are in flat lists; that takes twice as long, and a microsecond more when the writer makes columns
of them.

No lock is needed for either. The event loop only adds, and what the writer takes away from it goes in single steps
of the interpreter.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from framewire.capture.columns import Block, Records, rows_of
from framewire.wire.moulds import DESCRIPTORS

__all__ = ["COMPILED", "RECORD_WEIGHT", "Admit", "Ledger", "PureLedger", "Refuse", "Take", "open_ledger"]

log = logging.getLogger("framewire.capture")

_EDITION = 3
"""That of ``_ledger.c`` which goes with this module."""
RECORD_WEIGHT = 120
_FRAME = 50
"""Memory that a record and each of its frames take, roughly: an object, its place in a list, a short content."""
_FEW_FRAMES = 32
"""Frames of a message whose large content is where a body of one frame is put: third from the top, or last."""
_DESCRIPTOR, _ONE = DESCRIPTORS[-1], (1).to_bytes(2, "little")
"""The frame that says how many frames a body has, in its second lane."""
_PIECE = 500
"""Records that are handed over at a time, at least: the node waits about half a millisecond while they become
columns."""


class Take(Protocol):
    """What a node calls with each message."""

    def __call__(
        self, direction: str, peer: bytes, frames: Sequence[bytes], reason: str | None = None, at: int = 0, /
    ) -> None: ...


Admit = Callable[[int], bool]
"""Whether there is room for one more of that weight; asked whenever that is not certain."""
Refuse = Callable[[str, bytes, Sequence[bytes], str | None], None]
"""Told of what is nothing that can be written."""


class Ledger(Protocol):
    """Recorded messages that nobody has taken yet."""

    record: Take
    """Takes one message in. It is the event loop that calls it."""
    put: int
    """What all that ever came in weighs. Only the event loop changes it."""
    mark: int
    """When ``put`` is past this, there may be no room."""

    def __len__(self) -> int: ...

    def take(self, spare: Block | None, /) -> tuple[Any, ...] | Records | None:
        """Some of the oldest records, on the writer's thread: lists, or what a ``Block`` has; None for none.

        The memory of a spare block, which nobody reads any more, may be used again.
        """


class PureLedger:
    """The same in flat lists: a few hundred records to a piece, which is handed over as it is."""

    def __init__(self, admit: Admit) -> None:
        self.put = 0
        self.mark = 0
        self._admit = admit
        self._records = Records()
        """What the event loop adds to. Only it changes which that is."""
        self._handed: deque[Records] = deque()
        """What it added to before."""
        self.record = self._taker()

    def __len__(self) -> int:
        return sum(map(rows_of, tuple(self._handed))) + len(self._records.counts)

    def _taker(self) -> Take:
        frames_of, times, directions, peers, reasons, counts = _adders(self._records)
        now = time.time_ns

        def record(
            direction: str, peer: bytes, frames: Sequence[bytes], reason: str | None = None, at: int = 0
        ) -> None:
            nonlocal frames_of, times, directions, peers, reasons, counts
            count = len(frames)
            if 2 < count <= _FEW_FRAMES and frames[_DESCRIPTOR][2:4] == _ONE:
                weight = RECORD_WEIGHT + count * _FRAME + len(frames[2]) + len(frames[-1])
            else:
                weight = RECORD_WEIGHT + count * _FRAME + sum(map(len, frames))
            self.put += weight
            if self.put > self.mark:
                if not self._admit(weight):
                    self.put -= weight
                    return
                frames_of, times, directions, peers, reasons, counts = _adders(self._open())
            frames_of(frames)
            times(at or now())
            directions(direction)
            peers(peer)
            reasons(reason)
            counts(count)  # the last, for it says what is complete

        return record

    def _open(self) -> Records:
        if len(self._records.counts) >= _PIECE:
            full, self._records = self._records, Records()
            self._handed.append(full)
        return self._records

    def take(self, _: Block | None, /) -> Records | None:
        records = self._records
        # In this order: lists that are handed over meanwhile are older than those that the loop goes on with.
        taken = self._handed.popleft() if self._handed else _taken_from(records)
        return taken if taken.counts else None


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


def _compiled() -> Callable[[Admit, Refuse], Ledger] | None:
    if os.environ.get("FRAMEWIRE_PURE", "") not in ("", "0"):
        return None
    try:
        from framewire.capture import _ledger  # noqa: PLC0415 - may not be built
    except ImportError:
        return None
    if _ledger.EDITION != _EDITION:
        log.warning("the compiled recorder is of another version of framewire and is not used; install it again")
        return None
    return _ledger.Ledger  # type: ignore[no-any-return]


_CompiledLedger = _compiled()
COMPILED = _CompiledLedger is not None
"""Whether the compiled make is in use."""


def open_ledger(admit: Admit, refuse: Refuse, *, whole: bool) -> Ledger:
    """A ledger: the compiled one where it can be had, and messages are recorded whole."""
    if _CompiledLedger is None or not whole:
        return PureLedger(admit)
    return _CompiledLedger(admit, refuse)
