"""Signals that end a node: whoever entered it is cancelled, once, and leaves it in good order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from typing import Any

__all__ = ["Interruptions"]

log = logging.getLogger("framewire.node")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interruptions:
    """What signals do to the task that entered a node: nothing where they are somebody else's."""

    def __init__(self, *, heeded: bool) -> None:
        self._heeded = heeded
        self._entered: asyncio.Task[Any] | None = None
        self._interrupted = False

    def begin(self) -> None:
        """Let signals cancel this task."""
        self._entered = asyncio.current_task()
        for number in self._catchable():
            with _where_loops_can():
                asyncio.get_running_loop().add_signal_handler(number, self._interrupt, number)

    def end(self) -> bool:
        """Let go of the signals; whether one came, so that the cancellation is ours and not to be passed on."""
        for number in self._catchable():
            with _where_loops_can():
                asyncio.get_running_loop().remove_signal_handler(number)
        if self._interrupted and self._entered is not None:
            self._entered.uncancel()
        return self._interrupted

    def _catchable(self) -> tuple[signal.Signals, ...]:
        """Only the main thread hears signals."""
        return _SIGNALS if self._heeded and threading.current_thread() is threading.main_thread() else ()

    def _interrupt(self, number: int) -> None:
        log.info("stopping on %s", signal.Signals(number).name)
        if self._entered is not None and not self._interrupted:
            self._interrupted = True
            self._entered.cancel()


def _where_loops_can() -> contextlib.suppress:
    """Nothing is to be done where an event loop has no signals: then Ctrl-C ends a program as Python does it.

    That of Windows knows none (``NotImplementedError``); in a subinterpreter none has them (``RuntimeError``).
    """
    return contextlib.suppress(NotImplementedError, RuntimeError)
