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
_STEP = ("node", "node_name", "identity", "message")
_SLOWEST = ("us", "node", "node_name", "message")
_LAST = 1 << 40
"""More turns than a flow has."""
_EXPIRED = ("expired", "late_reply")


def to_hub(receiver: Column) -> Column:
    """Whether a receiver is a hub: its identity begins with a zero, an actor's with a one."""
    return F.startswith(receiver, literal(b"\0"))


def flows(events: DataFrame, aheads: DataFrame, periods: Periods) -> DataFrame:
    """The rows of ``flows``, each in the bucket of the first time that was recorded of it."""
    ours = events.where(F.col("of.flow").isNotNull()).withColumn("node", F.col("of.node"))
    ahead = F.round(F.coalesce("ahead_us", F.lit(0.0))).cast("bigint")
    delivered = F.col("direction") == Direction.DELIVERED
    timed = ours.join(F.broadcast(aheads), ["context", "node"], "left").select(
        *("strand", "context", "node_key", "at", "direction", "is_coming", "came_at", "of"),
        F.col("of.correlation_id").cast("string").alias("whose"),
        (F.unix_micros("at") - ahead).alias("us"),
        F.coalesce("of.answer", F.lit(False)).alias("answers"),
        delivered.alias("delivered"),
        (delivered & to_hub(F.col("of.peer"))).alias("reached_hub"),
    )
    # In one microsecond, a question comes before an answer.
    one_flow = Window.partitionBy("strand", "context", "whose")
    order = one_flow.orderBy("us", "answers", F.col("of.node_name"), F.col("of.message"))
    upto = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    placed = timed.withColumns(
        {"turn": F.row_number().over(order), "place": F.count(F.when(F.col("delivered"), 1)).over(upto)}
    )
    # Spark generates no code for what is within collect_list and collect_set, so that is worked out before.
    kept = F.when(F.col("delivered") & (F.col("place") <= STEPS), F.struct("place", _step().alias("step")))
    died = F.when(F.col("direction") == Direction.DEAD, F.col("of.reason"))
    summed = placed.withColumns({"kept": kept, "died": died}).groupBy("strand", "context", "whose").agg(*_figures())
    mine = summed.where(periods.bucket_of(F.col("first_recorded")) == F.col("context"))
    return (
        mine.withColumn("longest", _longest())
        .withColumns(_columns(periods))
        .select(*map(quoted, TABLES["flows"].names))
    )


def _step() -> Column:
    names = [F.col(f"of.{name}").alias(name) for name in _STEP]
    return F.struct(F.timestamp_micros("us").alias("at"), *names)


def _figures() -> list[Column]:
    direction, reason, turn = F.col("direction"), F.col("of.reason"), F.col("turn")
    is_sent, is_dead = direction == Direction.SENT, direction == Direction.DEAD
    is_exception = F.col("of.identity") == literal(EXCEPTION)
    failure = F.struct("us", F.col("of.exception.type").alias("type"), F.col("of.exception.text").alias("text"))
    return [
        F.min("at").alias("first_recorded"),
        F.min("us").alias("start_us"),
        F.max("us").alias("end_us"),
        _any(F.col("reached_hub") & F.col("answers") & ~is_exception).alias("is_completed"),
        _any(is_dead & reason.isin(*_EXPIRED)).alias("is_expired"),
        _any(F.col("reached_hub") & is_exception).alias("is_failed"),
        _any(is_dead).alias("is_dead"),
        F.min(F.when(F.col("reached_hub") & is_exception, failure)).alias("failure"),
        # An answer may overtake what it answers, so whatever is no answer comes before all that is.
        F.min_by("of", F.when(F.col("answers"), turn + _LAST).otherwise(turn)).alias("begin"),
        # What a node writes for itself is in its own format, so only the wire tells which one the flow has.
        F.min_by("of.wire_version", F.when(F.col("is_coming") | is_sent, turn)).alias("wired"),
        # What comes to a node began on another; so each message counts where it began, copies and detours do not.
        F.count(F.when(~F.col("is_coming") & F.col("came_at").isNull(), 1)).alias("messages"),
        F.count(F.when(is_sent, 1)).alias("hops"),
        F.count("*").alias("rows"),
        F.size(F.collect_set("node_key")).cast("bigint").alias("nodes"),
        F.sort_array(F.collect_set("died")).alias("dead_reasons"),
        F.count(F.when(F.col("delivered"), 1)).alias("steps"),
        F.sort_array(F.collect_list("kept")).alias("placed"),
    ]


def _any(which: Column) -> Column:
    return F.coalesce(F.bool_or(which), F.lit(False))


def _columns(periods: Periods) -> dict[str, Column]:
    begin = F.col("begin")
    outcome = reduce(
        lambda otherwise, name: F.when(F.col(f"is_{name}"), name).otherwise(otherwise),
        ("dead", "failed", "expired", "completed"),
        F.lit("open"),
    )
    failed = ~F.col("is_completed") & ~F.col("is_expired") & F.col("is_failed")
    return {
        **{name: begin[name] for name in ("flow", "correlation_id", "message", "identity", "version", "partition")},
        "outcome": outcome,
        "exception": F.when(failed, F.col("failure.type")),
        "exception_text": F.when(failed, F.col("failure.text")),
        "origin": begin["node"],
        "origin_name": begin["node_name"],
        "wire_version": F.coalesce("wired", "begin.wire_version"),
        "started_at": F.timestamp_micros("start_us"),
        "ended_at": F.timestamp_micros("end_us"),
        "duration_us": F.col("end_us") - F.col("start_us"),
        "path": F.expr("transform(placed, one -> one.step)"),
        "slowest": F.when(F.col("longest").isNotNull(), F.struct(*[f"longest.{name}" for name in _SLOWEST])),
        **periods.filing(F.col("context")),
    }


def _longest() -> Column:
    """The step with the longest time since the one before it; the first of them if there are several."""
    before = "CASE WHEN place = 0 THEN start_us ELSE unix_micros(get(placed, place - 1).step.at) END"
    told = ", ".join(f"'{name}', one.step.{name}" for name in _SLOWEST[1:])
    each = f"named_struct('us', unix_micros(one.step.at) - {before}, 'order', -place, {told})"
    return F.expr(f"array_max(transform(placed, (one, place) -> {each}))")
