"""Looking for a single answer for a moment before going to sleep.

A node that has asked one question and has nothing else to do goes to sleep, and so does the processor that it runs
on. Waking the two takes as long as the answer itself where the other node is near, and nearly as much of a
processor's time as looking for it all the while (bench/cluster.py, one by one).

Nothing else on the event loop has its turn meanwhile. So it is done only for a question that is alone, for no
longer than a near answer takes, and ever more seldom where answers take longer.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

__all__ = ["Vigil", "keep_no_vigil", "vigil_at"]

_MOST_SELDOM = 10
"""Of so many questions, as a power of two, at least one is tried."""


class Vigil:
    """Watches a descriptor."""

    def __init__(self, descriptor: int, limit: float, now: Callable[[], float] = time.perf_counter) -> None:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        self._poll = poller.poll
        self._limit = limit
        self._now = now
        self._missed = 0
        self._left_out = 0

    def keep(self) -> None:
        """Return when there is something to read, or the time is over; at once where that hardly ever helped."""
        if self._left_out:
            self._left_out -= 1
            return
        poll, now = self._poll, self._now
        until = now() + self._limit
        while not poll(0):
            if now() >= until:
                self._missed = min(self._missed + 1, _MOST_SELDOM)
                self._left_out = (1 << self._missed) - 1
                return
            _give_way()
        self._missed = 0


def vigil_at(descriptor: int, limit: float) -> Callable[[], None]:
    """What keeps a vigil of so many seconds; nothing does where the other side would need the same processor."""
    if not limit or not hasattr(select, "poll") or _processors() < 2:
        return keep_no_vigil
    return Vigil(descriptor, limit).keep


def keep_no_vigil() -> None:
    """Go to sleep at once."""


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _sleep_not_at_all() -> None:
    time.sleep(0)


_give_way: Callable[[], None] = getattr(os, "sched_yield", _sleep_not_at_all)
