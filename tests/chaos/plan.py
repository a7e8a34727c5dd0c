"""What goes wrong in a run, decided beforehand from a seed: the same seed and length is the same trouble again.

Trouble comes in rounds: some faults that overlap, each for a while. When the last of a round is over, the cluster
has to find together again before the next round begins.
"""

import random
from dataclasses import dataclass

NODES = ("a", "b", "c", "d", "e")
SERVERS = ("left", "right")
PROCESSES = {"kill": 3, "stop": 3, "drain": 2}
"""What may be done to a node, and how often beside the rest; a server is only killed or stopped."""
NAMES = "names"
"""Where the name server falls silent."""
STRANGERS = "strangers"
"""Who attack all nodes and servers."""
LINKS = {"cut": 3, "hold": 3, "delay": 2, "damage": 2}
_REST = 4.0
"""Seconds that are reckoned for a round besides its faults: to find together, and some peace."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong: what, where, when in its round, for how many seconds, and how much."""

    kind: str
    where: str
    begins: float
    seconds: float
    amount: float = 0.0

    def __str__(self):
        return f"{self.kind} {self.where}"


def ways():
    """The links, by what a fault calls them: to a node as a whole or in part, to a server, between servers."""
    found = {}
    for node in NODES:
        found[f"to {node}"] = (f"{node}.front", f"{node}.health")
        found[f"messages to {node}"] = (f"{node}.front",)
        found[f"heartbeats of {node}"] = (f"{node}.health",)
        for server in SERVERS:
            found[f"{node} to {server}"] = (f"{node}.{server}.say", f"{node}.{server}.hear")
    found["between the servers"] = ("left.relay", "right.relay")
    return found


def rounds(seed, seconds):
    """The rounds of a run that takes about so many seconds; one at least."""
    chance = random.Random(seed)  # noqa: S311 - from a seed, to be had again
    planned, spent = [], 0.0
    while not planned or spent < seconds - _REST:
        faults = _round(chance)
        planned.append(faults)
        spent += max(fault.begins + fault.seconds for fault in faults) + _REST
    return planned


def _round(chance):
    faults, places = [], set()
    for _ in range(chance.choice((1, 2, 2, 3))):
        fault = _fault(chance)
        if fault.where not in places:
            places.add(fault.where)
            faults.append(fault)
    return tuple(faults)


def _fault(chance):
    begins, seconds = chance.uniform(0, 1.0), chance.uniform(0.3, 4.0)
    what = chance.random()
    if what < 0.4:
        return Fault(_of(chance, PROCESSES), chance.choice(NODES), begins, seconds)
    if what < 0.5:
        return Fault(chance.choice(("kill", "stop")), chance.choice(SERVERS), begins, seconds)
    if what < 0.6:
        return Fault("silence", NAMES, begins, seconds)
    if what < 0.7:
        return Fault("attack", STRANGERS, begins, seconds)
    kind = _of(chance, LINKS)
    amount = {"delay": chance.uniform(0.05, 1.5), "damage": chance.uniform(0.1, 0.6)}.get(kind, 0.0)
    return Fault(kind, chance.choice(sorted(ways())), begins, seconds, amount)


def _of(chance, kinds):
    return chance.choices(list(kinds), list(kinds.values()))[0]
