"""Flows that go from actor to actor: asks, sends, tells and chains, with all the ways in which they can fail.

All flows of a block take a step together, so the work is done in as many rounds as the longest of them has steps.
"""

from __future__ import annotations

import numpy as np

from framewire.synth.catalogue import EXCEPTION, FAILURES, RECEIPT, failure
from framewire.synth.cluster import MadeUpCluster
from framewire.synth.network import TICKS, Flows, Network
from framewire.synth.pool import Ints
from framewire.synth.shapes import TTL, Ending, Plan
from framewire.synth.transfers import NEVER, Fate, reason

__all__ = ["run_chains", "tell_of_tampering"]

_ROUTE_GRACE = 1_000_000
"""Microseconds that a node keeps a message which nobody handles."""
_SERVICE, _LEAST_SERVICE = 2000.0, 100
_IN_MAILBOX, _AT_ONCE = 100, 10
_DETOURS = 0.01
"""The part of the messages between nodes that reach a node which does not handle them any more."""
_ON_THE_WAY = len(Ending)

_DEATHS: dict[int, tuple[Fate, str, str]] = {
    Ending.EXPIRED_TOLD: (Fate.DEAD, "expired", "framewire.Expired"),
    Ending.EXPIRED_LATE: (Fate.DEAD, "expired", "framewire.Expired"),
    Ending.NO_ROUTE: (Fate.DEAD_AT_SENDER, "no_route", "framewire.NoRoute"),
    Ending.UNREACHABLE: (Fate.DEAD_AT_SENDER, "unreachable", "framewire.Unreachable"),
    Ending.OVERLOADED: (Fate.DEAD, "overloaded", "framewire.Overloaded"),
    Ending.BAD_BODY: (Fate.DEAD, "bad_body", "framewire.BadBody"),
    Ending.HANDLER_GONE: (Fate.DEAD, "handler_gone", "framewire.NoRoute"),
}
"""Endings by which a message dies: what becomes of it, why, and what its caller is told."""
_FATE_OF = np.array([_DEATHS[end][0] if end in _DEATHS else Fate.DELIVERED for end in (*Ending, _ON_THE_WAY)])
_WHY_OF = np.array([reason(_DEATHS[end][1]) if end in _DEATHS else NEVER for end in (*Ending, _ON_THE_WAY)])
_TOLD_OF = np.array([failure(_DEATHS[end][2]) if end in _DEATHS else NEVER for end in (*Ending, _ON_THE_WAY)])
_BY_HANDLERS = [number for number, told in enumerate(FAILURES) if told.by_handler]


def run_chains(network: Network, cluster: MadeUpCluster, rng: np.random.Generator, plan: Plan, units: Ints) -> None:
    """Let the flows with these numbers run from their beginning to their end."""
    flows = Flows.begin(
        units,
        plan.version[units],
        plan.partition[units],
        plan.origin[units],
        plan.begin[units],
        plan.ttl[units],
        plan.answer[units],
    )
    _Run(network, cluster, rng, flows, plan, units).to_the_end()


class _Run:
    def __init__(
        self,
        network: Network,
        cluster: MadeUpCluster,
        rng: np.random.Generator,
        flows: Flows,
        plan: Plan,
        units: Ints,
    ) -> None:
        self.network, self.cluster, self.rng, self.flows = network, cluster, rng, flows
        self.length, self.steps, self.ending = plan.length[units], plan.steps[units], plan.ending[units]
        count = len(units)
        self.alive = np.ones(count, bool)
        self.reply = np.full(count, NEVER)
        """The kind that goes back to the hub."""
        self.failure = np.full(count, NEVER)
        self.about = np.full(count, NEVER)
        self.late = np.zeros(count, bool)
        """Whether the hub has given up by then."""

    def to_the_end(self) -> None:
        for step in range(self.steps.shape[1]):
            rows = np.flatnonzero(self.alive & (self.length > step))
            if not len(rows):
                break
            self._step(rows, step)
        self._answer()

    def _step(self, rows: Ints, step: int) -> None:
        part, kind = self.flows.select(rows), self.steps[rows, step]
        end = np.where(self.length[rows] == step + 1, self.ending[rows], _ON_THE_WAY)
        hosts = self.cluster.hosts[
            kind, part.partition, self.rng.integers(0, self.cluster.hosts.shape[2], len(rows))
        ]
        wait = np.full(len(rows), NEVER)
        wait[end == Ending.NO_ROUTE] = _ROUTE_GRACE
        too_late = np.isin(end, (Ending.EXPIRED_TOLD, Ending.EXPIRED_LATE))
        wait[too_late] = part.ttl[too_late] // TICKS + self.rng.integers(1000, 5000, too_late.sum())
        receipt = part.answer == RECEIPT
        wait[receipt] = _IN_MAILBOX
        fates = self._move(part, kind, hosts, end, wait)

        delivered = fates == Fate.DELIVERED
        service = np.maximum(self.rng.exponential(_SERVICE, len(rows)), _LEAST_SERVICE).astype(np.int64)
        slow = end == Ending.SLOW_HANDLER
        service[slow] = part.ttl[slow] // TICKS + 1000
        service[end == Ending.LATE_ANSWER] += 80_000
        # A receipt does not wait for the handler: it is sent while the message is still in the mailbox.
        service[receipt] = _AT_ONCE - _IN_MAILBOX
        dead = np.isin(fates, (Fate.DEAD, Fate.DEAD_AT_SENDER, Fate.TAMPERED))
        part.pass_time(np.where(delivered, service, _LEAST_SERVICE))
        self.flows.put(rows, part)

        self.alive[rows] = delivered & (end == _ON_THE_WAY)
        told = np.where(fates == Fate.TAMPERED, failure("framewire.BadSignature"), _TOLD_OF[end])
        raised = delivered & (end == Ending.RAISED)
        told[raised] = self.rng.choice(_BY_HANDLERS, raised.sum())
        fails = (dead | raised) & (part.answer != NEVER)
        answers = np.isin(end, (Ending.ANSWERED, Ending.SLOW_HANDLER, Ending.LATE_ANSWER)) & delivered
        self.reply[rows] = np.select([fails, answers], [EXCEPTION, part.answer], NEVER)
        self.failure[rows] = np.where(fails, told, NEVER)
        self.about[rows] = np.where(fails, kind, NEVER)
        as_planned = ((fates == Fate.DEAD) & (end == Ending.EXPIRED_LATE)) | (delivered & slow)
        self.late[rows] = as_planned | (delivered & (end == Ending.LATE_ANSWER))

    def _move(self, part: Flows, kind: Ints, hosts: Ints, end: Ints, wait: Ints) -> Ints:
        """Send a message to its handler, now and then by way of a node that only used to handle it."""
        fate, why = _FATE_OF[end], _WHY_OF[end]
        via = self.rng.integers(0, self.cluster.count, len(part))
        strays = (self.rng.random(len(part)) < _DETOURS) & (part.node != hosts) & (fate != Fate.DEAD_AT_SENDER)
        strays &= (via != part.node) & (via != hosts)
        straight, detour = np.flatnonzero(~strays), np.flatnonzero(strays)
        fates = np.empty(len(part), np.int8)

        direct = part.select(straight)
        fates[straight], _ = self.network.move(
            direct, kind[straight], hosts[straight], fate=fate[straight], why=why[straight], wait=wait[straight]
        )
        part.put(straight, direct)

        around = part.select(detour)
        fates[detour], bodies = self.network.move(around, kind[detour], via[detour], fate=Fate.PASSED_ON)
        part.put(detour, around)
        on = fates[detour] == Fate.PASSED_ON
        passed, onward = detour[on], part.select(detour[on])
        fates[passed], _ = self.network.move(
            onward,
            kind[passed],
            hosts[passed],
            fate=fate[passed],
            why=why[passed],
            wait=wait[passed],
            hops=2,
            bodies=bodies[on],
        )
        part.put(passed, onward)
        return fates

    def _answer(self) -> None:
        self._let_slow_answers_expire()
        rows = np.flatnonzero(self.reply != NEVER)
        part, kind, late = self.flows.select(rows), self.reply[rows], self.late[rows]
        fates, _ = self.network.move(
            part,
            kind,
            part.origin,
            fate=np.where(late, Fate.DEAD, Fate.DELIVERED),
            why=np.where(late, reason("late_reply"), NEVER),
            ttl=np.where(kind == EXCEPTION, TTL, part.ttl),
            to_hub=True,
            failure=self.failure[rows],
            about=self.about[rows],
        )
        tell_of_tampering(self.network, part, kind, fates, late)

    def _let_slow_answers_expire(self) -> None:
        """An answer whose time is over does not leave its node; on the hub's own node it is only late."""
        slow = (self.ending == Ending.SLOW_HANDLER) & self.late & (self.flows.node != self.flows.origin)
        rows = np.flatnonzero(slow)
        part, kind = self.flows.select(rows), self.reply[rows]
        self.network.move(
            part,
            kind,
            part.origin,
            fate=Fate.DEAD_AT_SENDER,
            why=reason("expired"),
            to_hub=True,
            wait=np.full(len(rows), _LEAST_SERVICE),
        )
        self.flows.put(rows, part)
        self.about[rows] = kind
        self.reply[rows] = EXCEPTION
        self.failure[rows] = failure("framewire.Expired")


def tell_of_tampering(network: Network, flows: Flows, kind: Ints, fates: Ints, late: Ints) -> None:
    """An answer that was tampered with dies on the hub's own node, and the hub is told there."""
    rows = np.flatnonzero(fates == Fate.TAMPERED)
    part = flows.select(rows)
    network.move(
        part,
        np.full(len(rows), EXCEPTION),
        part.origin,
        fate=np.where(late[rows], Fate.DEAD, Fate.DELIVERED),
        why=np.where(late[rows], reason("late_reply"), NEVER),
        ttl=np.full(len(rows), TTL),
        to_hub=True,
        failure=failure("framewire.BadSignature"),
        about=kind[rows],
    )
