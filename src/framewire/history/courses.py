"""How something went over time, in steps that people count in: 24 to 96 points, also where nothing happened."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from framewire.history.counting import EXACT_UP_TO, percentiles, told_apart
from framewire.history.following import Following
from framewire.history.summary import OUTCOMES, Outcomes, period
from framewire.history.windows import ALWAYS, Conditions, Window, moments, step_for

__all__ = ["LatencyCourse", "LatencyPoint", "OutcomeCourse", "OutcomePoint", "latency", "outcomes"]

_LEAST = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the lake's times are all UTC, without a zone


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """How quick hops were that began in one step of time."""

    at: dt.datetime
    hops: int
    p50_us: float | None
    p95_us: float | None
    p99_us: float | None


@dataclass(frozen=True, slots=True)
class LatencyCourse:
    """The latency of hops over time."""

    window: Window
    step: dt.timedelta
    points: tuple[LatencyPoint, ...]
    exact: bool
    """Whether percentiles are exact; of very many hops they are estimated."""


@dataclass(frozen=True, slots=True)
class OutcomePoint:
    """What became of the flows that began in one step of time."""

    at: dt.datetime
    flows: Outcomes


@dataclass(frozen=True, slots=True)
class OutcomeCourse:
    """What became of flows over time."""

    window: Window
    step: dt.timedelta
    points: tuple[OutcomePoint, ...]


def latency(
    lake: Following,
    window: Window = ALWAYS,
    *,
    sender: str | None = None,
    receiver: str | None = None,
    node: str | None = None,
    message: str | None = None,
) -> LatencyCourse:
    """Percentiles of the latency over time: of all hops, or those of an edge, to or from a node, of a message."""
    where = Conditions().within("sent_at", window)
    where.equal("from_name", sender).equal("to_name", receiver).equal("message", message)
    if node is not None:
        where.add("from_name = ? or to_name = ?", node, node)
    number, first, last = lake.one("count(*), min(sent_at), max(sent_at)", "hops", where)
    # Clocks differ: by that of its sender, a hop can lie before or after all flows.
    clipped = _clipped(lake, window, None if first is None else Window(first, last + _LEAST))
    if clipped is None:
        return LatencyCourse(window, dt.timedelta(0), (), exact=True)
    step = step_for(clipped)
    exact = number <= EXACT_UP_TO
    rows = lake.select(
        f"epoch_us(sent_at) // {step} * {step}, count(*), {percentiles('latency_us', exact=exact)}",
        "hops",
        where,
        "group by 1",
    )
    told = {at: (hops, *told_apart(quick)) for at, hops, quick in rows}
    points = (LatencyPoint(_time(at), *told.get(at, (0, None, None, None))) for at in moments(clipped, step))
    return LatencyCourse(clipped, dt.timedelta(microseconds=step), tuple(points), exact)


def outcomes(lake: Following, window: Window = ALWAYS) -> OutcomeCourse:
    """What became of the flows that began in each step of time."""
    clipped = _clipped(lake, window)
    if clipped is None:
        return OutcomeCourse(window, dt.timedelta(0), ())
    step = step_for(clipped)
    counts = ", ".join(f"count(*) filter (outcome = '{outcome}')" for outcome in OUTCOMES)
    where = Conditions().within("started_at", clipped)
    rows = lake.select(f"epoch_us(started_at) // {step} * {step}, {counts}", "flows", where, "group by 1")
    told = {row[0]: Outcomes(*row[1:]) for row in rows}
    points = (OutcomePoint(_time(at), told.get(at, Outcomes())) for at in moments(clipped, step))
    return OutcomeCourse(clipped, dt.timedelta(microseconds=step), tuple(points))


def _clipped(lake: Following, window: Window, also: Window | None = None) -> Window | None:
    """A window with both ends, as far as the lake knows anything; None where it does not."""
    known = [each for each in (period(lake), also) if each is not None]
    begins = [each.since for each in known if each.since is not None]
    ends = [each.until for each in known if each.until is not None]
    if not begins or not ends:
        return None
    since, until = max(min(begins), window.since or min(begins)), min(max(ends), window.until or max(ends))
    return Window(since, until) if since < until else None


def _time(micros: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=micros)
