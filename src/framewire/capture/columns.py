"""Records as columns: from what they wait in to what Arrow writes.

A block is Arrow's own buffers already. Where they are flat lists, only whole lists are handed to Arrow and numpy
here: anything done for each frame in Python would keep the interpreter from the node for longer than recording did,
as a message has about 30 of them.
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
"""Rows of columns that are the same in all batches of a node, and so are kept for the next one."""


class Block(NamedTuple):
    """Recorded messages from the compiled ledger: Arrow's buffers, which may have more room than there is in them.

    Where something ends is told from the beginning of its buffer on, and begins with a 0.
    """

    times: bytearray
    """Microseconds since 1970."""
    ends: bytearray
    """Where the frames of each message end, in numbers of frames."""
    frame_ends: bytearray
    """Where each frame ends, in bytes."""
    frames: bytearray
    direction_ends: bytearray
    directions: bytearray
    peer_ends: bytearray
    peers: bytearray
    reasons: list[tuple[int, str]]
    """Which messages have one."""
    rows: int

    def listed(self) -> Records:
        """The same in lists."""
        at, directions, peers, reasons, frames = _from_buffers(self)
        return Records(
            [1000 * time for time in at.cast(pa.int64()).to_pylist()],
            directions.to_pylist(),
            peers.to_pylist(),
            reasons.to_pylist(),
            frames.values.to_pylist(),
            frames.value_lengths().to_pylist(),
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
    return records.rows if isinstance(records, Block) else len(records.counts)


def batch_of(node: bytes, records: Block | Records) -> pa.RecordBatch:
    """What a node recorded, as a batch of rows."""
    at, *columns = _from_buffers(records) if isinstance(records, Block) else _from_lists(records)
    return pa.RecordBatch.from_arrays([at, _repeated(node, len(at)), *columns], schema=SCHEMA)


def _from_buffers(block: Block) -> list[pa.Array]:
    """The columns but for the node."""
    rows = block.rows
    frames = _number(block.ends, rows)
    return [
        pa.Array.from_buffers(_TYPES["timestamp"], rows, [None, _part(block.times, 8 * rows)], 0),
        _texts(pa.string(), rows, block.direction_ends, block.directions),
        _texts(pa.binary(), rows, block.peer_ends, block.peers),
        pa.array(_spread(block.reasons, rows), pa.string()) if block.reasons else _nothing(rows),
        pa.Array.from_buffers(
            _TYPES["array<binary>"],
            rows,
            [None, _part(block.ends, 4 * (rows + 1))],
            0,
            children=[_texts(pa.binary(), frames, block.frame_ends, block.frames)],
        ),
    ]


def _texts(kind: pa.DataType, count: int, ends: bytearray, contents: bytearray) -> pa.Array:
    size = _number(ends, count)
    return pa.Array.from_buffers(kind, count, [None, _part(ends, 4 * (count + 1)), _part(contents, size)], 0)


def _part(buffer: bytearray, size: int) -> pa.Buffer:
    return pa.py_buffer(buffer).slice(0, size)


def _number(ends: bytearray, place: int) -> int:
    return int.from_bytes(ends[4 * place : 4 * place + 4], sys.byteorder)


def _spread(reasons: list[tuple[int, str]], rows: int) -> list[str | None]:
    spread: list[str | None] = [None] * rows
    for row, reason in reasons:
        spread[row] = reason
    return spread


def _from_lists(records: Records) -> list[pa.Array]:
    """The columns but for the node."""
    offsets = np.zeros(len(records.counts) + 1, np.int32)
    np.cumsum(records.counts, out=offsets[1:])
    microseconds = np.array(records.at, np.int64) // 1000
    return [
        pa.array(microseconds).cast(_TYPES["timestamp"]),
        pa.array(records.directions, pa.string()),
        pa.array(records.peers, pa.binary()),
        pa.array(records.reasons, pa.string()),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(records.frames, pa.binary())),
    ]


def _repeated(node: bytes, rows: int) -> pa.Array:
    return _same(pa.scalar(node, pa.binary()), rows)


def _nothing(rows: int) -> pa.Array:
    return _same(pa.scalar(None, pa.string()), rows)


def _same(value: pa.Scalar, rows: int) -> pa.Array:
    room = 1 << (rows - 1).bit_length() if rows else 1
    if room > _MOST_KEPT:
        return pa.repeat(value, rows)
    return _kept(value, room).slice(0, rows)


@lru_cache(16)
def _kept(value: pa.Scalar, room: int) -> pa.Array:
    return pa.repeat(value, room)


def warm_up() -> None:
    """Let pyarrow load what it loads when it is first used: in a busy process that takes most of a second."""
    batch_of(b"", Records([0], [""], [b""], [None], [b""], [1])).serialize()
