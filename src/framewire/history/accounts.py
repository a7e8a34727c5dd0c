"""What is kept account of by the hour and by the day: signatures, formats and versions, and handlers."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from framewire.history.counting import EXACT_UP_TO, bounded, percentiles, told_apart, total
from framewire.history.following import Following
from framewire.history.mishaps import Page
from framewire.history.windows import ALWAYS, Conditions, Window

__all__ = [
    "Adopted", "AuditGroup", "Audited", "FormatDay", "Handler",
    "adoption", "audit", "audit_groups", "format_days", "handlers",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Audited:
    """Rows of one node whose signatures are in one state, in one domain."""

    domain: str
    """Empty for none."""
    state: str
    node: str
    rows: int
    last: dt.datetime
    """The last hour that has some."""


@dataclass(frozen=True, slots=True)
class AuditGroup:
    """Rows whose signatures are in one state, in one domain, on all nodes."""

    domain: str
    state: str
    rows: int
    nodes: int


@dataclass(frozen=True, slots=True)
class FormatDay:
    """Rows in one format on one day."""

    day: dt.date
    wire_version: int | None
    rows: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """Rows of one message on one node in one format."""

    wire_version: int | None
    message: str
    version: int | None
    node: str
    rows: int
    first: dt.date
    last: dt.date


@dataclass(frozen=True, slots=True)
class Handler:
    """What the actors of a node got of one message."""

    node: str
    message: str
    delivered: int
    failed: int
    p50_us: float | None
    p95_us: float | None
    p99_us: float | None

    @property
    def failure_rate(self) -> float:
        """Those whose handler raised."""
        return self.failed / self.delivered if self.delivered else 0.0


def audit(
    lake: Following,
    window: Window = ALWAYS,
    *,
    state: str | None = None,
    domain: str | None = None,
    node: str | None = None,
    limit: int = 1000,
) -> Page[Audited]:
    """Signatures by domain, state and node, the most first, for the hours that a window touches."""
    where = Conditions().within("hour", window.hours).equal("signature_state", state)
    where.equal("coalesce(domain, '')", domain).equal("node_name", node)
    what = f"coalesce(domain, ''), coalesce(signature_state, 'unchecked'), node_name, {total('rows')}, max(hour)"
    rest = "group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit ?"
    rows = lake.select(what, "audit", where, rest, bounded(limit) + 1)
    return Page(tuple(Audited(*row) for row in rows[:limit]), len(rows) > limit)


def audit_groups(lake: Following, window: Window = ALWAYS, *, limit: int = 200) -> Page[AuditGroup]:
    """Signatures by domain and state, the most first, for the hours that a window touches."""
    where = Conditions().within("hour", window.hours)
    state = "coalesce(signature_state, 'unchecked')"
    what = f"coalesce(domain, ''), {state}, {total('rows')}, count(distinct node_name)"
    rows = lake.select(what, "audit", where, "group by 1, 2 order by 3 desc, 1, 2 limit ?", bounded(limit) + 1)
    return Page(tuple(AuditGroup(*row) for row in rows[:limit]), len(rows) > limit)


def format_days(lake: Following, window: Window = ALWAYS, *, limit: int = 1000) -> Page[FormatDay]:
    """Wire formats by day, the newest day first, for the days that a window touches."""
    where = _days(window)
    what = f"day, wire_version, {total('rows')}"
    rows = lake.select(what, "adoption", where, "group by 1, 2 order by 1 desc, 2 limit ?", bounded(limit) + 1)
    return Page(tuple(FormatDay(*row) for row in rows[:limit]), len(rows) > limit)


def adoption(
    lake: Following,
    window: Window = ALWAYS,
    *,
    wire_version: int | None = None,
    message: str | None = None,
    node: str | None = None,
    limit: int = 1000,
) -> Page[Adopted]:
    """Formats and versions by message and node, the most first, for the days that a window touches."""
    where = _days(window).equal("wire_version", wire_version).equal("node_name", node)
    if message:
        where.add("contains(message, ?)", message)
    what = f"wire_version, message, version, node_name, {total('rows')}, min(day), max(day)"
    rest = "group by 1, 2, 3, 4 order by 5 desc, 2, 1, 4 limit ?"
    rows = lake.select(what, "adoption", where, rest, bounded(limit) + 1)
    return Page(tuple(Adopted(*row) for row in rows[:limit]), len(rows) > limit)


def handlers(
    lake: Following,
    window: Window = ALWAYS,
    *,
    node: str | None = None,
    message: str | None = None,
    limit: int = 1000,
) -> Page[Handler]:
    """What actors got and how long they took, the busiest first, for the hours that a window touches."""
    where = Conditions().within("hour", window.hours).equal("node_name", node).equal("message", message)
    what = f"node_name, message, {total('delivered')}, {total('failed')}"
    rest = "group by 1, 2 order by 3 desc, 1, 2 limit ?"
    rows = lake.select(what, "handlers", where, rest, bounded(limit) + 1)
    if lake.one(total("delivered"), "handlers", where)[0] <= EXACT_UP_TO:
        at = Conditions().within('"at"', window.hours).equal("node_name", node).equal("message", message)
        at.add("not to_hub")
        times = percentiles("service_us", exact=True)
        quick = lake.select(f"node_name, message, {times}", "handlings", at, "group by 1, 2")
    else:
        weighted = ", ".join(
            f"sum({name} * delivered) filter ({name} is not null) / sum(delivered) filter ({name} is not null)"
            for name in ("p50_us", "p95_us", "p99_us")
        )
        quick = lake.select(f"node_name, message, [{weighted}]", "handlers", where, "group by 1, 2")
    known = {row[:2]: row[2] for row in quick}
    told = (Handler(*(*row, *told_apart(known.get(row[:2])))) for row in rows[:limit])
    return Page(tuple(told), len(rows) > limit)


def _days(window: Window) -> Conditions:
    where = Conditions()
    if window.since is not None:
        where.add("date >= ?", window.since.date())
    if window.until is not None:
        where.add("date <= ?", (window.until - dt.timedelta(microseconds=1)).date())
    return where
