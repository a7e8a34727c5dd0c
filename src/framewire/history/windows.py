"""Which time a question is about, and the steps in which an answer over time is told."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from framewire.errors import UsageError

__all__ = ["ALWAYS", "Conditions", "Window", "moments", "step_for"]

_HOUR = dt.timedelta(hours=1)
_DAY = dt.timedelta(days=1)
_MOST_POINTS = 96
_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_STEPS = (
    *(base * 10**power for power in range(6) for base in (1, 2, 5)),
    *(count * _SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * 60 * _MINUTE for count in (1, 2, 3, 6, 12)),
    *(count * 24 * 60 * _MINUTE for count in (1, 2, 7, 14, 30, 60, 120, 365)),
)
"""Steps that people count in, in microseconds. Neighbours are close enough that a course has 24 points or more."""


@dataclass(frozen=True, slots=True)
class Window:
    """From a time until another; either may be open. Times are UTC without a zone, as those of the lake."""

    since: dt.datetime | None = None
    until: dt.datetime | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "since", _utc(self.since))
        object.__setattr__(self, "until", _utc(self.until))
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise UsageError(
                f"there is no time from {self.since} until {self.until}; the end must be after the beginning"
            )

    @property
    def hours(self) -> Window:
        """All hours that the window touches: what tables by the hour can tell of it."""
        since = None if self.since is None else _full_hour(self.since)
        until = None if self.until is None else _full_hour(self.until - dt.timedelta(microseconds=1)) + _HOUR
        return Window(since, until)


class Conditions:
    """The conditions of a question, with the values that are bound to them and never become part of its text."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.values: list[object] = []

    def add(self, condition: str, *values: object) -> Conditions:
        """One more condition, with a ``?`` for each value."""
        self._parts.append(condition)
        self.values += values
        return self

    def equal(self, column: str, value: object) -> Conditions:
        """A column has a value, if one is asked for."""
        return self if value is None else self.add(f"{column} = ?", value)

    def within(self, column: str, window: Window) -> Conditions:
        """A time lies in a window. Days on which no such row can be filed are not read: clocks differ."""
        if window.since is not None:
            self.add(f"{column} >= ? and date >= ?", window.since, window.since.date() - _DAY)
        if window.until is not None:
            self.add(f"{column} < ? and date <= ?", window.until, window.until.date() + _DAY)
        return self

    def __str__(self) -> str:
        return " and ".join(f"({part})" for part in self._parts) or "true"


def step_for(window: Window) -> int:
    """The step, in microseconds, in which something over this time has at most 96 points, and 24 if it can."""
    if window.since is None or window.until is None:
        raise UsageError("steps of time need a beginning and an end")
    length = (window.until - window.since) // dt.timedelta(microseconds=1)
    return next((step for step in _STEPS if length <= step * (_MOST_POINTS - 1)), length // (_MOST_POINTS - 1) + 1)


def moments(window: Window, step: int) -> Iterator[int]:
    """The beginnings of all steps that a window touches, in microseconds since 1970."""
    if window.since is not None and window.until is not None:
        first, end = _micros(window.since), _micros(window.until)
        yield from range(first - first % step, end, step)


def _micros(at: dt.datetime) -> int:
    return (at - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001 - as the lake's times


def _utc(at: dt.datetime | None) -> dt.datetime | None:
    return at if at is None or at.tzinfo is None else at.astimezone(dt.UTC).replace(tzinfo=None)


def _full_hour(at: dt.datetime) -> dt.datetime:
    return at.replace(minute=0, second=0, microsecond=0)


ALWAYS = Window()
"""All that the lake knows."""
