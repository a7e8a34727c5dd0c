"""Numbers, times and names as a person reads them in a report."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from framewire.wire.explaining import printable

__all__ = [
    "amount",
    "clock",
    "compact",
    "day",
    "moment",
    "part",
    "period",
    "short",
    "short_names",
    "span",
    "tick",
]

_LONGEST = 64
_SHORTEST_NAME = 8
_LONGEST_NAME = 18


def amount(number: int | None) -> str:
    """A number with its thousands apart; nothing for what is not known."""
    return "—" if number is None else f"{number:,}"


def compact(number: int) -> str:
    """A number where there is little room."""
    for unit, name in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= 10 * unit or number >= unit >= 1_000_000:
            return f"{number / unit:.3g} {name}"
    return f"{number:,}"


def part(some: int, every: int) -> str:
    """A part of a whole in per cent. What is there is never told as 0 %, nor what is missing as 100 %."""
    if not every:
        return "—"
    share = 100 * some / every
    if 0 < share < 0.1:
        return "< 0.1 %"
    if 99.9 < share < 100:
        return "> 99.9 %"
    return f"{share:.0f} %" if share in (0, 100) else f"{share:.1f} %"


def span(microseconds: float | None) -> str:
    """A length of time in as few characters as tell it."""
    if microseconds is None:
        return "—"
    size = abs(microseconds)
    for limit, unit, name, digits in (
        (1_000, 1, "µs", 0),
        (10_000, 1_000, "ms", 2),
        (100_000, 1_000, "ms", 1),
        (1_000_000, 1_000, "ms", 0),
        (100_000_000, 1_000_000, "s", 2),
    ):
        # What is rounded up to the next unit is told in it.
        if round(size / unit, digits) * unit < limit:
            return f"{microseconds / unit:.{digits}f} {name}"
    return _long(round(microseconds / 1_000_000))


def tick(microseconds: float) -> str:
    """A round length of time, as it stands beside an axis."""
    if not microseconds:
        return "0"
    for unit, name in ((1_000_000, "s"), (1_000, "ms"), (1, "µs")):
        if microseconds >= unit and (unit < 1_000_000 or microseconds < 100 * unit):
            return f"{microseconds / unit:.3g} {name}"
    return span(microseconds)


def _long(seconds: int) -> str:
    for unit, name, smaller, other in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= unit:
            rest = seconds % unit // smaller
            return f"{seconds // unit:,} {name}" + (f" {rest} {other}" if rest else "")
    return f"{seconds} s"


def day(at: dt.date) -> str:
    """1 March 2026."""
    return f"{at.day} {at:%B} {at.year}"


def clock(at: dt.datetime) -> str:
    """08:05:13."""
    return f"{at:%H:%M:%S}"


def moment(at: dt.datetime | None) -> str:
    """2026-03-01 08:05:13, in UTC as all times of a lake."""
    return "—" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def period(first: dt.datetime, last: dt.datetime) -> str:
    """From when to when, the day told once where it is the same."""
    if first.date() == last.date():
        return f"{day(first)}, {clock(first)} to {clock(last)} UTC"
    return f"{day(first)}, {clock(first)} to {day(last)}, {clock(last)} UTC"


def short(text: str | None, longest: int = _LONGEST) -> str:
    """The beginning of a text that may be long, harmless and on one line."""
    if not text:
        return "—"
    # What is left out need not be made printable, and may be a megabyte.
    told = printable(text[: longest + 1])
    return told if len(told) <= longest else f"{told[: longest - 1]}…"


def short_names(names: Iterable[str]) -> dict[str, str]:
    """The names of nodes, as short as tells them apart: most are UUIDs."""
    every = set(names)
    told = {name: printable(name[:_LONGEST]) for name in every}
    length = next(
        (
            size
            for size in range(_SHORTEST_NAME, _LONGEST_NAME)
            if len({name[:size] for name in every}) == len(every)
        ),
        _LONGEST_NAME,
    )
    return {
        name: shown if len(shown) <= max(length, _LONGEST_NAME) else f"{shown[:length]}…"
        for name, shown in told.items()
    }
