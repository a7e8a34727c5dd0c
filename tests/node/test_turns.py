"""A busy event loop leaves something for other threads."""

import asyncio
import threading
import time
from contextlib import AsyncExitStack
from itertools import pairwise
from types import SimpleNamespace

import pytest
from tests.node.running import run

import framewire as fw


async def keep_busy(seconds):
    """Give the event loop a lot to do at all times; seconds of the processor, so that others do not count."""
    until = time.thread_time() + seconds

    async def work():
        while time.thread_time() < until:  # noqa: ASYNC110 - it is not to wait, but to be busy
            await asyncio.sleep(0)

    await asyncio.gather(*(work() for _ in range(300)))


def test_threads_get_on_beside_an_event_loop_that_is_never_idle():
    steps, ended = [], threading.Event()

    def get_on():
        while not ended.is_set():
            time.sleep(0.001)  # lets go of the interpreter, and wants it back
            steps.append(1)

    async def main():
        async with fw.Node():
            thread = threading.Thread(target=get_on)
            thread.start()
            await keep_busy(0.2)
            steps.clear()
            await keep_busy(1.0)
            ended.set()
            thread.join()

    run(main())
    assert len(steps) > 30, "about a hundred a second are given; without that there are none, or a few"


@pytest.fixture
def given(monkeypatch):
    """When turns were given."""
    moments = []
    times = {"monotonic": time.monotonic, "thread_time": time.thread_time}
    fake = SimpleNamespace(**times, sleep=lambda _: moments.append(time.monotonic()))
    monkeypatch.setattr("framewire.node.turns.time", fake)
    return moments


def test_an_event_loop_gives_the_same_turns_however_many_nodes_it_runs(given):
    async def main():
        async with AsyncExitStack() as stack:
            for _ in range(10):
                await stack.enter_async_context(fw.Node(signals=False))
            await keep_busy(0.5)

    run(main())
    gaps = [later - earlier for earlier, later in pairwise(given)]
    assert gaps
    assert min(gaps) > 0.009


def test_an_event_loop_that_is_mostly_idle_gives_no_turns(given):
    async def main():
        async with fw.Node():
            await asyncio.sleep(0.3)
            given.clear()  # starting took all of the time
            await asyncio.sleep(0.3)

    run(main())
    assert given == []
