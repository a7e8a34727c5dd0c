"""All other tables, worked out anew from ``messages`` for the buckets that a batch has changed."""

from __future__ import annotations

import datetime as dt

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812

from framewire.spark.clocks import clocks, node_clocks
from framewire.spark.flows import flows
from framewire.spark.handlings import handlings
from framewire.spark.lake import Lake
from framewire.spark.passages import NEEDED, in_contexts, passages
from framewire.spark.totals import adoption, audit, edges, handlers, tally
from framewire.spark.transfers import blamed, hops, losses, transfers

__all__ = ["derive"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def derive(lake: Lake, changed: set[int], settled_us: int) -> set[int]:
    """Bring all tables up to date with ``messages``; ``changed`` are the buckets that have new ones.

    Rows before ``settled_us`` have had their time to be received and delivered. Returns what was worked out.
    """
    buckets = lake.present("messages", lake.periods.around(changed))
    if buckets:
        _by_bucket(lake, buckets, settled_us)
        _by_hour(lake, buckets)
    return buckets


def _by_bucket(lake: Lake, buckets: set[int], settled_us: int) -> None:
    periods = lake.periods
    settled = F.lit(_EPOCH + dt.timedelta(microseconds=settled_us))
    rows = lake.read("messages", periods.around(buckets))
    lake.replace("tally", tally(lake.read("messages", buckets), periods), buckets)
    passed = passages(in_contexts(rows.select(*NEEDED), periods, buckets)).persist(StorageLevel.MEMORY_AND_DISK)
    moved = transfers(passed, settled).persist(StorageLevel.MEMORY_AND_DISK)
    pairs = clocks(moved, periods).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        raised = blamed(passed)
        lake.replace("clocks", pairs.drop("context"), buckets)
        lake.replace("hops", hops(moved, pairs, raised, periods), buckets)
        lake.replace("losses", losses(moved, settled, periods), buckets)
        lake.replace("handlings", handlings(passed, raised, periods), buckets)
        lake.replace("flows", flows(passed, node_clocks(pairs), periods), buckets)
    finally:
        for frame in (pairs, moved, passed):
            frame.unpersist()


def _by_hour(lake: Lake, buckets: set[int]) -> None:
    periods = lake.periods
    hours, firsts = periods.hours(buckets), periods.firsts_of_hours(buckets)
    lake.replace("edges", edges(lake.read("hops", hours), lake.read("losses", hours), periods), firsts)
    lake.replace("handlers", handlers(lake.read("handlings", hours), periods), firsts)
    lake.replace("audit", audit(lake.read("tally", hours), periods), firsts)
    lake.replace("adoption", adoption(lake.read("tally", periods.days(buckets))), buckets)
