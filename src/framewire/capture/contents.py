"""What captures hold, counted: without decoding, so that millions of messages take seconds."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from framewire.wire import MessageId
from framewire.wire.layout import LAYOUTS, Layout

__all__ = ["Contents"]

_TRAILER_SIZES = (2, 4)


@dataclass(slots=True)
class Contents:
    """How many messages there are, from when to when, and of what kind."""

    messages: int = 0
    first: dt.datetime | None = None
    last: dt.datetime | None = None
    nodes: Counter[bytes] = field(default_factory=Counter)
    directions: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    message_ids: Counter[MessageId | None] = field(default_factory=Counter)
    """By what their frames say; None for those that are in no known format."""

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Count some more."""
        for batch in batches:
            if batch.num_rows:
                self._add(batch)

    def _add(self, batch: pa.RecordBatch) -> None:
        self.messages += batch.num_rows
        span = pc.min_max(batch["at"]).as_py()
        self.first = min(self.first or span["min"], span["min"])
        self.last = max(self.last or span["max"], span["max"])
        for column, counter in (("node", self.nodes), ("direction", self.directions), ("reason", self.reasons)):
            for found in pc.value_counts(batch[column].drop_null()).to_pylist():
                counter[found["values"]] += found["counts"]
        self.message_ids.update(_message_ids(batch["frames"]))


def _message_ids(frames: pa.ListArray) -> Counter[MessageId | None]:
    counts = pc.list_value_length(frames)
    values = frames.flatten()
    ends = pc.cumulative_sum(counts)
    found: Counter[MessageId | None] = Counter()
    told = 0
    enough = pc.greater_equal(counts, 2)
    # Rows that are too short have no frame to look at; the first frame of all stands in, and is not counted.
    last = values.take(_or_zero(pc.subtract(ends, 1), enough)) if len(values) else values
    above = values.take(_or_zero(pc.subtract(ends, 2), enough)) if len(values) else values
    if not len(values):
        return Counter({None: len(frames)})
    empty = pc.equal(pc.binary_length(above), 0)
    for layout in LAYOUTS.values():
        named = empty if layout.trailer is None else pc.and_(pc.invert(empty), _is_trailer(last, layout))
        chosen = pc.and_(named, pc.and_(enough, pc.greater_equal(counts, layout.size)))
        lowest = ends.filter(chosen)
        told += len(lowest)
        found.update(_named(values, lowest, layout))
    if told < len(frames):
        found[None] = len(frames) - told
    return found


def _or_zero(positions: pa.Array, valid: pa.Array) -> pa.Array:
    return pc.if_else(valid, positions, pa.scalar(0, positions.type))


def _is_trailer(frames: pa.Array, layout: Layout) -> pa.Array:
    accepted = [layout.version.to_bytes(size, "little") for size in _TRAILER_SIZES]
    return pc.is_in(frames, pa.array(accepted, frames.type))


def _named(values: pa.Array, ends: pa.Array, layout: Layout) -> Counter[MessageId | None]:
    """The message ids of one format, whose messages end there."""
    columns = {}
    for name in ("identity", "version", "partition"):
        holder = layout.holder(name)
        if holder is None:
            columns[name] = pa.repeat(pa.scalar(b"", pa.binary()), len(ends))
        else:
            columns[name] = values.take(pc.subtract(ends, holder.frame))
    groups = pa.table(columns).group_by(list(columns)).aggregate([([], "count_all")])
    return Counter(
        {
            MessageId(
                group["identity"],
                int.from_bytes(group["version"], "little") if layout.numbered else group["version"],
                group["partition"],
            ): group["count_all"]
            for group in groups.to_pylist()
        }
    )
