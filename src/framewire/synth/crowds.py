"""Flows of many messages at once, and messages without a flow: broadcasts, the giant flow, and ticks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framewire.synth.catalogue import EXCEPTION, EXPORT, GATHERS, TICK, failure
from framewire.synth.chains import tell_of_tampering
from framewire.synth.cluster import MadeUpCluster
from framewire.synth.network import Flows, Network
from framewire.synth.pool import Ints
from framewire.synth.shapes import TTL, Plan
from framewire.synth.transfers import NEVER, Fate

__all__ = ["GIANT_TTL", "TICKS_IN_GROUP", "GiantPart", "run_fillers", "run_gathers", "run_giant", "run_ticks"]

_STAGGER = 8000
"""Microseconds between the copies of a broadcast. What happens on different nodes is then so far apart that
estimated clocks cannot confuse its order: latency, jitter and queues there and back stay below this."""
_FAILING = 0.03
_AT_ONCE = 100
TICKS_IN_GROUP = 3
"""Ticks that are equal byte for byte: only their order tells which send belongs to which receive."""
_TICK_EVERY = 2000
GIANT_TTL = 864_000_000_000
"""A day: a flow of millions of messages is given time."""


def run_gathers(
    network: Network, cluster: MadeUpCluster, rng: np.random.Generator, plan: Plan, units: Ints
) -> None:
    """Let the flows with these numbers broadcast, and gather the answers."""
    for number, kind in enumerate(GATHERS):
        ours = units[plan.steps[units, 0] == kind]
        asked, bodies = cluster.asked[number], None
        for place, node in enumerate(asked):
            start = plan.begin[ours] + place * _STAGGER
            flows = Flows.begin(
                ours,
                plan.version[ours],
                plan.partition[ours],
                plan.origin[ours],
                start,
                plan.ttl[ours] - 10 * place * _STAGGER,
                plan.answer[ours],
            )
            bodies = _ask_and_answer(network, rng, flows, kind, int(node), len(asked) * _STAGGER, bodies)


def _ask_and_answer(
    network: Network,
    rng: np.random.Generator,
    flows: Flows,
    kind: int,
    node: int,
    service: int,
    bodies: Ints | None,
) -> Ints:
    """Send one copy of each broadcast, and its answer; returns the bodies, which all copies share."""
    count = len(flows)
    kinds, targets = np.full(count, kind), np.full(count, node)
    fates, sent = network.move(flows, kinds, targets, bodies=bodies, broadcast=True, slow=False, copies=False)
    tampered = fates == Fate.TAMPERED
    flows.pass_time(np.where(tampered, _AT_ONCE, service))
    raised = rng.random(count) < _FAILING
    rows = np.flatnonzero(tampered | (fates == Fate.DELIVERED))
    part = flows.select(rows)
    fails = (tampered | raised)[rows]
    told = np.where(tampered[rows], failure("framewire.BadSignature"), failure("shop.errors.OutOfStock"))
    reply = np.where(fails, EXCEPTION, part.answer)
    fates, _ = network.move(
        part,
        reply,
        part.origin,
        ttl=np.where(fails, TTL, part.ttl),
        to_hub=True,
        failure=np.where(fails, told, NEVER),
        about=np.where(fails, kind, NEVER),
        slow=False,
        copies=False,
    )
    tell_of_tampering(network, part, reply, fates, np.zeros(len(rows), bool))
    return sent


def run_ticks(network: Network, cluster: MadeUpCluster, rng: np.random.Generator, units: Ints, begin: Ints) -> None:
    """Let groups of equal messages go from one node to another; they belong to no flow and none is lost."""
    count = len(units)
    source = rng.integers(0, cluster.count, count)
    target = (source + rng.integers(1, cluster.count, count)) % cluster.count
    bodies = None
    for place in range(TICKS_IN_GROUP):
        flows = _without_answer(units, source, begin + place * _TICK_EVERY)
        bodies = network.move_safely(flows, np.full(count, TICK), target, bodies=bodies)


def run_fillers(network: Network, units: Ints, origin: Ints, begin: Ints) -> None:
    """Let single ticks be delivered on their own node: one row each, so that any number of rows can be had."""
    network.move_safely(_without_answer(units, origin, begin), np.full(len(units), TICK), origin)


def _without_answer(units: Ints, origin: Ints, begin: Ints) -> Flows:
    none = np.zeros(len(units), np.int64)
    return Flows.begin(units, none + 5, none, origin, begin, none, none + NEVER)


@dataclass(frozen=True, slots=True)
class GiantPart:
    """The part of the giant flow that falls into one block."""

    begin: Ints
    """When each of its messages is sent."""
    first: bool
    last: bool


def run_giant(
    network: Network, cluster: MadeUpCluster, rng: np.random.Generator, part: GiantPart, unit: int
) -> None:
    """Let a part of the giant flow run: one actor is asked, streams messages to all other nodes, and answers."""
    start, row, done = EXPORT
    streaming = len(part.begin) - part.first - part.last
    hub, exporter = 0, 1
    others = np.array([node for node in range(cluster.count) if node != exporter])

    def flows(begin: Ints, *, at_exporter: bool) -> Flows:
        count = len(begin)
        same = np.full(count, unit)
        made = Flows.begin(
            same, same * 0 + 5, same * 0, same * 0 + hub, begin, same * 0 + GIANT_TTL, same * 0 + done
        )
        if at_exporter:
            made.routers[:, 0] = hub
            made.router_count[:] = 1
            made.node = np.full(count, exporter)
        return made

    if part.first:
        network.move_safely(flows(part.begin[:1], at_exporter=False), np.array([start]), np.array([exporter]))
    streamed = part.begin[int(part.first) :][:streaming]
    targets = others[rng.integers(0, len(others), streaming)]
    network.move(flows(streamed, at_exporter=True), np.full(streaming, row), targets)
    if part.last:
        network.move_safely(
            flows(part.begin[-1:], at_exporter=True), np.array([done]), np.array([hub]), to_hub=True
        )
