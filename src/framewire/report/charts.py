"""Charts over time: how quick messages were, and what became of flows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from framewire._counts import counted
from framewire.history import OUTCOMES, LatencyCourse, LatencyPoint, OutcomeCourse, OutcomePoint
from framewire.report.axes import value_scale
from framewire.report.frame import WIDTH, ChartFrame, drawing, legend
from framewire.report.markup import Element, el
from framewire.report.wording import amount, moment, span, tick

__all__ = ["latency_chart", "outcome_chart"]

_LEFT, _RIGHT = 62, WIDTH - 56
_PARTS: Sequence[tuple[str, Callable[[LatencyPoint], float | None]]] = (
    ("p99", lambda point: point.p99_us),
    ("p95", lambda point: point.p95_us),
    ("p50", lambda point: point.p50_us),
)
_ENOUGH_ROOM = 13


def latency_chart(course: LatencyCourse, *, name: str = "latency") -> Element:
    """Percentiles of the latency as lines, and how many hops they are of as bars below."""
    last = course.points[-1].at + course.step
    frame = ChartFrame(course.points[0].at, last, _LEFT, _RIGHT, 34, 236)
    told = [value for _, of in _PARTS for point in course.points if (value := of(point)) is not None]
    scale = value_scale([max(value, 1.0) for value in told] or [1.0])
    middle = course.step / 2
    lines: list[Element] = []
    ends: list[tuple[float, str]] = []
    for part, of in _PARTS:
        for run in _runs(course.points, of):
            places = [(frame.x(at.at + middle), frame.y(scale.place(value))) for at, value in run]
            lines.append(_line(places, f"line {part}"))
            if run[-1][0] is _last_known(course.points):
                ends.append((places[-1][1], part))
    labels = [el("text", part, x=_RIGHT + 6, y=y + 4, class_=f"tick label-{part}") for y, part in _apart(ends)]
    how = ", on a logarithmic scale" if scale.logarithmic else ""
    quickest = min(told, default=None)
    slowest = max(told, default=None)
    return drawing(
        name,
        f"Lines for the percentiles 50, 95 and 99 of the latency{how}, in steps of {_step(course.step)}; between "
        f"{span(quickest)} and {span(slowest)}. Bars below for the number of messages.",
        320,
        legend([(f"key-{part}", part) for part, _ in reversed(_PARTS)], _LEFT, 14),
        frame.values(scale, tick),
        lines,
        labels,
        _hops(course, frame),
        title="Latency of messages between nodes over time",
    )


def _step(step: dt.timedelta) -> str:
    return span(step.total_seconds() * 1_000_000)


def _runs(
    points: Sequence[LatencyPoint], of: Callable[[LatencyPoint], float | None]
) -> list[list[tuple[LatencyPoint, float]]]:
    """Points that follow each other; where nothing happened a line has a gap."""
    runs: list[list[tuple[LatencyPoint, float]]] = [[]]
    for point in points:
        value = of(point)
        if value is None:
            runs.append([])
        else:
            runs[-1].append((point, value))
    return [run for run in runs if run]


def _last_known(points: Sequence[LatencyPoint]) -> LatencyPoint | None:
    return next((point for point in reversed(points) if point.hops), None)


def _line(places: Sequence[tuple[float, float]], class_: str) -> Element:
    if len(places) == 1:
        ((x, y),) = places
        return el("circle", cx=x, cy=y, r=2.2, class_=class_.replace("line", "dot"))
    return el("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), class_=class_)


def _apart(ends: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Labels of lines, moved so far that none covers another."""
    placed = sorted(ends, key=lambda end: (end[0], -int(end[1][1:])))
    for _ in placed:
        for place, (one, other) in enumerate(pairwise(placed)):
            missing = _ENOUGH_ROOM - (other[0] - one[0])
            if missing > 0:
                placed[place] = (one[0] - missing / 2, one[1])
                placed[place + 1] = (other[0] + missing / 2, other[1])
    return placed


def _hops(course: LatencyCourse, frame: ChartFrame) -> list[Element]:
    """How many messages there were, as bars with a tip that tells all numbers of the step."""
    low = ChartFrame(frame.first, frame.last, frame.left, frame.right, 256, 292)
    most = max((point.hops for point in course.points), default=0) or 1
    bars = [
        el(
            "rect",
            el("title", _tip(point)),
            x=low.x(point.at) + 0.5,
            width=max(low.x(point.at + course.step) - low.x(point.at) - 1, 0.5),
            y=low.y(point.hops / most),
            height=max(low.bottom - low.y(point.hops / most), 0.5),
            class_="hops",
        )
        for point in course.points
        if point.hops
    ]
    scale = [
        el("text", amount(most), x=_LEFT - 8, y=low.top + 6, class_="tick end"),
        el("text", "messages", x=_LEFT - 8, y=low.bottom, class_="tick end"),
    ]
    return [*bars, *scale, *low.times()]


def _tip(point: LatencyPoint) -> str:
    quick = f"p50 {span(point.p50_us)}, p95 {span(point.p95_us)}, p99 {span(point.p99_us)}"
    return f"{moment(point.at)}: {counted(point.hops, 'message')}, {quick}"


def outcome_chart(course: OutcomeCourse, *, name: str = "outcomes") -> Element:
    """What became of the flows that began in each step, as columns: those that went wrong on top of the others."""
    last = course.points[-1].at + course.step
    frame = ChartFrame(course.points[0].at, last, _LEFT, _RIGHT, 34, 230)
    scale = value_scale([point.flows.all for point in course.points], from_zero=True)
    whole = [mark for mark in scale.marks if mark == int(mark)]
    columns = [column for point in course.points for column in _column(point, course, frame, scale.place)]
    totals = {outcome: sum(point.flows.of(outcome) for point in course.points) for outcome in OUTCOMES}
    there = [outcome for outcome in OUTCOMES if totals[outcome]]
    about = ", ".join(f"{amount(totals[outcome])} {outcome}" for outcome in there)
    return drawing(
        name,
        f"Columns for the flows that began in each step of {_step(course.step)}, by outcome: {about or 'none'}.",
        258,
        _patterns(),
        legend([(f"fill-{outcome}", f"{outcome} {amount(totals[outcome])}") for outcome in there], _LEFT, 14),
        frame.values(replace(scale, marks=whole), lambda value: amount(int(value))),
        columns,
        frame.times(),
        title="Outcomes of flows over time",
    )


def _column(
    point: OutcomePoint, course: OutcomeCourse, frame: ChartFrame, place: Callable[[float], float]
) -> list[Element]:
    begin, end = frame.x(point.at), frame.x(point.at + course.step)
    parts: list[Element] = []
    below = 0
    for outcome in ("completed", "open", "expired", "dead", "failed"):
        number = point.flows.of(outcome)
        if not number:
            continue
        top, bottom = frame.y(place(below + number)), frame.y(place(below))
        below += number
        tip = f"{moment(point.at)}: {amount(number)} of {counted(point.flows.all, 'flow')} {outcome}"
        parts.append(
            el(
                "rect",
                el("title", tip),
                x=begin + 0.5,
                width=max(end - begin - 1, 0.5),
                y=top,
                height=bottom - top,
                class_=f"fill-{outcome}",
            )
        )
    return parts


def _patterns() -> Element:
    """Hatching, for those who do not see colours and for printers that have none."""
    stripes = el("path", d="M-1 1 L1 -1 M0 6 L6 0 M5 7 L7 5", class_="hatch")
    dots = el("circle", cx=3, cy=3, r=1.1, class_="stipple")
    size: dict[str, str | int] = {"width": 6, "height": 6, "patternUnits": "userSpaceOnUse"}
    return el(
        "defs",
        el(
            "pattern", el("rect", width=6, height=6, class_="ground-expired"), stripes, id="pattern-expired", **size
        ),
        el("pattern", el("rect", width=6, height=6, class_="ground-dead"), dots, id="pattern-dead", **size),
    )
