"""The topology as it is now: a graph that changes while one looks, and beside it all about what is picked.

Nodes tell what goes to whom, how long answers and handlers take; how long messages are under way only a lake tells.
So where there is one too, its last hour is told along with what happens now.
"""

from __future__ import annotations

import datetime as dt
import logging

from nicegui import ui

from framewire._counts import counted
from framewire.dashboard.answering import answered
from framewire.dashboard.board import Board
from framewire.dashboard.elements import block, text
from framewire.dashboard.filters import Query
from framewire.dashboard.graph import Drawing, Graph
from framewire.dashboard.layout import Places
from framewire.dashboard.live_graph import Recorded, drawn_live
from framewire.dashboard.pages.aside import edge_panel, node_panel
from framewire.dashboard.pages.live_aside import LiveNode, LivePanel, LiveWay
from framewire.dashboard.shell import state
from framewire.dashboard.showing import address, moment, shown
from framewire.dashboard.watching import Watch
from framewire.history import History, Window

__all__ = ["live_topology"]

_log = logging.getLogger("framewire.dashboard")
_LOOK_AGAIN = 1.0
_READ_AGAIN = 30.0
"""Seconds after which the lake is asked again: it follows what is recorded by as long."""
_HOUR = dt.timedelta(hours=1)
_LEGEND = (
    "Circles by what is handled a second, arrows by what is sent a second, coloured where messages are dropped "
    "(dashed above 10 %); thin lines say who knows whom."
)


async def live_topology(board: Board, watch: Watch, query: Query) -> None:
    """Lay it out, and keep it up to date for as long as somebody looks."""
    node, ends = query.text("node"), (query.text("sender") or "", query.text("receiver") or "")
    picked: tuple[str, ...] = ends if all(ends) else (node,) if node else ()
    view = _View(board, watch, picked)
    ui.timer(_LOOK_AGAIN, view.update)
    if board.questions is not None:
        ui.timer(_READ_AGAIN, view.read_lake)
    if board.lake is not None and picked:
        with view.past:
            await _past(board, picked)


class _View:
    """The parts of the page that change."""

    def __init__(self, board: Board, watch: Watch, picked: tuple[str, ...]) -> None:
        self._board, self._watch, self._picked = board, watch, picked
        self._number = -1
        self._places = Places()
        self._recorded: Recorded = {}
        self._panel: LivePanel | None = None
        has_lake = board.lake is not None
        with block("div", "fw-beside picked" if picked else "fw-beside"):
            with block("div", "fw-section"):
                self._trouble = block("div")
                self._graph = Graph("The cluster as it is now", Drawing((), ()))
                text("p", _LEGEND, "soft")
                self._left_out = text("p", "", "soft")
                self._note = text("p", "", "soft")
            with block("aside", "fw-main-part", aria_label="Picked"):
                if len(picked) == 2:
                    self._panel = LiveWay(watch, (picked[0], picked[1]), has_lake=has_lake)
                elif picked:
                    self._panel = LiveNode(picked[0], _where, has_lake=has_lake)
                else:
                    text("p", "Pick a node or an arrow to see what it does now.", "soft")
                self.past = block("div", "fw-main-part")
        if not has_lake:
            self._note.set_text("How long messages are under way is told where the dashboard has a lake, too.")
        self.update()

    def update(self) -> None:
        """Show the last look, unless it is shown already."""
        look = self._watch.look
        if look.number == self._number:
            return
        self._number = look.number
        drawing = drawn_live(look, _where, self._picked, self._recorded, self._places)
        self._graph.show(drawing)
        self._left_out.set_text(
            f"{counted(drawing.left_out, 'more node is', 'more nodes are')} not drawn." if drawing.left_out else ""
        )
        self._trouble.clear()
        with self._trouble:
            if look.problem:
                state("The cluster is not to be seen", look.problem, tone="bad")
        if self._panel is not None:
            self._panel.show(look)

    async def read_lake(self) -> None:
        """Find out how long messages took lately, as far as the lake knows."""
        questions = self._board.questions
        if questions is None:
            return
        try:
            window, self._recorded = await questions.ask(("the last hour",), _last_hour)
        except Exception as problem:  # noqa: BLE001 - what happens now is to be seen all the same
            _log.debug("the lake does not tell its last hour", exc_info=True)
            self._note.set_text(f"Not how long messages are under way: {shown(problem, 300)}")
            return
        self._note.set_text(
            "How long messages are under way: where you point, of the lake's last hour, "
            f"{moment(window.since)[:16]} to {moment(window.until)[:16]} UTC."
            if window is not None
            else "How long messages are under way is told when there is something in the lake."
        )


def _where(**more: object) -> str:
    return address("/topology", live=1, **more)


def _newest(lake: History) -> Window | None:
    period = lake.period()
    return None if period is None or period.until is None else Window(period.until - _HOUR, period.until)


def _last_hour(lake: History) -> tuple[Window | None, Recorded]:
    window = _newest(lake)
    found = lake.topology(window).edges if window is not None else ()
    return window, {(edge.sender, edge.receiver): edge for edge in found}


async def _past(board: Board, picked: tuple[str, ...]) -> None:
    """What the lake's last hour tells of what is picked."""
    found: list[Window | None] = []
    await answered(board, ("the newest",), _newest, found.append, waiting="Looking into the lake")
    if not found:
        return
    window = found[0]
    if window is None:
        text("p", "Nothing is in the lake yet.", "soft")
        return
    times = {"since": _minute(window.since), "until": _minute(window.until, up=True)}
    text("h2", f"In the lake: the hour until {moment(window.until)[:16]} UTC")
    if len(picked) == 2:
        await edge_panel(board, window, times, (picked[0], picked[1]))
    else:
        await node_panel(board, window, times, picked[0])


def _minute(at: dt.datetime | None, *, up: bool = False) -> str | None:
    """A time as the filters of a page have it: to the minute."""
    if at is None:
        return None
    return (at + dt.timedelta(minutes=1) if up else at).isoformat(timespec="minutes")
