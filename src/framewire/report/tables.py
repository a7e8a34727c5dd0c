"""Tables of a report: a caption, columns, and what there is beyond the rows that are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from framewire.report.markup import Child, Element, el

__all__ = ["Column", "code", "number", "table", "words"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, and how its cells are set."""

    heading: str
    kind: str = ""


def words(heading: str) -> Column:
    """A column of words."""
    return Column(heading)


def number(heading: str) -> Column:
    """A column of figures, which stand below each other."""
    return Column(heading, "number")


def code(heading: str) -> Column:
    """A column of names, each letter of which counts."""
    return Column(heading, "code")


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Child]],
    *,
    most: int | None = None,
    unknown: bool = False,
    beyond: int = 0,
) -> Element:
    """A table whose first column names the rows, ``most`` of them at most.

    Below it stands how many there are besides: those, the ones ``beyond``, and ``unknown`` others.
    """
    shown = rows[:most]
    body = [
        el(
            "tr",
            [
                el("th" if not place else "td", cell, class_=column.kind or None, scope=None if place else "row")
                for place, (column, cell) in enumerate(zip(columns, row, strict=True))
            ],
        )
        for row in shown
    ]
    heading = [el("th", column.heading, class_=column.kind or None, scope="col") for column in columns]
    left = len(rows) - len(shown) + beyond
    more = None
    if left or unknown:
        more = f"and {'more than ' if unknown else ''}{left:,} more" if left else "and more"
    made = el("table", el("caption", caption), el("thead", el("tr", heading)), el("tbody", body))
    return el(
        "div",
        el("div", made, class_="scroll", tabindex=0, role="region", aria_label=caption),
        el("p", more, class_="more") if more else None,
        class_="tabular",
    )
