"""The lake as directories: where each table's buckets lie, how they are read, and how they are replaced.

Only the buckets that are asked for are ever looked at, so that a year of history costs nothing when an hour
arrives. What is written goes to a directory beside the tables first, and is moved into place bucket by bucket
when it is whole. A run that is killed in between leaves some buckets old and some new; it does the same batch
again, and then they are all new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from framewire.errors import UsageError
from framewire.spark.files import Files
from framewire.spark.periods import Periods
from framewire.spark.tables import LAYOUT, TABLES

__all__ = ["COMPACTED", "Lake"]

COMPACTED = -1
"""The batch of rows that compaction has put together."""
_FILE_FORMATS = ("parquet", "orc")
_STATES_KEPT = 20
_COMPRESSED = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}
"""Higher levels take twice as long for files that are hardly smaller."""
_DIFFERENT = (
    *("at", "sent_at", "received_at", "fate_at", "started_at", "ended_at"),
    *("flow", "correlation_id", "body", "signature", "callback_key", "ttl_ticks"),
    *("digest", "content", "strand"),
    *("raw_latency_us", "latency_us", "service_us", "duration_us"),
)
"""Columns whose values are mostly different: looking for those that were there before takes long and finds few."""


class Lake:
    """A directory with tables."""

    def __init__(self, spark: SparkSession, root: str, periods: Periods, file_format: str = "parquet") -> None:
        if file_format not in _FILE_FORMATS:
            raise UsageError(
                f"format: {file_format!r} is not a format of a lake; there are {', '.join(_FILE_FORMATS)}"
            )
        self.spark, self.periods, self.format = spark, periods, file_format
        self.files = Files(spark, root)
        self.root = self.files.root.rstrip("/")

    @property
    def checkpoint(self) -> str:
        """Where Spark keeps account of the captures that it has read."""
        return f"{self.root}/_state/checkpoint"

    def staging(self, name: str) -> str:
        """Where something is written before it is moved into place."""
        return f"{self.root}/_staging/{name}"

    @staticmethod
    def settled(spark: SparkSession, root: str) -> dict[str, Any] | None:
        """What was settled when a lake began; None where there is none yet."""
        files = Files(spark, root)
        told = files.read(f"{files.root.rstrip('/')}/_state/lake.json")
        return json.loads(told) if told else None

    @classmethod
    def existing(cls, spark: SparkSession, root: str) -> Lake:
        """A lake as it was begun."""
        there = cls.settled(spark, root)
        if there is None:
            raise UsageError(f"{root} is no lake; make one with: framewire pipeline run --captures … --lake {root}")
        _check_layout(root, there["layout"])
        return cls(spark, root, Periods(there["bucket_us"], there["horizon_us"]), there["format"])

    def open(self) -> None:
        """Begin a lake, or see that the one that is there can be written by this code."""
        place = f"{self.root}/_state/lake.json"
        mine = {
            "layout": LAYOUT,
            "bucket_us": self.periods.bucket,
            "horizon_us": self.periods.horizon,
            "format": self.format,
        }
        there = self.settled(self.spark, self.root)
        if there is None:
            self.files.write(place, json.dumps(mine))
            return
        _check_layout(self.root, there["layout"])
        wrong = [f"{name} is {there[name]}, not {mine[name]}" for name in mine if there[name] != mine[name]]
        if wrong:
            raise UsageError(
                f"{self.root}: began with other settings ({'; '.join(wrong)}); use the same, or a new lake"
            )
        if self.states() and not self.files.exists(f"{self.checkpoint}/offsets"):
            lost = f"{self.root}: holds tables, but no account of the captures that they were made from"
            raise UsageError(f"{lost} ({self.checkpoint}); run the captures into a new lake")

    def states(self) -> list[int]:
        """The numbers of the batches that are known to be complete, the last few of them."""
        names = self.files.names(f"{self.root}/_state")
        return sorted(int(name[6:-5]) for name in names if name.startswith("batch-") and name.endswith(".json"))

    def state_before(self, batch: int) -> dict[str, Any]:
        """What was known when the batch before this one was done."""
        earlier = [number for number in self.states() if number < batch]
        text = self.files.read(self._state(earlier[-1])) if earlier else None
        known: dict[str, Any] = json.loads(text) if text else {}
        return known

    def state_after(self, batch: int, known: dict[str, Any]) -> None:
        """Note that a batch is done."""
        self.files.write(self._state(batch), json.dumps(known))
        for number in self.states()[:-_STATES_KEPT]:
            self.files.remove(self._state(number))

    def _state(self, batch: int) -> str:
        return f"{self.root}/_state/batch-{batch:012d}.json"

    def place(self, table: str, bucket: int) -> str:
        """The directory of a table's bucket; tables by the day have one for all buckets of the day."""
        directory = self.periods.directory(bucket)
        if "bucket" not in TABLES[table].filed_under:
            directory = directory.partition("/")[0]
        return f"{self.root}/{table}/{directory}"

    def present(self, table: str, buckets: Iterable[int]) -> set[int]:
        """Those of some buckets in which the table has rows."""
        return {bucket for bucket in buckets if self.files.exists(self.place(table, bucket))}

    def every(self, table: str) -> set[int]:
        """All buckets in which a table that is filed under them has rows."""
        root = f"{self.root}/{table}"
        return {
            self.periods.number(date.removeprefix("date="), bucket.removeprefix("bucket="))
            for date in self.files.names(root)
            for bucket in (self.files.names(f"{root}/{date}") if date.startswith("date=") else ())
            if bucket.startswith("bucket=")
        }

    def read(self, table: str, buckets: Iterable[int]) -> DataFrame:
        """The rows of some buckets, and of no others."""
        return self.read_places(table, sorted({self.place(table, b) for b in self.present(table, buckets)}))

    def read_places(self, table: str, places: list[str]) -> DataFrame:
        """The rows below some directories of a table."""
        schema = TABLES[table].schema
        if not places:
            return self.spark.createDataFrame([], schema)
        reader = self.spark.read.schema(schema).option("basePath", f"{self.root}/{table}")
        return reader.format(self.format).load(places)

    def write(self, df: DataFrame, place: str, filed_under: Iterable[str]) -> None:
        """Write rows to a directory, instead of what may be there."""
        writer = df.write.format(self.format).partitionBy(*filed_under).mode("overwrite")
        different = {f"parquet.enable.dictionary#{name}": "false" for name in _DIFFERENT if name in df.columns}
        writer.options(**_COMPRESSED, **different).save(place)

    def replace(self, table: str, rows: DataFrame, buckets: Iterable[int]) -> None:
        """Let a table have exactly these rows in some buckets; ``rows`` has none of any other."""
        stage = self.staging(table)
        self.write(rows, stage, TABLES[table].filed_under)
        for place in sorted({self.place(table, bucket) for bucket in buckets}):
            made = stage + place.removeprefix(f"{self.root}/{table}")
            if self.files.exists(made):
                self.files.move(made, place)
            else:
                self.files.remove(place)
        self.files.remove(stage)


def _check_layout(root: str, layout: int) -> None:
    if layout != LAYOUT:
        newer = layout > LAYOUT
        do = "use the framewire that wrote it, or a later one" if newer else "run the captures into a new lake"
        raise UsageError(f"{root}: its layout is {layout}, this framewire writes {LAYOUT}; {do}")
