"""A lake in a few numbers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from framewire.history.counting import EXACT_UP_TO, percentiles, told_apart, total
from framewire.history.following import Following
from framewire.history.windows import ALWAYS, Conditions, Window

__all__ = ["OUTCOMES", "Outcomes", "Summary", "period", "summary"]

OUTCOMES = ("completed", "failed", "expired", "dead", "open")
"""Every outcome of a flow, the good one first and the unknown one last."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many flows ended how."""

    completed: int = 0
    failed: int = 0
    expired: int = 0
    dead: int = 0
    open: int = 0

    @property
    def all(self) -> int:
        """All flows."""
        return self.completed + self.failed + self.expired + self.dead + self.open

    @property
    def wrong(self) -> int:
        """Those that ended, and not well."""
        return self.failed + self.expired + self.dead

    def of(self, outcome: str) -> int:
        """How many have one of ``OUTCOMES``."""
        number: int = getattr(self, outcome)
        return number


@dataclass(frozen=True, slots=True)
class Summary:
    """What a lake tells of some time. Counts from tables by the hour are of all hours that the time touches."""

    first: dt.datetime | None
    """When the first flow began; None where nothing is known."""
    last: dt.datetime | None
    flows: Outcomes
    p50_us: float | None
    """Of the durations of completed flows."""
    p95_us: float | None
    p99_us: float | None
    rows: int
    """Messages as nodes recorded them."""
    nodes: int
    sent: int
    """Messages from one node to another."""
    lost: int
    delivered: int
    """Messages that actors got."""
    failed: int
    """Those whose handler raised."""
    dead: int
    quarantined: int
    signatures: Mapping[str, int]
    """Rows by the state of their signature."""

    @property
    def refused(self) -> int:
        """Rows whose signature is wrong."""
        return self.signatures.get("invalid", 0)


def period(lake: Following) -> Window | None:
    """The time that a lake tells of; None for an empty one."""
    first, last = lake.one("min(started_at), max(coalesce(ended_at, started_at))", "flows", Conditions())
    if first is None:
        first, last = lake.one('min("at"), max("at")', "messages", Conditions())
    return None if first is None else Window(first, last + dt.timedelta(microseconds=1))


def summary(lake: Following, window: Window = ALWAYS) -> Summary:
    """A lake, or some time of it, in a few numbers."""
    began = Conditions().within("started_at", window)
    counts = [f"count(*) filter (outcome = '{outcome}')" for outcome in OUTCOMES]
    first, last, *ended = lake.one(
        f"min(started_at), max(coalesce(ended_at, started_at)), {', '.join(counts)}", "flows", began
    )
    flows = Outcomes(*ended)
    completed = Conditions().within("started_at", window).equal("outcome", "completed")
    quick = told_apart(
        lake.one(percentiles("duration_us", exact=flows.completed <= EXACT_UP_TO), "flows", completed)[0]
    )
    hour = Conditions().within("hour", window.hours)
    state = "coalesce(signature_state, 'unchecked')"
    signatures: dict[str, int] = dict(
        lake.select(f"{state}, sum(rows)::bigint", "audit", hour, "group by 1 order by 1")
    )
    at = Conditions().within('"at"', window)
    died = Conditions().equal("direction", "dead").within('"at"', window)
    return Summary(
        first=first,
        last=last,
        flows=flows,
        p50_us=quick[0],
        p95_us=quick[1],
        p99_us=quick[2],
        rows=sum(signatures.values()),
        nodes=lake.one("count(distinct node_name)", "audit", hour)[0],
        sent=lake.one(total("sent"), "edges", hour)[0],
        lost=lake.one(total("lost"), "edges", hour)[0],
        delivered=lake.one(total("delivered"), "handlers", hour)[0],
        failed=lake.one(total("failed"), "handlers", hour)[0],
        dead=lake.one("count(*)", "messages", died)[0],
        quarantined=lake.one("count(*)", "quarantine", at)[0],
        signatures=signatures,
    )
