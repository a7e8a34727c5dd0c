"""SIGTERM and SIGINT for programs that leave them to framewire: they stop nodes in good order.

A library must not take the signals of the program that it is part of: uvicorn, gunicorn, Celery and Jupyter have
their own handlers. So only ``fw.run`` and ``Node(signals=True)`` take them; a node that is entered anywhere else
leaves them alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from framewire.node.forks import mark_when_forked

__all__ = ["NodeSignals", "SignalHandlers"]

log = logging.getLogger("framewire.node")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_current: ContextVar[SignalHandlers | None] = ContextVar("framewire_signals", default=None)
"""The handlers of the program that runs now, if framewire has installed them."""


class SignalHandlers:
    """The handlers of one event loop.

    The first signal cancels each task that has entered nodes; the outermost of them ends the cancellation when it
    is left. Where no task has, the main task is cancelled and ``ended_by`` tells the signal. The next signal does
    what it would do without framewire, so that a program that does not end can be ended.
    """

    def __init__(self, main: asyncio.Task[Any] | None = None) -> None:
        self._main = main
        self._depths: Counter[asyncio.Task[Any]] = Counter()
        """How many nodes each task has entered."""
        self._cancelled: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._previous: dict[signal.Signals, Any] = {}
        self._signalled = False
        self.ended_by: int | None = None

    def install(self) -> None:
        """Handle signals on the running event loop, where it can: only the main thread receives them."""
        self._loop = asyncio.get_running_loop()
        _current.set(self)
        if threading.current_thread() is threading.main_thread():
            mark_when_forked(self)
            for number in _SIGNALS:
                previous = signal.getsignal(number)
                with _if_supported():
                    self._loop.add_signal_handler(number, self._received, number)
                    self._previous[number] = previous

    def uninstall(self) -> None:
        """Restore the handlers that there were before. Calling it twice is fine."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        for number, previous in self._previous.items():
            # A program that has set a handler of its own meanwhile keeps none: the event loop ends with this.
            with _if_supported():
                loop.remove_signal_handler(number)
            if previous is not None:  # a handler that was not set from Python cannot be restored
                signal.signal(number, previous)
        self._previous.clear()

    def forked(self) -> None:
        """Take nothing from a forked child: its signals would be told to the event loop of the parent instead.

        The two share the pipe through which the interpreter wakes the event loop.
        """
        if self._previous:
            signal.set_wakeup_fd(-1)
        for number, previous in self._previous.items():
            # What asyncio itself does with an interrupt is about the parent's task.
            usual = (
                signal.default_int_handler if number == signal.SIGINT and previous != signal.SIG_IGN else previous
            )
            signal.signal(number, signal.SIG_DFL if usual is None else usual)
        self._previous.clear()
        self._loop = None

    @property
    def installed(self) -> bool:
        """Whether signals of the running event loop come here."""
        return self._loop is not None and self._loop is asyncio.get_running_loop()

    def enter(self, task: asyncio.Task[Any]) -> None:
        """Let signals cancel a task, which has entered a node."""
        if not self._depths:
            self._signalled = False
        self._depths[task] += 1

    def leave(self, task: asyncio.Task[Any]) -> bool:
        """Forget one node of a task; return whether a signal is why it is left, and it was the last."""
        self._depths[task] -= 1
        if self._depths[task]:
            return False
        del self._depths[task]
        if task not in self._cancelled:
            return False
        self._cancelled.discard(task)
        task.uncancel()
        return True

    def _received(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._signalled:
            log.warning("%s again: ending at once", name)
            self.uninstall()
            if number == signal.SIGINT:
                raise KeyboardInterrupt  # asyncio's own handler would only cancel the main task once more
            signal.raise_signal(number)
            return
        log.info("stopping on %s", name)
        self._signalled = True
        if self._depths:
            self._cancelled.update(self._depths)
            for task in self._depths:
                task.cancel()
        elif self._main is not None:
            self.ended_by = number
            self._main.cancel()


class NodeSignals:
    """What signals do to the task that has entered one node. ``taken`` None: only what ``fw.run`` has installed."""

    def __init__(self, *, taken: bool | None) -> None:
        self._taken = taken
        self._handlers: SignalHandlers | None = None
        self._task: asyncio.Task[Any] | None = None
        self._own = False

    def begin(self) -> None:
        """Let signals cancel this task, if they are framewire's to handle."""
        self._task = asyncio.current_task()
        if self._taken is False or self._task is None:
            return
        handlers = _current.get()
        if handlers is None or not handlers.installed:
            if not self._taken:
                return
            handlers, self._own = SignalHandlers(), True
            handlers.install()
        self._handlers = handlers
        handlers.enter(self._task)

    def end(self) -> bool:
        """Let no signal cancel it any more; return whether one did, so that the cancellation ends here."""
        handlers, self._handlers = self._handlers, None
        if handlers is None or self._task is None:
            return False
        interrupted = handlers.leave(self._task)
        if self._own:
            handlers.uninstall()
        return interrupted


@contextlib.contextmanager
def _if_supported() -> Iterator[None]:
    """Ignore that an event loop has no signals: then Ctrl-C ends a program as Python does it.

    That of Windows has none (``NotImplementedError``); in a subinterpreter none has them (``RuntimeError``).
    """
    with contextlib.suppress(NotImplementedError, RuntimeError):
        yield
