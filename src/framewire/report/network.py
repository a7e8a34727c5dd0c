"""The picture of a topology: nodes on a ring, edges as thick as their traffic, coloured by what went wrong."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from framewire._counts import counted
from framewire.history import Edge, Node, Topology
from framewire.report.frame import WIDTH, drawing
from framewire.report.layout import Place, ring, ring_order
from framewire.report.markup import Element, el
from framewire.report.palette import TROUBLES, trouble
from framewire.report.wording import amount, compact, part, short, short_names, span

__all__ = ["MOST_NODES", "topology_picture"]

MOST_NODES = 20
_MOST_EDGES = 120
_LABELLED_EDGES = 14
_THINNEST = 1.0
_MANY_EDGES = 30
_ALONG = (0.4, 0.5, 0.32, 0.6, 0.25, 0.68)
"""Where on an edge its label may be; rather near the sender, away from the label of the way back."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What is drawn of a topology, and how large it is."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    most: int
    thickest: float
    places: dict[str, Place]
    radii: dict[str, float]
    names: dict[str, str]


def topology_picture(topology: Topology, *, name: str = "topology") -> Element:
    """The busiest nodes and what goes between them."""
    drawn = _chosen(topology)
    height = 430.0 if len(drawn.nodes) <= 8 else 520.0
    # What went wrong is drawn last, and so on top.
    edges = [_edge(edge, drawn) for edge in sorted(drawn.edges, key=lambda edge: edge.traffic.trouble_rate)]
    labels = _labels(drawn) if len(drawn.edges) <= _LABELLED_EDGES else []
    worst = max(drawn.edges, key=lambda edge: edge.traffic.trouble_rate, default=None)
    about = f"{counted(len(drawn.nodes), 'node')} and {counted(len(drawn.edges), 'edge')} between them. "
    if worst is not None and worst.traffic.trouble_rate:
        about += f"Most went wrong {_told(worst, drawn)}."
    return drawing(
        name, about, height + 34, edges, labels, [_node(node, drawn) for node in drawn.nodes], _key(height + 14),
        title="Who sends to whom",
    )  # fmt: skip


def _chosen(topology: Topology) -> _Drawn:
    nodes = topology.nodes[:MOST_NODES]
    shown = {node.name for node in nodes}
    between = [
        edge for edge in topology.edges if {edge.sender, edge.receiver} <= shown and edge.sender != edge.receiver
    ]
    edges = tuple(between[:_MOST_EDGES])
    weights: dict[frozenset[str], float] = defaultdict(float)
    for edge in edges:
        weights[frozenset((edge.sender, edge.receiver))] += edge.traffic.sent
    origin = max(nodes, key=lambda node: (node.sent - node.received, node.name), default=None)
    order = ring_order([node.name for node in nodes], weights, origin.name if origin else None)
    height = 430.0 if len(nodes) <= 8 else 520.0
    places = ring(order, (WIDTH / 2, height / 2), (WIDTH / 2 - 150, height / 2 - 66))
    handled = max((_size(node) for node in nodes), default=0) or 1
    radii = {node.name: 7 + 11 * math.sqrt(_size(node) / handled) for node in nodes}
    most = max((edge.traffic.sent for edge in edges), default=0) or 1
    # Where all talk to all, thick lines would hide each other.
    thickest = 6.5 if len(edges) <= _MANY_EDGES else 4.0
    return _Drawn(nodes, edges, most, thickest, places, radii, short_names(shown))


def _size(node: Node) -> int:
    return node.sent + node.received + node.delivered


@dataclass(frozen=True, slots=True)
class _Curve:
    """An edge as a curve, from the rim of one node to that of the other."""

    start: tuple[float, float]
    bend: tuple[float, float]
    end: tuple[float, float]

    def at(self, share: float) -> tuple[float, float]:
        """A point on its way."""
        a, b, c = (1 - share) ** 2, 2 * share * (1 - share), share**2
        (x1, y1), (x2, y2), (x3, y3) = self.start, self.bend, self.end
        return a * x1 + b * x2 + c * x3, a * y1 + b * y2 + c * y3


def _curve(edge: Edge, drawn: _Drawn, *, gap: float) -> _Curve:
    one, other = drawn.places[edge.sender], drawn.places[edge.receiver]
    middle = (WIDTH / 2, sum(place.y for place in drawn.places.values()) / len(drawn.places))
    dx, dy = other.x - one.x, other.y - one.y
    # Each way bends to its own right, so that there and back are two curves.
    x = (one.x + other.x) / 2 - dy * 0.13
    y = (one.y + other.y) / 2 + dx * 0.13
    bend = (x + (middle[0] - x) * 0.12, y + (middle[1] - y) * 0.12)
    start = _towards((one.x, one.y), bend, drawn.radii[edge.sender] + 2)
    return _Curve(start, bend, _towards((other.x, other.y), bend, drawn.radii[edge.receiver] + gap))


def _towards(point: tuple[float, float], goal: tuple[float, float], distance: float) -> tuple[float, float]:
    dx, dy = goal[0] - point[0], goal[1] - point[1]
    length = math.hypot(dx, dy) or 1.0
    return point[0] + dx / length * distance, point[1] + dy / length * distance


def _edge(edge: Edge, drawn: _Drawn) -> Element:
    width = _THINNEST + (drawn.thickest - _THINNEST) * math.sqrt(edge.traffic.sent / drawn.most)
    tip = 5 + 1.5 * width
    curve = _curve(edge, drawn, gap=tip + 2)
    kind = trouble(edge.traffic.trouble_rate)
    (x1, y1), (x2, y2), (x3, y3) = curve.start, curve.bend, curve.end
    return el(
        "g",
        el("title", f"{_told(edge, drawn)}: {_figures(edge)}"),
        el(
            "path",
            d=f"M{x1:.1f} {y1:.1f} Q{x2:.1f} {y2:.1f} {x3:.1f} {y3:.1f}",
            stroke_width=width,
            class_=f"edge edge-{kind}",
        ),
        _head(curve, tip, width, kind),
    )


def _head(curve: _Curve, tip: float, width: float, kind: str) -> Element:
    (bx, by), (ex, ey) = curve.bend, curve.end
    length = math.hypot(ex - bx, ey - by) or 1.0
    ux, uy = (ex - bx) / length, (ey - by) / length
    half = 3 + width * 0.62
    points = ((ex + ux * tip, ey + uy * tip), (ex - uy * half, ey + ux * half), (ex + uy * half, ey - ux * half))
    return el("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=f"head head-{kind}")


def _told(edge: Edge, drawn: _Drawn) -> str:
    return f"from {drawn.names[edge.sender]} to {drawn.names[edge.receiver]}"


def _figures(edge: Edge) -> str:
    told = edge.traffic
    parts = [counted(told.sent, "message"), f"half within {span(told.p50_us)}", f"95 % within {span(told.p95_us)}"]
    parts += [f"{amount(told.errors)} in error ({part(told.errors, told.received)})"] if told.errors else []
    parts += [f"{amount(told.lost)} lost ({part(told.lost, told.sent)})"] if told.lost else []
    return ", ".join(parts)


def _labels(drawn: _Drawn) -> list[Element]:
    """How much went along each edge, beside it, each where it covers no other label."""
    taken: list[tuple[float, float, float]] = []
    labels: list[Element] = []
    for edge in drawn.edges:
        wrong = edge.traffic.errors + edge.traffic.lost
        text = compact(edge.traffic.sent) + (f" · {compact(wrong)} ✗" if wrong else "")
        half = 4 + 3.2 * len(text)
        curve = _curve(edge, drawn, gap=8)
        places = [curve.at(share) for share in _ALONG]
        x, y = next((place for place in places if _is_free(place, half, taken)), places[0])
        taken.append((x, y, half))
        ground = el("rect", x=x - half, y=y - 8, width=2 * half, height=16, rx=8, class_="ground")
        labels.append(el("g", ground, el("text", text, x=x, y=y + 4, class_="edge-label")))
    return labels


def _is_free(place: tuple[float, float], half: float, taken: Sequence[tuple[float, float, float]]) -> bool:
    return all(abs(place[0] - x) >= half + other or abs(place[1] - y) >= 16 for x, y, other in taken)


def _node(node: Node, drawn: _Drawn) -> Element:
    place, radius = drawn.places[node.name], drawn.radii[node.name]
    side = math.cos(place.angle)
    far = radius + 9
    if abs(side) < 0.35:
        x, anchor = place.x, "middle"
        y = place.y + (far + 12 if math.sin(place.angle) > 0 else -far - (30 if node.failed else 16))
    else:
        x, anchor = place.x + (far if side > 0 else -far), "start" if side > 0 else "end"
        y = place.y - 2
    failed = f", {amount(node.failed)} failed" if node.failed else ""
    about = f"{amount(node.sent)} sent, {amount(node.received)} received, {amount(node.delivered)} handled{failed}"
    return el(
        "g",
        el("title", f"{short(node.name, 120)}: {about}"),
        el("circle", cx=place.x, cy=place.y, r=radius, class_="node"),
        el("text", drawn.names[node.name], x=x, y=y, class_=f"node-name {anchor}"),
        el("text", f"{compact(node.delivered)} handled", x=x, y=y + 14, class_=f"tick {anchor}"),
        el("text", f"✗ {compact(node.failed)} failed", x=x, y=y + 28, class_=f"tick wrong {anchor}")
        if node.failed
        else None,
    )


def _key(y: float) -> list[Element]:
    """What colours and dashes mean."""
    parts: list[Element] = []
    x = 40.0
    for kind, (_, about) in TROUBLES.items():
        parts.append(el("path", d=f"M{x:g} {y:g} h26", stroke_width=3, class_=f"edge edge-{kind}"))
        parts.append(el("text", about, x=x + 33, y=y + 4, class_="key"))
        x += 54 + 6.4 * len(about)
    parts.append(el("text", "width: messages", x=x, y=y + 4, class_="key"))
    return parts
