"""What flows there are, and how each of them ends: drawn for a whole block at once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from framewire.synth.catalogue import ANSWERS, ASKS, CHAINS, GATHERS, HOT, SENDS, TELLS
from framewire.synth.cluster import MadeUpCluster
from framewire.synth.options import Options
from framewire.synth.pool import Ints
from framewire.synth.transfers import NEVER

__all__ = ["GATHER", "SHAPES", "TTL", "Ending", "Plan", "draw"]

SHAPES = {
    "ask": 0.40,
    "chain": 0.18,
    "send": 0.10,
    "tell": 0.10,
    "failure": 0.06,
    "expiry": 0.04,
    "dead": 0.04,
    "gather": 0.08,
}
"""The shapes of flows, and the part of the flows that have each; ``giant`` comes on top where it is asked for."""
_NAMES = tuple(SHAPES)
GATHER = _NAMES.index("gather")
_STEPS = len(CHAINS[0])
TTL = 300_000_000
"""Ticks that a question lasts unless told otherwise: a node's timeout of 30 s."""


class Ending(IntEnum):
    """How a flow ends if nothing goes wrong on the way there."""

    ANSWERED = 0
    TOLD = 1
    """Delivered, and nobody waits for an answer."""
    RAISED = 2
    EXPIRED_TOLD = 3
    """It reaches its handler too late, and the hub, which waits longer than that, is told so."""
    EXPIRED_LATE = 4
    """The same, where the hub has given up by then."""
    SLOW_HANDLER = 5
    """The time is over before the answer is sent."""
    LATE_ANSWER = 6
    """The answer comes when the hub has given up."""
    NO_ROUTE = 7
    UNREACHABLE = 8
    OVERLOADED = 9
    BAD_BODY = 10
    HANDLER_GONE = 11


_EXPIRIES = (Ending.EXPIRED_TOLD, Ending.EXPIRED_LATE, Ending.SLOW_HANDLER, Ending.LATE_ANSWER)
_DEATHS = (Ending.NO_ROUTE, Ending.UNREACHABLE, Ending.OVERLOADED, Ending.BAD_BODY, Ending.HANDLER_GONE)
_SHORT_LIVED = _EXPIRIES[:3]


@dataclass(slots=True)
class Plan:
    """The flows of a block as columns; flow number i has them all at place i."""

    shape: Ints
    begin: Ints
    """When each begins, in true microseconds."""
    origin: Ints
    version: Ints
    partition: Ints
    length: Ints
    """How many actors it passes."""
    steps: Ints
    """A table: the kind that each of them handles."""
    answer: Ints
    ending: Ints
    ttl: Ints


def draw(cluster: MadeUpCluster, options: Options, rng: np.random.Generator, begin: Ints) -> Plan:
    """Flows that begin at given times."""
    count = len(begin)
    shape = rng.choice(len(SHAPES), count, p=list(SHAPES.values()))
    named = {name: shape == number for number, name in enumerate(_NAMES)}
    troubled = named["failure"] | named["expiry"] | named["dead"]
    alone = named["tell"] | (named["dead"] & (rng.random(count) < 0.5))
    length = np.select(
        [named["chain"], troubled & ~alone], [rng.integers(2, _STEPS + 1, count), rng.integers(1, 5, count)], 1
    )
    steps = _steps(rng, named, alone, length)
    ending = np.select(
        [named["tell"], named["failure"], named["expiry"], named["dead"]],
        [Ending.TOLD, Ending.RAISED, rng.choice(_EXPIRIES, count), rng.choice(_DEATHS, count)],
        Ending.ANSWERED,
    )
    answers = np.full(max(ANSWERS) + 1, NEVER)
    answers[list(ANSWERS)] = list(ANSWERS.values())
    version, partition = _versions_and_partitions(options, rng, count)
    ttl = np.where(np.isin(ending, _SHORT_LIVED), rng.integers(50_000, 500_000, count) * 10, TTL)
    return Plan(
        shape=shape,
        begin=begin,
        origin=rng.integers(0, cluster.count, count),
        version=version,
        partition=partition,
        length=length,
        steps=steps,
        answer=np.where(alone, NEVER, answers[steps[:, 0]]),
        ending=ending,
        ttl=np.where(alone, 0, ttl),
    )


def _steps(rng: np.random.Generator, named: dict[str, Ints], alone: Ints, length: Ints) -> Ints:
    count = len(length)
    first = np.select(
        [named["gather"], named["send"], alone],
        [rng.choice(GATHERS, count), rng.choice(SENDS, count), rng.choice(TELLS, count)],
        rng.choice(ASKS, count),
    )
    single = np.repeat(first[:, None], _STEPS, axis=1)
    return np.where((length > 1)[:, None], np.array(CHAINS)[rng.integers(0, len(CHAINS), count)], single)


def _versions_and_partitions(options: Options, rng: np.random.Generator, count: int) -> tuple[Ints, Ints]:
    """Which wire format and partition each flow has. V1 knows no partitions, so its flows are never hot."""
    hot = rng.random(count) < options.hot_partition
    old = ~hot & (rng.random(count) * (1 - options.hot_partition) < options.versions.get(1, 0.0))
    newer = {version: part for version, part in options.versions.items() if version != 1 and part}
    parts = np.array(list(newer.values()) or [1.0])
    version = np.where(old, 1, rng.choice(list(newer) or [1], count, p=parts / parts.sum()))
    partition = np.where(hot, HOT, rng.integers(0, HOT, count))
    return version, np.where(version == 1, 0, partition)
