"""All other tables, worked out anew from ``messages`` for the buckets that a batch has changed.

``messages`` is read once: all rows that belong together are brought together, told what they belong to, and kept.
Each table is then a look at those. Planning takes Spark as long as working, so tables are written side by side.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.spark.clocks import Way, clock_skews, clocks_ahead, ways
from framewire.spark.columns import quoted
from framewire.spark.flows import flows
from framewire.spark.handlings import handlings
from framewire.spark.lake import Lake
from framewire.spark.passages import in_contexts, passages
from framewire.spark.sessions import set_for_now
from framewire.spark.tables import TABLES
from framewire.spark.totals import adoption, audit, edges, handlers, tally
from framewire.spark.transfers import hops, losses, transfers
from framewire.wire.message import readable

__all__ = ["derive"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_AT_ONCE = 24
"""Buckets that are worked out at a time, so that what is kept meanwhile does not grow with a batch's history."""
_SIDE_BY_SIDE = 4
_MANY_GROUPS = {
    "spark.sql.execution.useObjectHashAggregateExec": "true",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "4096",
}
"""Hours have many rows of few kinds, in no order: they are added up by kind, and not sorted for it first."""


def derive(lake: Lake, reached: set[int], settled_us: int) -> set[int]:
    """Bring all tables up to date with ``messages``; ``reached`` are the buckets that new ones matter to.

    Rows before ``settled_us`` have had their time to be received and delivered. Returns what was worked out.
    """
    buckets = sorted(lake.present("messages", reached))
    for first in range(0, len(buckets), _AT_ONCE):
        _by_bucket(lake, set(buckets[first : first + _AT_ONCE]), settled_us)
    for first in range(0, len(buckets), _AT_ONCE):
        _by_hour(lake, set(buckets[first : first + _AT_ONCE]))
    return set(buckets)


def _within_reach(lake: Lake, buckets: set[int]) -> DataFrame:
    """The messages of some buckets, and those around them that matter to these."""
    periods = lake.periods
    inside = lake.read("messages", buckets)
    beside = lake.present("messages", periods.around(buckets) - buckets)
    if not beside:
        return inside
    # By the very times, as that is what Spark can pass over parts of files by.
    edges = [edge for bucket in sorted(beside) for edge in periods.edges(bucket, buckets)]
    near = [(F.col("at") >= F.lit(first)) & (F.col("at") < F.lit(last)) for first, last in edges]
    return inside.unionAll(lake.read("messages", beside).where(reduce(or_, near)))


def _by_bucket(lake: Lake, buckets: set[int], settled_us: int) -> None:
    periods = lake.periods
    # The time itself has settled, too.
    settled = _EPOCH + dt.timedelta(microseconds=settled_us + 1)
    rows = in_contexts(_within_reach(lake, buckets), periods, buckets)
    events = transfers(passages(rows, settled)).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        taken, recorders = ways(events)
        skews = list(clock_skews(taken))
        known = _local(lake, _SKEWS, ((w.context, w.from_node, w.to_node, skew) for w, skew in skews))
        aheads = _local(lake, _AHEADS, ((*at, us) for at, us in clocks_ahead(taken).items()))
        recording = _local(lake, _RECORDERS, recorders)
        _side_by_side(
            lambda: lake.replace("flows", flows(events, aheads, periods), buckets),
            lambda: lake.replace("hops", hops(events, known, periods), buckets),
            lambda: lake.replace("handlings", handlings(events, periods), buckets),
            lambda: lake.replace("losses", losses(events, recording, settled, periods), buckets),
            lambda: lake.replace("tally", tally(lake.read("messages", buckets), periods), buckets),
            lambda: lake.replace("clocks", _clocks(lake, skews), buckets),
        )
    finally:
        events.unpersist()


def _by_hour(lake: Lake, buckets: set[int]) -> None:
    periods = lake.periods
    hours, firsts = periods.hours(buckets), periods.firsts_of_hours(buckets)
    with set_for_now(lake.spark, _MANY_GROUPS):
        _side_by_side(
            lambda: lake.replace(
                "edges", edges(lake.read("hops", hours), lake.read("losses", hours), periods), firsts
            ),
            lambda: lake.replace("handlers", handlers(lake.read("handlings", hours), periods), firsts),
            lambda: lake.replace("audit", audit(lake.read("tally", hours), periods), firsts),
            lambda: lake.replace("adoption", adoption(lake.read("tally", periods.days(buckets))), buckets),
        )


def _side_by_side(*works: Callable[[], None]) -> None:
    with ThreadPoolExecutor(_SIDE_BY_SIDE, "framewire table") as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()


_SKEWS = {"context": pa.int64(), "from_node": pa.binary(), "to_node": pa.binary(), "skew_us": pa.float64()}
_AHEADS = {"context": pa.int64(), "node": pa.binary(), "ahead_us": pa.float64()}
_RECORDERS = {"context": pa.int64(), "node": pa.binary()}
_CLOCKS = {
    "context": pa.int64(),
    "from_name": pa.string(),
    "to_name": pa.string(),
    "from_node": pa.binary(),
    "to_node": pa.binary(),
    "hops": pa.int64(),
    "least_us": pa.int64(),
    "skew_us": pa.float64(),
}


def _clocks(lake: Lake, skews: Iterable[tuple[Way, float | None]]) -> DataFrame:
    def rows() -> Iterator[tuple[object, ...]]:
        for way, skew in skews:
            names = readable(way.from_node), readable(way.to_node)
            yield way.context, *names, way.from_node, way.to_node, way.hops, way.least_us, skew

    filed = _local(lake, _CLOCKS, rows()).withColumns(lake.periods.filing(F.col("context")))
    return filed.coalesce(1).select(*map(quoted, TABLES["clocks"].names))


def _local(lake: Lake, columns: dict[str, pa.DataType], rows: Iterable[tuple[object, ...]]) -> DataFrame:
    """A small table of the driver's. As Arrow it becomes part of the plan, without a job and without Python."""
    schema = pa.schema(list(columns.items()))
    return lake.spark.createDataFrame(
        pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema)
    )
