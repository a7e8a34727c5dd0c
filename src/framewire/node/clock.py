"""Time, in one place, so that a test can hold it still.

Deadlines of promises are kept in a coarse wheel: with 100,000 asks a second a timer for each would cost more
than the asks do, and nobody waits for the last 10 ms of a timeout.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

__all__ = ["Clock", "DeadlineQueue", "DeadlineWheel", "LoopClock", "Timer"]


class Timer(Protocol):
    """A call that is due later and can be called off."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Where a node gets its time from."""

    def time(self) -> float:
        """Seconds on a clock that only goes forward."""

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Call back on the event loop after a delay."""


class LoopClock:
    """The real time, and the running event loop's timers."""

    time = staticmethod(time.monotonic)

    @staticmethod
    def call_later(delay: float, callback: Callable[..., object], *args: Any) -> Timer:
        return asyncio.get_running_loop().call_later(delay, callback, *args)


class DeadlineQueue:
    """Calls back things that all have the same time, within one tick of its end.

    Their time is over in the order in which they began, so a look at the oldest is enough, wherever they are kept,
    and one that ends in time costs nothing here. Nearly all asks wait as long as is usual (bench/cluster.py).
    """

    def __init__(
        self,
        clock: Clock,
        limit: float,
        waiting: Callable[[], Iterable[tuple[Any, float]]],
        expired: Callable[[Any], None],
        tick: float = 0.01,
    ) -> None:
        """``waiting`` gives what has not ended, and when each began, the oldest first."""
        self._clock = clock
        self._limit = limit
        self._waiting = waiting
        self._expired = expired
        self._tick = tick
        self._timer: Timer | None = None
        self.watching = False
        """Whether there will be a look; if not, call ``watch`` with whatever begins."""

    def watch(self, began: float) -> None:
        """Look after what began at a moment, and after all that begin later."""
        self.watching = True
        delay = max(0.0, began + self._limit + self._tick - self._clock.time())
        self._timer = self._clock.call_later(delay, self._look)

    def close(self) -> None:
        """Watch nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self.watching = False
        now, over = self._clock.time(), []
        for item, began in self._waiting():
            if began + self._limit > now:
                self.watch(began)
                break
            over.append(item)
        for item in over:
            self._expired(item)


class DeadlineWheel:
    """Calls back things whose deadline passed, within one tick of it."""

    def __init__(self, clock: Clock, expired: Callable[[Any], None], tick: float = 0.01) -> None:
        self._clock = clock
        self._expired = expired
        self._tick = tick
        self._slots: dict[int, dict[Any, None]] = {}
        self._timer: Timer | None = None
        self._due = 0

    def add(self, item: Any, deadline: float) -> int:
        """Watch a thing; the slot that is returned takes it out again."""
        slot = math.floor(deadline / self._tick) + 1
        watched = self._slots.get(slot)
        if watched is None:
            watched = self._slots[slot] = {}
            if self._timer is None or slot < self._due:
                self._arm(slot)
        watched[item] = None
        return slot

    def discard(self, item: Any, slot: int) -> None:
        watched = self._slots.get(slot)
        if watched is not None:
            watched.pop(item, None)
            if not watched:
                del self._slots[slot]

    def close(self) -> None:
        """Watch nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._slots.clear()

    def _arm(self, slot: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = slot
        delay = max(0.0, slot * self._tick - self._clock.time())
        self._timer = self._clock.call_later(delay, self._turn)

    def _turn(self) -> None:
        self._timer = None
        now = self._clock.time()
        # The same product that the timer was set with: a quotient may round the other way and never come due.
        for slot in sorted(slot for slot in self._slots if slot * self._tick <= now):
            for item in self._slots.pop(slot, ()):
                self._expired(item)
        if self._slots and self._timer is None:
            self._arm(min(self._slots))
