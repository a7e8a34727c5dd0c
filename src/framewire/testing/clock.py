"""A clock that stands still until a test moves it, so that a timeout of an hour is tested in a second."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections.abc import Callable
from typing import Any

from framewire.errors import UsageError

__all__ = ["ManualClock"]

_TURNS = 100
"""Turns of the event loop after each moment: enough for a flow through some thirty actors to run its course."""


class ManualTimer:
    """A call that is due at a moment of a manual clock."""

    __slots__ = ("args", "callback", "cancelled", "due")

    def __init__(self, due: float, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.due = due
        self.callback = callback
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """Time that passes only when told to. Hand it to nodes with ``Node(clock=...)`` or ``Cluster(clock=...)``."""

    def __init__(self, start: float = 0.0, *, turns: int = _TURNS) -> None:
        if turns < 1:
            raise UsageError(f"turns: {turns}; the event loop must go round at least once")
        self._now = start
        self._turns = turns
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._order = itertools.count()

    def time(self) -> float:
        """The moment that the clock stands at, in seconds."""
        return self._now

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> ManualTimer:
        """Call back when the clock has been moved on by the delay."""
        timer = ManualTimer(self._now + max(0.0, delay), callback, args)
        heapq.heappush(self._timers, (timer.due, next(self._order), timer))
        return timer

    @property
    def pending(self) -> int:
        """How many timers are still to come."""
        return sum(not timer.cancelled for _, _, timer in self._timers)

    async def advance(self, seconds: float) -> None:
        """Move the clock on, stopping at each moment that something is due.

        Timers fire in the order of their moments; at each, the event loop goes round until what they set off has
        run its course. It does not wait for handlers that run in threads.
        """
        if not (seconds >= 0 and math.isfinite(seconds)):
            raise UsageError(f"seconds: {seconds!r}; time goes forward, by a finite number")
        await self._settle()
        target = self._now + seconds
        while (moment := self._next_moment()) is not None and moment <= target:
            self._now = max(self._now, moment)
            self._fire(moment)
            await self._settle()
        self._now = target

    def _next_moment(self) -> float | None:
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def _fire(self, moment: float) -> None:
        while self._next_moment() == moment:
            _, _, timer = heapq.heappop(self._timers)
            timer.callback(*timer.args)

    async def _settle(self) -> None:
        for _ in range(self._turns):
            await asyncio.sleep(0)
