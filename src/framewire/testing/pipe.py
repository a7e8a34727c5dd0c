"""Things under way, each due at a moment, handed over in order and never at once.

That something is never handed over while it is being put in matters: a message that arrived before its ``send``
returned would be an order of events that no network shows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from framewire.node.clock import Clock, Timer

__all__ = ["Pipe"]

T = TypeVar("T")


class Pipe(Generic[T]):
    """First in, first out, after a delay; what is due comes out in a later turn of the event loop."""

    def __init__(self, clock: Clock, out: Callable[[T], None]) -> None:
        self._clock = clock
        self._out = out
        self._items: deque[tuple[float, T]] = deque()
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._items)

    @property
    def due(self) -> float | None:
        """When the next thing comes out, on the clock."""
        return self._items[0][0] if self._items else None

    def put(self, item: T, delay: float = 0.0, *, overtaking: int = 0) -> None:
        """Put something in: at the end, or ahead of the last few things, due when they are."""
        place = len(self._items) - overtaking
        if overtaking:
            due = self._items[place][0]
        else:
            due = max(self._clock.time() + delay, self._items[-1][0] if self._items else 0.0)
        self._items.insert(place, (due, item))
        self._schedule()

    def last(self, condition: Callable[[T], bool]) -> int:
        """How many of the last things in the pipe fulfil a condition."""
        count = 0
        for _, item in reversed(self._items):
            if not condition(item):
                break
            count += 1
        return count

    def clear(self) -> list[T]:
        """Everything that is under way, taken out."""
        items = [item for _, item in self._items]
        self._items.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return items

    def _schedule(self) -> None:
        if self._timer is not None or not self._items:
            return
        wait = self._items[0][0] - self._clock.time()
        if wait > 0:
            self._timer = self._clock.call_later(wait, self._pump)
        else:
            self._timer = asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._timer = None
        now = self._clock.time()
        for _ in range(len(self._items)):
            # Whatever comes out may clear the pipe, or put more into it.
            if not self._items or self._items[0][0] > now:
                break
            self._out(self._items.popleft()[1])
        self._schedule()
