"""One flow: its waterfall, and all that nodes recorded of each of its messages."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from framewire._counts import counted
from framewire.dashboard.answering import answered, no_lake
from framewire.dashboard.board import Board
from framewire.dashboard.drawings import TONES, Waterfall
from framewire.dashboard.elements import Copy, Figure, Rows, block, link, text
from framewire.dashboard.pages.flows import FLOW_COLUMNS, flow_rows
from framewire.dashboard.pages.leg import leg_view
from framewire.dashboard.shell import heading, page, section, state
from framewire.dashboard.showing import address, brief, count, moment, shown, span
from framewire.history import Flow, FlowSearch, History, Told
from framewire.spark.legs import Leg, Story

__all__ = ["flow_page"]

_MOST_LEGS = 500
_MOST_ROWS = 2000
_CANDIDATES = 20
_LONGEST_ID = 400


@dataclass(frozen=True, slots=True)
class _Found:
    """A flow and all that is told of it; or those whose ids begin so."""

    flow: Flow | None
    story: Story | None = None
    told: Told | None = None
    others: tuple[Flow, ...] = ()


async def flow_page(board: Board, flow: str, query: Mapping[str, str]) -> None:
    """Everything about the flow that has this id, or those whose ids begin so."""
    with page(board, f"Flow {shown(flow, 24)}", "/flows"):
        if board.lake is None:
            heading("Flow", shown(flow))
            no_lake()
            return
        bodies = board.bodies is not None
        await answered(
            board,
            ("flow", flow),
            lambda lake: _find(lake, flow, bodies=bodies),
            lambda found: _show(board, flow, found, query.get("leg", "")),
            waiting="Reading the flow",
        )


def _find(lake: History, name: str, *, bodies: bool) -> _Found:
    flow = lake.flow(name)
    if flow is None:
        return _Found(None, others=lake.flows(FlowSearch(beginning=name), limit=_CANDIDATES).flows)
    return _Found(flow, lake.story(flow), lake.recorded(flow, limit=_MOST_ROWS, bodies=bodies))


def _show(board: Board, name: str, found: _Found, wanted: str) -> None:
    flow = found.flow
    if flow is None:
        heading("Flow", shown(name))
        _not_found(board, name, found.others)
        return
    _head(board, flow)
    story = found.story
    if story is None or not story.legs:
        state(
            "Nothing is told of its messages",
            "Their rows are gone from the lake (retention), or were never recorded.",
        )
        return
    _messages(board, story, found.told or Told((), more=False), wanted)


def _not_found(board: Board, name: str, others: tuple[Flow, ...]) -> None:
    if others:
        with section("Flows whose ids begin so"):
            Rows("Flows", FLOW_COLUMNS, flow_rows(others, bodies=board.bodies is not None))
        return
    state(
        "There is no such flow",
        f"No flow in this lake has an id that begins with {shown(name, 60)}. It may be too new (the pipeline has "
        "not come to it), too old (retention) or not recorded (sampling).",
    )
    link("Look for others", "/flows", "fw-button")


def _head(board: Board, flow: Flow) -> None:
    with block("div", "fw-heading"):
        with block("div", "fw-row"):
            text("h1", shown(flow.flow, 80), "mono")
            text("span", flow.outcome, f"fw-badge {TONES.get(flow.outcome, '')}")
        text("p", f"{shown(flow.message)} from {shown(flow.origin)}, began {moment(flow.started_at)} UTC")
        if flow.exception:
            # What an exception says comes out of a body.
            said = (
                f": {shown(flow.exception_text, 600)}" if board.bodies is not None and flow.exception_text else ""
            )
            text("p", f"✗ {shown(flow.exception, 120)}{said}", "bad")
        if flow.dead_reasons:
            text("p", f"✗ dead letters: {shown(', '.join(flow.dead_reasons))}", "bad")
    with block("div", "fw-row"):
        Copy("Copy link", here=True)
        Copy("Copy replay command", _replay(board, flow))
        if len(flow.flow) <= _LONGEST_ID:
            link("On the wire", address("/wire", flow=flow.flow), "fw-button")
        Copy("Copy flow command", f"framewire flow {shlex.quote(flow.flow)} --lake {shlex.quote(board.lake or '')}")
        text("span", "the replay is a dry run; take --dry-run away to send", "soft")
    with block("div", "fw-figures"):
        Figure("Took", span(None if flow.duration_us is None else flow.duration_us / 1e6))
        Figure("Messages", count(flow.messages))
        Figure("Hops", count(flow.hops))
        Figure("Nodes", count(flow.nodes))
        if flow.slowest is not None:
            slow = flow.slowest
            Figure("Slowest step", span(slow.us / 1e6), note=f"to {shown(slow.message, 40)} at {brief(slow.node)}")


def _replay(board: Board, flow: Flow) -> str:
    """The command that sends this flow's beginning again, safe to be put into a shell."""
    told = flow.flow.replace("'", "''")
    parts = ["framewire", "replay", "--lake", board.lake or "", "--where", f"flow = '{told}'"]
    for place in board.rendezvous:
        parts += ["--rendezvous", place]
    for place in board.peers:
        parts += ["--peer", place]
    return shlex.join([*parts, "--dry-run"])


def _messages(board: Board, story: Story, told: Told, wanted: str) -> None:
    legs = story.legs[:_MOST_LEGS]
    more = len(story.legs) - len(legs) + story.left_out
    picked = _first(legs, wanted)
    with section("Waterfall", counted(len(legs), "message") + (f", and {more:,} more" if more else "")):
        drawn = Waterfall(story, legs, picked)
    panel = block("div", "fw-main-part", aria_live="polite")

    def pick(at: int) -> None:
        if isinstance(at, int) and 0 <= at < len(legs):
            drawn.show(at)
            panel.clear()
            with panel:
                leg_view(board, legs[at], at, told, story.began)

    drawn.on("pick", lambda event: pick(event.args))
    if picked is not None:
        pick(picked)


def _first(legs: Sequence[Leg], wanted: str) -> int | None:
    """The message that is looked at first: the one that the address names, or the first that went wrong."""
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted[:6]) <= len(legs):
        return int(wanted[:6]) - 1
    for at, leg in enumerate(legs):
        if leg.failed or leg.fate in ("dead", "lost", "vanished"):
            return at
    return 0 if legs else None
