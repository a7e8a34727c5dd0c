"""What is told of a node or an edge that was picked: its messages, its latency over time, its slowest flows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framewire.dashboard.answering import answered
from framewire.dashboard.board import Board
from framewire.dashboard.drawings import latency_chart
from framewire.dashboard.elements import Cell, Column, Rows, link, text
from framewire.dashboard.filters import Query
from framewire.dashboard.pages.flows import slow_rows
from framewire.dashboard.shell import section
from framewire.dashboard.showing import address, brief, count, rate, shown, span
from framewire.dashboard.watching import Look, is_theirs
from framewire.history import FlowPage, FlowSearch, Handler, LatencyCourse, Page, Topology, Traffic

__all__ = ["edge_panel", "live_panel", "node_panel"]

_FEW, _SOME = 10, 14
_PERCENTILES = (Column("p50", number=True), Column("p95", number=True), Column("p99", number=True))
_MOST_HANDLERS = 100
_LIVE = (
    Column("handler"),
    Column("message", wide=True),
    Column("handled", number=True),
    Column("failed", number=True),
    Column("longest", number=True),
)
_SLOW = (Column("flow"), Column("outcome"), Column("took", number=True), Column("message", wide=True))


async def edge_panel(board: Board, query: Query) -> None:
    """All about what one node sent to another."""
    sender, receiver, window = query.text("sender") or "", query.text("receiver") or "", query.window
    times = {name: query.text(name) for name in ("since", "until")}

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
            ends = {**times, "sender": sender, "receiver": receiver}
            busiest = found[0].messages[:_SOME]
            Rows("Messages of this edge", columns, (_traffic(each, ends) for each in busiest))
            others = len(found[0].messages) - len(busiest) + found[0].more_messages
            if others:
                text("p", f"… and {others:,} messages that are rarer", "soft")

    text("h2", f"{brief(sender)} → {brief(receiver)}", "mono", title=f"{shown(sender)} → {shown(receiver)}")
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


async def node_panel(board: Board, query: Query) -> None:
    """All about one node: what its actors got, and how quick it is to reach."""
    node, message, window = query.text("node") or "", query.text("message"), query.window
    times = {name: query.text(name) for name in ("since", "until")}

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

    text("h2", brief(node), "mono", title=shown(node))
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


def _traffic(each: Traffic, ends: dict[str, str | None]) -> tuple[Any, ...]:
    return (
        Cell(shown(each.message, 60), href=address("/flows", along=each.message, order="slowest", **ends)),
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


def live_panel(look: Look, picked: str | None) -> None:
    """What a node does now."""
    node = next((each for each in look.nodes if each.name == picked), None)
    if picked is None or node is None:
        gone = "" if picked is None else f"{brief(picked)} is not there now. "
        text("p", f"{gone}Pick a node to see what it does.", "soft")
        return
    text("h2", brief(node.name), "mono", title=shown(node.name))
    if node.stats is None:
        text("p", shown(node.problem, 300), "bad")
        return
    stats = node.stats
    rates = ", ".join(f"{rate(stats.rates.get(name, 0.0))} {name}" for name in ("sent", "handled", "failed"))
    text("p", f"a second: {rates}", "soft")
    handlers = [handler for actor in stats.actors for handler in actor.handlers if is_theirs(handler)]
    rows = [
        (
            shown(each.name, 40),
            shown(each.message, 60),
            each.handled,
            Cell(count(each.failed), tone="bad" if each.failed else None, sort=each.failed),
            Cell(span(each.longest), sort=each.longest),
        )
        for each in handlers[:_MOST_HANDLERS]
    ]
    with section("Handlers"):
        if rows:
            Rows("Handlers of this node", _LIVE, rows)
        else:
            text("p", "It has none of its own.", "soft")
    if stats.pending:
        with section("Open asks"):
            Rows(
                "Open asks of this node",
                (Column("age", number=True), Column("message", wide=True), Column("now at")),
                (
                    (Cell(span(each.age), sort=each.age), shown(each.message, 60), brief(each.sent_to or "itself"))
                    for each in stats.pending[:_FEW]
                ),
            )
