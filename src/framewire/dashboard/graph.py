"""Topologies as drawings: nodes and edges, each with its place, its width, its tone and what it has to say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

from nicegui.element import Element

from framewire.dashboard.layout import HIGH, WIDE, placed
from framewire.dashboard.showing import brief, count, span
from framewire.history import Topology, Traffic

__all__ = [
    "MOST_NODES",
    "Address",
    "Drawing",
    "DrawnEdge",
    "DrawnNode",
    "Graph",
    "drawn",
    "latency",
    "radius",
    "tone",
    "width",
]

MOST_NODES = 40
_WIDEST, _THINNEST, _BIGGEST, _SMALLEST = 6.0, 0.9, 24.0, 9.0
_SOME, _BAD = 0.01, 0.1
"""The parts of an edge's messages beyond which there is some trouble, and much: as in the report."""


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A circle; ``said`` is what it has to say when it is pointed at."""

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
class DrawnEdge:
    """An arrow."""

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

    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]
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


def drawn(topology: Topology, address: Address, picked: tuple[str, ...]) -> Drawing:
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
            DrawnNode(
                keys[node.name],
                brief(node.name),
                *places[node.name],
                r=radius(node.sent + node.received, busiest),
                said=f"{brief(node.name)}: sent {count(node.sent)}, received {count(node.received)}, "
                f"handled {count(node.delivered)}, of which {count(node.failed)} failed",
                href=address(node=node.name),
                tone="bad" if node.delivered and node.failed / node.delivered > _BAD else "",
                picked=picked == (node.name,),
            )
            for node in nodes
        ),
        tuple(
            DrawnEdge(
                keys[edge.sender],
                keys[edge.receiver],
                width=width(edge.traffic.sent, most),
                said=f"{brief(edge.sender)} → {brief(edge.receiver)}: {_told(edge.traffic)}",
                href=address(sender=edge.sender, receiver=edge.receiver),
                tone=tone(edge.traffic.trouble_rate),
                picked=picked == (edge.sender, edge.receiver),
            )
            for edge in edges
        ),
        topology.more_nodes + len(topology.nodes) - len(nodes),
    )


def _told(traffic: Traffic) -> str:
    """How much went along an edge, what went wrong, and how long it took."""
    wrong = f"{count(traffic.errors)} errors, {count(traffic.lost)} lost"
    quick = latency(traffic)
    return f"{count(traffic.sent)} sent, {wrong}" + (f"; {quick}" if quick else "")


def latency(traffic: Traffic) -> str:
    """Percentiles as text; empty where they are not known."""
    return ", ".join(
        f"{name} {span(value / 1e6)}"
        for name, value in (("p50", traffic.p50_us), ("p95", traffic.p95_us), ("p99", traffic.p99_us))
        if value is not None
    )


def tone(trouble: float) -> str:
    """The tone of an edge of whose messages such a part went wrong."""
    return "bad" if trouble > _BAD else "warn" if trouble > _SOME else ""


def width(number: float, most: float) -> float:
    """The width of an edge with so much of the most."""
    return _THINNEST + (_WIDEST - _THINNEST) * (number / most if most > 0 else 0.0)


def radius(number: float, most: float) -> float:
    """The size of a node that does so much of the most."""
    return _SMALLEST + (_BIGGEST - _SMALLEST) * _part(number, most)


def _part(number: float, most: float) -> float:
    """A number as a part of the most, by orders of magnitude: the small must still be seen beside the large."""
    return math.log1p(number) / math.log1p(most) if number > 0 and most > 0 else 0.0
