"""How far the clocks of nodes are apart, from messages that went both ways.

No message arrives before it was sent. So the quickest from a to b tells how far the clock of b can be ahead of a's
at most, and the quickest back how far it must be at least; ways over other nodes may tell it better. Half way
between the two is what is believed. (Between two nodes alone it is the estimate that NTP makes.) No latency is
negative then.

Spark finds the quickest; the rest is done here, because there are only as many rows as there are pairs of nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.spark.transfers import unpacked

__all__ = ["Way", "clock_skews", "clocks_ahead", "ways"]

Matrix = npt.NDArray[np.float64]
_MOST = 1000
"""Nodes for which ways over others are looked at: that takes a second for so many, and grows with their cube."""


@dataclass(frozen=True, slots=True)
class Way:
    """From one node to another, in one bucket: how many hops, and the smallest difference of their two times."""

    context: int
    from_node: bytes
    to_node: bytes
    hops: int
    least_us: int


def ways(events: DataFrame) -> tuple[list[Way], set[tuple[int, bytes]]]:
    """The ways that messages took, and the nodes that recorded anything, each with its bucket."""
    quickest = F.min(F.unix_micros("receive.at") - F.unix_micros("at"))
    found = (
        unpacked(events)
        .groupBy("context", "node", "to_node")
        .agg(F.count("receive").alias("hops"), quickest.alias("least_us"))
        .collect()
    )
    taken = [Way(row[0], bytes(row[1]), bytes(row[2]), row[3], row[4]) for row in found if row[3]]
    return taken, {(row[0], bytes(row[1])) for row in found}


def clock_skews(found: Iterable[Way]) -> Iterator[tuple[Way, float | None]]:
    """For each way how far the clock at its end is ahead of the one at its beginning; None without any way back."""
    for part in _by_context(found).values():
        aheads = _aheads(part)
        for way in part:
            known = next((ahead for ahead in aheads if way.from_node in ahead and way.to_node in ahead), None)
            yield way, None if known is None else known[way.to_node] - known[way.from_node]


def clocks_ahead(found: Iterable[Way]) -> dict[tuple[int, bytes], float]:
    """How far each node's clock is ahead of a reference of its bucket: the node that sent most.

    A node that cannot be reached from there, or from which there is no way back, is not there.
    """
    return {
        (context, node): us
        for context, part in _by_context(found).items()
        for ahead in _aheads(part)[:1]
        for node, us in ahead.items()
    }


def _by_context(found: Iterable[Way]) -> dict[int, list[Way]]:
    parts: dict[int, list[Way]] = defaultdict(list)
    for way in sorted(found, key=lambda way: (way.context, way.from_node, way.to_node)):
        parts[way.context].append(way)
    return parts


def _aheads(part: list[Way]) -> list[dict[bytes, float]]:
    """How far clocks are ahead of a reference, for each group of nodes with ways there and back; the busiest first.

    That all is told against one clock makes it agree: ways around give the same as the direct one.
    """
    nodes = sorted({node for way in part for node in (way.from_node, way.to_node)})
    told: dict[bytes, int] = defaultdict(int)
    for way in part:
        told[way.from_node] += way.hops
    most = _most_ahead(part, nodes)
    left = dict.fromkeys(sorted(nodes, key=lambda node: (told[node], node), reverse=True))
    groups = []
    while left:
        reference = nodes.index(next(iter(left)))
        there, back = most[reference], most[:, reference]
        both = np.isfinite(there) & np.isfinite(back)
        group = {nodes[number]: float(there[number] - back[number]) / 2 for number in np.flatnonzero(both)}
        if len(group) > 1:
            groups.append(group)
        for node in group:
            left.pop(node, None)
    return groups


def _most_ahead(part: list[Way], nodes: list[bytes]) -> Matrix:
    """How far the clock of the second node can be ahead of the first's at most, over any way."""
    number = {node: index for index, node in enumerate(nodes)}
    most = np.full((len(nodes), len(nodes)), np.inf)
    np.fill_diagonal(most, 0.0)
    for way in part:
        most[number[way.from_node], number[way.to_node]] = way.least_us
    if len(nodes) <= _MOST:
        for over in range(len(nodes)):
            np.minimum(most, most[:, over, None] + most[None, over, :], out=most)
    return most
