"""Records as columns: from what they wait in to what Arrow writes.

A block has their frames as Arrow's own buffers already. Where they are flat lists, only whole lists are handed to
Arrow and numpy here: anything done for each frame in Python would keep the interpreter from the node for longer
than recording did, as a message has about 30 of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from framewire.capture.schema import COLUMNS

__all__ = ["SCHEMA", "Block", "Records", "batch_of", "rows_of", "warm_up"]

_TYPES = {
    "timestamp": pa.timestamp("us", "UTC"),
    "binary": pa.binary(),
    "string": pa.string(),
    "array<binary>": pa.list_(pa.binary()),
}
SCHEMA = pa.schema([(name, _TYPES[kind]) for name, (kind, _) in COLUMNS.items()])
"""The columns of a capture, for Arrow."""
_MOST_KEPT = 16_384
"""Rows of the column that is the same in all batches of a node, and so is kept for the next one."""


class Block(NamedTuple):
    """Recorded messages from the compiled ledger: what there is many of as Arrow's buffers, the rest in lists.

    The buffers may have more room than there is in them.
    """

    times: bytearray
    """Microseconds since 1970."""
    ends: bytearray
    """Where the frames of each message end, in numbers of frames."""
    starts: bytearray
    """Where each frame ends, in bytes; both begin with a 0."""
    frames: bytearray
    directions: list[str]
    peers: list[bytes]
    reasons: list[str | None]

    def listed(self) -> Records:
        """The same in lists."""
        rows = len(self.peers)
        ends = np.frombuffer(self.ends, np.int32, rows + 1)
        starts = np.frombuffer(self.starts, np.int32, ends[-1] + 1).tolist()
        return Records(
            [1000 * time for time in np.frombuffer(self.times, np.int64, rows).tolist()],
            self.directions,
            self.peers,
            self.reasons,
            [bytes(self.frames[start:end]) for start, end in pairwise(starts)],
            np.diff(ends).tolist(),
        )


@dataclass(slots=True)
class Records:
    """Recorded messages, column by column; the frames of all of them are one list, in their order."""

    at: list[int] = field(default_factory=list)
    """Nanoseconds since 1970."""
    directions: list[str] = field(default_factory=list)
    peers: list[bytes] = field(default_factory=list)
    reasons: list[str | None] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    """How many frames each message has."""

    def messages(self) -> list[list[bytes]]:
        """The frames of each message."""
        ends = accumulate(self.counts, initial=0)
        return [self.frames[start:end] for start, end in pairwise(ends)]

    def singles(self) -> Iterator[Records]:
        """Each message by itself."""
        for at, direction, peer, reason, frames in zip(
            self.at, self.directions, self.peers, self.reasons, self.messages(), strict=True
        ):
            yield Records([at], [direction], [peer], [reason], frames, [len(frames)])


def rows_of(records: Block | Records) -> int:
    """How many messages there are."""
    return len(records.peers)


def batch_of(node: bytes, records: Block | Records) -> pa.RecordBatch:
    """What a node recorded, as a batch of rows."""
    count = rows_of(records)
    at, frames = _from_lists(records) if isinstance(records, Records) else _from_buffers(records)
    return pa.RecordBatch.from_arrays(
        [
            at,
            _repeated(node, count),
            pa.array(records.directions, pa.string()),
            pa.array(records.peers, pa.binary()),
            pa.array(records.reasons, pa.string()),
            frames,
        ],
        schema=SCHEMA,
    )


def _from_buffers(block: Block) -> tuple[pa.Array, pa.Array]:
    rows = rows_of(block)
    frames = _number(block.ends, rows)
    sizes = 8 * rows, 4 * (rows + 1), 4 * (frames + 1), _number(block.starts, frames)
    times, ends, starts, content = (
        pa.py_buffer(each).slice(0, size) for each, size in zip(block[:4], sizes, strict=True)
    )
    values = pa.Array.from_buffers(pa.binary(), frames, [None, starts, content], 0)
    return (
        pa.Array.from_buffers(_TYPES["timestamp"], rows, [None, times], 0),
        pa.Array.from_buffers(_TYPES["array<binary>"], rows, [None, ends], 0, children=[values]),
    )


def _number(offsets: bytearray, place: int) -> int:
    return int.from_bytes(offsets[4 * place : 4 * place + 4], sys.byteorder)


def _from_lists(records: Records) -> tuple[pa.Array, pa.Array]:
    offsets = np.zeros(len(records.counts) + 1, np.int32)
    np.cumsum(records.counts, out=offsets[1:])
    microseconds = np.array(records.at, np.int64) // 1000
    return (
        pa.array(microseconds).cast(_TYPES["timestamp"]),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(records.frames, pa.binary())),
    )


def _repeated(node: bytes, count: int) -> pa.Array:
    room = 1 << (count - 1).bit_length() if count else 1
    if room > _MOST_KEPT:
        return pa.repeat(pa.scalar(node, pa.binary()), count)
    return _kept(node, room).slice(0, count)


@lru_cache(8)
def _kept(node: bytes, room: int) -> pa.Array:
    return pa.repeat(pa.scalar(node, pa.binary()), room)


def warm_up() -> None:
    """Let pyarrow load what it loads when it is first used: in a busy process that takes most of a second."""
    batch_of(b"", Records([0], [""], [b""], [None], [b""], [1])).serialize()
