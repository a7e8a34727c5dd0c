"""A batch of captures becomes part of ``messages``, ``traces`` and ``quarantine``: read once, every row once.

Rows come twice when a segment does. To find that out, only the keys are looked at, after the batch is written
beside the tables; it is written anew without the copies only if there are any. So whole messages are never shuffled
to drop copies that are hardly ever there.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import Direction
from framewire.security import KeyRing
from framewire.spark.arriving import FINE, LATE, STEP, arriving
from framewire.spark.columns import quoted
from framewire.spark.given import is_before
from framewire.spark.lake import Lake
from framewire.spark.tables import TABLES
from framewire.spark.texts import readable

__all__ = ["SEGMENT", "Taken", "take_in"]

SEGMENT = "segment"
"""The column of captured rows that names their file."""
_NEARLY = 0.01

_KEY = ["at", "node", "direction", "peer", "digest"]
_FILED = ["fault", "date", "bucket"]
_STAGE = "arriving"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LONG_AGO = dt.datetime(1900, 1, 1, tzinfo=dt.UTC)
"""Before this everything is late: a first batch is looked at as all others are, so that the code is the same."""


@dataclass(slots=True)
class Taken:
    """What a batch brought."""

    segments: int = 0
    rows: int = 0
    late: int = 0
    quarantined: int = 0
    newest_us: int | None = None
    """The latest time in it that can be believed."""
    buckets: set[int] = field(default_factory=set)
    """Where it has new messages."""
    reached: set[int] = field(default_factory=set)
    """What those matter to: their buckets, and those around them that are within reach."""


def take_in(
    lake: Lake,
    captured: DataFrame,
    batch: int,
    *,
    keys: KeyRing | None,
    oldest_us: int | None,
    believable_us: int,
    keep_frames: bool,
) -> Taken:
    """Put a batch into ``messages``, ``traces`` and ``quarantine``, whether or not it was done before."""
    oldest = _LONG_AGO if oldest_us is None else _EPOCH + dt.timedelta(microseconds=oldest_us)
    files = Observation(f"framewire segments {batch}")
    counted = captured.observe(files, F.approx_count_distinct(SEGMENT, _NEARLY).alias("segments"))
    rows = arriving(counted, keys, oldest, keep_frames=keep_frames)
    filed = rows.withColumns(lake.periods.filing(lake.periods.bucket_of(F.col("at"))))
    seen = Observation(f"framewire batch {batch}")
    believable = is_before(F.col("at"), _EPOCH + dt.timedelta(microseconds=believable_us + 1))
    is_fine = F.col("fault") == FINE
    watched = filed.observe(
        seen,
        F.count(F.lit(1)).alias("rows"),
        F.count(F.when(F.col("fault") == LATE, 1)).alias("late"),
        F.max(F.when(believable, F.unix_micros("at"))).alias("newest"),
        F.min(F.when(is_fine, F.unix_micros("at"))).alias("first"),
        F.max(F.when(is_fine, F.unix_micros("at"))).alias("last"),
    )
    stage = lake.staging(_STAGE)
    lake.write(watched, stage, _FILED)
    found = seen.get
    _without_copies(lake, stage, batch)
    taken = Taken(int(files.get["segments"]), int(found["rows"]), int(found["late"]), newest_us=found["newest"])
    taken.buckets = _move_messages(lake, stage, batch)
    if taken.buckets:
        taken.reached = lake.periods.around(taken.buckets) & lake.periods.reached(found["first"], found["last"])
    _trace(lake, stage, batch)
    taken.quarantined = _quarantine(lake, stage, batch)
    lake.files.remove(stage)
    return taken


def _staged(lake: Lake, stage: str) -> DataFrame:
    columns = TABLES["messages"].columns
    schema = ", ".join(f"`{name}` {kind}" for name, (kind, _) in columns.items())
    return (
        lake.spark.read.schema(f"{schema}, fault string, date date, bucket string").format(lake.format).load(stage)
    )


def _without_copies(lake: Lake, stage: str, batch: int) -> None:
    """Write the batch anew if it holds rows twice, or rows that an earlier batch brought."""
    staged = _staged(lake, stage)
    buckets = {
        lake.periods.number(date.removeprefix("date="), bucket.removeprefix("bucket="))
        for fault in _faults(lake, stage)
        for date in lake.files.names(f"{stage}/{fault}")
        for bucket in lake.files.names(f"{stage}/{fault}/{date}")
    }
    earlier = [_earlier(lake, table, buckets, batch) for table in ("messages", "quarantine", "traces")]
    before = reduce(DataFrame.unionByName, earlier)
    # One number for a key: should two ever be equal by chance, nothing worse happens than a closer look.
    one = F.xxhash64(*_KEY).alias("one")
    every = staged.select(one, F.lit(1).alias("is_new")).unionAll(before.select(one, F.lit(0)))
    twice = every.groupBy("one").agg(F.count("*").alias("times"), F.max("is_new").alias("any_new"))
    if twice.where("times > 1 and any_new = 1").isEmpty():
        return
    fresh = staged.dropDuplicates(_KEY).join(before, _KEY, "left_anti")
    again = f"{stage}-again"
    lake.write(fresh, again, _FILED)
    lake.files.move(again, stage)


def _earlier(lake: Lake, table: str, buckets: set[int], batch: int) -> DataFrame:
    """The keys that other batches have brought. A batch that is done again must not see itself."""
    places = [
        f"{place}/{name}"
        for place in (lake.place(table, bucket) for bucket in sorted(buckets))
        for name in lake.files.names(place)
        if name.startswith("batch=") and name != f"batch={batch}"
    ]
    rows = lake.read_places(table, places)
    if table == "messages":
        return rows.select(*_KEY)
    if table == "traces":
        given = {"direction": F.lit(Direction.TRACE.value), "peer": F.lit(b"")}
        return rows.withColumns(given).select(*_KEY)
    return rows.withColumn("digest", F.xxhash64("frames")).select(*_KEY)


def _faults(lake: Lake, stage: str) -> list[str]:
    return [name for name in lake.files.names(stage) if name.startswith("fault=")]


def _move_messages(lake: Lake, stage: str, batch: int) -> set[int]:
    buckets = set()
    fine = f"{stage}/fault={FINE}"
    for date in lake.files.names(fine):
        for name in lake.files.names(f"{fine}/{date}"):
            bucket = lake.periods.number(date.removeprefix("date="), name.removeprefix("bucket="))
            lake.files.move(f"{fine}/{date}/{name}", f"{lake.place('messages', bucket)}/batch={batch}")
            buckets.add(bucket)
    return buckets


def _quarantine(lake: Lake, stage: str, batch: int) -> int:
    """File what is no message; there is so little of it that it is read and written once more."""
    if not set(_faults(lake, stage)) - {f"fault={FINE}", f"fault={STEP}"}:
        return 0
    seen = Observation(f"framewire quarantine {batch}")
    faulty = _staged(lake, stage).where(~F.col("fault").isin(FINE, STEP)).withColumn("error", F.col("fault"))
    _file(lake, faulty.observe(seen, F.count(F.lit(1)).alias("rows")), "quarantine", batch)
    return int(seen.get["rows"])


def _trace(lake: Lake, stage: str, batch: int) -> None:
    """File the steps of traced messages, which are few."""
    if f"fault={STEP}" not in _faults(lake, stage):
        return
    step, detail = (readable(F.get("body_frames", F.lit(at))) for at in (0, 1))
    steps = _staged(lake, stage).where(F.col("fault") == STEP).withColumns({"step": step, "detail": detail})
    _file(lake, steps, "traces", batch)


def _file(lake: Lake, rows: DataFrame, table: str, batch: int) -> None:
    """Write rows once more, as those of a table that a batch brought."""
    told = rows.withColumn("batch", F.lit(batch).cast("bigint")).select(*map(quoted, TABLES[table].names))
    second = lake.staging(table)
    lake.write(told, second, TABLES[table].filed_under)
    for date in lake.files.names(second):
        for bucket in lake.files.names(f"{second}/{date}") if date.startswith("date=") else ():
            for name in lake.files.names(f"{second}/{date}/{bucket}"):
                lake.files.move(f"{second}/{date}/{bucket}/{name}", f"{lake.root}/{table}/{date}/{bucket}/{name}")
    lake.files.remove(second)
