"""Filters of a page, which are the query of its address: whoever has the address sees the same.

All that is wrong with an address is told at once, and nothing is guessed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from nicegui.element import Element

from framewire.dashboard.showing import shown
from framewire.errors import UsageError
from framewire.history import Window

__all__ = ["Choice", "Field", "Filters", "Query"]

_LONGEST = 400
"""Characters of a filter; the identities that people search for are shorter."""


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that can be filtered by."""

    name: str
    label: str
    kind: str = "text"
    """text, number, moment or choice."""
    options: tuple[Choice, ...] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a field that has a few."""

    value: str
    label: str


WINDOW = (Field("since", "from (UTC)", "moment"), Field("until", "until (UTC)", "moment"))


class Query:
    """What an address asks for, read field by field; what cannot be read is in ``problems``."""

    def __init__(self, fields: Sequence[Field], told: Mapping[str, str], *, others: Sequence[str] = ()) -> None:
        self.fields = tuple(fields)
        self.told = {name: value for name, value in told.items() if value}
        self.problems: list[str] = []
        known = {field.name for field in fields} | set(others)
        for name, value in self.told.items():
            if name not in known:
                self.problems.append(f"{shown(name, 40)}: no such filter; there are {', '.join(sorted(known))}")
            elif len(value) > _LONGEST:
                self.problems.append(f"{name}: longer than {_LONGEST} characters")
        self.problems += [problem for field in fields for problem in _problems(field, self.told.get(field.name))]
        self.window = Window()
        if not self.problems:
            try:
                self.window = Window(self.moment("since"), self.moment("until"))
            except UsageError as problem:
                self.problems.append(str(problem))

    def text(self, name: str) -> str | None:
        """What a field says; None where it says nothing."""
        return self.told.get(name)

    def number(self, name: str) -> float | None:
        """The same as a number."""
        told = self.told.get(name)
        return None if told is None else float(told)

    def whole(self, name: str) -> int | None:
        """The same as a whole number."""
        told = self.number(name)
        return None if told is None else int(told)

    def moment(self, name: str) -> dt.datetime | None:
        """The same as a time."""
        told = self.told.get(name)
        return None if told is None else dt.datetime.fromisoformat(told)

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """What tells this query from others."""
        return tuple(sorted(self.told.items()))


def _problems(field: Field, told: str | None) -> Iterator[str]:
    if told is None:
        return
    if field.kind == "number":
        try:
            good = 0 <= float(told) < 1e15
        except ValueError:
            good = False
        if not good:
            yield f"{field.name}: {shown(told, 40)} is no number from 0 on"
    elif field.kind == "moment":
        try:
            dt.datetime.fromisoformat(told)
        except ValueError:
            yield f"{field.name}: {shown(told, 40)} is no time; write it like 2026-03-01T12:00"
    elif field.kind == "choice" and told not in {option.value for option in field.options}:
        accepted = ", ".join(option.value for option in field.options if option.value)
        yield f"{field.name}: {shown(told, 40)} is none of {accepted}"


class Filters(Element, component="browser/filters.js"):
    """The filters of a page as a form; using it leads to the address that it describes."""

    def __init__(self, query: Query, *, csv: str = "") -> None:
        super().__init__()
        self.props["fields"] = tuple(
            {**asdict(field), "value": query.told.get(field.name, "")[:_LONGEST]} for field in query.fields
        )
        hidden = {
            name: value for name, value in query.told.items() if name not in {field.name for field in query.fields}
        }
        self.props["others"] = tuple(hidden.items())
        self.props["csv"] = csv
