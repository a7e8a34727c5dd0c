"""HTML and SVG as values. What is put in as text comes out as text, whatever it holds.

There is no way to put markup in as a string: an element's children are elements or text, and text is escaped when
it is written. So nothing that was recorded can become part of a page, wherever it turns up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from framewire.wire.explaining import printable

__all__ = ["Child", "Element", "el", "written"]

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*\Z")
_ALONE = frozenset({"br", "hr", "input", "link", "meta"})
_FORBIDDEN = frozenset({"script", "style", "iframe", "object", "embed", "foreignObject", "base"})
_WITH_TARGETS = frozenset({"href", "src", "action", "formaction", "xlink:href"})

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Element:
    """An element of HTML or SVG. Make it with ``el``."""

    tag: str
    attributes: tuple[tuple[str, str | None], ...]
    children: tuple[Element | str, ...]


Child = Element | str | None | Iterable["Child"]


def el(tag: str, *children: Child, **attributes: Value) -> Element:
    """An element. ``class_`` is class and ``data_x`` is data-x; None leaves an attribute or a child out."""
    if not _NAME.match(tag) or tag in _FORBIDDEN:
        raise ValueError(f"{tag} is no element of a report")
    told = [(_attribute(name), _value(name, value)) for name, value in attributes.items() if _is_told(value)]
    return Element(tag, tuple(told), tuple(_flat(children)))


def written(element: Element | str) -> str:
    """The text of an element and all that is in it."""
    parts: list[str] = []
    _write(element, parts)
    return "".join(parts)


def _is_told(value: Value) -> bool:
    return value is not None and value is not False


def _attribute(name: str) -> str:
    plain = name.rstrip("_").replace("_", "-")
    if not _NAME.match(plain) or plain.lower().startswith("on") or plain == "style":
        raise ValueError(f"{name} is no attribute of a report")
    return plain


def _value(name: str, value: Value) -> str | None:
    if value is True:
        return None
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    if name in _WITH_TARGETS and not str(value).startswith("#"):
        raise ValueError(f"{name}: a report leads nowhere but to its own parts")
    return str(value)


def _flat(children: Iterable[Child]) -> Iterable[Element | str]:
    for child in children:
        if isinstance(child, Element | str):
            yield child
        elif child is not None:
            yield from _flat(child)


def _write(element: Element | str, parts: list[str]) -> None:
    if isinstance(element, str):
        parts.append(_text(element))
        return
    parts.append(f"<{element.tag}")
    for name, value in element.attributes:
        parts.append(f" {name}" if value is None else f' {name}="{_text(value)}"')
    if element.tag in _ALONE:
        parts.append(">")
        return
    parts.append(">")
    for child in element.children:
        _write(child, parts)
    parts.append(f"</{element.tag}>")


def _text(text: str) -> str:
    """Text that is shown as it is: nothing in it is markup, turns the line round or cannot be seen."""
    return escape(printable(text))
