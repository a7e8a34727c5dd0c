"""What is told of a node or an edge that was picked: its messages, its latency over time, its slowest flows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framewire.dashboard.answering import answered
from framewire.dashboard.board import Board
from framewire.dashboard.drawings import latency_chart
from framewire.dashboard.elements import Cell, Column, Rows, link, text
from framewire.dashboard.pages.flows import slow_rows
from framewire.dashboard.shell import section
from framewire.dashboard.showing import address, brief, count, shown, span
from framewire.history import FlowPage, FlowSearch, Handler, LatencyCourse, Page, Topology, Traffic, Window

__all__ = ["Times", "edge_panel", "named", "node_panel"]

_FEW, _SOME = 10, 14
_PERCENTILES = (Column("p50", number=True), Column("p95", number=True), Column("p99", number=True))
Times = Mapping[str, str | None]
_SLOW = (Column("flow"), Column("outcome"), Column("took", number=True), Column("message", wide=True))


def named(*names: str) -> None:
    """The heading of what is told of a node, or of a sender and a receiver."""
    text("h2", " → ".join(map(brief, names)), "mono", title=" → ".join(map(shown, names)))


async def edge_panel(board: Board, window: Window, times: Times, ends: tuple[str, str]) -> None:
    """All about what one node sent to another; ``times`` is the window as addresses have it."""
    sender, receiver = ends

    def messages(topology: Topology) -> None:
        found = [edge for edge in topology.edges if (edge.sender, edge.receiver) == (sender, receiver)]
        if not found:
            text("p", "Nothing went this way in this time, or too little to be among the busiest edges.", "soft")
            return
        columns = (
            Column("message", wide=True),
            Column("sent", number=True),
            Column("lost", number=True),
            Column("errors", number=True),
            *_PERCENTILES,
        )
        with section("Messages"):
            way = {**times, "sender": sender, "receiver": receiver}
            busiest = found[0].messages[:_SOME]
            Rows("Messages of this edge", columns, (_traffic(each, way) for each in busiest))
            others = len(found[0].messages) - len(busiest) + found[0].more_messages
            if others:
                text("p", f"… and {others:,} messages that are rarer", "soft")

    await answered(
        board, ("edges", window), lambda lake: lake.topology(window), messages, waiting="Counting messages"
    )
    await answered(
        board,
        ("latency", window, sender, receiver),
        lambda lake: lake.latency(window, sender=sender, receiver=receiver),
        _latency,
        waiting="Working percentiles out",
    )
    search = FlowSearch(window=window, sender=sender, receiver=receiver)
    await _slowest(board, search, address("/flows", order="slowest", sender=sender, receiver=receiver, **times))


async def node_panel(board: Board, window: Window, times: Times, node: str, message: str | None = None) -> None:
    """All about one node: what its actors got, and how quick it is to reach."""

    def handlers(found: Page[Handler]) -> None:
        with section("Handlers", "what its actors got, and how long they took"):
            if not found.rows:
                text("p", "Its actors got nothing in this time.", "soft")
                return
            columns = (
                Column("message", wide=True),
                Column("handled", number=True),
                Column("failed", number=True),
                *_PERCENTILES,
            )
            first = sorted(found.rows, key=lambda each: each.message != message)[:_SOME]
            Rows("Handlers of this node", columns, (_handler(each, message, node) for each in first))
            if len(found.rows) > len(first):
                text("p", f"… and {len(found.rows) - len(first):,} that got less", "soft")

    await answered(
        board,
        ("handlers", window, node),
        lambda lake: lake.handlers(window, node=node),
        handlers,
        waiting="Counting messages",
    )
    await answered(
        board,
        ("latency", window, node),
        lambda lake: lake.latency(window, node=node),
        _latency,
        waiting="Working percentiles out",
    )
    search = FlowSearch(window=window, node=node, message=message)
    await _slowest(board, search, address("/flows", order="slowest", node=node, message=message, **times))


async def _slowest(board: Board, search: FlowSearch, more: str) -> None:
    def show(found: FlowPage) -> None:
        with section("Slowest flows"):
            if not found.flows:
                text("p", "No flow went here in this time.", "soft")
                return
            Rows("Slowest flows", _SLOW, slow_rows(found.flows))
            link("All of them →", more)

    await answered(
        board,
        ("slowest", search),
        lambda lake: lake.flows(search, order="slowest", limit=_FEW),
        show,
        waiting="Looking for flows",
    )


def _latency(course: LatencyCourse) -> None:
    with section("Latency over time", "" if course.exact else "estimated"):
        if any(point.hops for point in course.points):
            latency_chart(course, "Time from sending to receiving")
        else:
            text("p", "No hop of this time is in the lake.", "soft")


def _percentiles(each: Traffic | Handler) -> Iterator[Cell]:
    for us in (each.p50_us, each.p95_us, each.p99_us):
        yield Cell(span(None if us is None else us / 1e6), sort=us or 0.0)


def _traffic(each: Traffic, way: Times) -> tuple[Any, ...]:
    return (
        Cell(shown(each.message, 60), href=address("/flows", along=each.message, order="slowest", **way)),
        Cell(count(each.sent), sort=each.sent),
        Cell(count(each.lost), sort=each.lost, tone="bad" if each.lost else None),
        Cell(count(each.errors), sort=each.errors, tone="bad" if each.errors else None),
        *_percentiles(each),
    )


def _handler(each: Handler, picked: str | None, node: str) -> tuple[Any, ...]:
    mark = "▸ " if each.message == picked else ""
    return (
        Cell(
            mark + shown(each.message, 60),
            href=address("/flows", node=node, message=each.message, outcome="failed" if each.failed else ""),
        ),
        Cell(count(each.delivered), sort=each.delivered),
        Cell(count(each.failed), sort=each.failed, tone="bad" if each.failed else None),
        *_percentiles(each),
    )
