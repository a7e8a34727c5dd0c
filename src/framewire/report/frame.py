"""What pictures share: a drawing with a name for those who cannot see it, and the frame of a chart over time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from framewire.report.axes import Scale, time_marks
from framewire.report.markup import Child, Element, el

__all__ = ["WIDTH", "ChartFrame", "drawing", "legend"]

WIDTH = 760
"""Of all pictures, in pixels of their own; they are as wide as their place."""


def drawing(name: str, about: str, height: float, *parts: Child, title: str, width: float = WIDTH) -> Element:
    """An SVG. ``name`` makes the ids of its title and description unique on a page."""
    return el(
        "svg",
        el("title", title, id=f"{name}-title"),
        el("desc", about, id=f"{name}-about"),
        *parts,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_labelledby=f"{name}-title {name}-about",
        xmlns="http://www.w3.org/2000/svg",
        class_="picture",
    )


@dataclass(frozen=True, slots=True)
class ChartFrame:
    """The inside of a chart over time."""

    first: dt.datetime
    last: dt.datetime
    left: float
    right: float
    top: float
    bottom: float

    def x(self, at: dt.datetime) -> float:
        """Where a time is."""
        length = (self.last - self.first).total_seconds() or 1.0
        return self.left + (at - self.first).total_seconds() / length * (self.right - self.left)

    def y(self, share: float) -> float:
        """Where a part of the height is, counted from the bottom."""
        return self.bottom - share * (self.bottom - self.top)

    def values(self, scale: Scale, written: Callable[[float], str]) -> list[Element]:
        """Lines across, with what they stand for."""
        parts: list[Element] = []
        for mark in scale.marks:
            y = self.y(scale.place(mark))
            parts.append(el("line", x1=self.left, x2=self.right, y1=y, y2=y, class_="grid"))
            parts.append(el("text", written(mark), x=self.left - 8, y=y + 4, class_="tick end"))
        return parts

    def times(self) -> list[Element]:
        """Marks below, with the times."""
        parts: list[Element] = []
        taken = float("-inf")
        for at, written in time_marks(self.first, self.last):
            x, half = self.x(at), 3.4 * len(written)
            parts.append(el("line", x1=x, x2=x, y1=self.bottom, y2=self.bottom + 5, class_="axis"))
            # Two times that would run into each other are worse than one.
            if x - half > taken + 6 and self.left - 24 <= x - half and x + half <= self.right + 40:
                parts.append(el("text", written, x=x, y=self.bottom + 19, class_="tick middle"))
                taken = x + half
        parts.append(el("line", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom, class_="axis"))
        return parts


def legend(entries: Sequence[tuple[str, str]], x: float, y: float) -> list[Element]:
    """Samples of what is drawn, each with what it means, in one line."""
    parts: list[Element] = []
    for class_, text in entries:
        parts.append(el("rect", x=x, y=y - 9, width=12, height=10, rx=2, class_=class_))
        parts.append(el("text", text, x=x + 17, y=y, class_="key"))
        x += 34 + 6.6 * len(text)
    return parts
