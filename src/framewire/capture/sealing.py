"""Open segments become sealed ones: Parquet, sorted by time, there as a whole or not at all.

Sealing the same segment twice gives the same file, so a process may be killed between any two steps: whoever
comes next just does it again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from framewire.capture.columns import SCHEMA
from framewire.capture.places import Place
from framewire.capture.schema import segment_path
from framewire.capture.spool import OpenSegment, abandoned

__all__ = ["Recovered", "recover", "seal"]

_REPEATED = ["node", "direction", "peer", "reason"]
"""Columns of few values. The frames are not among them: a dictionary costs more than it saves before zstd does."""
_ROW_GROUP = 250_000
"""Rows that Spark reads as one piece: at 64 MB a segment it hardly ever has more than one."""
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of a segment that a crash left open."""

    ulid: str
    messages: int
    problem: str = ""
    """Why it could not be sealed."""


def seal(place: Place, segment: OpenSegment) -> int:
    """Turn a segment into Parquet; how many messages it has. Fails with OSError, and then changes nothing."""
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
    if not table.num_rows:
        return
    at = table["at"].cast(pa.int64()).to_numpy()
    if (np.diff(at) < 0).any():  # the clock was set back meanwhile
        order = pc.sort_indices(table["at"])
        table, at = table.take(order), at[order.to_numpy()]
    start = 0
    while start < len(at):
        day = int(at[start]) // _DAY
        end = int(np.searchsorted(at, (day + 1) * _DAY))
        yield dt.datetime.fromtimestamp(day * _DAY / 1e6, dt.UTC), table.slice(start, end - start)
        start = end


def _parquet(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=1,
        use_dictionary=_REPEATED,
        write_statistics=["at", *_REPEATED],
        row_group_size=_ROW_GROUP,
    )
    return sink.getvalue()
