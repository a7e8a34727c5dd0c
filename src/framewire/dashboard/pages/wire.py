"""The wire: a message that somebody pastes, or picks from the lake, frame by frame from its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from nicegui import events

from framewire.dashboard.answering import answered, wrong_address
from framewire.dashboard.board import Board
from framewire.dashboard.elements import Cell, Column, Rows, block, link, text
from framewire.dashboard.filters import Query
from framewire.dashboard.frames import frame_view
from framewire.dashboard.pages.flows import slow_rows
from framewire.dashboard.shell import heading, page, section, state
from framewire.dashboard.showing import address, brief, flow_address, moment, shown
from framewire.history import Flow, FlowPage, History, Told
from framewire.wire.transcripts import Unreadable, read_text

__all__ = ["wire_page"]

_LONGEST = 4 * 1024 * 1024
_MOST = 200
"""Messages that are shown of one paste."""
_FEW, _ROWS = 10, 200
_HELP = (
    'JSON lines (an object with "frames" in hex, or a list of them), or hex: a frame a line, - for an empty one, '
    "an empty line between messages."
)
_FLOWS = (Column("flow"), Column("outcome"), Column("took", number=True), Column("message", wide=True))
_MESSAGES = (
    Column("at (UTC)"),
    Column("node"),
    Column("direction"),
    Column("message", wide=True),
    Column("frames", number=True),
)


async def wire_page(board: Board, told: Mapping[str, str]) -> None:
    """A place to paste, what there is to pick, and below it the frames of what was pasted or picked."""
    query = Query((), told, others=("flow", "row"))
    row = query.text("row")
    if row is not None and not (row.isascii() and row.isdigit() and len(row) < 7):
        query.problems.append(f"row: {shown(row, 20)} is no number")
    with page(board, "Wire", "/wire"):
        heading("Wire", "A message frame by frame, counted from the end, as `framewire inspect` shows it.")
        if query.problems:
            wrong_address(query.problems)
        elif (flow := query.text("flow")) is not None:
            await _picked(board, flow, None if row is None else int(row))
        else:
            _paste(board)
            await _newest(board)


def _paste(board: Board) -> None:
    with section("Paste"):
        text("label", _HELP, "soft", for_="paste")
        area = block("textarea", "fw-paste", id="paste", spellcheck="false", rows="8")
        with block("div", "fw-row"):
            button = text("button", "Show the frames", "fw-button main", type="button")
    found = block("div", "fw-main-part", aria_live="polite")

    def look(event: events.GenericEventArguments) -> None:
        found.clear()
        with found:
            _show(str(event.args or ""), bodies=board.bodies is not None)

    button.on("click", look, js_handler='() => emit(document.getElementById("paste").value)')
    area.on("keydown.ctrl.enter", look, js_handler="(event) => emit(event.target.value)")


def _show(content: str, *, bodies: bool) -> None:
    if len(content) > _LONGEST:
        why = "This page takes up to 4 MiB; the command reads files of any size."
        state("Too much to paste", why, "framewire inspect FILE", tone="bad")
        return
    messages = list(islice(read_text(content), _MOST + 1))
    if not messages:
        state("Nothing to show", _HELP)
    for each in messages[:_MOST]:
        if isinstance(each, Unreadable):
            state(f"{shown(each.place)} holds no message", each.problem, tone="bad")
        else:
            frame_view(each.name or each.place, each.frames, bodies=bodies)
    if len(messages) > _MOST:
        text("p", f"… and more; this page shows {_MOST} messages. `framewire inspect FILE` shows all.", "soft")


async def _newest(board: Board) -> None:
    """The newest flows, to pick a message from."""
    if board.questions is None:
        return

    def show(found: FlowPage) -> None:
        if found.flows:
            with section("Or pick", "from the newest flows; every other flow leads here too"):
                Rows("Newest flows", _FLOWS, slow_rows(found.flows, _pick))

    await answered(board, ("newest", _FEW), lambda lake: lake.flows(limit=_FEW), show, waiting="Looking for flows")


def _pick(flow: str) -> str | None:
    return address("/wire", flow=flow) if flow_address(flow) else None


async def _picked(board: Board, name: str, row: int | None) -> None:
    """The messages of a flow to pick from, and the frames of the one that is picked."""
    bodies = board.bodies is not None

    def find(lake: History) -> tuple[Flow | None, Told]:
        flow = lake.flow(name)
        return flow, Told((), more=False) if flow is None else lake.recorded(flow, limit=_ROWS, bodies=bodies)

    def show(found: tuple[Flow | None, Told]) -> None:
        flow, told = found
        if flow is None:
            state("There is no such flow", f"No flow in this lake has the id {shown(name, 80)}.")
            return
        link(f"Flow {shown(name, 40)} →", flow_address(name) or "/flows")
        if row is not None and row < len(told.messages):
            each = told.messages[row]
            if each.frames:
                frame_view(each.message, each.frames, bodies=bodies, signature=each.signature_state or "")
            else:
                why = "The pipeline keeps the frames of messages only if it is told to."
                state("Its frames are not in the lake", why, "framewire pipeline run --keep-frames …")
        with section("Messages", "as nodes recorded them"):
            Rows("Messages of the flow", _MESSAGES, _rows(name, told))

    await answered(board, ("wire", name), find, show, waiting="Reading the flow")


def _rows(name: str, told: Told) -> Iterator[tuple[Any, ...]]:
    for number, each in enumerate(told.messages):
        where = address("/wire", flow=name, row=number)
        yield (
            Cell(moment(each.at), href=where),
            Cell(brief(each.node), title=shown(each.node), mono=True),
            each.direction,
            shown(each.message, 80),
            len(each.frames) if each.frames else None,
        )
