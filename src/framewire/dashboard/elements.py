"""The elements that pages are made of: plain HTML tags with text, and a few parts of our own with a script each.

Nothing here takes markup. Text goes into a tag as its text; the scripts in ``browser/`` put values into text nodes
and attributes only, through Vue, which escapes them. Their properties are tuples: NiceGUI watches lists and dicts
for changes, which costs more than to send them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

__all__ = ["Cell", "Column", "Copy", "Figure", "Rows", "Table", "block", "link", "text"]

E = TypeVar("E", bound=Element)
Simple = str | int | float | None


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table, where it is more than a text."""

    text: str
    href: str | None = None
    tone: str | None = None
    """good, bad, warn or soft; never the only sign of anything."""
    sort: float | str | None = None
    """What it is sorted by; the text, where there is nothing."""
    points: tuple[float, ...] | None = None
    """A line of values that is drawn beside the text."""
    title: str | None = None
    mono: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    label: str
    number: bool = False
    wide: bool = False
    """Whether it takes the room that is left."""


class Rows(Element, component="browser/rows.js"):
    """A table that can be sorted, and whose rows become cards where the window is narrow."""

    def __init__(
        self, caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell | Simple]] = ()
    ) -> None:
        super().__init__()
        self.props["caption"] = caption
        self.props["columns"] = tuple(asdict(column) for column in columns)
        self.show(rows)

    def show(self, rows: Iterable[Sequence[Cell | Simple]]) -> None:
        """Show these rows from now on."""
        self.props["rows"] = tuple(tuple(map(_told, row)) for row in rows)


class Table:
    """A table that changes, or a sentence where it has no rows."""

    def __init__(self, caption: str, columns: Sequence[Column], otherwise: str) -> None:
        self._otherwise = text("p", otherwise, "soft")
        self._rows = Rows(caption, columns)
        self.show(())

    def show(self, rows: Iterable[Sequence[Cell | Simple]]) -> None:
        """Show these rows from now on."""
        found = tuple(rows)
        self._rows.show(found)
        self._rows.set_visibility(bool(found))
        self._otherwise.set_visibility(not found)


class Figure(Element, component="browser/figure.js"):
    """One number that matters, with its name and how it went lately."""

    def __init__(self, label: str, value: str = "—", *, tone: str = "", note: str = "") -> None:
        super().__init__()
        self.props["label"] = label
        self.show(value, tone=tone, note=note)

    def show(self, value: str, points: Iterable[float] = (), *, tone: str = "", note: str = "") -> None:
        """Show this from now on."""
        self.props["value"] = value
        self.props["points"] = tuple(points)
        self.props["tone"] = tone
        self.props["note"] = note


class Copy(Element, component="browser/copy.js"):
    """A button that copies a text, and says so."""

    def __init__(self, label: str, content: str = "", *, here: bool = False) -> None:
        super().__init__()
        self.props["label"] = label
        self.props["content"] = content
        self.props["here"] = here


class _Text(TextElement):
    pass


def _told(cell: Cell | Simple) -> Any:
    """A cell as the script takes it: as little as tells it."""
    if not isinstance(cell, Cell):
        return cell
    return {name: value for name, value in asdict(cell).items() if value not in (None, False)}


def text(tag: str, content: str, classes: str = "", **attributes: str) -> TextElement:
    """A tag with a text in it."""
    return _with(_Text(tag=tag, text=content), classes, attributes)


def block(tag: str, classes: str = "", **attributes: str) -> Element:
    """A tag to put others into."""
    return _with(Element(tag), classes, attributes)


def link(content: str, href: str, classes: str = "", **attributes: str) -> Element:
    """A link to one of our own addresses."""
    return text("a", content, classes, href=href, **attributes)


def _with(element: E, classes: str, attributes: dict[str, str]) -> E:
    if classes:
        element.classes(classes)
    for name, value in attributes.items():
        element.props[name.rstrip("_").replace("_", "-")] = value
    return element
