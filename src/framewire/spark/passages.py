"""A message on one node, from coming to leaving: each receive with what became of it there, and vice versa.

What comes is later delivered, dead or sent on. The frames may then have changed (a router adds itself, a dead
letter is written anew), so the two belong together by ``content``, the n-th with the n-th. What is delivered,
dead or sent without having been received began on that node.

Everything is worked out bucket by bucket, each with the rows around it (``context``), and always with the same
ones. So the result for a bucket depends only on the messages, and not on which batch brought them.

All rows that can have anything to do with each other have the same ``strand``. So they are shuffled once, by that,
and whatever follows only sorts them.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import Direction
from framewire.spark.periods import Periods

__all__ = ["BYTES", "NEEDED", "VANISHED", "in_contexts", "passages"]

VANISHED = "vanished"
"""The fate of what was received, and of which nothing more was heard in due time."""
_RECEIPT = "KINO.RCPTCONFIRM"
_TOGETHER = ["strand", "context"]
"""The strand comes first: sorting by a hash of 64 bits hardly ever has to look at anything else."""
BYTES = ("node", "peer", "identity", "partition", "correlation_id")
"""Columns that are text while rows are sorted: Spark compares text where it lies, and bytes only in copies."""
NEEDED = [
    *("strand", "content", "digest_a", "digest_b", "at", "direction", "peer", "reason", "exception", "answer"),
    *("node_name", "node", "message", "identity", "version", "partition", "flow", "correlation_id", "wire_version"),
]
"""The columns of ``messages`` that the derived tables are made from."""


def in_contexts(messages: DataFrame, periods: Periods, buckets: Iterable[int]) -> DataFrame:
    """Each message once for every bucket that it matters to, as ``context``; strands are kept together."""
    wanted = F.col("context").isin(*sorted(buckets))
    each = messages.select(*map(_as_text, NEEDED), F.explode(periods.contexts_of(F.col("at"))).alias("context"))
    return each.where(wanted).repartition(*map(F.col, _TOGETHER))


def _as_text(name: str) -> Column:
    return F.col(name).cast("string").alias(name) if name in BYTES else F.col(name)


def passages(rows: DataFrame, settled: Column) -> DataFrame:
    """All rows, with what else is known of the same message on the same node.

    What came has its ``fate``, ``fate_reason`` and ``fate_at``; others ``came_at`` and ``came_from``, if they came.
    ``settled`` is the time before which all that was to happen has happened.
    """
    same = [*_TOGETHER, "content", "node"]
    turn = Window.partitionBy(*same, "is_coming").orderBy("at", "peer", "digest_a")
    pair = Window.partitionBy(*same, "nth").orderBy(F.desc("is_coming"))
    paired = (
        rows.withColumn("is_coming", F.col("direction") == Direction.RECEIVED)
        .withColumn("nth", F.row_number().over(turn))
        .select(
            *rows.columns,
            "is_coming",
            F.lead(F.struct("direction", "reason", "at")).over(pair).alias("after"),
            F.lag(F.struct("peer", "at")).over(pair).alias("before"),
        )
    )
    gone = F.when(F.col("is_coming") & (F.col("at") <= settled), VANISHED)
    is_dead = F.col("after.direction") == Direction.DEAD
    told = paired.select(
        *rows.columns,
        "is_coming",
        F.col("before.at").alias("came_at"),
        F.col("before.peer").alias("came_from"),
        F.coalesce("after.direction", gone).alias("fate"),
        F.when(is_dead, F.col("after.reason")).alias("fate_reason"),
        F.col("after.at").alias("fate_at"),
    )
    return _with_handlers(told)


def _with_handlers(rows: DataFrame) -> DataFrame:
    """``next_at``, when the node did the next thing in the flow; ``blamed``, whether a handler raised over it.

    An exception begins on the node of the handler; those that a node tells of by itself name no actor.
    """
    # A receipt is sent by the node itself before the handler has the message, so it tells nothing of the handler.
    acts = ~F.col("is_coming") & (F.col("identity") != _RECEIPT)
    # What was delivered comes before what was done about it in the same microsecond.
    done = F.when(F.col("direction") == Direction.DELIVERED, 0).otherwise(1)
    raised = (F.col("exception.actor") != "") & ~F.col("is_coming") & F.col("came_at").isNull()
    ordered = rows.withColumns(
        {"acts_at": F.when(acts, F.col("at")), "done": done, "about": F.when(raised, F.col("exception.about"))}
    )
    # Only SQL has the form that passes over nulls, and it takes one look at each row, however large the flow.
    upcoming = F.expr("lead(acts_at) ignore nulls over (partition by strand, context, node order by at, done)")
    abouts = F.collect_set("about").over(Window.partitionBy(*_TOGETHER, "node"))
    is_flow = F.col("flow").isNotNull()
    known = ordered.withColumn("next_at", F.when(is_flow, upcoming)).withColumn("abouts", abouts)
    blamed = F.when(is_flow & (F.size("abouts") > 0), _named(F.col("abouts"), F.col("message"))).otherwise(False)
    return known.withColumn("blamed", blamed).drop("acts_at", "done", "about", "abouts")


def _named(abouts: Column, message: Column) -> Column:
    """Some exceptions name a message id without its partition."""
    short = F.regexp_replace(message, r" \[.*\]$", "")
    return F.array_contains(abouts, message) | F.array_contains(abouts, short)
