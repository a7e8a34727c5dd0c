"""Tables by the hour and by the day, added up from tables by the bucket.

They read narrow columns of the lake itself, for the hours and days that have changed, and nothing else. Percentiles
are exact: an approximate one would depend on the order in which rows are added up, and so on the batches.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.spark.columns import quoted
from framewire.spark.passages import VANISHED
from framewire.spark.periods import DAY, HOUR, Periods
from framewire.spark.tables import TABLES

__all__ = ["adoption", "audit", "edges", "handlers", "tally"]

_ID = ["message", "identity", "version", "partition"]
_WAY = ["from_name", "to_name", "from_node", "to_node"]
_NODE = ["node_name", "node"]
_PARTS = {"p50_us": 0.5, "p95_us": 0.95, "p99_us": 0.99}
_SECONDS_OF_AN_HOUR = 3600


def tally(messages: DataFrame, periods: Periods) -> DataFrame:
    """The rows of ``tally``."""
    filed = messages.withColumns(periods.filing(periods.bucket_of(F.col("at"))))
    names = TABLES["tally"].names
    counted = filed.groupBy(*[name for name in names if name != "rows"]).agg(F.count("*").alias("rows"))
    return counted.select(*map(quoted, names))


def edges(hops: DataFrame, losses: DataFrame, periods: Periods) -> DataFrame:
    """The rows of ``edges``, for the hours of the hops and losses."""
    lost = losses.where(F.col("kind") == "not_received").select(
        *_WAY,
        *_ID,
        _hour("at").alias("hour"),
        F.lit(None).cast("double").alias("latency_us"),
        F.lit("not_received").alias("fate"),
        F.lit(False).alias("failed"),
    )
    got = hops.select(*_WAY, *_ID, _hour("sent_at").alias("hour"), "latency_us", "fate", "failed")
    fate = F.col("fate")
    summed = (
        got.unionByName(lost)
        .groupBy(*_WAY, *_ID, "hour")
        .agg(
            F.count("*").alias("sent"),
            F.count("latency_us").alias("received"),
            F.count(F.when(fate.isin("not_received", VANISHED), 1)).alias("lost"),
            F.count(F.when(fate == "dead", 1)).alias("dead"),
            F.count(F.when(F.col("failed"), 1)).alias("failed"),
            _percentiles("latency_us"),
        )
    )
    rates = {"errors": F.col("dead") + F.col("failed"), "loss_rate": F.col("lost") / F.col("sent")}
    return _filed(summed.withColumns(rates | _parts()), "edges", periods)


def handlers(handlings: DataFrame, periods: Periods) -> DataFrame:
    """The rows of ``handlers``, for the hours of the handlings."""
    summed = (
        handlings.where(~F.col("to_hub"))
        .groupBy(*_NODE, *_ID, _hour("at").alias("hour"))
        .agg(
            F.count("*").alias("delivered"),
            F.count(F.when(F.col("failed"), 1)).alias("failed"),
            _percentiles("service_us"),
        )
    )
    rate = F.col("delivered") / F.lit(float(_SECONDS_OF_AN_HOUR))
    return _filed(summed.withColumns({"rate": rate} | _parts()), "handlers", periods)


def audit(tally: DataFrame, periods: Periods) -> DataFrame:
    """The rows of ``audit``, for the hours of the tally."""
    hour = F.timestamp_micros(F.floor(_began() / F.lit(HOUR)) * HOUR)
    summed = tally.groupBy(*_NODE, hour.alias("hour"), "domain", "signature_state").agg(F.sum("rows").alias("rows"))
    return _filed(summed, "audit", periods)


def adoption(tally: DataFrame) -> DataFrame:
    """The rows of ``adoption``, for the days of the tally."""
    summed = tally.groupBy("date", *_NODE, "wire_version", *_ID).agg(F.sum("rows").alias("rows"))
    return summed.withColumn("day", F.col("date")).select(*map(quoted, TABLES["adoption"].names))


def _began() -> Column:
    """When the bucket of a row begins, in microseconds, read off what it is filed under."""
    minutes = F.substr(F.col("bucket"), F.lit(1), F.lit(2)).cast("bigint") * 60 + F.substr(
        F.col("bucket"), F.lit(4), F.lit(2)
    ).cast("bigint")
    return F.unix_date("date").cast("bigint") * DAY + minutes * 60_000_000


def _hour(at: str) -> Column:
    return F.timestamp_micros(F.floor(F.unix_micros(at) / F.lit(HOUR)) * HOUR)


def _percentiles(name: str) -> Column:
    return F.percentile(name, list(_PARTS.values())).alias("parts")


def _parts() -> dict[str, Column]:
    return {name: F.get("parts", F.lit(place)) for place, name in enumerate(_PARTS)}


def _filed(df: DataFrame, table: str, periods: Periods) -> DataFrame:
    filed = df.withColumns(periods.filing(periods.bucket_of(F.col("hour"))))
    return filed.select(*map(quoted, TABLES[table].names))
