"""Open segments become sealed ones: Parquet, sorted by time, there as a whole or not at all.

Sealing the same segment twice gives the same rows under the same name, so a process may be killed between any two
steps: whoever comes next just does it again.

Whoever writes a segment has its rows in memory, and makes Parquet of them while it grows (``Draft``). The segment
itself is read only where that did not come to its end.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from framewire.capture.columns import SCHEMA
from framewire.capture.places import Place
from framewire.capture.schema import segment_path
from framewire.capture.spool import OpenSegment, abandoned

__all__ = ["Draft", "Recovered", "recover", "seal"]

log = logging.getLogger("framewire.capture")

_REPEATED = ["node", "direction", "peer", "reason"]
"""Columns of few values. The frames are not among them: a dictionary costs more than it saves before zstd does."""
_ROW_GROUP = 250_000
"""Rows that Spark reads as one piece, at most."""
_PIECE = 4 * 1024 * 1024
"""Bytes of rows that are kept before they become such a piece of a draft."""
_DAY = 86_400_000_000
_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": _REPEATED,
    "write_statistics": ["at", *_REPEATED],
}


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of a segment that a crash left open."""

    ulid: str
    messages: int
    problem: str = ""
    """Why it could not be sealed."""


class Draft:
    """The Parquet file that an open segment will be, written in memory while the segment grows.

    It is given up where rows are older than those before them, as after the clock was set back, or of another day.
    """

    def __init__(self, node: bytes) -> None:
        self.messages = 0
        self._node = node
        self._batches: list[pa.RecordBatch] = []
        self._size = 0
        self._sink = pa.BufferOutputStream()
        self._file: pq.ParquetWriter | None = pq.ParquetWriter(self._sink, SCHEMA, **_OPTIONS)
        self._first = self._last = 0

    @property
    def settled(self) -> bool:
        """Whether it needs none of the batches any more."""
        return not self._batches

    def add(self, batch: pa.RecordBatch, size: int) -> None:
        """What was written to the segment next, and how much that was."""
        if self._file is not None:
            self._batches.append(batch)
            self._size += size
            if self._size >= _PIECE:
                self._write()

    def finish(self) -> None:
        """The segment is complete."""
        self._write(last=True)

    def give_up(self) -> None:
        """Forget all of it: the segment will be read."""
        self._file = None
        self._sink = pa.BufferOutputStream()
        self._batches, self._size = [], 0

    def put(self, place: Place, ulid: str) -> bool:
        """Put the file where it belongs, unless it was given up or is empty."""
        if self._file is None or not self.messages:
            return False
        place.put(segment_path(self._node, _day(self._first), ulid), self._sink.getvalue())
        return True

    def _write(self, *, last: bool = False) -> None:
        try:
            if self._file is not None and self._batches:
                self._write_piece(self._file)
            if self._file is not None and last:
                self._file.close()
        except Exception:  # whatever it is, the rows are in the segment
            log.debug("a segment cannot be drafted, and will be read", exc_info=True)
            self.give_up()

    def _write_piece(self, file: pq.ParquetWriter) -> None:
        rows, at = _sorted(pa.Table.from_batches(self._batches, SCHEMA))
        self._first = self._first or int(at[0])
        if at[0] < self._last or _day(int(at[-1])) != _day(self._first):
            self.give_up()
            return
        file.write_table(rows, row_group_size=_ROW_GROUP)
        self._last = int(at[-1])
        self.messages += rows.num_rows
        self._batches, self._size = [], 0


def seal(place: Place, segment: OpenSegment, draft: Draft | None = None) -> int:
    """Turn a segment into Parquet; how many messages it has. Fails with OSError, and then changes nothing."""
    if draft is not None and draft.put(place, segment.ulid):
        segment.remove()
        return draft.messages
    reader = segment.reader()
    try:
        batches = reader.read()
    finally:
        reader.close()
    table = pa.Table.from_batches(batches, SCHEMA)
    for day, rows in _days(table):
        path = segment_path(reader.node, day, segment.ulid)
        place.put(path, _parquet(rows))
    segment.remove()
    return int(table.num_rows)


def recover(place: Place) -> Iterator[Recovered]:
    """Seal what crashes have left. What cannot be sealed now stays, and can be recovered later."""
    for segment in abandoned(place.spool):
        try:
            count = seal(place, segment)
        except (OSError, pa.ArrowException) as problem:
            segment.close()
            yield Recovered(segment.ulid, 0, str(problem))
        else:
            yield Recovered(segment.ulid, count)


def _days(table: pa.Table) -> Iterator[tuple[dt.datetime, pa.Table]]:
    """The rows of each day, sorted by time. Nearly always that is the table as it is."""
    table, at = _sorted(table)
    start = 0
    while start < len(at):
        day = _day(int(at[start]))
        end = int(np.searchsorted(at, int(day.timestamp()) * 1_000_000 + _DAY))
        yield day, table.slice(start, end - start)
        start = end


def _sorted(table: pa.Table) -> tuple[pa.Table, np.ndarray[Any, np.dtype[np.int64]]]:
    """Rows in the order of their times, and those in microseconds. Nearly always they are."""
    at = table["at"].cast(pa.int64()).to_numpy()
    if (at[1:] < at[:-1]).any():
        order = pc.sort_indices(table["at"])
        table, at = table.take(order), at[order.to_numpy()]
    return table, at


def _day(microseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(microseconds // _DAY * (_DAY // 1_000_000), dt.UTC)


def _parquet(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=_ROW_GROUP, **_OPTIONS)
    return sink.getvalue()
