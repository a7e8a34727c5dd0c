"""What deserves attention in a part of the lake: the first things a person would ask for."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.spark.lake import Lake

__all__ = ["Attention", "attention"]

_MOST = 5
_FEWEST_HOPS = 20
"""An edge with fewer hops has no percentile that means anything."""


@dataclass(frozen=True, slots=True)
class Attention:
    """The findings: each a list of rows, the worst first, and a few of them at most."""

    quarantined: list[dict[str, Any]]
    lost: list[dict[str, Any]]
    invalid_signatures: list[dict[str, Any]]
    slowest_edges: list[dict[str, Any]]
    failing_handlers: list[dict[str, Any]]

    def as_dict(self) -> dict[str, list[dict[str, Any]]]:
        """The findings by their names, as JSON has them."""
        return asdict(self)


def attention(lake: Lake, buckets: set[int]) -> Attention:
    """Look through some buckets of a lake, and the hours that they lie in."""
    firsts = lake.periods.firsts_of_hours(buckets)
    way = ["from_name", "to_name"]
    audit = lake.read("audit", firsts).where(F.col("signature_state") == "invalid")
    handlers = lake.read("handlers", firsts).groupBy("node_name", "message")
    edges = lake.read("edges", firsts).where(F.col("received") >= _FEWEST_HOPS).groupBy(*way, "message")
    found = {
        "quarantined": _counted(lake.read("quarantine", buckets), "error"),
        "lost": _counted(lake.read("losses", buckets), "kind", *way),
        "invalid_signatures": _worst(audit.groupBy("domain", "node_name").agg(F.sum("rows").alias("rows")), "rows"),
        "slowest_edges": _worst(
            edges.agg(F.max("p95_us").alias("p95_us"), F.sum("received").alias("received")), "p95_us"
        ),
        "failing_handlers": _worst(
            handlers.agg(F.sum("failed").alias("failed"), F.sum("delivered").alias("delivered")).where(
                "failed > 0"
            ),
            "failed",
        ),
    }
    listed: dict[str, list[dict[str, Any]]] = {name: [] for name in found}
    # All in one question: Spark takes longer to plan each of them than to answer it.
    for row in reduce(DataFrame.unionAll, [_told(name, rows) for name, rows in found.items()]).collect():
        listed[row[0]].append(json.loads(row[1]))
    return Attention(**listed)


def _told(name: str, rows: DataFrame) -> DataFrame:
    """Rows as JSON, so that rows of any columns can stand together."""
    told = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
    return rows.select(F.lit(name), told)


def _counted(rows: DataFrame, *names: str) -> DataFrame:
    return _worst(rows.groupBy(*names).agg(F.count("*").alias("rows")), "rows")


def _worst(rows: DataFrame, figure: str) -> DataFrame:
    rest = [name for name in rows.columns if name != figure]
    return rows.orderBy(F.desc(figure), *rest).limit(_MOST)
