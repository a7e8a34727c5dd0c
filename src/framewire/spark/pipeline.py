"""Captures to tables, as they come: the same code for a single run and for one that never ends.

A run is a Structured Streaming query over the captures. Spark keeps account of the files that it has read, and
hands them over in numbered batches; a batch that was not finished comes again with the same number. All that a
batch does can be done twice, so what is in the lake does not depend on how often that happened.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from framewire.capture.schema import SPARK_SCHEMA
from framewire.errors import ConfigError, UsageError
from framewire.security import KeyRing
from framewire.spark.attention import Attention, attention
from framewire.spark.compacting import BATCHES, compact, finish_compaction
from framewire.spark.deriving import derive
from framewire.spark.lake import Lake
from framewire.spark.periods import DAY, Periods, duration
from framewire.spark.sessions import session, set_for_now
from framewire.spark.taking_in import SEGMENT, take_in

__all__ = ["SETTINGS", "Batch", "Pipeline", "Summary"]

_CAPTURED = f"{SPARK_SCHEMA}, recorder string, date date"
_LEAST_MEMORY_OF_FILES = 7 * DAY
SETTINGS = {
    # Spark would sort whole messages by the directory that they go to. Few directories can as well be open at once.
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    "spark.sql.optimizer.plannedWrite.enabled": "false",
    # The JVM compiles no method that is larger, and Spark's own limit is eight times that: what lies between would
    # be interpreted, as the code that reads messages was.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Flows are sorted before they are added up; the other way to do it would sort them once more.
    "spark.sql.execution.useObjectHashAggregateExec": "false",
    # Rows that are only kept for the next table are mostly one packed column, and soon gone.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # Where they are read from disk, a hundred batches are in memory at a time; one large flow has many.
    "spark.sql.inMemoryColumnarStorage.batchSize": "1000",
    # Spark weighs a file by its size and 4 MB for opening it. Segments are smaller, so tasks got the same number of
    # segments, and the larger ones went to the first.
    "spark.sql.files.openCostInBytes": "256k",
    # A small batch is one task and one file a table, and a large one as many as there is work for.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m",
}
"""Spark's settings while a pipeline runs."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one batch did, for whoever watches."""

    number: int
    segments: int
    rows: int
    quarantined: int
    late: int
    buckets: int
    newest: dt.datetime | None
    """The latest time that was recorded so far."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did, all batches together."""

    batches: int = 0
    segments: int = 0
    rows: int = 0
    quarantined: int = 0
    late: int = 0
    newest: dt.datetime | None = None
    seconds: float = 0.0
    attention: Attention | None = None
    """What deserves it, in the part of the lake that the run has changed; None if it changed nothing."""


class Pipeline:
    """Brings a lake up to date with a directory of captures."""

    def __init__(
        self,
        captures: str,
        lake: str,
        *,
        keys: KeyRing | None = None,
        late: str = "1h",
        lost_after: str = "30s",
        bucket: str | None = None,
        horizon: str | None = None,
        files_per_batch: int | None = None,
        keep_frames: bool = False,
        format: str | None = None,  # noqa: A002 - it is what Spark calls it
        spark: SparkSession | None = None,
    ) -> None:
        """See docs/pipeline.md. ``bucket``, ``horizon`` and ``format`` are settled when a lake begins."""
        given = {"late": late, "lost_after": lost_after, "bucket": bucket, "horizon": horizon}
        times = {name: text for name, text in given.items() if text is not None}
        read = {name: duration(text) for name, text in times.items()}
        problems = [
            f"{name}: {times[name]!r} is no time; write it like 10m, 90s or 1h"
            for name in read
            if read[name] is None
        ]
        if files_per_batch is not None and files_per_batch < 1:
            problems.append(f"files_per_batch: {files_per_batch} is not a number of files; at least 1")
        if problems:
            raise ConfigError("pipeline", problems)
        told = {name: length or 0 for name, length in read.items()}
        self._late, self._lost_after = told["late"], told["lost_after"]
        self._captures, self._keys = captures, keys
        self._files, self._keep_frames = files_per_batch, keep_frames
        self.spark = spark or session()
        settled = Lake.settled(self.spark, lake) or {}
        usual = Periods()
        bucket_us = told.get("bucket", settled.get("bucket_us", usual.bucket))
        horizon_us = told.get("horizon", settled.get("horizon_us", usual.horizon))
        kept_as = format or settled.get("format", "parquet")
        self.lake = Lake(self.spark, lake, Periods(bucket_us, horizon_us), kept_as)

    def run(
        self, *, once: bool = True, every: str = "10 seconds", progress: Callable[[Batch], object] | None = None
    ) -> Summary:
        """Take in all captures that are there, and with ``once=False`` all that come until it is interrupted."""
        self.lake.open()
        finish_compaction(self.lake)
        began = time.monotonic()
        total = Summary()
        touched: set[int] = set()

        def work(captured: DataFrame, number: int) -> None:
            nonlocal total
            batch, buckets = self._batch(captured, number)
            touched.update(buckets)
            total = _together(total, batch, time.monotonic() - began)
            if progress is not None:
                progress(batch)

        with set_for_now(self.spark, SETTINGS):
            query = self._start(work, once=once, every=every)
            try:
                query.awaitTermination()
            except StreamingQueryException as problem:
                raise self._explained(problem) from problem
            except KeyboardInterrupt:
                if once:
                    raise  # it was to finish, and did not
            finally:
                query.stop()
            return replace(total, attention=attention(self.lake, touched)) if touched else total

    def _start(self, work: Callable[[DataFrame, int], None], *, once: bool, every: str) -> StreamingQuery:
        reader = self.spark.readStream.schema(_CAPTURED).option("pathGlobFilter", "*.parquet")
        reader = reader.option("maxFileAge", f"{max(_LEAST_MEMORY_OF_FILES, 2 * self._late) // DAY}d")
        if self._files is not None:
            reader = reader.option("maxFilesPerTrigger", self._files)
        try:
            captured = reader.parquet(self._captures).withColumn(SEGMENT, F.input_file_name())
        except AnalysisException as problem:
            raise UsageError(f"captures: {self._captures!r} cannot be read: {problem.getMessage()}") from None
        writer = captured.writeStream.foreachBatch(work).option("checkpointLocation", self.lake.checkpoint)
        writer = writer.queryName("framewire pipeline")
        writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=every)
        return writer.start()

    def _batch(self, captured: DataFrame, number: int) -> tuple[Batch, set[int]]:
        began = time.monotonic()
        known = self.lake.state_before(number)
        newest = known.get("newest_us")
        taken = take_in(
            self.lake,
            captured,
            number,
            keys=self._keys,
            oldest_us=None if newest is None else newest - self._late,
            # A clock that runs ahead must not make everybody else's rows late.
            believable_us=time.time_ns() // 1000 + self._late,
            keep_frames=self._keep_frames,
        )
        now = max(filter(None, (newest, taken.newest_us)), default=0)
        settled = now - self._lost_after
        # What was too recent to be called lost when it was looked at is looked at again.
        reached = taken.reached | (
            set() if newest is None else self.lake.periods.reached(newest - self._lost_after, newest)
        )
        buckets = derive(self.lake, reached, settled)
        late = known.get("late", 0) + taken.late
        self.lake.state_after(
            number, {"newest_us": now or None, "late": late, "rows": known.get("rows", 0) + taken.rows}
        )
        compact(self.lake, taken.buckets, BATCHES)
        told = dt.datetime.fromtimestamp(now / 1e6, dt.UTC) if now else None
        spent = time.monotonic() - began
        figures = (taken.rows, taken.quarantined, taken.late, len(buckets))
        return Batch(number, taken.segments, *figures, told, spent), buckets

    def _explained(self, problem: StreamingQueryException) -> UsageError:
        return UsageError(f"pipeline: a batch failed and can be run again: {problem}")


def _together(total: Summary, batch: Batch, seconds: float) -> Summary:
    summed = {
        name: getattr(total, name) + getattr(batch, name) for name in ("segments", "rows", "quarantined", "late")
    }
    return Summary(batches=total.batches + 1, newest=batch.newest, seconds=seconds, **summed)
