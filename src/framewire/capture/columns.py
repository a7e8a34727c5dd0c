"""Records as columns: from the flat lists that they wait in to what Arrow writes.

Only whole lists are handed to Arrow and numpy here. Anything done for each frame in Python would keep the
interpreter from the node for longer than recording did: a message has about 30 of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa

from framewire.capture.schema import COLUMNS

__all__ = ["SCHEMA", "Records", "batch_of", "warm_up"]

_TYPES = {
    "timestamp": pa.timestamp("us", "UTC"),
    "binary": pa.binary(),
    "string": pa.string(),
    "array<binary>": pa.list_(pa.binary()),
}
SCHEMA = pa.schema([(name, _TYPES[kind]) for name, (kind, _) in COLUMNS.items()])
"""The columns of a capture, for Arrow."""


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

    def __len__(self) -> int:
        return len(self.counts)

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


def batch_of(node: bytes, records: Records) -> pa.RecordBatch:
    """What a node recorded, as a batch of rows."""
    offsets = np.zeros(len(records) + 1, np.int32)
    np.cumsum(records.counts, out=offsets[1:])
    microseconds = np.array(records.at, np.int64) // 1000
    return pa.RecordBatch.from_arrays(
        [
            pa.array(microseconds).cast(_TYPES["timestamp"]),
            pa.repeat(pa.scalar(node, pa.binary()), len(records)),
            pa.array(records.directions, pa.string()),
            pa.array(records.peers, pa.binary()),
            pa.array(records.reasons, pa.string()),
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(records.frames, pa.binary())),
        ],
        schema=SCHEMA,
    )


def warm_up() -> None:
    """Let pyarrow load what it loads when it is first used: in a busy process that takes most of a second."""
    batch_of(b"", Records([0], [""], [b""], [None], [b""], [1])).serialize()
