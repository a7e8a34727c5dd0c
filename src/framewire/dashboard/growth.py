"""How counters of nodes grow from one look at the cluster to the next, and how that went in the last minutes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

__all__ = ["Growth", "Key", "Lines"]

Key = tuple[str, ...]
_POINTS = 90
_MOST_LINES = 5_000


@dataclass(slots=True)
class Growth:
    """Counters as they were at the last look, each with the time of its node's own clock.

    Answers of nodes take their time to come, so the looker's clock would make rates jump.
    """

    _before: dict[Key, tuple[float, float]] = field(default_factory=dict)
    _now: dict[Key, tuple[float, float]] = field(default_factory=dict)

    def look_again(self) -> None:
        """Begin another look; what was not told in the last one is forgotten."""
        self._before, self._now = self._now, {}

    def begin(self, of: Key, at: float) -> None:
        """Whatever ``of`` has none of yet, but may have at the next look, begins at nothing now."""
        self._now[of] = (0.0, at)

    def since(self, of: Key, value: float, at: float, *, part_of: Key = ()) -> tuple[float, float]:
        """By how much a counter has grown, and in how many seconds; by nothing where it is new, or began anew."""
        self._now[of] = (value, at)
        before, then = self._before.get(of) or self._before.get(part_of, (value, at))
        return (value - before, at - then) if value >= before and at > then else (0.0, 0.0)

    def rate(self, of: Key, value: float, at: float, *, part_of: Key = ()) -> float:
        """By how much it grows a second."""
        more, seconds = self.since(of, value, at, part_of=part_of)
        return more / seconds if seconds else 0.0


@dataclass(slots=True)
class Lines:
    """Values of the last minutes, by what they are of; of too many, the least recently told are dropped."""

    _kept: dict[Key, deque[float]] = field(default_factory=dict)

    def add(self, of: Key, value: float) -> None:
        """The value that something has now."""
        line = self._kept.pop(of, None)
        if line is None:
            line = deque(maxlen=_POINTS)
        line.append(value)
        self._kept[of] = line
        while len(self._kept) > _MOST_LINES:
            del self._kept[next(iter(self._kept))]

    def of(self, *of: str) -> tuple[float, ...]:
        """The values that something had, the oldest first."""
        return tuple(self._kept.get(of, ()))

    def __contains__(self, of: Key) -> bool:
        return of in self._kept

    def forget_quiet(self) -> None:
        """Drop the lines on which nothing was in all that time."""
        self._kept = {of: line for of, line in self._kept.items() if any(line)}
