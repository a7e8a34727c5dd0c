"""Reading captures back: sealed segments, and those that are still open.

A segment can be sealed, or removed, while it is read. So open segments are opened before the sealed ones are
listed: what is sealed in between is on the list, and what is on the list is not read twice.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from framewire.capture.columns import SCHEMA
from framewire.capture.places import Place, Segment
from framewire.capture.spool import SpoolReader, open_segments, ulid_of
from framewire.errors import UsageError

__all__ = ["Follower", "Wanted", "batches", "read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows to read; what is empty or None does not matter."""

    since: dt.datetime | None = None
    until: dt.datetime | None = None
    """The first moment that is not wanted any more."""
    nodes: tuple[bytes, ...] = ()
    directions: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                raise UsageError(f"{name}: {moment} has no time zone; captures are in UTC")

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that are wanted."""
        tests = [
            pc.is_in(batch[column], pa.array(values, batch[column].type))
            for column, values in (("node", self.nodes), ("direction", self.directions), ("reason", self.reasons))
            if values
        ]
        if self.since is not None:
            tests.append(pc.greater_equal(batch["at"], pa.scalar(self.since, SCHEMA.field("at").type)))
        if self.until is not None:
            tests.append(pc.less(batch["at"], pa.scalar(self.until, SCHEMA.field("at").type)))
        for test in tests[1:]:
            tests[0] = pc.and_(tests[0], test)
        return batch.filter(tests[0]) if tests else batch

    def may_be_in(self, first: dt.datetime, last: dt.datetime) -> bool:
        """Whether rows between two moments can be wanted."""
        return (self.since is None or last >= self.since) and (self.until is None or first < self.until)


EVERYTHING = Wanted()


def read(
    path: str | os.PathLike[str],
    *,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    nodes: Iterable[bytes] = (),
    directions: Iterable[str] = (),
    reasons: Iterable[str] = (),
    open_segments: bool = False,
    filesystem: Any = None,
) -> pa.Table:
    """All recorded messages as one table, sorted by time; ``open_segments`` adds what is not sealed yet."""
    wanted = Wanted(
        since=since,
        until=until,
        nodes=tuple(nodes),
        directions=tuple(map(str, directions)),
        reasons=tuple(map(str, reasons)),
    )
    found = batches(path, wanted, open_segments=open_segments, filesystem=filesystem)
    return pa.Table.from_batches(found, SCHEMA).sort_by("at")


def batches(
    path: str | os.PathLike[str],
    wanted: Wanted = EVERYTHING,
    *,
    open_segments: bool = False,
    filesystem: Any = None,
) -> Iterator[pa.RecordBatch]:
    """Recorded messages, however many there are, segment by segment, the oldest first."""
    place = existing(path, filesystem)
    with ExitStack() as stack:
        spooled = dict(_spooled(place, stack)) if open_segments else {}
        sealed = place.segments()
        for segment in sealed:
            yield from sealed_batches(place, segment, wanted)
        for ulid in spooled.keys() - {segment.ulid for segment in sealed}:
            for batch in spooled[ulid].read():
                yield wanted.of(batch)


def existing(path: str | os.PathLike[str], filesystem: Any = None) -> Place:
    """A place that is there, or ``UsageError``."""
    place = Place(path, filesystem)
    if not place.exists():
        raise UsageError(f"{place.name}: there is no such directory of captures")
    return place


def _spooled(place: Place, stack: ExitStack) -> Iterator[tuple[str, SpoolReader]]:
    for path in open_segments(place.spool):
        with contextlib.suppress(FileNotFoundError):
            yield ulid_of(path), SpoolReader(stack.enter_context(path.open("rb")))


def sealed_batches(place: Place, segment: Segment, wanted: Wanted = EVERYTHING) -> Iterator[pa.RecordBatch]:
    """The rows of a sealed segment; none if it has been removed meanwhile."""
    try:
        file = place.filesystem.open_input_file(place.path(segment.path))
    except FileNotFoundError:
        return
    with file, pq.ParquetFile(file) as parquet:
        missing = set(SCHEMA.names) - set(parquet.schema_arrow.names)
        if missing:
            raise UsageError(f"{segment.path or place.name} is no capture: it has no column {min(missing)!r}")
        groups = [group for group in range(parquet.num_row_groups) if _overlaps(parquet, group, wanted)]
        for batch in parquet.iter_batches(row_groups=groups, columns=SCHEMA.names):
            yield wanted.of(pa.RecordBatch.from_arrays([batch[name] for name in SCHEMA.names], schema=SCHEMA))


def _overlaps(parquet: pq.ParquetFile, group: int, wanted: Wanted) -> bool:
    figures = parquet.metadata.row_group(group).column(parquet.schema_arrow.names.index("at")).statistics
    return figures is None or not figures.has_min_max or wanted.may_be_in(figures.min, figures.max)


class Follower:
    """Reads what is recorded while it is being recorded."""

    def __init__(
        self, path: str | os.PathLike[str], wanted: Wanted = EVERYTHING, *, filesystem: Any = None
    ) -> None:
        self._place = existing(path, filesystem)
        self._wanted = wanted
        self._open: dict[str, SpoolReader] = {}
        self._seen: Counter[str] = Counter()
        """Rows of each segment that were read while it was open."""
        self._done: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._open.values():
            reader.close()

    def recent(self) -> Iterator[pa.RecordBatch]:
        """What is there already, the newest first. It is not told again, whether or not all of it is taken."""
        # Several nodes may be recording: what is open is told by time, not by node.
        newest = pa.Table.from_batches(self._grown(), SCHEMA).sort_by("at").to_batches()
        segments = [segment for segment in self._place.segments() if segment.path not in self._done]
        self._done |= {segment.path for segment in segments}
        return chain(
            reversed(newest),
            chain.from_iterable(reversed([*self._rest(segment)]) for segment in reversed(segments)),
        )

    def poll(self) -> Iterator[pa.RecordBatch]:
        """What came since the last time."""
        yield from self._grown()
        for segment in self._place.segments():
            if segment.path not in self._done:
                self._done.add(segment.path)
                yield from self._rest(segment)

    def _grown(self) -> Iterator[pa.RecordBatch]:
        """What was added to the segments that are open."""
        for path in open_segments(self._place.spool):
            ulid = ulid_of(path)
            if ulid not in self._open:
                with contextlib.suppress(FileNotFoundError):
                    self._open[ulid] = SpoolReader(path.open("rb", buffering=0))
        for ulid, reader in sorted(self._open.items()):
            for batch in reader.read():
                self._seen[ulid] += batch.num_rows
                yield self._wanted.of(batch)

    def _rest(self, segment: Segment) -> Iterator[pa.RecordBatch]:
        """What a sealed segment has that was not read while it was open."""
        reader = self._open.pop(segment.ulid, None)
        if reader is not None:
            reader.close()
        for batch in sealed_batches(self._place, segment):
            seen = min(self._seen[segment.ulid], batch.num_rows)
            self._seen[segment.ulid] -= seen
            if seen < batch.num_rows:
                yield self._wanted.of(batch.slice(seen))
