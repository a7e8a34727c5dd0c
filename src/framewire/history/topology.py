"""Who talks to whom: nodes, and the edges between them with what went along each.

Counts come from the tables by the hour, so a time is told by the hours that it touches. Percentiles of several
hours are worked out from the hops themselves; where those are too many, from the hours' percentiles, weighted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from framewire.history.counting import EXACT_UP_TO, Percentiles, bounded, percentiles, told_apart, total
from framewire.history.following import Following
from framewire.history.windows import ALWAYS, Conditions, Window

__all__ = ["Edge", "Node", "Topology", "Traffic", "topology"]

_WAY = "from_name, to_name"
_SUMS = ("sent", "received", "lost", "dead", "failed")
_MOST_EDGES = 1000
_MOST_MESSAGES = 40
_UNKNOWN: Percentiles = (None, None, None)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What went along an edge: all of it, or that of one message."""

    message: str | None
    """None for all messages together."""
    sent: int
    received: int
    lost: int
    dead: int
    failed: int
    p50_us: float | None = None
    p95_us: float | None = None
    p99_us: float | None = None

    @property
    def errors(self) -> int:
        """Those that are dead letters or whose handler raised."""
        return self.dead + self.failed

    @property
    def error_rate(self) -> float:
        """Errors among those that were received."""
        return self.errors / self.received if self.received else 0.0

    @property
    def loss_rate(self) -> float:
        """Those lost among those sent."""
        return self.lost / self.sent if self.sent else 0.0

    @property
    def trouble_rate(self) -> float:
        """Those lost or in error among those sent."""
        return min((self.errors + self.lost) / self.sent, 1.0) if self.sent else 0.0


@dataclass(frozen=True, slots=True)
class Edge:
    """From one node to another."""

    sender: str
    receiver: str
    traffic: Traffic
    messages: tuple[Traffic, ...]
    """By message, the most frequent first."""
    more_messages: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A node, with what it sent to and received from others, and what its actors got."""

    name: str
    sent: int
    received: int
    delivered: int
    failed: int


@dataclass(frozen=True, slots=True)
class Topology:
    """Nodes and edges, the busiest first."""

    window: Window
    """The time that is told of: whole hours."""
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    more_nodes: int = 0
    more_edges: int = 0
    exact: bool = True
    """Whether percentiles are exact."""


def topology(lake: Following, window: Window = ALWAYS, *, limit: int = 200) -> Topology:
    """Up to ``limit`` nodes and what goes between them."""
    hours = window.hours
    every = _nodes(lake, hours)
    nodes = every[: bounded(limit)]
    shown = {node.name for node in nodes}
    sums = ", ".join(map(total, _SUMS))
    where = Conditions().within("hour", hours)
    totals = lake.select(f"{_WAY}, {sums}", "edges", where, "group by all order by 3 desc, 1, 2")
    between = [row for row in totals if row[0] in shown and row[1] in shown]
    kept = between[:_MOST_EDGES]
    exact = sum(row[3] for row in totals) <= EXACT_UP_TO
    quick = _percentiles(lake, hours, exact=exact)
    messages, more = _messages(lake, hours, exact=exact)
    edges = [
        Edge(
            row[0],
            row[1],
            _with(Traffic(None, *row[2:]), quick.get((row[0], row[1]), _UNKNOWN)),
            tuple(messages[row[0], row[1]]),
            more[row[0], row[1]],
        )
        for row in kept
    ]
    return Topology(hours, tuple(nodes), tuple(edges), len(every) - len(nodes), len(totals) - len(kept), exact)


def _nodes(lake: Following, hours: Window) -> list[Node]:
    where = Conditions().within("hour", hours)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    asked: tuple[tuple[str, str, dict[str, int]], ...] = (
        ("from_name", "edges", {"sent": 0}),
        ("to_name", "edges", {"received": 1}),
        ("node_name", "handlers", {"delivered": 2, "failed": 3}),
        ("node_name", "audit", {}),
    )
    for name, table, columns in asked:
        sums = "".join(f", {total(column)}" for column in columns)
        for told in lake.select(f"coalesce({name}, ''){sums}", table, where, "group by 1"):
            node = counts[told[0]]
            for place, number in zip(columns.values(), told[1:], strict=True):
                node[place] += number
    nodes = [Node(name, *numbers) for name, numbers in counts.items()]
    return sorted(nodes, key=lambda node: (-node.sent - node.received - node.delivered, node.name))


def _messages(
    lake: Following, hours: Window, *, exact: bool
) -> tuple[dict[tuple[str, str], list[Traffic]], dict[tuple[str, str], int]]:
    """What went along each edge by message, and how many more messages there are."""
    where = Conditions().within("hour", hours)
    sums = ", ".join(f"{total(name)} as {name}" for name in _SUMS)
    place = "row_number() over (partition by from_name, to_name order by sum(sent) desc, message)"
    rows = lake.select(
        f"{_WAY}, message, {sums}, count(*) over (partition by from_name, to_name)",
        "edges",
        where,
        f"group by from_name, to_name, message qualify {place} <= ? order by sent desc, message",
        _MOST_MESSAGES,
    )
    quick = _percentiles(lake, hours, ", message", exact=exact)
    told: dict[tuple[str, str], list[Traffic]] = defaultdict(list)
    more: dict[tuple[str, str], int] = defaultdict(int)
    for sender, receiver, *numbers, every in rows:
        traffic = Traffic(*numbers)
        told[sender, receiver].append(_with(traffic, quick.get((sender, receiver, numbers[0]), _UNKNOWN)))
        more[sender, receiver] = every - min(every, _MOST_MESSAGES)
    return told, more


def _percentiles(
    lake: Following, hours: Window, also: str = "", *, exact: bool
) -> dict[tuple[str, ...], Percentiles]:
    if exact:
        where = Conditions().within("sent_at", hours)
        told = lake.select(f"{_WAY}{also}, {percentiles('latency_us', exact=True)}", "hops", where, "group by all")
    else:
        where = Conditions().within("hour", hours).add("p50_us is not null")
        weighted = ", ".join(f"sum({name} * received) / sum(received)" for name in ("p50_us", "p95_us", "p99_us"))
        told = lake.select(f"{_WAY}{also}, [{weighted}]", "edges", where, "group by all")
    return {row[:-1]: told_apart(row[-1]) for row in told}


def _with(traffic: Traffic, quick: Percentiles) -> Traffic:
    return replace(traffic, p50_us=quick[0], p95_us=quick[1], p99_us=quick[2])
