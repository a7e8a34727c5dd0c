"""What happens to made-up messages between leaving and arriving: latency, loss, damage, duplicates.

One call moves one message of each of many flows. All chance is drawn here, from the generator of the block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framewire.synth.cluster import MadeUpCluster
from framewire.synth.options import Options
from framewire.synth.pool import Ints
from framewire.synth.transfers import MOST_ROUTERS, NEVER, Fate, Transfers, reason

__all__ = ["TICKS", "Flows", "Network"]

TICKS = 10
"""Ticks of a ttl in a microsecond."""
_JITTER, _MOST_JITTER = 300.0, 1000
_QUEUE, _LEAST_QUEUE, _MOST_QUEUE = 150.0, 20, 500
_DUPLICATE_AFTER = 400


@dataclass(slots=True)
class Flows:
    """Where many flows stand: the node and time each has reached, and what its next message inherits."""

    unit: Ints
    version: Ints
    partition: Ints
    origin: Ints
    node: Ints
    now: Ints
    ttl: Ints
    """Ticks that are left; 0 for no limit."""
    answer: Ints
    routers: Ints
    router_count: Ints

    def __len__(self) -> int:
        return len(self.unit)

    @classmethod
    def begin(
        cls, unit: Ints, version: Ints, partition: Ints, origin: Ints, now: Ints, ttl: Ints, answer: Ints
    ) -> Flows:
        """Flows that have not sent anything yet."""
        routers = np.zeros((len(unit), MOST_ROUTERS), np.int16)
        count = np.zeros(len(unit), np.int16)
        return cls(unit, version, partition, origin, origin.copy(), now.copy(), ttl.copy(), answer, routers, count)

    def select(self, which: Ints) -> Flows:
        """A copy of some of them."""
        return Flows(*(getattr(self, name)[which] for name in self.__slots__))

    def put(self, which: Ints, part: Flows) -> None:
        """Take over where some of them have got to."""
        for name in ("node", "now", "ttl", "routers", "router_count"):
            getattr(self, name)[which] = getattr(part, name)

    def pass_time(self, microseconds: Ints) -> None:
        """Let time go by on the node; it comes off the ttl, and time on the wire does not."""
        self.now = self.now + microseconds
        self.ttl = np.where(self.ttl > 0, np.maximum(self.ttl - TICKS * microseconds, 1), 0)


class Network:
    """Moves messages and keeps the record of them."""

    def __init__(self, cluster: MadeUpCluster, options: Options, rng: np.random.Generator) -> None:
        self._cluster = cluster
        self._options = options
        self._rng = rng
        self._bodies = 0
        self.record: list[Transfers] = []

    def move(
        self,
        flows: Flows,
        kind: Ints,
        target: Ints,
        *,
        fate: Ints | Fate = Fate.DELIVERED,
        why: Ints | int = NEVER,
        wait: Ints | None = None,
        ttl: Ints | None = None,
        to_hub: bool = False,
        broadcast: bool = False,
        hops: int = 1,
        bodies: Ints | None = None,
        failure: Ints | int = NEVER,
        about: Ints | int = NEVER,
        slow: bool = True,
        copies: bool = True,
        safely: bool = False,
    ) -> tuple[Ints, Ints]:
        """Send each flow's next message and move the flows on; returns the messages' fates and their bodies.

        ``fate`` and ``why`` are what happens where nothing goes wrong on the way, ``wait`` how long it then takes.
        ``hops`` above 1 passes on what was received. ``slow`` lets some messages take far longer than others,
        ``copies`` lets some arrive twice; ``safely``: see ``move_safely``.
        """
        rng, count = self._rng, len(flows)
        fates = np.broadcast_to(np.asarray(fate, np.int8), count).copy()
        whys = np.broadcast_to(np.asarray(why, np.int8), count).copy()
        waiting = np.clip(rng.exponential(_QUEUE, count), _LEAST_QUEUE, _MOST_QUEUE).astype(np.int64)
        if wait is not None:
            waiting = np.where(wait == NEVER, waiting, wait)
        remote = (flows.node != target) & (fates != Fate.DEAD_AT_SENDER)
        if safely:
            latency = self._cluster.ways[flows.node, target]
        else:
            self._damage(fates, whys, remote, kind, flows.version)
            latency = self._latency(flows.node, target, slow=slow)
        received = flows.now + np.where(remote, latency, 0)
        self._append_routers(flows, remote)
        if bodies is None:
            bodies = np.arange(self._bodies, self._bodies + count, dtype=np.int64)
            self._bodies += count
        ended = np.where(np.isin(fates, (Fate.LOST, Fate.VANISHED, Fate.PASSED_ON)), NEVER, received + waiting)
        transfers = Transfers(
            unit=flows.unit,
            version=flows.version,
            kind=kind.astype(np.int16),
            partition=flows.partition,
            source=flows.node,
            target=target,
            origin=flows.origin,
            fate=fates,
            reason=whys,
            sent_at=flows.now,
            received_at=np.where(remote & (fates != Fate.LOST), received, NEVER),
            ended_at=ended,
            again_at=self._again(
                fates, remote, received, flows.answer, to_hub=to_hub, copies=copies and not safely
            ),
            to_hub=np.full(count, to_hub),
            answer=flows.answer,
            ttl=(flows.ttl if ttl is None else ttl).copy(),
            broadcast=np.full(count, broadcast),
            hops=np.where(remote, hops, hops - 1).astype(np.int16),
            routers=flows.routers.copy(),
            router_count=flows.router_count.copy(),
            body=bodies,
            failure=np.broadcast_to(np.asarray(failure, np.int8), count).copy(),
            about=np.broadcast_to(np.asarray(about, np.int16), count).copy(),
        )
        self.record.append(transfers)
        if ttl is not None:
            flows.ttl = ttl.copy()
        at_home = fates == Fate.DEAD_AT_SENDER
        flows.node = np.where(at_home, flows.node, target)
        flows.now = received
        flows.pass_time(np.where(fates == Fate.PASSED_ON, _LEAST_QUEUE, waiting))
        return fates, bodies

    def move_safely(
        self, flows: Flows, kind: Ints, target: Ints, *, bodies: Ints | None = None, to_hub: bool = False
    ) -> Ints:
        """Send messages to which nothing happens, and return their bodies.

        They keep their order on the way, as a connection does: how long it takes does not depend on chance.
        """
        return self.move(flows, kind, target, bodies=bodies, to_hub=to_hub, safely=True)[1]

    def _latency(self, source: Ints, target: Ints, *, slow: bool) -> Ints:
        rng, count = self._rng, len(source)
        jitter = np.minimum(rng.exponential(_JITTER, count), _MOST_JITTER)
        if slow:
            jitter += np.where(rng.random(count) < 0.01, rng.exponential(20_000.0, count), 0)
        return self._cluster.ways[source, target] + jitter.astype(np.int64)

    def _damage(self, fates: Ints, whys: Ints, remote: Ints, kind: Ints, version: Ints) -> None:
        options, chance = self._options, self._rng.random((4, len(fates)))
        signed = (self._cluster.signs[kind] != NEVER) & (version != 1)
        for fate, why, which in (
            (Fate.TAMPERED, reason("bad_signature"), signed & (chance[0] < options.tampered)),
            (Fate.MALFORMED, reason("malformed"), chance[1] < options.malformed),
            (Fate.LOST, NEVER, (chance[2] < options.loss) & (chance[3] < 0.5)),
            (Fate.VANISHED, NEVER, (chance[2] < options.loss) & (chance[3] >= 0.5)),
        ):
            hit = remote & which
            fates[hit] = fate
            whys[hit] = why

    def _again(
        self, fates: Ints, remote: Ints, received: Ints, answer: Ints, *, to_hub: bool, copies: bool
    ) -> Ints:
        """When a copy comes, for answers and what nobody waits for: only there is it plain what a copy does."""
        chance = self._rng.random(len(fates))
        twice = remote & (fates == Fate.DELIVERED) & (chance < self._options.duplicates) & copies
        if not to_hub:
            twice &= answer == NEVER
        return np.where(twice, received + _MOST_QUEUE + _DUPLICATE_AFTER, NEVER)

    def _append_routers(self, flows: Flows, remote: Ints) -> None:
        rows = np.flatnonzero(remote)
        flows.routers[rows, flows.router_count[rows]] = flows.node[rows]
        flows.router_count[rows] += 1
