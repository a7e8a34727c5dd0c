"""What is drawn: courses over time, and flows as waterfalls. The scripts in ``browser/`` draw; here is what."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

from nicegui.element import Element

from framewire.dashboard.showing import brief, shown, span
from framewire.history import OUTCOMES, LatencyCourse, OutcomeCourse
from framewire.spark.legs import Leg, Story

__all__ = ["TONES", "Chart", "Waterfall", "fate_of", "latency_chart", "outcome_chart"]

TONES = {"completed": "good", "failed": "bad", "expired": "warn", "dead": "dead", "open": "open"}
"""The tone of each outcome, as in the report."""
_FATES = {
    "sent": "passed on",
    "vanished": "received, never delivered",
    "lost": "never received",
}


class Chart(Element, component="browser/chart.js"):
    """Something over time."""

    def __init__(
        self,
        label: str,
        times: Iterable[str],
        series: Sequence[tuple[str, str, Iterable[float | None]]],
        *,
        kind: str,
        unit: str,
    ) -> None:
        super().__init__()
        self.props["label"] = label
        self.props["kind"] = kind
        self.props["unit"] = unit
        self.props["times"] = tuple(times)
        self.props["series"] = tuple(
            {"name": name, "tone": tone, "values": tuple(values)} for name, tone, values in series
        )


def latency_chart(course: LatencyCourse, label: str) -> Chart:
    """Percentiles of latency over time."""
    points = course.points
    series = (
        ("p50", "calm", tuple(point.p50_us for point in points)),
        ("p95", "accent", tuple(point.p95_us for point in points)),
        ("p99", "warn", tuple(point.p99_us for point in points)),
    )
    return Chart(label, _times([point.at for point in points]), series, kind="lines", unit="us")


def outcome_chart(course: OutcomeCourse, label: str) -> Chart:
    """What became of flows over time."""
    series = [
        (outcome, TONES.get(outcome, "calm"), tuple(point.flows.of(outcome) for point in course.points))
        for outcome in OUTCOMES
    ]
    return Chart(label, _times([point.at for point in course.points]), series, kind="bars", unit="")


def _times(moments: Sequence[dt.datetime]) -> list[str]:
    """Times as short as tells them apart."""
    if not moments:
        return []
    whole = moments[-1] - moments[0]
    form = "%d %b" if whole > dt.timedelta(days=8) else "%d %b %H:%M" if whole > dt.timedelta(hours=20) else "%H:%M"
    return [f"{moment:{form if whole > dt.timedelta(minutes=10) else '%H:%M:%S'}}" for moment in moments]


class Waterfall(Element, component="browser/waterfall.js"):
    """A flow, message by message, on one line of time."""

    def __init__(self, story: Story, legs: Sequence[Leg], picked: int | None) -> None:
        super().__init__()
        began = story.began
        length = max(story.ended - began, 1.0)
        self.props["legs"] = tuple(_leg(leg, began, length) for leg in legs)
        self.props["length"] = span(length / 1e6)
        self.show(picked)

    def show(self, picked: int | None) -> None:
        """Mark the message that is looked at."""
        self.props["picked"] = -1 if picked is None else picked


def fate_of(leg: Leg) -> tuple[str, str]:
    """What became of a message, and the tone of that."""
    if leg.fate == "delivered":
        if leg.failed:
            return "its handler raised", "bad"
        return ("reached the hub", "good") if leg.to_hub else ("handled", "")
    if leg.fate == "dead":
        return f"dead: {shown(leg.reason or 'no reason told', 60)}", "bad"
    told = _FATES.get(leg.fate or "", "not known yet")
    return told, "bad" if leg.fate in ("vanished", "lost") else "soft"


def _leg(leg: Leg, began: float, length: float) -> dict[str, Any]:
    fate, tone = fate_of(leg)
    there = f" → {brief(leg.to_name)}" if leg.to_node != leg.from_node else ""
    way, message = f"{brief(leg.from_name)}{there}", shown(leg.message, 80)
    at = f"+{span((leg.began - began) / 1e6)}"
    took = span((leg.ended - leg.began) / 1e6)
    bars = []
    for kind, start, end in (
        ("way", leg.sent, leg.received),
        ("wait", leg.received, leg.handed),
        ("work", leg.handed, leg.done),
    ):
        if start is not None and end is not None and end > start:
            bars.append({"kind": kind, "left": _part(start - began, length), "width": _part(end - start, length)})
    return {
        "at": at,
        "message": message,
        "way": way,
        "bars": tuple(bars),
        "end": min(_part(leg.ended - began, length), 99.6),
        "took": took,
        "fate": fate,
        "tone": tone,
        "wrong": tone == "bad",
        "told": f"{at}, {message}, {way}, took {took}, {fate}",
    }


def _part(of: float, length: float) -> float:
    return round(min(max(of / length * 100, 0.0), 100.0), 3)
