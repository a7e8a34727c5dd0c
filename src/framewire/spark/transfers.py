"""Messages between nodes: each send with its receive, and with what became of it where it went.

A send and its receive have the same frames above the envelope, the n-th send the n-th receive.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import Direction
from framewire.spark.columns import quoted
from framewire.spark.periods import Periods
from framewire.spark.tables import TABLES
from framewire.spark.texts import readable

__all__ = ["VANISHED", "blamed", "hops", "losses", "short", "transfers"]

VANISHED = "vanished"
_SAME = ["context", "from_node", "to_node", "digest_a", "digest_b"]
_SHARED = ["flow", "correlation_id", "message", "identity", "version", "partition"]
_OF_SENDS = ["sent_at", "wire_version"]
_OF_RECEIVES = ["received_at", "fate", "fate_reason", "fate_at"]


def transfers(passages: DataFrame, settled: Column) -> DataFrame:
    """One row for each send and for each receive without one; what neither ended nor may still do so has vanished.

    ``settled`` is the time before which all that was to happen has happened.
    """
    sends = passages.where(F.col("ended.direction") == Direction.SENT).select(
        "context",
        *_SHARED,
        F.col("node").alias("from_node"),
        F.col("ended.peer").alias("to_node"),
        "ended.digest_a",
        "ended.digest_b",
        F.col("ended.at").alias("sent_at"),
        "ended.wire_version",
        *[F.lit(None).cast(kind).alias(name) for name, kind in _kinds(_OF_RECEIVES).items()],
    )
    gone = F.when(F.col("came.at") <= settled, VANISHED)
    receives = passages.where(F.col("came").isNotNull()).select(
        "context",
        *_SHARED,
        F.col("came.peer").alias("from_node"),
        F.col("node").alias("to_node"),
        "came.digest_a",
        "came.digest_b",
        F.lit(None).cast("timestamp").alias("sent_at"),
        F.lit(None).cast("int").alias("wire_version"),
        F.col("came.at").alias("received_at"),
        F.when(F.col("ended").isNull(), gone).otherwise(F.col("ended.direction")).alias("fate"),
        F.col("ended.reason").alias("fate_reason"),
        F.col("ended.at").alias("fate_at"),
    )
    is_send = F.col("sent_at").isNotNull()
    order = Window.partitionBy(*_SAME, "is_send").orderBy(F.coalesce("sent_at", "received_at"))
    numbered = (
        sends.unionByName(receives)
        .withColumn("is_send", is_send)
        .repartition(*map(F.col, _SAME))
        .withColumn("nth", F.row_number().over(order))
    )
    paired = numbered.groupBy(*_SAME, *_SHARED, "nth").agg(
        _only(F.col("is_send"), _OF_SENDS).alias("send"), _only(~F.col("is_send"), _OF_RECEIVES).alias("receive")
    )
    return paired.select("context", "from_node", "to_node", *_SHARED, "send.*", "receive.*")


def blamed(passages: DataFrame) -> DataFrame:
    """The handlers that raised, as exceptions tell: on which node, in which flow, and about which messages.

    An exception begins on the node of the handler; those that a node tells of by itself name no actor.
    """
    raised = F.col("ended.exception.actor") != ""
    return (
        passages.where(raised & F.col("came").isNull() & F.col("flow").isNotNull())
        .groupBy("context", "correlation_id", F.col("node").alias("blamed_node"))
        .agg(F.collect_set("ended.exception.about").alias("blamed_for"))
    )


def short(message: Column) -> Column:
    """A message id without its partition, as some exceptions name it."""
    return F.regexp_replace(message, r" \[.*\]$", "")


def hops(transfers: DataFrame, clocks: DataFrame, blamed: DataFrame, periods: Periods) -> DataFrame:
    """The rows of ``hops``, each in the bucket of its sending."""
    mine = transfers.where(
        F.col("received_at").isNotNull() & (periods.bucket_of(F.col("sent_at")) == F.col("context"))
    )
    skews = clocks.select("context", "from_node", "to_node", "skew_us")
    known = mine.join(F.broadcast(skews), ["context", "from_node", "to_node"], "left").join(
        blamed.withColumnRenamed("blamed_node", "to_node"), ["context", "correlation_id", "to_node"], "left"
    )
    raw = F.unix_micros("received_at") - F.unix_micros("sent_at")
    told = known.withColumns(
        {
            "from_name": readable(F.col("from_node")),
            "to_name": readable(F.col("to_node")),
            "raw_latency_us": raw,
            "latency_us": raw - F.coalesce(F.col("skew_us"), F.lit(0.0)),
            "fate_reason": F.when(F.col("fate") == Direction.DEAD, F.col("fate_reason")),
            "failed": F.coalesce(_in(F.col("blamed_for"), F.col("message")), F.lit(False))
            & (F.col("fate") == Direction.DELIVERED),
            **periods.filing(F.col("context")),
        }
    )
    return told.withColumn("failed", F.coalesce("failed", F.lit(False))).select(*map(quoted, TABLES["hops"].names))


def losses(transfers: DataFrame, settled: Column, periods: Periods) -> DataFrame:
    """The rows of ``losses``, each in the bucket of its sending or receiving."""
    unreceived = F.col("received_at").isNull() & (F.col("sent_at") <= settled)
    kind = F.when(unreceived, "not_received").when(F.col("fate") == VANISHED, "not_delivered")
    told = transfers.withColumn("kind", kind).where(F.col("kind").isNotNull())
    at = F.when(F.col("kind") == "not_received", F.col("sent_at")).otherwise(F.col("received_at"))
    mine = told.withColumn("at", at).where(periods.bucket_of(F.col("at")) == F.col("context"))
    return mine.withColumns(
        {
            "from_name": readable(F.col("from_node")),
            "to_name": readable(F.col("to_node")),
            **periods.filing(F.col("context")),
        }
    ).select(*map(quoted, TABLES["losses"].names))


def _in(abouts: Column, message: Column) -> Column:
    return F.array_contains(abouts, message) | F.array_contains(abouts, short(message))


def _only(which: Column, names: list[str]) -> Column:
    return F.any_value(F.when(which, F.struct(*names)), ignoreNulls=True)


def _kinds(names: list[str]) -> dict[str, str]:
    declared = TABLES["hops"].columns
    return {name: declared[name][0] for name in names}
