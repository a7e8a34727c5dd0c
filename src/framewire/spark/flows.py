"""Flows: what one correlation id stands for, from its beginning to its outcome.

Every number is a sum, a least or a most, so that a flow of a million messages is added up in parts; the path is cut
to its first steps before it is gathered.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import Direction
from framewire.spark.columns import quoted
from framewire.spark.exceptions import EXCEPTION
from framewire.spark.periods import Periods
from framewire.spark.shapes import literal
from framewire.spark.tables import TABLES

__all__ = ["STEPS", "flows", "to_hub"]

STEPS = 1000
"""The steps of a path that are kept. It is also what Spark's own limit within groups stops at, which this needs."""
_EXPIRED = ("expired", "late_reply")
_FLOW = ["context", "correlation_id"]


def to_hub(receiver: Column) -> Column:
    """Whether a receiver is a hub: its identity begins with a zero, an actor's with a one."""
    return F.startswith(receiver, literal(b"\0"))


def flows(passages: DataFrame, node_clocks: DataFrame, periods: Periods) -> DataFrame:
    """The rows of ``flows``, each in the bucket of the first time that was recorded of it."""
    ours = passages.where(F.col("flow").isNotNull())
    timed = _with_times(ours, node_clocks)
    summed = timed.groupBy(*_FLOW).agg(*_figures())
    mine = summed.where(periods.bucket_of(F.col("first_recorded")) == F.col("context"))
    told = mine.join(_paths(timed), _FLOW, "left")
    return told.withColumns(_columns(periods)).select(*map(quoted, TABLES["flows"].names))


def _with_times(passages: DataFrame, node_clocks: DataFrame) -> DataFrame:
    """``began_us`` and ``over_us``: the first and last time of each passage by the reference clock."""
    clocked = passages.join(F.broadcast(node_clocks), ["context", "node"], "left")
    ahead = F.round(F.coalesce("ahead_us", F.lit(0.0))).cast("bigint")
    came, ended = F.unix_micros("came.at") - ahead, F.unix_micros("ended.at") - ahead
    delivered = F.col("ended.direction") == Direction.DELIVERED
    return clocked.withColumns(
        {
            "began_us": F.coalesce(came, ended),
            "over_us": F.coalesce(ended, came),
            "is_answer": F.coalesce("came.answer", "ended.answer", F.lit(False)),
            "delivered": F.coalesce(delivered, F.lit(False)),
            "reached_hub": F.coalesce(delivered & to_hub(F.col("ended.peer")), F.lit(False)),
        }
    )


def _figures() -> list[Column]:
    direction, reason = F.col("ended.direction"), F.col("ended.reason")
    is_sent, is_dead = direction == Direction.SENT, direction == Direction.DEAD
    is_exception = F.col("identity") == literal(EXCEPTION)
    failure = F.struct(
        "over_us", F.col("ended.exception.type").alias("type"), F.col("ended.exception.text").alias("text")
    )
    start = F.struct(
        "began_us",
        "node",
        "node_name",
        "message",
        "identity",
        "version",
        "partition",
        _wire_version().alias("wire"),
    )
    is_answer = F.col("is_answer")
    return [
        F.any_value("flow").alias("flow"),
        F.least(F.min("came.at"), F.min("ended.at")).alias("first_recorded"),
        F.min("began_us").alias("start_us"),
        F.max("over_us").alias("end_us"),
        _any(F.col("reached_hub") & is_answer & ~is_exception).alias("is_completed"),
        _any(is_dead & reason.isin(*_EXPIRED)).alias("is_expired"),
        _any(F.col("reached_hub") & is_exception).alias("is_failed"),
        _any(is_dead).alias("is_dead"),
        F.min(F.when(F.col("reached_hub") & is_exception, failure)).alias("failure"),
        F.min(F.when(~is_answer, start)).alias("question"),
        F.min(start).alias("whatever"),
        # What a node writes for itself is in its own format, so only the wire tells which one the flow has.
        F.min(
            F.when(F.col("came").isNotNull() | is_sent, F.struct("began_us", _wire_version().alias("wire")))
        ).alias("wired"),
        # What comes to a node began on another; so each message counts where it began, copies and detours do not.
        F.count(F.when(F.col("came").isNull(), 1)).alias("messages"),
        F.count(F.when(is_sent, 1)).alias("hops"),
        (F.count("came") + F.count("ended")).alias("rows"),
        F.size(F.collect_set("node")).cast("bigint").alias("nodes"),
        F.sort_array(F.collect_set(F.when(is_dead, reason))).alias("dead_reasons"),
        F.count(F.when(F.col("delivered"), 1)).alias("steps"),
    ]


def _any(which: Column) -> Column:
    return F.coalesce(F.bool_or(which), F.lit(False))


def _wire_version() -> Column:
    return F.coalesce("came.wire_version", "ended.wire_version")


def _paths(timed: DataFrame) -> DataFrame:
    """The first steps of each flow, in order."""
    # In one microsecond, a question comes before an answer.
    order = Window.partitionBy(*_FLOW).orderBy("over_us", "is_answer", "node", "identity")
    step = F.struct(F.timestamp_micros("over_us").alias("at"), "node", "node_name", "identity", "message")
    first = (
        timed.where("delivered")
        .select(*_FLOW, "over_us", "is_answer", "node", "node_name", "identity", "message")
        .withColumn("place", F.row_number().over(order))
        .where(F.col("place") <= STEPS)
    )
    placed = F.sort_array(F.collect_list(F.struct("place", step.alias("step"))))
    return first.groupBy(*_FLOW).agg(F.transform(placed, lambda one: one["step"]).alias("path"))


def _columns(periods: Periods) -> dict[str, Column]:
    begin = F.coalesce("question", "whatever")
    outcome = reduce(
        lambda otherwise, name: F.when(F.col(f"is_{name}"), name).otherwise(otherwise),
        ("dead", "failed", "expired", "completed"),
        F.lit("open"),
    )
    failed = ~F.col("is_completed") & ~F.col("is_expired") & F.col("is_failed")
    path = F.coalesce("path", F.array())
    return {
        "outcome": outcome,
        "exception": F.when(failed, F.col("failure.type")),
        "exception_text": F.when(failed, F.col("failure.text")),
        "origin": begin["node"],
        "origin_name": begin["node_name"],
        **{name: begin[name] for name in ("message", "identity", "version", "partition")},
        "wire_version": F.coalesce("wired.wire", begin["wire"]),
        "started_at": F.timestamp_micros("start_us"),
        "ended_at": F.timestamp_micros("end_us"),
        "duration_us": F.col("end_us") - F.col("start_us"),
        "path": path,
        "slowest": _slowest(path),
        **periods.filing(F.col("context")),
    }


def _slowest(path: Column) -> Column:
    """The step with the longest time since the one before it; the first of them if there are several."""

    def step(one: Column, place: Column) -> Column:
        before = F.when(place == 0, F.col("start_us")).otherwise(F.unix_micros(F.get(path, place - 1)["at"]))
        took = F.unix_micros(one["at"]) - before
        return F.struct(
            took.alias("us"), (-place).alias("order"), *[one[name] for name in ("node", "node_name", "message")]
        )

    longest = F.array_max(F.transform(path, step))
    names = ("us", "node", "node_name", "message")
    return F.when(longest.isNotNull(), F.struct(*[longest[name].alias(name) for name in names]))
