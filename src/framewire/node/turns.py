"""Turns for other threads, while the event loop is never idle.

CPython makes whoever has the interpreter hand it over after 5 ms, but only if it was not let go of meanwhile. A
busy event loop lets go of it each time it looks for events, and has it again before any other thread is awake. So
those would wait for half a second and longer: the one that says that the node lives, those that write what is
recorded, handlers that are plain functions, and all threads of the program's own.
"""

from __future__ import annotations

import threading
import time

from framewire.node.clock import LoopClock, Timer

__all__ = ["Turns"]

_OFTEN, _SELDOM = 0.01, 0.05
"""Seconds between the turns that a busy loop gives, and between looks at one that is not busy. With twice as many
turns a busy node handles two messages in a hundred less, with these no fewer that one could measure."""
_TURN = 50e-6
"""Seconds that the loop stands back: another thread has to wake up in them, and then has the interpreter."""
_BUSY = 0.5
"""The part of the time from which on a loop counts as busy; one that shares its core with others has no more."""


class _Given(threading.local):
    at = 0.0


_given = _Given()
"""When the event loop of a thread last gave a turn: one is enough for all nodes that run there."""


class Turns:
    """Has an event loop that is busy stand back for a moment, again and again. All calls come on the loop."""

    def __init__(self) -> None:
        self._timer: Timer | None = None
        self._seen = self._used = 0.0

    def start(self) -> None:
        self._look_after(_SELDOM)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look_after(self, seconds: float) -> None:
        # Real time always: threads wait, whatever a test's clock says.
        self._seen, self._used = time.monotonic(), time.thread_time()
        self._timer = LoopClock.call_later(seconds, self._look)

    def _look(self) -> None:
        now = time.monotonic()
        busy = time.thread_time() - self._used > _BUSY * (now - self._seen)
        if busy and now - _given.at >= _OFTEN:
            _given.at = now
            time.sleep(_TURN)
        self._look_after(_OFTEN if busy else _SELDOM)
