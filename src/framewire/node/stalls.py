"""Notices when something blocks the event loop, and says what.

The watcher is a thread of its own: it must work exactly when the loop does not.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType, FrameType

from framewire.node.actor import Handler
from framewire.node.clock import LoopClock, Timer

__all__ = ["Stall", "StallWatch"]

log = logging.getLogger("framewire.node")


@dataclass(frozen=True, slots=True)
class Stall:
    """The event loop stood still. ``handler`` is what blocked it, or empty where it was no handler."""

    handler: str
    seconds: float
    stack: str


class StallWatch:
    """Watches one event loop from a thread; ``start`` and ``stop`` are called on the loop."""

    def __init__(self, threshold: float, handlers: Callable[[], Iterable[Handler]]) -> None:
        self._threshold = threshold
        self._handlers = handlers
        self._hooks: list[Callable[[Stall], object]] = []
        self._beat = 0.0
        self._timer: Timer | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.stalls = 0
        self.last: Stall | None = None

    def listen(self, hook: Callable[[Stall], object]) -> None:
        """Call a function with every stall; it is called on the watcher's thread, while the loop stands still."""
        self._hooks.append(hook)

    def start(self) -> None:
        self._tick()
        watched = threading.get_ident()
        self._thread = threading.Thread(
            target=self._watch, args=(watched,), name="framewire stall watch", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._stop.set()
        if self._thread is not None:
            self._thread.join(1.0)  # a hook that never returns must not keep the node from stopping

    def _tick(self) -> None:
        # Real time always: a loop that stands still does so whatever a test's clock says.
        self._beat = time.monotonic()
        self._timer = LoopClock.call_later(self._threshold / 4, self._tick)

    def _watch(self, watched: int) -> None:
        reported = 0.0
        while not self._stop.wait(self._threshold / 4):
            beat = self._beat
            still = time.monotonic() - beat
            if still > self._threshold and beat != reported:
                reported = beat
                self._report(watched, still)

    def _report(self, watched: int, seconds: float) -> None:
        frame = sys._current_frames().get(watched)  # noqa: SLF001 - the documented way to another thread's stack
        stack = "".join(traceback.format_stack(frame)) if frame else ""
        stall = Stall(_blocking(frame, self._handlers()), seconds, stack)
        self.stalls += 1
        self.last = stall
        what = stall.handler or "something that is not a handler"
        log.warning("the event loop has stood still for %.1f s in %s\n%s", seconds, what, stack)
        for hook in self._hooks:
            try:
                hook(stall)
            except Exception:
                log.exception("a stall hook failed")


def _blocking(frame: FrameType | None, handlers: Iterable[Handler]) -> str:
    """The name of the handler that is on the stack."""
    names = {code: handler.name for handler in handlers if (code := _code(handler)) is not None}
    while frame is not None:
        if frame.f_code in names:
            return names[frame.f_code]
        frame = frame.f_back
    return ""


def _code(handler: Handler) -> CodeType | None:
    return getattr(handler.function, "__code__", None)
