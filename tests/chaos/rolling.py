"""A rolling restart: every node that answers is drained and started anew while others ask, and nobody notices."""

import contextlib
import tempfile
import time
from dataclasses import dataclass

from tests.chaos.ledger import Account, account
from tests.chaos.members import Members, Server
from tests.cluster.clustering import in_a_row

ANSWERING, ASKING = ("a", "b", "c", "d"), ("x", "y")
HEARTBEAT, MISSES = 1.0, 5
_PATIENT = 20.0


@dataclass
class Rolled:
    """What became of it: how many asks, at which rate over the whole, and how long the restarts took."""

    account: Account
    rate: float
    seconds: list

    def __str__(self):
        ended = ", ".join(f"{count} {what}" for what, count in self.account.outcomes.most_common())
        slowest = max(self.seconds, default=0.0)
        return (
            f"rolling restart of {len(self.seconds)} nodes: {self.account.asks} asks at {self.rate:.0f} a second: "
            f"{ended}; a restart took up to {slowest:.1f} s"
        )


def rolling_restart(rate, *, between=0.5):
    """Restart every answering node once, with a pause between, while so many asks a second are made in all."""
    with tempfile.TemporaryDirectory(prefix="framewire-rolling-") as folder, contextlib.ExitStack() as closing:
        server = Server(in_a_row(3), heartbeat=HEARTBEAT)
        closing.callback(server.close)
        server.start()
        members = Members(folder, signed=False, rendezvous=[server.uri], heartbeat=HEARTBEAT, misses=MISSES)
        closing.callback(members.close)
        for name in ANSWERING:
            members.begin(name, asks=False, rate=1)
        asking = {"rate": rate / len(ASKING), "plain": True, "slowest": 0.005, "timeouts": (10.0, 10.0)}
        for name in ASKING:
            members.begin(name, asks=False, answers=False, **asking)
        members.ready(*ANSWERING, *ASKING)
        _know_each_other(members)
        for name in ASKING:
            members.processes[name].tell("ask")
        began, took = time.monotonic(), []
        for name in ANSWERING:
            time.sleep(between)  # the peace between two restarts, in which there are asks
            drained = time.monotonic()
            members.drain(name)
            members.begin(name, asks=False, rate=1)
            members.ready(name)
            _know_each_other(members)
            took.append(time.monotonic() - drained)
        members.quiet()
        seconds = time.monotonic() - began
        found = account(members.journals())
        return Rolled(found, found.asks / seconds, took)


def _know_each_other(members):
    right = {members.identities[name] for name in ANSWERING}
    assert members.settled(right, _PATIENT) is not None, members.tables()
