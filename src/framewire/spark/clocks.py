"""How far the clocks of nodes are apart, from messages that went both ways.

The quickest message of each direction had next to nothing in its way. If the way there is as long as the way back,
half the difference of the two is how far the clocks are apart. (It is the estimate that NTP makes.)
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.spark.columns import quoted
from framewire.spark.periods import Periods
from framewire.spark.tables import TABLES
from framewire.spark.texts import readable

__all__ = ["clocks", "node_clocks"]


def clocks(transfers: DataFrame, periods: Periods) -> DataFrame:
    """The rows of ``clocks``, with their ``context``."""
    raw = F.unix_micros("received_at") - F.unix_micros("sent_at")
    ways = (
        transfers.where(F.col("received_at").isNotNull() & F.col("sent_at").isNotNull())
        .groupBy("context", "from_node", "to_node")
        .agg(F.count("*").alias("hops"), F.min(raw).alias("least_us"))
    )
    back = ways.select(
        "context",
        F.col("from_node").alias("to_node"),
        F.col("to_node").alias("from_node"),
        F.col("least_us").alias("least_back"),
    )
    both = ways.join(back, ["context", "from_node", "to_node"], "left")
    return both.withColumns(
        {
            "skew_us": (F.col("least_us") - F.col("least_back")) / F.lit(2.0),
            "from_name": readable(F.col("from_node")),
            "to_name": readable(F.col("to_node")),
            **periods.filing(F.col("context")),
        }
    ).select("context", *map(quoted, TABLES["clocks"].names))


def node_clocks(pairs: DataFrame) -> DataFrame:
    """How far each node's clock is ahead of a reference of its bucket: the node that tells of most hops.

    A node that is more than two pairs away from the reference, or talks in one direction only, is not there.
    """
    known = pairs.where(F.col("skew_us").isNotNull())
    totals = known.groupBy("context", "from_node").agg(F.sum("hops").alias("total"))
    busiest = F.max_by("from_node", F.struct("total", "from_node")).alias("node")
    reference = totals.groupBy("context").agg(busiest).withColumns({"ahead_us": F.lit(0.0), "away": F.lit(0)})
    direct = _neighbours(reference, known)
    every = reference.withColumn("hops", F.lit(0).cast("bigint")).unionByName(direct)
    reached = every.unionByName(_neighbours(direct, known))
    # The nearer, the better known; among equals the way with most hops.
    best = F.max_by("ahead_us", F.struct(-F.col("away"), "hops", "ahead_us"))
    return reached.groupBy("context", "node").agg(best.alias("ahead_us"))


def _neighbours(known: DataFrame, pairs: DataFrame) -> DataFrame:
    """The nodes that talk with those that are known, in both directions."""
    begin = known.select("context", F.col("node").alias("from_node"), "ahead_us", "away")
    return pairs.join(F.broadcast(begin), ["context", "from_node"]).select(
        "context",
        F.col("to_node").alias("node"),
        (F.col("ahead_us") + F.col("skew_us")).alias("ahead_us"),
        (F.col("away") + 1).alias("away"),
        "hops",
    )
