"""What made-up traffic can be asked for, and which wishes cannot be granted."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from framewire.errors import ConfigError
from framewire.wire.layout import LAYOUTS

__all__ = ["GIANT_ROWS", "MICROSECONDS", "Options"]

MICROSECONDS = 1_000_000
"""Of a second: the unit of all times here, as it is in captures."""
_USUAL_RATE = 20_000.0
_HIGHEST_RATE = 500_000.0
_LONGEST_SKEW_MS = 60_000.0
_MOST_NODES = 200
_TOLERANCE = 1e-6
GIANT_ROWS = 3
"""Rows that a message between two nodes leaves: sent, received and delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A wish for made-up traffic; ``ConfigError`` with every problem if it cannot be granted."""

    messages: int = 1_000_000
    """Rows of the captures, exactly: a message that goes from one node to another is recorded three times."""
    nodes: int = 8
    loss: float = 0.001
    """The part of the messages between nodes that get lost, half on the way and half after they were received."""
    duplicates: float = 0.001
    """The part of the answers and one-way messages between nodes that arrive twice."""
    malformed: float = 0.001
    """The part of the messages between nodes that are damaged on the way beyond decoding."""
    tampered: float = 0.001
    """The part of the signed messages between nodes whose body is changed on the way."""
    skew_ms: float = 5.0
    """How far a node's clock may be off, either way."""
    seed: int = 1
    rate: float | None = None
    """Rows a second, roughly; 20,000 unless given."""
    duration: float | None = None
    """Seconds that the traffic lasts, roughly: another way to say the rate."""
    start: dt.datetime = dt.datetime(2025, 1, 1, 8, tzinfo=dt.UTC)
    versions: Mapping[int, float] = field(default_factory=lambda: {5: 0.8, 4: 0.12, 1: 0.08})
    """The wire formats and the part of the flows that each has."""
    giant_flow: int = 0
    """Messages of one flow that is far larger than all others; 0 for none."""
    hot_partition: float = 0.0
    """The part of the flows that are in one partition, which one node handles."""
    segment_rows: int = 50_000
    """Rows of a file at most."""

    def __post_init__(self) -> None:
        problems = {
            name: f"{name}: {value!r}; must be {accepted}"
            for name, accepted, good in (
                ("messages", "a whole number, at least 1", _whole(1)),
                ("nodes", f"a whole number from 2 to {_MOST_NODES}", _whole(2, _MOST_NODES)),
                ("loss", _PART, _part),
                ("duplicates", _PART, _part),
                ("malformed", _PART, _part),
                ("tampered", _PART, _part),
                ("skew_ms", f"from 0 to {_LONGEST_SKEW_MS:.0f} milliseconds", _number(0, _LONGEST_SKEW_MS)),
                ("seed", "a whole number, 0 or more", _whole(0)),
                ("rate", f"from 1 to {_HIGHEST_RATE:,.0f} rows a second", _unless_given(_number(1, _HIGHEST_RATE))),
                ("duration", "a positive number of seconds", _unless_given(_number(1e-3, math.inf))),
                ("start", "a time with its zone", lambda value: getattr(value, "tzinfo", None) is not None),
                (
                    "giant_flow",
                    "0, or a whole number from 3 on",
                    lambda value: _whole(0)(value) and value not in (1, 2),
                ),
                ("hot_partition", _PART, _part),
                ("segment_rows", "a whole number, at least 1", _whole(1)),
            )
            if not good(value := getattr(self, name))
        }
        wrong = [*problems.values(), *self._version_problems(), *self._contradictions(problems.keys())]
        if wrong:
            raise ConfigError("synth", wrong)

    def _version_problems(self) -> list[str]:
        known = ", ".join(map(str, LAYOUTS))
        problems = [
            f"versions: there is no wire format {v!r}; there are {known}" for v in self.versions if v not in LAYOUTS
        ]
        problems += [
            f"versions: {part!r} for V{v}; must be {_PART}" for v, part in self.versions.items() if not _part(part)
        ]
        if not problems and not math.isclose(sum(self.versions.values()), 1, abs_tol=_TOLERANCE):
            problems.append(f"versions: the parts make {sum(self.versions.values()):g}; they must make 1")
        return problems

    def _contradictions(self, wrong: AbstractSet[str]) -> list[str]:
        """What is wrong between options that are right by themselves."""
        problems = []
        if self.rate is not None and self.duration is not None:
            problems.append("rate, duration: give one of them; the other follows from messages")
        elif self.duration is not None and not wrong & {"messages", "duration"}:
            least = self.messages / _HIGHEST_RATE
            if self.duration < least:
                short = f"duration: {self.duration:g} s is too short for {self.messages:,} messages"
                problems.append(f"{short}; at least {least:g} s")
        if not wrong & {"messages", "giant_flow"} and self.giant_rows > self.messages:
            problems.append(
                f"giant_flow: {self.giant_flow:,} messages leave {self.giant_rows:,} rows, more than the "
                f"{self.messages:,} of messages; at most {self.messages // GIANT_ROWS:,}"
            )
        if not wrong & {"hot_partition"} and not self._version_problems():
            most = 1 - self.versions.get(1, 0.0)
            if self.hot_partition > most + _TOLERANCE:
                more = f"hot_partition: {self.hot_partition:g} is more than versions leaves"
                problems.append(f"{more}, for V1 has no partitions; at most {most:g}")
        return problems

    @property
    def rows_per_second(self) -> float:
        """The rate, however it was given."""
        if self.duration is not None:
            return self.messages / self.duration
        return _USUAL_RATE if self.rate is None else self.rate

    @property
    def giant_rows(self) -> int:
        """Rows that the giant flow can leave."""
        return GIANT_ROWS * self.giant_flow

    @property
    def start_us(self) -> int:
        """The start in microseconds since 1970."""
        return (self.start - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)

    @property
    def skew_us(self) -> int:
        return round(self.skew_ms * 1000)


_PART = "a number from 0 to 1"


def _number(least: float, most: float) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int | float) and least <= value <= most and math.isfinite(value)


_part = _number(0, 1)


def _whole(least: int, most: float = math.inf) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _unless_given(good: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or good(value)
