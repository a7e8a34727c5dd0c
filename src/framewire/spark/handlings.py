"""What actors and hubs were given to handle, and how long the actors took."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import Direction
from framewire.spark.columns import quoted
from framewire.spark.flows import to_hub
from framewire.spark.periods import Periods
from framewire.spark.shapes import literal
from framewire.spark.tables import TABLES
from framewire.spark.transfers import short

__all__ = ["handlings"]

_RECEIPT = b"KINO.RCPTCONFIRM"


def handlings(passages: DataFrame, blamed: DataFrame, periods: Periods) -> DataFrame:
    """The rows of ``handlings``, each in the bucket of its delivery."""
    done = passages.where(F.col("ended").isNotNull())
    # A receipt is sent by the node itself before the handler has the message, so it tells nothing of the handler.
    acts = F.when(F.col("identity") != literal(_RECEIPT), F.col("ended.at"))
    ordered = done.withColumns({"acts_at": acts, "ended_at": F.col("ended.at"), "then": _order()})
    # Only SQL has the form that passes over nulls, and it takes one look at each row, however large the flow.
    upcoming = F.expr(
        "lead(acts_at) ignore nulls over (partition by context, correlation_id, node order by ended_at, then)"
    )
    timed = ordered.withColumn("next_at", F.when(F.col("flow").isNotNull(), upcoming))
    mine = timed.where(
        (F.col("ended.direction") == Direction.DELIVERED)
        & (periods.bucket_of(F.col("ended.at")) == F.col("context"))
    )
    known = mine.join(
        blamed.withColumnRenamed("blamed_node", "node"), ["context", "correlation_id", "node"], "left"
    )
    return known.withColumns(_columns(periods)).select(*map(quoted, TABLES["handlings"].names))


def _order() -> Column:
    """What was delivered comes before what was done about it in the same microsecond."""
    return F.when(F.col("ended.direction") == Direction.DELIVERED, 0).otherwise(1)


def _columns(periods: Periods) -> dict[str, Column]:
    hub = to_hub(F.col("ended.peer"))
    blamed_for = F.array_contains("blamed_for", F.col("message")) | F.array_contains(
        "blamed_for", short(F.col("message"))
    )
    service = F.unix_micros("next_at") - F.unix_micros("ended.at")
    return {
        "receiver": F.col("ended.peer"),
        "to_hub": hub,
        "came_from": F.col("came.peer"),
        "received_at": F.col("came.at"),
        "at": F.col("ended.at"),
        "service_us": F.when(~hub, service),
        "failed": F.coalesce(blamed_for & ~hub, F.lit(False)),
        **periods.filing(F.col("context")),
    }
