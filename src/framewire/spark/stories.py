"""What happened in flows, message by message, read from the tables of the lake."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import duckdb

from framewire.spark.asking import Days, fetched
from framewire.spark.legs import Story, story_of

__all__ = ["days_of", "matching", "stories", "tables_of_stories"]

tables_of_stories = ("flows", "hops", "handlings", "losses", "messages", "traces")
_FACTS = (
    "flow",
    "correlation_id",
    "outcome",
    "exception",
    "exception_text",
    "origin_name",
    "origin",
    "message",
    "started_at",
    "ended_at",
    "duration_us",
    "messages",
    "hops",
    "rows",
    "nodes",
    "steps",
    "dead_reasons",
    "slowest",
)
_EVENT = (
    "kind",
    "message",
    "identity",
    "partition",
    "version",
    "from_node",
    "from_name",
    "to_node",
    "to_name",
    "sent_at",
    "received_at",
    "handed_at",
    "service_us",
    "skew_us",
    "fate",
    "reason",
    "fate_at",
    "failed",
    "to_hub",
    "receiver",
)
_ID = "message, identity, partition, version"
_SAME = (
    "h.correlation_id = m.correlation_id and h.from_node = m.node and h.to_node = m.peer and h.message = m.message"
)
_EVENTS = f"""
    select correlation_id, sent_at as moment, 'hop' as kind, {_ID}, from_node, from_name, to_node, to_name, sent_at,
        received_at, null as handed_at, null as service_us, skew_us, fate, fate_reason as reason, fate_at, failed,
        null as to_hub, null as receiver
    from hops where {{near}}
  union all
    select correlation_id, "at", 'handling', {_ID}, came_from, null, node, node_name, null, received_at, "at",
        service_us, null, 'delivered', null, null, failed, to_hub, receiver
    from handlings where {{near}}
  union all
    select correlation_id, "at", 'dead', {_ID}, node, node_name, node, node_name, null, null, null,
        null, null, 'dead', reason, "at", false, null, null
    from messages where direction = 'dead' and {{near}}
  union all
    select correlation_id, "at", 'loss', {_ID}, from_node, from_name, to_node, to_name, "at", null, null,
        null, null, 'lost', null, null, false, null, null
    from losses where kind = 'not_received' and {{near}}
  union all
    select correlation_id, "at", 'step', {_ID}, node, node_name, node, node_name, "at", null, null,
        null, null, step, detail, null, false, null, null
    from traces where {{near}}
  union all
    select correlation_id, "at", 'loss', {_ID}, node, node_name, peer, null, "at", null, null,
        null, null, null, null, null, false, null, null
    from (select * from messages where direction = 'sent' and {{near}}) m
    where not exists (select 1 from (select * from hops where {{near}}) h where {_SAME} and h.sent_at = m."at")
      and not exists (select 1 from (select * from losses where {{near}}) h where {_SAME} and h."at" = m."at")
"""  # noqa: S608 - names of our own tables
"""All that the lake tells of some flows. The last part is what was sent too recently to be called lost."""


def matching(connection: duckdb.DuckDBPyConnection, beginning: str, most: int) -> list[dict[str, Any]]:
    """The flows whose id begins so, the newest first; the one that has exactly this id alone, if there is one."""
    found = connection.execute(
        f"select {', '.join(_FACTS)} from flows where starts_with(flow, ?) "  # noqa: S608 - names of our own columns
        f"order by flow = ? desc, started_at desc limit ?",
        [beginning, beginning, most],
    ).fetchall()
    flows = [dict(zip(_FACTS, row, strict=True)) for row in found]
    return flows[:1] if flows and flows[0]["flow"] == beginning else flows


def days_of(facts: Mapping[str, Any]) -> Days | None:
    """The days on which anything of a flow can lie: clocks differ."""
    if facts["started_at"] is None:
        return None
    day = dt.timedelta(days=1)
    return facts["started_at"].date() - day, (facts["ended_at"] or facts["started_at"]).date() + day


def stories(
    connection: duckdb.DuckDBPyConnection, where: str, values: Sequence[object] = (), *, most: int = 10_000
) -> Iterator[Story]:
    """The stories of the flows that a condition on ``flows`` holds for, in the order of their correlation ids.

    ``most`` limits what is told of one flow: there are flows with a million messages.
    """
    # A table in memory, and not a condition that is put into every question: DuckDB then reads few rows of each.
    connection.execute(
        f"create or replace table chosen as select {', '.join(_FACTS)}, date from flows where {where}\n"  # noqa: S608 - the user's own question, to a lake that is read only
        "qualify row_number() over (partition by correlation_id order by started_at) = 1",
        list(values),
    )
    # A flow may go on after midnight, and clocks differ; days further off cannot hold anything of these flows.
    days = connection.execute(
        "select min(date) - 1, max(greatest(date, ended_at::date)) + 1 from chosen"
    ).fetchone()
    if days is None or days[0] is None:
        return
    facts = connection.cursor().execute(
        f"select correlation_id, {', '.join(_FACTS)} from chosen order by correlation_id"  # noqa: S608 - our own names
    )
    near = f"date between '{days[0]}' and '{days[1]}' and correlation_id in (select correlation_id from chosen)"  # noqa: S608 - same
    told = connection.execute(  # no cursor of its own: those do not see the views of a lake that is elsewhere
        f"select correlation_id, {', '.join(_EVENT)} from ({_EVENTS.format(near=near)}) "  # noqa: S608 - same
        "order by correlation_id, moment"
    )
    events = groupby(fetched(told), key=itemgetter(0))
    upcoming = next(events, None)
    for row in fetched(facts):
        some: list[dict[str, Any]] = []
        left_out = 0
        if upcoming is not None and upcoming[0] == row[0]:
            for event in upcoming[1]:
                if len(some) < most:
                    some.append(dict(zip(_EVENT, event[1:], strict=True)))
                else:
                    left_out += 1
            upcoming = next(events, None)
        yield story_of(dict(zip(_FACTS, row[1:], strict=True)), some, left_out)
