"""The picture of one flow: a line for each message, with how long it was on its way, waited and was worked on."""

from __future__ import annotations

from collections.abc import Sequence

from framewire._counts import counted
from framewire.report.axes import value_scale
from framewire.report.frame import WIDTH, drawing
from framewire.report.markup import Element, el
from framewire.report.wording import short, short_names, span, tick
from framewire.spark.legs import Leg, Story

__all__ = ["MOST_LEGS", "waterfall_picture"]

MOST_LEGS = 30
_LEFT, _RIGHT = 232.0, WIDTH - 178.0
_TOP, _ROW = 30.0, 32.0
_THINNEST = 1.5


def waterfall_picture(story: Story, *, name: str, legs: int = MOST_LEGS) -> Element:
    """The first messages of a flow, in the order in which they began."""
    shown = story.legs[:legs]
    left = len(story.legs) - len(shown) + story.left_out
    height = _TOP + _ROW * len(shown) + (24 if left else 6)
    length = max(story.ended - story.began, 1.0)
    names = short_names({name for leg in shown for name in (leg.from_name, leg.to_name)})
    rows = [row for number, leg in enumerate(shown) for row in _row(leg, number, story.began, length, names)]
    more = [el("text", f"… and {counted(left, 'more', 'more')}", x=0, y=height - 8, class_="key")] if left else []
    wrong = sum(_went_wrong(leg) for leg in story.legs)
    flow, outcome = short(story.facts["flow"], 40), story.facts["outcome"] or "open"
    return drawing(
        name,
        f"{counted(len(story.legs), 'message')} within {span(length)}; {wrong} of them went wrong. Thin lines are "
        f"time on the way, dotted lines waiting, blocks work.",
        height,
        _times(length, height - (24 if left else 6)),
        rows,
        more,
        title=f"Flow {flow}, {short(outcome, 20)}",
    )


def _x(since: float, length: float) -> float:
    return _LEFT + min(max(since / length, 0.0), 1.0) * (_RIGHT - _LEFT)


def _times(length: float, bottom: float) -> list[Element]:
    scale = value_scale([length], marks=4, from_zero=True)
    parts: list[Element] = []
    for mark in scale.marks:
        # Nothing is known below a microsecond.
        if mark > length * 1.001 or mark != int(mark):
            continue
        x = _x(mark, length)
        parts.append(el("line", x1=x, x2=x, y1=_TOP - 6, y2=bottom, class_="grid"))
        parts.append(el("text", "0" if not mark else f"+{tick(mark)}", x=x, y=_TOP - 12, class_="tick middle"))
    return parts


def _row(leg: Leg, number: int, began: float, length: float, names: dict[str, str]) -> list[Element]:
    y = _TOP + _ROW * number
    way = names[leg.from_name]
    if leg.to_node != leg.from_node:
        way = f"{way} → {names[leg.to_name]}"
    sign, fate = _fate(leg)
    kind = "wrong" if _went_wrong(leg) else "right" if leg.to_hub else "plain"
    tip = f"{short(leg.message, 120)}, {short(leg.from_name)} → {short(leg.to_name)}: {_spans(leg)}{fate}"
    stripe = el("rect", x=0, y=y, width=WIDTH, height=_ROW, class_="stripe") if number % 2 else None
    parts = [
        el("text", short(leg.message, 34), x=6, y=y + 14, class_="leg"),
        el("text", short(way, 42), x=6, y=y + 27, class_="tick"),
        el("g", el("title", tip), _bar(leg, y + _ROW / 2, began, length)),
        el("text", f"{sign} {fate}", x=_RIGHT + 12, y=y + 14, class_=f"fate {kind}"),
        el("text", _spans(leg).rstrip(", "), x=_RIGHT + 12, y=y + 27, class_="tick"),
    ]
    return [stripe, *parts] if stripe is not None else parts


def _bar(leg: Leg, y: float, began: float, length: float) -> list[Element]:
    def x(at: float) -> float:
        return _x(at - began, length)

    parts: list[Element] = []
    wrong = _went_wrong(leg)
    if leg.sent is not None and leg.received is not None:
        parts.append(_stroke(x(leg.sent), x(leg.received), y, "bar-way"))
    if leg.received is not None and leg.handed is not None:
        parts.append(_stroke(x(leg.received), x(leg.handed), y, "bar-wait"))
    if leg.handed is not None and leg.done is not None:
        class_ = "bar-failed" if leg.failed else "bar-work"
        width = max(x(leg.done) - x(leg.handed), _THINNEST)
        parts.append(el("rect", x=x(leg.handed), y=y - 5.5, width=width, height=11, rx=1.5, class_=class_))
    end = x(leg.ended)
    if wrong:
        d = f"M{end - 4.5:.1f} {y - 4.5:.1f} l9 9 m0 -9 l-9 9"
        parts.append(el("path", d=d, class_="cross"))
    elif leg.done is None:
        parts.append(el("circle", cx=end, cy=y, r=3.2, class_="hub" if leg.to_hub else "end-mark"))
    return parts


def _stroke(start: float, end: float, y: float, class_: str) -> Element:
    return el("line", x1=start, x2=max(end, start + _THINNEST), y1=y, y2=y, class_=class_)


def _fate(leg: Leg) -> tuple[str, str]:
    """A sign, and what became of a message."""
    if leg.fate == "delivered":
        if leg.failed:
            return "✗", "its handler raised"
        return ("✓", "reached the hub") if leg.to_hub else ("·", "handled")
    if leg.fate == "dead":
        return "✗", f"dead: {short(leg.reason or 'no reason told', 16)}"
    told = {"vanished": ("✗", "never delivered"), "lost": ("✗", "never received"), "sent": ("·", "passed on")}
    return told.get(leg.fate or "", ("?", "not known yet"))


def _spans(leg: Leg) -> str:
    """How long it was on its way and worked on, as far as that is known."""
    parts: Sequence[tuple[str, float | None, float | None]] = (
        ("way", leg.sent, leg.received),
        ("work", leg.handed, leg.done),
    )
    told = [f"{span(end - start)} {what}" for what, start, end in parts if start is not None and end is not None]
    return ", ".join(told) + (", " if told else "")


def _went_wrong(leg: Leg) -> bool:
    return leg.failed or leg.fate in ("dead", "vanished", "lost")
