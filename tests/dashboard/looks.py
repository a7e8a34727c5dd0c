"""What nodes might have told of themselves, for tests of what is made of it."""

import datetime as dt

from tests.operation.test_metrics import actor

from framewire.dashboard.sendings import Sendings
from framewire.dashboard.watching import Gone, Handled, Look
from framewire.node.reports import NodeStats, PendingStats, TrafficStats
from framewire.operation.observing import Seen

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


def seen(name, *, uptime=10.0, traffic=None, **told):
    """A node that tells of itself; ``traffic`` is by peer: how many were sent and, if any, dropped and waiting."""
    stats = NodeStats(
        node=name,
        uptime=uptime,
        totals={},
        rates=told.pop("rates", {}),
        actors=[],
        pending=told.pop("pending", []),
        dead_letters={},
        peers=told.pop("peers", []),
        stalls=0,
        traffic={
            peer: TrafficStats(**dict(zip(("sent", "dropped", "waiting"), numbers, strict=False)))
            for peer, numbers in (traffic or {}).items()
        },
        **told,
    )
    return Seen(name.encode(), f"tcp://{name}", (), stats)


def silent(name, problem="does not answer"):
    """A node that does not."""
    return Seen(name.encode(), f"tcp://{name}", (), None, problem)


def gone(name):
    return Gone(name, f"tcp://{name}", NOON)


def handled(node, message, *, rate=0.0, took=None):
    made = actor("Shop", 0)
    [handler] = made.handlers
    handler.message = message
    return Handled(node, made, handler, rate, took)


def ask(message, sent_to, age):
    return PendingStats(message=message, target="x", age=age, flow="f", sent_to=sent_to)


def looked(*looks, missing=(), handlers=()):
    """The last of some looks, each a list of nodes."""
    sendings = Sendings()
    absent = tuple(map(gone, missing))
    for nodes in looks:
        known = {each.name for each in (*nodes, *absent)}
        found = sendings.look(nodes, known)
    return Look(len(looks), NOON, tuple(nodes), absent, tuple(handlers), found)
