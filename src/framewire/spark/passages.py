"""A message on one node, from coming to leaving: each receive with what became of it there, and vice versa.

What comes is later delivered, dead or sent on. The frames may then have changed (a router adds itself, a dead
letter is written anew), so the two belong together by ``content``, the n-th with the n-th. What is delivered,
dead or sent without having been received began on that node.

Everything is worked out bucket by bucket, each with the rows around it (``context``), and always with the same
ones. So the result for a bucket depends only on the messages, and not on which batch brought them.

All rows that can have anything to do with each other have the same ``strand``. So they are shuffled once, by that,
and whatever follows only sorts them. What sorting takes is copying rows, and they are sorted several times: so all
that is only taken along is packed into one column, ``of``, which is copied as it lies, and numbers are compared.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import Direction
from framewire.spark.given import is_before, is_one_of
from framewire.spark.periods import Periods
from framewire.spark.shapes import literal

__all__ = ["VANISHED", "in_contexts", "paired_off", "passages"]

VANISHED = "vanished"
"""The fate of what was received, and of which nothing more was heard in due time."""
_RECEIPT = b"KINO.RCPTCONFIRM"
_TOGETHER = ["strand", "context"]
"""The strand comes first: sorting by a hash of 64 bits hardly ever has to look at anything else."""
_HASHES = ["strand", "content", "digest"]
_PACKED = [
    *("peer", "reason", "exception", "answer", "node_name", "node", "message", "identity", "version", "partition"),
    *("flow", "correlation_id", "wire_version"),
]
"""The columns of ``messages`` that are in ``of``."""


def in_contexts(messages: DataFrame, periods: Periods, buckets: Iterable[int]) -> DataFrame:
    """Each message once for every bucket that it may matter to, as ``context``; strands are kept together.

    It is ``inside`` of one of them.
    """
    wanted = is_one_of(F.col("context"), buckets)
    inside = periods.bucket_of(F.col("at")) == F.col("context")
    each = messages.select(
        *_HASHES,
        "at",
        "direction",
        F.xxhash64("node").alias("node_key"),
        F.xxhash64("peer").alias("peer_key"),
        F.struct(*_PACKED).alias("of"),
        F.explode(periods.contexts_of(F.col("at"))).alias("context"),
    )
    return each.where(wanted).withColumn("inside", inside).repartition(*map(F.col, _TOGETHER))


def paired_off(
    rows: DataFrame, *, group: str, same: list[str], first: str, by: list[str], after: Column, before: Column
) -> DataFrame:
    """All rows, and of what two of them belong together, the n-th with the n-th, what one tells of the other.

    Two rows are such if they are in the same ``group``, are the ``same`` in it and only one is ``first``. That one
    has ``after``, which is of the other, and the other ``before``, which is of the first; without another they are
    null. ``by`` says what n-th is.

    Spark takes as long to begin with a group as for ten rows of it, so pairs would be too small for one; and it
    keeps all rows of a group, so strands, which may have millions, are too large.
    """
    alike = Window.partitionBy(*_TOGETHER, group)
    # Of those that are the same and on the same side, row_number is each one's place and rank that of the first.
    placed = rows.withColumn("nth", F.row_number().over(alike.orderBy(*same, first, *by)))
    numbered = placed.withColumn("nth", F.col("nth") - F.rank().over(alike.orderBy(*same, first)))
    pairs = alike.orderBy(*same, "nth", F.desc(first))
    which = [*same, "nth"]
    told = numbered.withColumns(
        {
            "after": F.lead(F.struct(*which, after.alias("told"))).over(pairs),
            "before": F.lag(F.struct(*which, before.alias("told"))).over(pairs),
        }
    )

    def partner(column: str, wanted: Column) -> Column:
        matching = [F.col(f"{column}.{name}") == F.col(name) for name in which]
        return F.when(reduce(and_, matching, wanted), F.col(f"{column}.told")).alias(column)

    return told.select(*rows.columns, partner("after", F.col(first)), partner("before", ~F.col(first)))


def passages(rows: DataFrame, settled: dt.datetime) -> DataFrame:
    """All rows, with what else is known of the same message on the same node.

    What came has its ``fate``, ``fate_reason`` and ``fate_at``; others ``came_at`` and ``came_from``, if they came.
    ``settled`` is the time before which all that was to happen has happened.
    """
    told = rows.withColumn("is_coming", F.col("direction") == Direction.RECEIVED)
    by = ["at", "peer_key", "digest"]
    # In the order in which they are paired off, so that they are sorted once for both.
    ordered = told.sortWithinPartitions(*_TOGETHER, "content", "node_key", "is_coming", *by)
    # Most strands lie in one bucket. Where such a one is near another bucket, it does not matter there.
    matters = F.max("inside").over(Window.partitionBy(*_TOGETHER))
    paired = paired_off(
        ordered.withColumn("matters", matters).where("matters").drop("matters"),
        group="content",
        same=["node_key"],
        first="is_coming",
        by=by,
        after=F.struct("direction", "of.reason", "at"),
        before=F.struct("of.peer", "at"),
    )
    gone = F.when(F.col("is_coming") & is_before(F.col("at"), settled), VANISHED)
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
    acts = ~F.col("is_coming") & (F.col("of.identity") != literal(_RECEIPT))
    # What was delivered comes before what was done about it in the same microsecond.
    done = F.when(F.col("direction") == Direction.DELIVERED, 0).otherwise(1)
    raised = (F.col("of.exception.actor") != "") & ~F.col("is_coming") & F.col("came_at").isNull()
    ordered = rows.withColumns(
        {"acts_at": F.when(acts, F.col("at")), "done": done, "about": F.when(raised, F.col("of.exception.about"))}
    )
    # Only SQL has the form that passes over nulls, and it takes one look at each row, however large the flow.
    on_node = "partition by strand, context, node_key order by at, done"
    every = "rows between unbounded preceding and unbounded following"
    looked = ordered.withColumns(
        {
            "upcoming": F.expr(f"lead(acts_at) ignore nulls over ({on_node})"),
            "abouts": F.expr(f"collect_set(about) over ({on_node} {every})"),
        }
    )
    is_flow, message = F.col("of.flow").isNotNull(), F.col("of.message")
    blamed = F.when(is_flow & (F.size("abouts") > 0), _named(F.col("abouts"), message)).otherwise(False)
    known = {"next_at": F.when(is_flow, F.col("upcoming")), "blamed": blamed}
    return looked.withColumns(known).drop("acts_at", "done", "about", "abouts", "upcoming")


def _named(abouts: Column, message: Column) -> Column:
    """Some exceptions name a message id without its partition."""
    short = F.regexp_replace(message, r" \[.*\]$", "")
    return F.array_contains(abouts, message) | F.array_contains(abouts, short)
