"""Quarantine, losses, audit, adoption and dead letters: tables with filters, each row leading on, and as files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from framewire.dashboard.answering import answered, no_lake, wrong_address
from framewire.dashboard.board import Board
from framewire.dashboard.csv_export import csv_lines
from framewire.dashboard.elements import Rows, block, link, text
from framewire.dashboard.filters import Filters, Query
from framewire.dashboard.frames import frame_view
from framewire.dashboard.listings import Listing, flow_in
from framewire.dashboard.shell import heading, page, section, state
from framewire.dashboard.showing import address, count, flow_address, moment, shown
from framewire.errors import UsageError
from framewire.history import Page, Quarantined, Window

__all__ = ["export", "table_page"]

_SHOWN = 200
_EXPORTED = 100_000
_KINDS = 12
_WITH_FRAMES = 5_000
"""Rows of a file of what is in quarantine: each brings its frames, and a lake may hold gigabytes of them."""


async def table_page(board: Board, listing: Listing, told: Mapping[str, str]) -> None:
    """The filters, what there is of each kind, and the rows that were found."""
    query = Query(listing.fields, told, others=listing.others)
    picked = _picked(query)
    with page(board, listing.title, f"/{listing.name}"):
        heading(listing.title, listing.about)
        if board.lake is None:
            no_lake()
            return
        rest = {name: value for name, value in query.told.items() if name not in listing.others}
        Filters(query, csv="" if query.problems else address(f"/export/{listing.name}.csv", **rest))
        if query.problems:
            wrong_address(query.problems)
            return
        groups = listing.groups
        if groups is not None:
            key = ("groups", listing.name, query.window)
            await answered(
                board,
                key,
                lambda lake: groups(lake, query),
                lambda found: _kinds(listing, query, found),
                waiting="Counting",
            )
        if picked is not None:
            await _frames(board, query, picked)
        await answered(
            board,
            (listing.name, query.key),
            lambda lake: listing.ask(lake, query, _SHOWN),
            lambda found: _show(board, listing, query, found),
            waiting="Reading",
        )


def _picked(query: Query) -> dt.datetime | None:
    told = query.text("at")
    try:
        return None if told is None else dt.datetime.fromisoformat(told)
    except ValueError:
        query.problems.append(f"at: {shown(told, 40)} is no time")
        return None


def _kinds(listing: Listing, query: Query, found: list[tuple[str, int]]) -> None:
    """How many there are of which kind; each leads to the rows of that kind."""
    if not found:
        return
    with block("ul", "fw-kinds", aria_label="By kind"):
        for kind, number in found[:_KINDS]:
            times = {name: query.text(name) for name in ("since", "until")}
            where = address(f"/{listing.name}", **times, **{listing.group_field: kind})
            chosen = {"aria_current": "true"} if query.text(listing.group_field) == kind else {}
            with block("li"):
                if len(kind) <= 200:
                    link(f"{shown(kind, 40).replace('_', ' ')} {count(number)}", where, "fw-button", **chosen)
                else:
                    text("span", f"{shown(kind, 40)} {count(number)}", "fw-button")


def _show(board: Board, listing: Listing, query: Query, found: Page[Any]) -> None:
    if not found.rows:
        if query.told:
            state("Nothing is like that", "No row meets all of the filters. Take some of them away.")
        else:
            state("Nothing here", listing.nothing, f"framewire pipeline status --lake {shown(board.lake)}")
        return
    note = f"the first {len(found.rows):,}; the file has more" if found.more else f"{len(found.rows):,}"
    with section("Rows", note):
        Rows(listing.title, listing.columns, map(listing.row, found.rows))


async def _frames(board: Board, query: Query, at: dt.datetime) -> None:
    """The frames of a row of the quarantine that was picked."""
    node, window = query.text("node"), Window(at, at + dt.timedelta(microseconds=1))

    def show(found: Page[Quarantined]) -> None:
        if not found.rows:
            state("This row is not there any more", "The lake may have been pruned since.")
        for row in found.rows:
            frame_view(f"{row.error}, {moment(row.at)} UTC", row.frames, bodies=board.bodies is not None)
            where = flow_address(flow_in(row))
            if where is not None:
                link("Its flow →", where)

    key = ("frames", window, node)
    await answered(
        board, key, lambda lake: lake.quarantine(window, node=node, limit=5), show, waiting="Reading its frames"
    )


async def export(board: Board, listing: Listing, told: Mapping[str, str]) -> Response:
    """The rows of a table as a file."""
    query = Query(listing.fields, told)
    if board.questions is None:
        return PlainTextResponse("This dashboard was started without a lake: --lake lake/\n", 404)
    if query.problems:
        return PlainTextResponse("\n".join([*query.problems, ""]), 400)
    most = _WITH_FRAMES if listing.name == "quarantine" else _EXPORTED
    try:
        found = await board.questions.once(lambda lake: listing.ask(lake, query, most))
    except UsageError as problem:
        return PlainTextResponse(f"{problem}\n", 503)
    first = f"-first-{len(found.rows)}" if found.more else ""
    name = f"{listing.name}{first}.csv"
    lines = csv_lines(listing.heading, map(listing.raw, found.rows))
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)
