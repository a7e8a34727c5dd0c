"""The live cluster: who is there, how much each does, what waits, what died, and what stands still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from nicegui import ui

from framewire.dashboard.board import Board
from framewire.dashboard.elements import Cell, Column, Figure, Rows, Table, block, text
from framewire.dashboard.shell import heading, page, section, state
from framewire.dashboard.showing import count, flow_address, rate, shown, span
from framewire.dashboard.watching import Look, Watch
from framewire.operation.observing import Seen

__all__ = ["cluster_page", "no_cluster"]

_MOST_HANDLERS, _MOST_PENDING, _MOST_LETTERS = 300, 100, 20
_LOOK_AGAIN = 0.5
"""Seconds after which a page looks whether there is anything new."""
_NODES = (
    Column("node"),
    Column("state"),
    Column("where", wide=True),
    Column("up", number=True),
    Column("sent/s", number=True),
    Column("handled/s", number=True),
    Column("failed/s", number=True),
    Column("queued", number=True),
    Column("busy", number=True),
    Column("pending", number=True),
    Column("dead", number=True),
    Column("stalls", number=True),
)
_HANDLERS = (
    Column("handler"),
    Column("message", wide=True),
    Column("node"),
    Column("handled/s", number=True),
    Column("handled", number=True),
    Column("failed", number=True),
    Column("mean", number=True),
    Column("longest", number=True),
    Column("queued", number=True),
    Column("restarts", number=True),
)
_PENDING = (
    Column("age", number=True),
    Column("message", wide=True),
    Column("asked by"),
    Column("of"),
    Column("now at"),
    Column("flow"),
)
_LETTERS = (
    Column("ago", number=True),
    Column("reason"),
    Column("message"),
    Column("node"),
    Column("why", wide=True),
    Column("flow"),
)
_REASONS = (Column("reason", wide=True), Column("letters", number=True))
_STALLED = (Column("handler", wide=True), Column("node"), Column("times", number=True))


def no_cluster() -> None:
    """What a page of the live cluster shows where the dashboard was started without one."""
    state(
        "No live cluster",
        "This dashboard was started without one. Start it with the address of a rendezvous server to see nodes, "
        "rates, open asks and dead letters as they are now.",
        "framewire dashboard --rendezvous tcp://host:7400",
    )


def cluster_page(board: Board) -> None:
    """Lay the page out, and keep it up to date for as long as somebody looks."""
    with page(board, "Cluster", "/cluster"):
        heading("Cluster")
        if board.watch is None:
            no_cluster()
            return
        _Live(board.watch, has_lake=board.lake is not None)


class _Live:
    """The parts of the page that change, each filled anew when there has been another look."""

    def __init__(self, watch: Watch, *, has_lake: bool) -> None:
        self._watch, self._has_lake = watch, has_lake
        self._number = -1
        self._trouble = block("div", aria_live="polite")
        self._all = block("div", "fw-main-part")
        with self._all:
            self._build()
        self._update()
        ui.timer(_LOOK_AGAIN, self._update)

    def _build(self) -> None:
        with block("div", "fw-figures"):
            names = (
                "Nodes",
                "Sent a second",
                "Handled a second",
                "Failed a second",
                "Queued",
                "Open asks",
                "Dead letters",
            )
            self._figures = [Figure(name) for name in names]
        with section("Nodes"):
            self._nodes = Rows("Nodes", _NODES)
        with section("Handlers"):
            self._handlers = Table("Handlers", _HANDLERS, "No node has handlers of its own yet.")
        with section("Open asks", "the oldest first"):
            self._pending = Table("Open asks", _PENDING, "Nobody waits for an answer.")
        with block("div", "fw-columns"):
            with section("Dead letters", "by reason"):
                self._reasons = Table("Dead letters by reason", _REASONS, "Everything could be delivered.")
            with section("Stalled handlers", "which blocked an event loop"):
                self._stalled = Table("Stalled handlers", _STALLED, "Every event loop comes round.")
        with section("The last dead letters"):
            self._letters = Rows("The last dead letters", _LETTERS)

    def _update(self) -> None:
        look = self._watch.look
        if look.number == self._number:
            return
        self._number = look.number
        self._trouble.clear()
        self._all.set_visibility(bool(look.nodes or look.gone))
        self._trouble.set_visibility(look.at is None or bool(look.problem))
        with self._trouble:
            if look.at is None:
                with block("div", "fw-loading", role="status"):
                    text("p", "Joining the cluster…", "soft")
            elif look.problem:
                state("The cluster is not to be seen", look.problem, tone="bad")
        self._show(look)

    def _show(self, look: Look) -> None:
        watch = self._watch
        values = {
            "nodes": count(len(look.stats)),
            **{name: rate(look.total(name)) for name in ("sent", "handled", "failed")},
            **{
                name: count(watch.line("all", name)[-1]) if watch.line("all", name) else "—"
                for name in ("queued", "pending", "dead")
            },
        }
        silent = sum(node.stats is None for node in look.nodes)
        for figure, (name, value) in zip(self._figures, values.items(), strict=True):
            bad = (name == "failed" and look.total("failed") > 0) or (name == "nodes" and silent > 0)
            note = f"{silent} silent, {len(look.gone)} gone" if name == "nodes" and (silent or look.gone) else ""
            figure.show(value, watch.line("all", name), tone="bad" if bad else "", note=note)
        self._nodes.show([*map(self._node, look.nodes), *map(_gone, look.gone)])
        self._handlers.show(self._handler_rows(look))
        self._pending.show(self._pending_rows(look))
        reasons = Counter[str]()
        for stats in look.stats:
            reasons.update(stats.dead_letters)
        self._reasons.show((shown(reason), number) for reason, number in reasons.most_common())
        self._stalled.show(
            (shown(name or "(no handler)"), node, Cell(count(times), tone="bad", sort=times))
            for name, node, times in _stalls(look)
        )
        self._letters.show(self._letter_rows(look))

    def _node(self, node: Seen) -> tuple[Any, ...]:
        name = Cell(shown(node.name), mono=True)
        stats = node.stats
        if stats is None:
            return (name, Cell("silent", tone="bad"), Cell(shown(node.problem, 300), tone="bad"), *[None] * 9)
        rates = []
        for kind in ("sent", "handled", "failed"):
            value = stats.rates.get(kind, 0.0)
            tone = "bad" if kind == "failed" and value else None
            rates.append(Cell(rate(value), sort=value, points=self._watch.line(node.name, kind), tone=tone))
        return (
            name,
            Cell("up", tone="good"),
            shown(f"{stats.host} {stats.pid} {node.uri}"),
            Cell(span(stats.uptime), sort=stats.uptime),
            *rates,
            sum(actor.queued for actor in stats.actors),
            sum(actor.busy for actor in stats.actors),
            stats.totals.get("pending", 0),
            sum(stats.dead_letters.values()),
            stats.stalls,
        )

    def _handler_rows(self, look: Look) -> Iterator[tuple[Any, ...]]:
        busiest = sorted(look.handlers, key=lambda each: (-each.rate, -each.handler.handled, each.node))
        for each in busiest[:_MOST_HANDLERS]:
            done, actor = each.handler, each.actor
            mean = done.seconds / done.handled if done.handled else None
            line = self._watch.line(each.node, actor.identity, done.name, done.message)
            yield (
                shown(done.name),
                shown(done.message),
                Cell(shown(each.node), mono=True),
                Cell(rate(each.rate), sort=each.rate, points=line),
                Cell(count(done.handled), sort=done.handled),
                Cell(count(done.failed), sort=done.failed, tone="bad" if done.failed else None),
                Cell(span(mean), sort=mean or 0.0),
                Cell(span(done.longest), sort=done.longest),
                Cell(
                    f"{actor.queued:,} of {actor.limit:,}" if actor.limit else f"{actor.queued:,}",
                    sort=actor.queued,
                ),
                actor.restarts,
            )

    def _pending_rows(self, look: Look) -> Iterator[tuple[Any, ...]]:
        waiting = [(stats.node, each) for stats in look.stats for each in stats.pending]
        for node, each in sorted(waiting, key=lambda pair: -pair[1].age)[:_MOST_PENDING]:
            yield (
                Cell(span(each.age), sort=each.age),
                shown(each.message),
                Cell(shown(node), mono=True),
                shown(each.target),
                shown(each.sent_to or "itself"),
                self._flow(each.flow),
            )

    def _letter_rows(self, look: Look) -> Iterator[tuple[Any, ...]]:
        letters = [(stats.node, each) for stats in look.stats for each in stats.letters]
        for node, each in sorted(letters, key=lambda pair: pair[1].age)[:_MOST_LETTERS]:
            yield (
                Cell(span(each.age), sort=each.age),
                Cell(shown(each.reason), tone="bad"),
                shown(each.message or "(no message)"),
                Cell(shown(node), mono=True),
                shown(each.detail, 300),
                self._flow(each.flow),
            )

    def _flow(self, flow: str) -> Cell:
        return Cell(
            shown(flow, 24), href=flow_address(flow) if self._has_lake else None, mono=True, title=shown(flow)
        )


def _gone(gone: Any) -> tuple[Any, ...]:
    when = f"gone; last seen {gone.last_seen:%H:%M:%S} UTC at {gone.uri}"
    return (
        Cell(shown(gone.name), mono=True),
        Cell("gone", tone="warn"),
        Cell(shown(when), tone="warn"),
        *[None] * 9,
    )


def _stalls(look: Look) -> list[tuple[str, str, int]]:
    found = [(name, shown(stats.node), times) for stats in look.stats for name, times in stats.stalled.items()]
    return sorted(found, key=lambda each: -each[2])
