"""Which recorded messages are sent again, in which order and when; and the sending of them.

What people want back is what somebody began: the first message of each flow, and messages that belong to no flow.
Everything else came of those, and comes of them again. Answers are for promises that are long gone, and service
messages, forgeries and bodies that were cut when they were recorded would do harm: those are never sent.

One process sends, and not Spark: order and spacing are those of one sender. It sends as the format ``framewire``
does.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb

from framewire.spark.asking import fetched
from framewire.spark.ledger import Ledger
from framewire.spark.sending import Outgoing, Sender, Tally, Target, refusal
from framewire.wire import MessageId
from framewire.wire.message import readable

__all__ = ["Choice", "Recorded", "chosen", "replay", "tables_to_replay"]

_STEP = 0.5
"""Seconds that are slept at a time, so that it can be interrupted, and clocks may jump."""
tables_to_replay = ("messages", "flows")
_ANSWERS_THAT_DIED = ("late_reply", "duplicate_reply", "unknown_reply")
_COLUMNS = (
    *(
        "identity",
        "version",
        "partition",
        "body",
        "body_frames",
        "correlation_id",
        "flow",
        "message",
        "distribution",
    ),
    *("signature_state", "node_name", "reason", "moment"),
)
_QUESTIONS = """
    select * replace (case when (node, content) in (
        select (node, content) from messages where direction = 'dead' and reason = 'bad_signature'
      ) then 'invalid' else signature_state end as signature_state),
      row_number() over (partition by node, content, direction, peer order by "at") as turn
    from messages
    where not coalesce(answer, false)
      and not starts_with(identity::varchar, 'KINO.') and not starts_with(identity::varchar, 'FRAMEWIRE.')
      and ({where}
      )
"""
"""What a node turned down for its signature is a forgery even where the lake has no keys to tell."""
_DEAD = """
    select {columns}, "at" as moment from ({questions}) m
    where direction = 'dead' and reason not in ({answers})
    order by moment, flow
"""
_BEGAN = """
    select {columns}, case when m.flow is null then m."at" else coalesce(f.started_at, m."at") end as moment
    from ({questions}) m left join flows f on m.flow is not null and m.correlation_id = f.correlation_id
    where case when m.flow is null then {left} else m.node = f.origin and m.identity = f.identity
      and m."partition" = f."partition" and m.version is not distinct from f.version end
    qualify case when m.flow is null then {once}
      else row_number() over (partition by m.correlation_id order by m."at") = 1 end
    order by moment, m.flow
"""
_SENT = """
    select {columns}, m."at" as moment from ({questions}) m
    where {left}
    qualify {once}
    order by moment, m.flow
"""
_LEFT = """((direction = 'sent' and (m.hops <= 1 or (m.hops = 2 and len(m.routing) = 1)))
      or (direction in ('delivered', 'dead') and m.hops = 0))"""
"""Rows that tell how a message left the node that it began on, or that it never did; others repeat it. What a
handler sends in a flow of its own node has two hops and one router."""
_ONCE = """row_number() over (partition by m.node, m.content, m.turn,
      if(m.distribution = 1, null, m.direction), if(m.distribution = 1, null, m.peer) order by m."at") = 1"""
"""The copies of a broadcast are one message: the n-th to a node is the same as the n-th to any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which messages of a lake are meant."""

    where: str | None = None
    """A condition on the table ``messages``."""
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    """Both in UTC, without a zone, as the times of the lake."""
    dead: bool = False
    """Dead letters, and nothing else."""
    inner: bool = False
    """Also what was sent in the midst of flows."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A message that was recorded."""

    at: dt.datetime
    after: float
    """Seconds since the first one."""
    name: str
    flow: str | None
    node_name: str
    reason: str | None
    message: Outgoing | None
    """None if it must not be sent; then ``refused`` says why."""
    refused: str | None = None


def chosen(connection: duckdb.DuckDBPyConnection, choice: Choice, *, new_ids: bool = False) -> Iterator[Recorded]:
    """The messages that are meant, in the order in which they were sent."""
    sql, values = _question(choice)
    first: dt.datetime | None = None
    for row in fetched(connection.execute(sql, values)):
        value = dict(zip(_COLUMNS, row, strict=True))
        at = value["moment"]
        first = at if first is None else first
        told = (value["identity"], value["body"] or b"", value["signature_state"], value["body_frames"])
        refused = refusal(*told)
        if value["version"] is None:
            refused = "its version is no number, which only V1 can write"
        message = None if refused else _outgoing(value, new_ids=new_ids)
        named = (value["message"] or readable(value["identity"]), value["flow"], value["node_name"] or "")
        yield Recorded(at, (at - first).total_seconds(), *named, value["reason"], message, refused)


def _outgoing(value: dict[str, Any], *, new_ids: bool) -> Outgoing:
    # What belongs to no flow has an empty id, or zeros, and keeps it: a new id would make a flow of it.
    flow = None if new_ids and value["flow"] is not None else value["correlation_id"]
    message_id = MessageId(value["identity"], value["version"], value["partition"] or b"")
    frames = None if value["body_frames"] is None else tuple(value["body_frames"])
    return Outgoing(message_id, value["body"] or b"", flow, value["distribution"] == 1, frames)


def _question(choice: Choice) -> tuple[str, list[object]]:
    conditions: list[str] = [choice.where or "true"]
    values: list[object] = []
    for condition, when in (('"at" >= ?', choice.since), ('"at" < ?', choice.until)):
        if when is not None:
            conditions.append(condition)
            values.append(when)
    parts = {
        "columns": ", ".join(f'm."{name}"' for name in _COLUMNS[:-1]),
        "questions": _QUESTIONS.format(where="\n) and (".join(conditions)),
        "answers": ", ".join(f"'{reason}'" for reason in _ANSWERS_THAT_DIED),
        "left": _LEFT,
        "once": _ONCE,
    }
    return (_DEAD if choice.dead else _SENT if choice.inner else _BEGAN).format_map(parts), values


@dataclass(slots=True)
class _Schedule:
    """When each message is due: as far apart as they were, or so many times closer."""

    speed: float | None
    now: Callable[[], float]
    sleep: Callable[[float], object]
    _began: float | None = None

    def wait(self, after: float) -> None:
        if self.speed is None:
            return
        if self._began is None:
            self._began = self.now()
        while (left := self._began + after / self.speed - self.now()) > 0:
            self.sleep(min(left, _STEP))


def replay(
    messages: Iterable[Recorded],
    target: Target,
    *,
    speed: float | None = 1.0,
    ledger: Ledger | None = None,
    progress: Callable[[Tally], object] = lambda _: None,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> Tally:
    """Send messages with the spacing that they had, ``speed`` times as fast; None for as fast as possible.

    With a ledger, what an earlier run got through is not sent again.
    """
    tally = Tally()
    before = ledger.sent(0) if ledger is not None else None
    notes = ledger.notes(0) if ledger is not None else None
    schedule = _Schedule(speed, now, sleep)
    try:
        with Sender(target) as sender:
            for recorded in messages:
                if recorded.message is None:
                    tally.fail("Refused", f"{recorded.name}: {recorded.refused}")
                    continue
                digest = recorded.message.digest
                if before is not None and before[digest] > 0:
                    before[digest] -= 1
                    tally.skipped += 1
                    continue
                schedule.wait(recorded.after)
                sender.send(recorded.message, None if notes is None else partial(notes.add, digest))
                progress(sender.tally)
    finally:
        if notes is not None:
            notes.flush()
    tally.add(sender.tally)
    return tally
