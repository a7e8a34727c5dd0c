"""Messages between nodes: each send with its receive, and with what became of it where it went.

A send and its receive have the same frames above the envelope, the n-th send the n-th receive.
"""

from __future__ import annotations

import datetime as dt

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import Direction
from framewire.spark.columns import quoted
from framewire.spark.given import is_before
from framewire.spark.passages import VANISHED, paired_off
from framewire.spark.periods import Periods
from framewire.spark.tables import TABLES
from framewire.spark.texts import readable

__all__ = ["hops", "losses", "transfers", "unpacked"]


def transfers(passages: DataFrame) -> DataFrame:
    """All rows; sends have ``receive``, when that was and its fate, if it was received."""
    is_send, is_coming = F.col("direction") == Direction.SENT, F.col("is_coming")
    here, there = F.col("node_key"), F.col("peer_key")
    failed = F.col("blamed") & (F.col("fate") == Direction.DELIVERED)
    receive = F.struct(
        "at",
        F.col("of.node_name").alias("node_name"),
        "fate",
        "fate_reason",
        "fate_at",
        F.coalesce(failed, F.lit(False)).alias("failed"),
    )
    ended = passages.withColumns(
        {
            "is_send": is_send,
            "from_key": F.when(is_send, here).when(is_coming, there),
            "to_key": F.when(is_send, there).when(is_coming, here),
        }
    )
    paired = paired_off(
        ended,
        group="digest",
        same=["from_key", "to_key"],
        first="is_send",
        by=["at", "fate_at"],
        after=receive,
        before=F.lit(None),
    )
    compared = ("content", "digest", "peer_key", "from_key", "to_key", "before")
    return paired.withColumnRenamed("after", "receive").drop(*compared, "fate_reason", "fate_at")


def unpacked(events: DataFrame) -> DataFrame:
    """Events with all columns of the messages, and with the nodes that the message went from and to."""
    is_send, is_coming = F.col("is_send"), F.col("is_coming")
    here, there = F.col("of.node"), F.col("of.peer")
    return events.select(
        *[name for name in events.columns if name != "of"],
        "of.*",
        F.when(is_send, here).when(is_coming, there).alias("from_node"),
        F.when(is_send, there).when(is_coming, here).alias("to_node"),
    )


def hops(events: DataFrame, skews: DataFrame, periods: Periods) -> DataFrame:
    """The rows of ``hops``, each in the bucket of its sending."""
    mine = events.where(F.col("receive").isNotNull() & F.col("inside"))
    known = unpacked(mine).join(F.broadcast(skews), ["context", "from_node", "to_node"], "left")
    raw = F.unix_micros("receive.at") - F.unix_micros("at")
    told = known.withColumns(
        {
            "from_name": F.col("node_name"),
            "to_name": F.col("receive.node_name"),
            "sent_at": F.col("at"),
            "received_at": F.col("receive.at"),
            "raw_latency_us": raw,
            "latency_us": raw - F.coalesce(F.col("skew_us"), F.lit(0.0)),
            **{name: F.col(f"receive.{name}") for name in ("fate", "fate_reason", "fate_at", "failed")},
            **periods.filing(F.col("context")),
        }
    )
    return told.select(*map(quoted, TABLES["hops"].names))


def losses(events: DataFrame, recorders: DataFrame, settled: dt.datetime, periods: Periods) -> DataFrame:
    """The rows of ``losses``, each in the bucket of its sending or receiving.

    Nobody knows what a node received that records nothing at all: nothing is held to be lost on its way there.
    """
    unreceived = F.col("is_send") & F.col("receive").isNull() & is_before(F.col("at"), settled)
    kind = F.when(unreceived, "not_received").when(F.col("fate") == VANISHED, "not_delivered")
    told = events.withColumn("kind", kind).where(F.col("kind").isNotNull() & F.col("inside"))
    judged = F.broadcast(recorders.withColumnRenamed("node", "to_node"))
    return (
        unpacked(told)
        .join(judged, ["context", "to_node"], "left_semi")
        .withColumns(
            {
                "from_name": readable(F.col("from_node")),
                "to_name": readable(F.col("to_node")),
                **periods.filing(F.col("context")),
            }
        )
        .select(*map(quoted, TABLES["losses"].names))
    )
