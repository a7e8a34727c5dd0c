"""Where the nodes of a topology are drawn: on a ring, those that talk most side by side.

The same traffic gives the same picture, so that two reports can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

__all__ = ["Place", "ring", "ring_order"]

Weights = Mapping[frozenset[str], float]
"""How much goes between two nodes, either way."""


class Place(NamedTuple):
    """A point of a picture, and the direction in which it lies from the middle, in radians."""

    x: float
    y: float
    angle: float


def ring(names: Sequence[str], middle: tuple[float, float], radii: tuple[float, float]) -> dict[str, Place]:
    """The places of nodes on an ellipse, the first at the left and the others clockwise."""
    places: dict[str, Place] = {}
    for number, name in enumerate(names):
        angle = math.pi + 2 * math.pi * number / len(names)
        x, y = middle[0] + radii[0] * math.cos(angle), middle[1] + radii[1] * math.sin(angle)
        places[name] = Place(x, y, angle)
    return places


def ring_order(names: Sequence[str], weights: Weights, first: str | None = None) -> list[str]:
    """Nodes in an order in which much traffic has a short way round the ring; ``first`` comes first."""
    order = _grown(sorted(names), weights)
    order = _swapped(order, weights)
    if first is not None and first in order:
        place = order.index(first)
        order = order[place:] + order[:place]
    # A ring read backwards is as good: which way round is decided by name, not by chance.
    if len(order) > 2 and order[-1] < order[1]:
        order = [order[0], *reversed(order[1:])]
    return order


def _grown(names: Sequence[str], weights: Weights) -> list[str]:
    """A chain to which the node is added again and again that talks most with one of its ends."""
    left = list(names)
    if not left:
        return []
    busiest = max(left, key=lambda name: sum(weight for pair, weight in weights.items() if name in pair))
    chain = [busiest]
    left.remove(busiest)
    while left:
        ends = [
            (weights.get(frozenset((end, name)), 0.0), end == chain[-1], name)
            for name in left
            for end in _ends(chain)
        ]
        _, at_the_end, name = max(ends, key=lambda each: (each[0], each[1]))
        chain.insert(len(chain) if at_the_end else 0, name)
        left.remove(name)
    return chain


def _ends(chain: Sequence[str]) -> set[str]:
    return {chain[0], chain[-1]}


def _swapped(order: list[str], weights: Weights) -> list[str]:
    """The order after all swaps of two nodes that shorten the ways."""
    best = _length(order, weights)
    for _ in range(len(order)):
        before = best
        for one, other in combinations(range(len(order)), 2):
            order[one], order[other] = order[other], order[one]
            length = _length(order, weights)
            if length < best - 1e-9:
                best = length
            else:
                order[one], order[other] = order[other], order[one]
        if best == before:
            break
    return order


def _length(order: Sequence[str], weights: Weights) -> float:
    place = {name: number for number, name in enumerate(order)}
    size = len(order)
    total = 0.0
    for pair, weight in weights.items():
        one, other = (place[name] for name in pair)
        steps = abs(one - other)
        total += weight * min(steps, size - steps) ** 1.5
    return total
