"""A message on one node, from coming to leaving: each receive together with what became of it there.

What comes is later delivered, dead or sent on. The frames may then have changed (a router adds itself, a dead
letter is written anew), so the two belong together by ``content``, the n-th with the n-th. What is delivered,
dead or sent without having been received began on that node.

Everything is worked out bucket by bucket, each with the rows around it (``context``), and always with the same
ones. So the result for a bucket depends only on the messages, and not on which batch brought them.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import Direction
from framewire.spark.periods import Periods

__all__ = ["NEEDED", "in_contexts", "passages"]

_SAME = ["context", "node", "content"]
_SHARED = ["node_name", "message", "identity", "version", "partition", "flow", "correlation_id"]
_OF_ROWS = ["at", "peer", "digest_a", "digest_b", "wire_version", "answer"]
_OF_ENDS = ["direction", "reason", "exception"]
NEEDED = ["node", "content", *_SHARED, *_OF_ROWS, *_OF_ENDS]
"""The columns of ``messages`` that the derived tables are made from."""


def in_contexts(messages: DataFrame, periods: Periods, buckets: Iterable[int]) -> DataFrame:
    """Each message once for every one of the buckets that it matters to, as ``context``."""
    wanted = F.col("context").isin(*sorted(buckets))
    return messages.withColumn("context", F.explode(periods.contexts_of(F.col("at")))).where(wanted)


def passages(messages: DataFrame) -> DataFrame:
    """One row for each message on each node: ``came`` and ``ended``, of which one may be null."""
    came = F.col("direction") == Direction.RECEIVED
    order = Window.partitionBy(*_SAME, "is_coming").orderBy("at", "peer")
    numbered = (
        messages.select("context", *NEEDED, came.alias("is_coming"))
        # Both the numbering and the pairing need only this; left alone, Spark would shuffle for each of them.
        .repartition(*map(F.col, _SAME))
        .withColumn("nth", F.row_number().over(order))
    )
    paired = numbered.groupBy(*_SAME, *_SHARED, "nth").agg(
        _only(F.col("is_coming"), _OF_ROWS).alias("came"),
        _only(~F.col("is_coming"), [*_OF_ROWS, *_OF_ENDS]).alias("ended"),
    )
    return paired.drop("nth", "content")


def _only(which: Column, names: list[str]) -> Column:
    return F.any_value(F.when(which, F.struct(*names)), ignoreNulls=True)
