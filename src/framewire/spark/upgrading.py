"""A whole recording as V5: every message of an older format is written anew, and nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import COLUMNS
from framewire.errors import UsageError
from framewire.spark.columns import DECODED
from framewire.spark.decoding import decode
from framewire.spark.encoding import encode
from framewire.wire.layout import V5

__all__ = ["REFUSED", "Upgraded", "upgrade"]

REFUSED = "_refused"
"""Below the target: the rows that could not be upgraded, as they were. Readers of captures pass over the name."""

_PARTITIONS = ("recorder", "date")


@dataclass(frozen=True, slots=True)
class Upgraded:
    """What became of a recording: messages already V5, messages brought up to it, and rows refused."""

    kept: int
    upgraded: int
    refused: int


def upgrade(
    spark: SparkSession,
    source: str,
    target: str,
    *,
    ttl_unit: str = "ms",
    versions: Mapping[bytes, int] | None = None,
) -> Upgraded:
    """Write the capture in ``source`` to ``target``, which must not exist, with every message as V5.

    V5 messages keep their frames as they are. A row that is no message, or whose V1 version stands for no number,
    is written to ``_refused`` below the target with an ``upgrade_error``.
    """
    rows = _upgraded(_read(spark, source), ttl_unit, versions)
    counts = Observation("framewire upgrade")
    fine = F.col("upgrade_error").isNull()
    counted = rows.observe(
        counts,
        F.count(F.when(fine & F.col("was_new"), 1)).alias("kept"),
        F.count(F.when(fine & ~F.col("was_new"), 1)).alias("upgraded"),
        F.count(F.when(~fine, 1)).alias("refused"),
    )
    _write(counted.where(fine).drop("upgrade_error", "was_new"), target)
    found = Upgraded(**{name: int(count) for name, count in counts.get.items()})
    if found.refused:
        _write(rows.where(~fine).drop("was_new"), f"{target.rstrip('/')}/{REFUSED}")
    return found


def _read(spark: SparkSession, source: str) -> DataFrame:
    try:
        rows = spark.read.parquet(source)
    except AnalysisException as problem:
        raise UsageError(f"source: {source!r} cannot be read as a capture: {problem}") from None
    missing = [name for name in COLUMNS if name not in rows.columns]
    if missing:
        raise UsageError(f"source: {source!r} is not a capture; it has no {', '.join(missing)}")
    return rows


def _upgraded(rows: DataFrame, ttl_unit: str, versions: Mapping[bytes, int] | None) -> DataFrame:
    decoded = decode(rows, ttl_unit=ttl_unit, versions=versions)
    encoded = encode(decoded.withColumn("was", F.col("frames")), error="upgrade_error")
    is_new = F.coalesce(F.col("wire_version") == V5.version, F.lit(False))
    as_it_was = is_new | F.col("upgrade_error").isNotNull()
    frames = F.when(as_it_was, F.col("was")).otherwise(F.col("frames"))
    return encoded.withColumns({"frames": frames, "was_new": is_new}).drop("was", *DECODED)


def _write(rows: DataFrame, target: str) -> None:
    partitions = [name for name in _PARTITIONS if name in rows.columns]
    writer = rows.write.partitionBy(*partitions).option("compression", "zstd")
    try:
        writer.mode("errorifexists").parquet(target)
    except AnalysisException as problem:
        if "PATH_ALREADY_EXISTS" not in str(problem.getCondition()):
            raise
        raise UsageError(f"target: {target!r} exists already; name a new directory") from None
