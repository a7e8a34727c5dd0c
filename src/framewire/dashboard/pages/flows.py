"""Flows: looked for by what they are, where they were, how they ended and how long they took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from framewire.dashboard.answering import answered, no_lake, wrong_address
from framewire.dashboard.board import Board
from framewire.dashboard.drawings import TONES, outcome_chart
from framewire.dashboard.elements import Cell, Column, Rows, block, link
from framewire.dashboard.filters import WINDOW, Choice, Field, Filters, Query
from framewire.dashboard.shell import heading, page, section, state
from framewire.dashboard.showing import address, brief, flow_address, moment, shown, span
from framewire.history import ORDERS, OUTCOMES, WRONG, Flow, FlowPage, FlowSearch, OutcomeCourse

__all__ = ["FLOW_COLUMNS", "flow_rows", "flows_page", "slow_rows"]

_AT_ONCE = 100
_NOT_WELL = "wrong"
_OUTCOMES = (Choice("", "any"), Choice(_NOT_WELL, "not well"), *(Choice(name, name) for name in OUTCOMES))
FIELDS = (
    Field("id", "correlation id", hint="begins with"),
    Field("message", "message", hint="part of it"),
    Field("node", "node", hint="its whole name"),
    Field("outcome", "outcome", "choice", _OUTCOMES),
    Field("least", "took at least, ms", "number"),
    Field("most", "at most, ms", "number"),
    *WINDOW,
    Field(
        "order",
        "order",
        "choice",
        (Choice("", "newest"), *(Choice(name, name) for name in ORDERS if name != "newest")),
    ),
)
OTHERS = ("sender", "receiver", "along", "page")
FLOW_COLUMNS = (
    Column("began (UTC)"),
    Column("flow"),
    Column("outcome"),
    Column("took", number=True),
    Column("message"),
    Column("from"),
    Column("messages", number=True),
    Column("nodes", number=True),
    Column("slowest step, or what went wrong", wide=True),
)


async def flows_page(board: Board, told: Mapping[str, str]) -> None:
    """The filters, what became of flows over time, and the flows that were found."""
    query = Query(FIELDS, told, others=OTHERS)
    number = _page_number(query)
    with page(board, "Flows", "/flows"):
        heading("Flows", _along(query))
        if board.lake is None:
            no_lake()
            return
        Filters(query)
        if query.problems:
            wrong_address(query.problems)
            return
        search = _search(query)
        order, window = query.text("order") or "newest", query.window
        await answered(
            board, ("outcomes", window), lambda lake: lake.outcomes(window), _show_course, waiting="Counting flows"
        )
        await answered(
            board,
            ("flows", query.key),
            lambda lake: lake.flows(search, order=order, limit=_AT_ONCE, offset=number * _AT_ONCE),
            lambda found: _show(board, query, number, found),
            waiting="Looking for flows",
        )


def _page_number(query: Query) -> int:
    told = query.text("page") or "1"
    if not told.isascii() or not told.isdigit() or not 1 <= int(told) <= 10_000:
        query.problems.append(f"page: {shown(told, 20)} is no number from 1 to 10000")
        return 0
    return int(told) - 1


def _along(query: Query) -> str:
    ends = [f"from {shown(each)}" for each in [query.text("sender")] if each]
    ends += [f"to {shown(each)}" for each in [query.text("receiver")] if each]
    along = query.text("along")
    return f"with {shown(along) if along else 'anything'} sent {' '.join(ends)}" if ends or along else ""


def _search(query: Query) -> FlowSearch:
    outcome = query.text("outcome")
    least, most = query.number("least"), query.number("most")
    return FlowSearch(
        beginning=query.text("id"),
        message=query.text("message"),
        node=query.text("node"),
        outcomes=WRONG if outcome == _NOT_WELL else (outcome,) if outcome else (),
        least_us=None if least is None else int(least * 1000),
        most_us=None if most is None else int(most * 1000),
        window=query.window,
        sender=query.text("sender"),
        receiver=query.text("receiver"),
        along=query.text("along"),
    )


def _show_course(course: OutcomeCourse) -> None:
    if course.points:
        outcome_chart(course, "Flows by when they began, and how they ended")


def _show(board: Board, query: Query, number: int, found: FlowPage) -> None:
    if not found.flows:
        _nothing(board, query, number)
        return
    first = number * _AT_ONCE + 1
    with section(
        "Found", f"{first:,} to {first + len(found.flows) - 1:,}" + (", and there are more" if found.more else "")
    ):
        Rows("Flows", FLOW_COLUMNS, flow_rows(found.flows, bodies=board.bodies is not None))
    with block("nav", "fw-row", aria_label="More flows"):
        if number:
            link("← the ones before", _other(query, number), "fw-button", rel="prev")
        if found.more:
            link("the next ones →", _other(query, number + 2), "fw-button", rel="next")


def _other(query: Query, number: int) -> str:
    return address("/flows", **query.told | {"page": "" if number == 1 else number})


def _nothing(board: Board, query: Query, number: int) -> None:
    if query.told and number:
        state("No more flows", "There are none beyond the ones before.")
    elif query.told:
        state("No flow is like that", "None in this lake meets all of the filters. Take some of them away.")
    else:
        state(
            "No flows yet",
            "This lake has none. Record messages with `framewire node --capture captures/`, and let the pipeline "
            "read them.",
            f"framewire pipeline run --captures captures/ --lake {shown(board.lake)}",
        )


def flow_rows(flows: tuple[Flow, ...], *, bodies: bool) -> Iterator[tuple[Any, ...]]:
    """Flows as rows of a table, each leading to its page."""
    for flow in flows:
        took = None if flow.duration_us is None else flow.duration_us / 1e6
        yield (
            Cell(moment(flow.started_at)[:19], title=moment(flow.started_at)),
            Cell(shown(flow.flow, 18), href=flow_address(flow.flow), mono=True, title=shown(flow.flow)),
            Cell(flow.outcome, tone=TONES.get(flow.outcome)),
            Cell(span(took), sort=took or 0.0),
            shown(flow.message, 60),
            Cell(brief(flow.origin), title=shown(flow.origin), mono=True),
            flow.messages,
            flow.nodes,
            _remark(flow, bodies=bodies),
        )


def slow_rows(
    flows: tuple[Flow, ...], where: Callable[[str], str | None] = flow_address
) -> Iterator[tuple[Any, ...]]:
    """The same in few columns: id, outcome, how long it took, and the message that it began with."""
    for flow in flows:
        took = None if flow.duration_us is None else flow.duration_us / 1e6
        yield (
            Cell(shown(flow.flow, 13), href=where(flow.flow), mono=True, title=shown(flow.flow)),
            Cell(flow.outcome, tone=TONES.get(flow.outcome)),
            Cell(span(took), sort=took or 0.0),
            shown(flow.message, 60),
        )


def _remark(flow: Flow, *, bodies: bool) -> Cell:
    if flow.exception:
        # What an exception says comes out of a body.
        told = f": {shown(flow.exception_text, 100)}" if bodies and flow.exception_text else ""
        return Cell(f"{shown(flow.exception, 60)}{told}", tone="bad")
    if flow.dead_reasons:
        return Cell(shown(", ".join(flow.dead_reasons), 80), tone="bad")
    if flow.slowest is None:
        return Cell("—", tone="soft")
    slow = flow.slowest
    return Cell(
        f"{span(slow.us / 1e6)} to {shown(slow.message, 40)} at {brief(slow.node)}", tone="soft", sort=slow.us
    )
