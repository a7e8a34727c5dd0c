"""The event loop that framewire runs on where it is free to choose: uvloop's where that is installed.

A library must not choose for a program that makes its own loop, so nothing here is done on import, and
``asyncio.run`` works as well: a node runs on any loop that can watch descriptors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from framewire.errors import UsageError

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
    """Run a coroutine to its end, like ``asyncio.run``, on the fastest loop that is installed."""
    if not asyncio.iscoroutine(main):
        raise UsageError(f"main: {main!r} is not a coroutine; call the async function: fw.run(main())")
    with asyncio.Runner(debug=debug, loop_factory=new_event_loop) as runner:
        return runner.run(main)
