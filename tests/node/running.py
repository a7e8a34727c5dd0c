"""Runs a test's coroutine on a real event loop, and sees to it that nothing is left behind."""

import asyncio
import contextlib
import gc
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T], timeout: float = 20) -> T:
    """Run a coroutine to its end within a deadline; no task, thread, file or forgotten error may remain."""
    before = set(threading.enumerate())
    files = _open_files()
    forgotten: list[dict[str, Any]] = []

    async def deadlined() -> T:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: forgotten.append(context))
        async with asyncio.timeout(timeout):
            result = await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left: {left}"
        return result

    result = asyncio.run(deadlined())
    gc.collect()
    assert not forgotten, f"errors that nobody took: {forgotten}"
    assert not framewire_threads() - before, f"threads left: {framewire_threads() - before}"
    assert _open_files() <= files, "files or sockets left open"
    return result


async def eventually(condition: Callable[[], object], seconds: float = 10) -> None:
    """Wait until something is true, looking often: for what no event tells of."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.002)


def until(condition: Callable[[], object], timeout: float = 20) -> None:
    """The same where no event loop runs."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


def framewire_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("framewire")}


def _open_files() -> set[tuple[str, str]]:
    """The open descriptors and what they stand for, that of the listing itself apart."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add((entry.name, str(entry.readlink())))
    return found
