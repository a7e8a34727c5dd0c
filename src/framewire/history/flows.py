"""Finding flows: by id, message, node, outcome, duration and time, in the order that is asked for."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from framewire.errors import UsageError
from framewire.history.counting import bounded
from framewire.history.following import Following
from framewire.history.summary import OUTCOMES
from framewire.history.windows import ALWAYS, Conditions, Window
from framewire.spark.legs import Story
from framewire.spark.stories import days_of, stories, tables_of_stories

__all__ = ["ORDERS", "WRONG", "Flow", "FlowPage", "FlowSearch", "SlowStep", "find_flows", "stories_of"]

WRONG = ("failed", "expired", "dead")
"""The outcomes of flows that ended, and not well."""
ORDERS = {
    "newest": "started_at desc, flow",
    "oldest": "started_at, flow",
    "slowest": "duration_us desc nulls last, flow",
    "quickest": "duration_us nulls last, flow",
    "largest": "messages desc nulls last, flow",
}
"""The orders in which flows can be listed."""
_FACTS = (
    "flow, correlation_id, coalesce(outcome, 'open'), exception, exception_text, origin_name, message, "
    "wire_version, started_at, ended_at, duration_us, messages, hops, rows, nodes, steps, dead_reasons, slowest"
)
_MOST_STORIES = 200


@dataclass(frozen=True, slots=True)
class SlowStep:
    """The step of a flow that took longest."""

    us: int
    node: str
    message: str


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow, as the table ``flows`` tells it."""

    flow: str
    correlation_id: bytes
    outcome: str
    exception: str | None
    exception_text: str | None
    origin: str | None
    message: str | None
    """The message that it began with."""
    wire_version: int | None
    started_at: dt.datetime | None
    ended_at: dt.datetime | None
    duration_us: int | None
    messages: int | None
    hops: int | None
    rows: int | None
    nodes: int | None
    steps: int | None
    dead_reasons: tuple[str, ...]
    slowest: SlowStep | None


@dataclass(frozen=True, slots=True)
class FlowSearch:
    """What flows are looked for: all conditions hold for each that is found."""

    beginning: str | None = None
    """What its id begins with."""
    message: str | None = None
    """A part of the id of a message that it began with or that was delivered in it."""
    node: str | None = None
    """The name of a node that it began on or that something was delivered on."""
    outcomes: tuple[str, ...] = ()
    """Any of these; empty for all."""
    least_us: int | None = None
    most_us: int | None = None
    window: Window = ALWAYS
    """When it began."""
    sender: str | None = None
    """A node that sent something in it to ``receiver``, of which ``along`` is the message; see ``Topology``."""
    receiver: str | None = None
    along: str | None = None

    def __post_init__(self) -> None:
        unknown = [outcome for outcome in self.outcomes if outcome not in OUTCOMES]
        if unknown:
            raise UsageError(f"no outcome is {', '.join(map(repr, unknown))}; there are {', '.join(OUTCOMES)}")


@dataclass(frozen=True, slots=True)
class FlowPage:
    """Some of the flows that were looked for."""

    flows: tuple[Flow, ...]
    more: bool
    """Whether there are others."""


def find_flows(
    lake: Following, search: FlowSearch, *, order: str = "newest", limit: int = 100, offset: int = 0
) -> FlowPage:
    """The flows that a search finds, in one of ``ORDERS``."""
    if order not in ORDERS:
        raise UsageError(f"no order is {order!r}; there are {', '.join(ORDERS)}")
    where = _conditions(search)
    rows = lake.select(
        _FACTS,
        "flows",
        where,
        f"order by {ORDERS[order]} limit ? offset ?",
        bounded(limit) + 1,
        max(offset, 0),
    )
    return FlowPage(tuple(map(_flow, rows[:limit])), len(rows) > limit)


def stories_of(lake: Following, flows: tuple[Flow, ...], *, most: int) -> dict[str, Story]:
    """What happened in some flows, message by message, by their ids; ``most`` limits what is told of each."""
    if len(flows) > _MOST_STORIES:
        raise UsageError(f"stories of {len(flows):,} flows at once are too many; {_MOST_STORIES} are the most")
    spans = [days for flow in flows if (days := days_of(_span(flow))) is not None]
    days = (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None
    if not flows:
        return {}

    def tell(connection: duckdb.DuckDBPyConnection) -> list[Story]:
        return list(
            stories(connection, f"flow in ({_marks(flows)})", [flow.flow for flow in flows], most=bounded(most))
        )

    told = lake.apart(tables_of_stories, days, tell)
    return {story.facts["flow"]: story for story in told}


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" for _ in values)


def _span(flow: Flow) -> dict[str, Any]:
    return {"started_at": flow.started_at, "ended_at": flow.ended_at}


def _conditions(search: FlowSearch) -> Conditions:
    where = Conditions().within("started_at", search.window)
    if search.beginning:
        where.add("starts_with(flow, ?)", search.beginning)
    if search.outcomes:
        where.add(f"coalesce(outcome, 'open') in ({_marks(search.outcomes)})", *search.outcomes)
    if search.least_us is not None:
        where.add("duration_us >= ?", search.least_us)
    if search.most_us is not None:
        where.add("duration_us <= ?", search.most_us)
    if search.message:
        part = search.message
        where.add("contains(message, ?) or len([1 for x in path if contains(x.message, ?)]) > 0", part, part)
    if search.node is not None:
        node = search.node
        where.add("origin_name = ? or list_contains([x.node_name for x in path], ?)", node, node)
    if search.sender is not None or search.receiver is not None or search.along is not None:
        hop = Conditions().within("sent_at", Window(search.window.since)).equal("from_name", search.sender)
        hop.equal("to_name", search.receiver).equal("message", search.along)
        where.add(f"correlation_id in (select correlation_id from hops where {hop})", *hop.values)  # noqa: S608 - our own names
    return where


def _flow(row: tuple[Any, ...]) -> Flow:
    reasons, slow = row[-2:]
    step = None
    if slow is not None and slow["us"] is not None:
        step = SlowStep(slow["us"], slow["node_name"] or "", slow["message"] or "")
    return Flow(*(*row[:-2], tuple(reasons or ()), step))
