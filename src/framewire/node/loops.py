"""The event loop that framewire runs on where it is free to choose: uvloop's where that is installed.

A library must not choose for a program that makes its own loop, so nothing here is done on import, and
``asyncio.run`` works as well: a node runs on any loop that can watch descriptors.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from framewire.errors import UsageError
from framewire.node.signals import SignalHandlers

__all__ = ["new_event_loop", "run"]

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop of uvloop's, or of asyncio's where uvloop is not installed."""
    try:
        import uvloop  # noqa: PLC0415 - optional, and only whoever needs a loop waits for it
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T], *, debug: bool | None = None) -> T:
    """Run a coroutine to its end, like ``asyncio.run``, on the fastest loop that is installed.

    SIGTERM and SIGINT stop its nodes in good order: the tasks that have entered nodes are cancelled, and go on
    after the outermost ``async with``. Where no node is entered, the coroutine itself is cancelled, and the
    program ends with ``KeyboardInterrupt`` or with the status 143. A second signal ends it at once.
    """
    if not asyncio.iscoroutine(main):
        raise UsageError(f"main: {main!r} is not a coroutine; call the async function: fw.run(main())")
    ended_by: int | None = None

    async def with_signals() -> T:
        nonlocal ended_by
        handlers = SignalHandlers(asyncio.current_task())
        handlers.install()
        try:
            return await main
        finally:
            ended_by = handlers.ended_by
            handlers.uninstall()

    with asyncio.Runner(debug=debug, loop_factory=new_event_loop) as runner:
        try:
            return runner.run(with_signals())
        except asyncio.CancelledError:
            if ended_by is None:
                raise
    if ended_by == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + ended_by)
