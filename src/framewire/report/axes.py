"""The scales of charts: where a value or a time lies, and which of them are worth a mark."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Scale", "time_marks", "value_scale"]

_LOGARITHMIC_FROM = 12
_FEW_POWERS = 3
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the lake's times are all UTC, without a zone
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_TIMES = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, _MINUTE, 2 * _MINUTE, 5 * _MINUTE,
    10 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE, _HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY,
    7 * _DAY, 14 * _DAY, 30 * _DAY, 90 * _DAY, 365 * _DAY,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scale:
    """Where values lie between 0 (the least) and 1 (the most), and the values that are marked."""

    place: Callable[[float], float]
    marks: Sequence[float]
    logarithmic: bool = False


def value_scale(values: Sequence[float], *, marks: int = 4, from_zero: bool = False) -> Scale:
    """A scale that shows all values: by their logarithm where they are far apart, from 0 else."""
    least, most = min(values, default=0.0), max(values, default=0.0)
    if not from_zero and least > 0 and most / least >= _LOGARITHMIC_FROM:
        return _by_logarithm(least, most)
    step = _step(most / marks) if most > 0 else 1.0
    top = max(math.ceil(most / step), 1) * step
    return Scale(lambda value: min(max(value / top, 0.0), 1.0), [step * n for n in range(round(top / step) + 1)])


def _by_logarithm(least: float, most: float) -> Scale:
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    between = (1, 2, 5) if len(powers) <= _FEW_POWERS else (1,)
    every = [base * 10.0**power for power in powers for base in between]
    low = max(mark for mark in every if mark <= least * 1.001)
    high = min((mark for mark in every if mark >= most * 0.999), default=every[-1])
    marks = [mark for mark in every if low <= mark <= high]
    length = math.log10(high / low) or 1.0

    def place(value: float) -> float:
        return min(max(math.log10(max(value, low) / low) / length, 0.0), 1.0)

    return Scale(place, marks, logarithmic=True)


def _step(about: float) -> float:
    """A round number that is not smaller."""
    power: float = 10.0 ** math.floor(math.log10(about))
    return next(base * power for base in (1, 2, 2.5, 5, 10) if base * power >= about * 0.999)


def time_marks(first: dt.datetime, last: dt.datetime, *, marks: int = 8) -> list[tuple[dt.datetime, str]]:
    """Round times between two, with how they are written; days where they change."""
    length = max((last - first).total_seconds(), 0.001)
    step = next((each for each in _TIMES if length / each <= marks), length / marks)
    began = (first - _EPOCH).total_seconds()
    number = math.ceil(began / step - 1e-9)
    told: list[tuple[dt.datetime, str]] = []
    seen: dt.date | None = None
    while (at := _EPOCH + dt.timedelta(seconds=number * step)) <= last:
        several = first.date() != last.date()
        told.append((at, _written(at, step, with_day=several and at.date() != seen)))
        seen = at.date()
        number += 1
    return told


def _written(at: dt.datetime, step: float, *, with_day: bool) -> str:
    if step >= _DAY:
        return f"{at.day} {at:%b}" if step < 90 * _DAY else f"{at:%b} {at.year}"
    if with_day:
        return f"{at.day} {at:%b}" if (at.hour, at.minute) == (0, 0) else f"{at.day} {at:%b} {at:%H:%M}"
    if step >= _MINUTE:
        return f"{at:%H:%M}"
    return f"{at:%H:%M:%S}" if step >= 1 else f"{at:%M:%S}.{at.microsecond // 1000:03d}"
