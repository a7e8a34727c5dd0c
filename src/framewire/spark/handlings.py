"""What actors and hubs were given to handle, and how long the actors took."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import Direction
from framewire.spark.columns import quoted
from framewire.spark.flows import to_hub
from framewire.spark.periods import Periods
from framewire.spark.tables import TABLES
from framewire.spark.transfers import unpacked

__all__ = ["handlings"]


def handlings(events: DataFrame, periods: Periods) -> DataFrame:
    """The rows of ``handlings``, each in the bucket of its delivery."""
    mine = events.where((F.col("direction") == Direction.DELIVERED) & F.col("inside"))
    hub = to_hub(F.col("peer"))
    told = unpacked(mine).withColumns(
        {
            "receiver": F.col("peer"),
            "to_hub": hub,
            "received_at": F.col("came_at"),
            "service_us": F.when(~hub, F.unix_micros("next_at") - F.unix_micros("at")),
            "failed": F.col("blamed") & ~hub,
            **periods.filing(F.col("context")),
        }
    )
    return told.select(*map(quoted, TABLES["handlings"].names))
