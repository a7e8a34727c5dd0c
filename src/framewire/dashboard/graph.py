"""Topologies as drawings: nodes and edges, each with its place, its width, its tone and what it has to say."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from nicegui.element import Element

from framewire.dashboard.layout import HIGH, WIDE, placed
from framewire.dashboard.showing import brief, count, rate, shown, span
from framewire.dashboard.watching import Look
from framewire.history import Topology, Traffic

__all__ = ["MOST_NODES", "Address", "Drawing", "Graph", "drawn", "drawn_live"]

MOST_NODES = 40
_WIDEST, _THINNEST, _BIGGEST, _SMALLEST = 6.0, 0.9, 24.0, 9.0
_SOME, _BAD = 0.01, 0.1
"""The parts of an edge's messages beyond which there is some trouble, and much: as in the report."""


@dataclass(frozen=True, slots=True)
class _Node:
    key: str
    name: str
    x: float
    y: float
    r: float
    said: str
    href: str
    tone: str = ""
    picked: bool = False


@dataclass(frozen=True, slots=True)
class _Edge:
    # Keys are numbers of nodes: names may be a megabyte long.
    from_: str
    to: str
    width: float
    said: str
    href: str
    tone: str = ""
    picked: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn, and how much is not."""

    nodes: tuple[_Node, ...]
    edges: tuple[_Edge, ...]
    left_out: int = 0


class Graph(Element, component="browser/graph.js"):
    """Nodes and edges to pan, zoom and click."""

    def __init__(self, label: str, drawing: Drawing) -> None:
        super().__init__()
        self.props["label"] = label
        self.props["wide"] = WIDE
        self.props["high"] = HIGH
        self.show(drawing)

    def show(self, drawing: Drawing) -> None:
        """Show this from now on."""
        self.props["nodes"] = tuple(asdict(node) for node in drawing.nodes)
        self.props["edges"] = tuple({**asdict(edge), "from": edge.from_} for edge in drawing.edges)


Address = Callable[..., str]


def drawn(topology: Topology, address: Address, picked: tuple[str | None, ...]) -> Drawing:
    """The topology of some time; ``picked`` is a node, or a sender and a receiver."""
    nodes = topology.nodes[:MOST_NODES]
    keys = {node.name: str(at) for at, node in enumerate(nodes)}
    edges = [
        edge
        for edge in topology.edges
        if edge.sender in keys and edge.receiver in keys and edge.sender != edge.receiver
    ]
    most = max((edge.traffic.sent for edge in edges), default=1)
    busiest = max((node.sent + node.received for node in nodes), default=1)
    places = placed(list(keys), {(edge.sender, edge.receiver): _part(edge.traffic.sent, most) for edge in edges})
    return Drawing(
        tuple(
            _Node(
                keys[node.name],
                brief(node.name),
                *places[node.name],
                r=_SMALLEST + (_BIGGEST - _SMALLEST) * _part(node.sent + node.received, busiest),
                said=f"{brief(node.name)}: sent {count(node.sent)}, received {count(node.received)}, "
                f"handled {count(node.delivered)}, of which {count(node.failed)} failed",
                href=address(node=node.name),
                tone="bad" if node.delivered and node.failed / node.delivered > _BAD else "",
                picked=picked == (node.name,),
            )
            for node in nodes
        ),
        tuple(
            _Edge(
                keys[edge.sender],
                keys[edge.receiver],
                width=_THINNEST + (_WIDEST - _THINNEST) * edge.traffic.sent / most,
                said=f"{brief(edge.sender)} → {brief(edge.receiver)}: {_told(edge.traffic)}",
                href=address(sender=edge.sender, receiver=edge.receiver),
                tone=_tone(edge.traffic),
                picked=picked == (edge.sender, edge.receiver),
            )
            for edge in edges
        ),
        topology.more_nodes + len(topology.nodes) - len(nodes),
    )


def _told(traffic: Traffic) -> str:
    latency = ", ".join(
        f"{name} {span(value / 1e6)}"
        for name, value in (("p50", traffic.p50_us), ("p95", traffic.p95_us), ("p99", traffic.p99_us))
        if value is not None
    )
    wrong = f"{count(traffic.errors)} errors, {count(traffic.lost)} lost"
    return f"{count(traffic.sent)} sent, {wrong}" + (f"; {latency}" if latency else "")


def _tone(traffic: Traffic) -> str:
    return "bad" if traffic.trouble_rate > _BAD else "warn" if traffic.trouble_rate > _SOME else ""


def _part(number: float, most: float) -> float:
    """A number as a part of the most, by orders of magnitude: the small must still be seen beside the large."""
    return math.log1p(number) / math.log1p(most) if number > 0 and most > 0 else 0.0


def drawn_live(look: Look, address: Address, picked: str | None) -> Drawing:
    """The cluster as it is now: nodes with what they do, an edge for open asks, a thin one for who knows whom."""
    names = [node.name for node in look.nodes][:MOST_NODES]
    keys = {name: str(at) for at, name in enumerate(names)}
    asks = _asks(look, keys)
    known = _acquaintances(look, keys)
    busiest = max((stats.rates.get("handled", 0.0) for stats in look.stats), default=0.0)
    most = max((len(ages) for ages in asks.values()), default=1)
    # Not by asks: those come and go, and nodes that jump about cannot be followed.
    places = placed(names, dict.fromkeys(known, 0.5))
    nodes = []
    for seen in look.nodes[:MOST_NODES]:
        rates = seen.stats.rates if seen.stats is not None else {}
        handled, failed = rates.get("handled", 0.0), rates.get("failed", 0.0)
        said = f"{brief(seen.name)}: handles {rate(handled)} a second, of which {rate(failed)} fail"
        nodes.append(
            _Node(
                keys[seen.name],
                brief(seen.name),
                *places[seen.name],
                r=_SMALLEST + (_BIGGEST - _SMALLEST) * _part(handled, busiest),
                said=said if seen.stats is not None else f"{brief(seen.name)}: {shown(seen.problem)}",
                href=address(node=seen.name),
                tone="bad" if seen.stats is None or failed > 0 else "",
                picked=picked == seen.name,
            )
        )
    edges = [
        _Edge(keys[one], keys[other], 0.6, f"{brief(one)} knows {brief(other)}", address(node=one), tone="faint")
        for one, other in sorted(known - asks.keys())
    ]
    edges += [
        _Edge(
            keys[one],
            keys[other],
            1 + (_WIDEST - 1) * _part(len(ages), most),
            f"{brief(one)} → {brief(other)}: {count(len(ages))} open asks, the oldest for {span(max(ages))}",
            address(node=one),
        )
        for (one, other), ages in sorted(asks.items())
    ]
    return Drawing(tuple(nodes), tuple(edges), len(look.nodes) - len(names))


def _asks(look: Look, keys: Iterable[str]) -> dict[tuple[str, str], list[float]]:
    """Open asks by who asked and who has them, as far as that is known."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    known = set(keys)
    for stats in look.stats:
        for each in stats.pending:
            if each.sent_to and {stats.node, each.sent_to} <= known and each.sent_to != stats.node:
                found[stats.node, each.sent_to].append(each.age)
    return dict(found)


def _acquaintances(look: Look, keys: Iterable[str]) -> set[tuple[str, str]]:
    known = set(keys)
    return {
        (stats.node, peer)
        for stats in look.stats
        for peer in stats.peers
        if {stats.node, peer} <= known and stats.node < peer
    }
