"""How far the clocks of nodes are apart, from messages that went both ways.

The quickest message of each direction had next to nothing in its way. If the way there is as long as the way back,
half the difference of the two is how far the clocks are apart. (It is the estimate that NTP makes.)

Spark finds the quickest; the rest is done here, because there are only as many rows as there are pairs of nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["Way", "clock_skews", "clocks_ahead", "ways"]


@dataclass(frozen=True, slots=True)
class Way:
    """From one node to another, in one bucket: how many hops, and the smallest difference of their two times."""

    context: int
    from_node: bytes
    to_node: bytes
    hops: int
    least_us: int


def ways(events: DataFrame) -> list[Way]:
    """The ways that messages took."""
    quickest = F.min(F.unix_micros("receive.at") - F.unix_micros("at"))
    found = (
        events.where(F.col("receive").isNotNull())
        .groupBy("context", "from_node", "to_node")
        .agg(F.count("*").alias("hops"), quickest.alias("least_us"))
        .collect()
    )
    return [Way(row[0], bytes(row[1]), bytes(row[2]), row[3], row[4]) for row in found]


def clock_skews(found: Iterable[Way]) -> Iterator[tuple[Way, float | None]]:
    """For each way how far the clock at its end is ahead of the one at its beginning; None without a way back."""
    found = sorted(found, key=lambda way: (way.context, way.from_node, way.to_node))
    least = {(way.context, way.from_node, way.to_node): way.least_us for way in found}
    for way in found:
        back = least.get((way.context, way.to_node, way.from_node))
        yield way, None if back is None else (way.least_us - back) / 2


def clocks_ahead(skews: Iterable[tuple[Way, float | None]]) -> dict[tuple[int, bytes], float]:
    """How far each node's clock is ahead of a reference of its bucket: the node that tells of most hops.

    Nodes that the reference does not talk with are reached over others. One that talks in one direction only, or
    with none that can be reached, is not there.
    """
    known: dict[int, list[tuple[Way, float]]] = defaultdict(list)
    for way, skew in skews:
        if skew is not None:
            known[way.context].append((way, skew))
    return {(context, node): us for context, pairs in known.items() for node, us in _reached(pairs).items()}


def _reached(pairs: list[tuple[Way, float]]) -> Mapping[bytes, float]:
    told: dict[bytes, int] = defaultdict(int)
    for way, _ in pairs:
        told[way.from_node] += way.hops
    reference = max(told, key=lambda node: (told[node], node))
    ahead = {reference: 0.0}
    while True:
        # The nearer, the better known; among equals the way with most hops.
        nearest: dict[bytes, tuple[int, float]] = {}
        for way, skew in pairs:
            if way.from_node in ahead and way.to_node not in ahead:
                told_by_it = (way.hops, ahead[way.from_node] + skew)
                nearest[way.to_node] = max(nearest.get(way.to_node, told_by_it), told_by_it)
        if not nearest:
            return ahead
        ahead |= {node: us for node, (_, us) in nearest.items()}
