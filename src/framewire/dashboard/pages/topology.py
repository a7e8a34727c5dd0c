"""Who talks to whom: a graph of some time, or of now, and beside it all about the node or edge that was clicked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framewire.dashboard.answering import answered, no_lake, wrong_address
from framewire.dashboard.board import Board
from framewire.dashboard.elements import Cell, Column, Rows, block, link, text
from framewire.dashboard.filters import WINDOW, Field, Filters, Query
from framewire.dashboard.graph import Address, Drawing, Graph, drawn
from framewire.dashboard.pages.aside import edge_panel, named, node_panel
from framewire.dashboard.pages.cluster import no_cluster
from framewire.dashboard.pages.live_topology import live_topology
from framewire.dashboard.shell import heading, page, section, state
from framewire.dashboard.showing import address, brief, count, moment, shown, span
from framewire.history import Edge, History, Topology

__all__ = ["topology_page"]

_FIELDS: tuple[Field, ...] = WINDOW
_OTHERS = ("node", "message", "sender", "receiver", "live")
_MOST, _LISTED = 100, 40
_EDGES = (
    Column("from"),
    Column("to"),
    Column("sent", number=True),
    Column("lost", number=True),
    Column("errors", number=True),
    Column("p50", number=True),
    Column("p95", number=True),
    Column("p99", number=True),
    Column("mostly", wide=True),
)


async def topology_page(board: Board, told: Mapping[str, str]) -> None:
    """The graph, live or of some time in history, with a panel for what is picked in it."""
    query = Query(_FIELDS, told, others=_OTHERS)
    live = query.text("live") is not None or board.lake is None
    with page(board, "Topology", "/topology"):
        heading("Topology")
        if board.lake is None and board.watch is None:
            no_lake()
            return
        with block("nav", "fw-tabs", aria_label="When"):
            link("In history", "/topology", **({} if live else {"aria_current": "page"}))
            link("Now", "/topology?live=1", **({"aria_current": "page"} if live else {}))
        if query.problems:
            wrong_address(query.problems)
        elif live and board.watch is None:
            no_cluster()
        elif live and board.watch is not None:
            await live_topology(board, board.watch, query)
        else:
            Filters(query)
            await _history(board, query)


async def _history(board: Board, query: Query) -> None:
    window = query.window
    ends = (query.text("sender") or "", query.text("receiver") or "")
    node = query.text("node") or ""
    picked: tuple[str, ...] = ends if any(ends) else (node,)
    times = {name: query.text(name) for name in ("since", "until")}

    def where(**more: object) -> str:
        return address("/topology", **times, **more)

    def find(lake: History) -> tuple[Topology, Drawing]:
        topology = lake.topology(window, limit=_MOST)
        return topology, drawn(topology, where, picked)

    def show(found: tuple[Topology, Drawing]) -> None:
        topology, drawing = found
        if not topology.nodes:
            state(
                "No traffic",
                "Nothing was sent from one node to another in this time, as far as the lake knows. Choose another "
                "time, or let the pipeline read more captures.",
                f"framewire pipeline run --captures captures/ --lake {shown(board.lake)}",
            )
            return
        period = topology.window
        text(
            "p",
            f"{moment(period.since)[:16]} to {moment(period.until)[:16]} UTC"
            if period.since
            else "all that the lake tells",
            "soft",
        )
        Graph("Nodes, and what they send each other", drawing)
        left = f" The {drawing.left_out:,} quietest nodes are not drawn." if drawing.left_out else ""
        text(
            "p",
            f"Width by traffic, colour by losses and errors (dashed above 10 %), latency where you point.{left}",
            "soft",
        )

    with block("div", "fw-beside picked" if any(picked) else "fw-beside"):
        with block("div", "fw-section"):
            key = ("topology", query.key)
            await answered(board, key, find, show, waiting="Drawing the topology")
        with block("aside", "fw-main-part", aria_label="Picked"):
            if all(ends):
                named(*ends)
                await edge_panel(board, window, times, ends)
            elif node:
                named(node)
                await node_panel(board, window, times, node, query.text("message"))
            else:
                text(
                    "p",
                    "Pick a node or an edge to see its messages, its latency over time and its slowest flows.",
                    "soft",
                )
    await answered(board, key, find, lambda found: _table(found[0], where), waiting="Listing edges")


def _table(topology: Topology, where: Address) -> None:
    if not topology.edges:
        return
    busiest = topology.edges[:_LISTED]
    more = len(topology.edges) - len(busiest) + topology.more_edges
    with section("Edges", f"the busiest {len(busiest):,}; there are {more:,} more" if more else ""):
        Rows("Edges", _EDGES, (_row(edge, where) for edge in busiest))


def _row(edge: Edge, where: Address) -> tuple[Any, ...]:
    traffic = edge.traffic
    latency = [
        Cell(span(None if us is None else us / 1e6), sort=us or 0.0)
        for us in (traffic.p50_us, traffic.p95_us, traffic.p99_us)
    ]
    mostly = edge.messages[0].message if edge.messages else None
    others = len(edge.messages) - 1 + edge.more_messages
    return (
        Cell(brief(edge.sender), href=where(node=edge.sender), title=shown(edge.sender), mono=True),
        Cell(brief(edge.receiver), href=where(node=edge.receiver), title=shown(edge.receiver), mono=True),
        Cell(count(traffic.sent), sort=traffic.sent, href=where(sender=edge.sender, receiver=edge.receiver)),
        Cell(count(traffic.lost), sort=traffic.lost, tone="bad" if traffic.lost else None),
        Cell(count(traffic.errors), sort=traffic.errors, tone="bad" if traffic.errors else None),
        *latency,
        shown(mostly, 60) + (f" and {others:,} others" if others > 0 else ""),
    )
