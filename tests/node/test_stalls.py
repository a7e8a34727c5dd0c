"""A handler that blocks the event loop is told."""

import asyncio
import threading
import time

import pytest
from tests.node.messages import Answer, Question
from tests.node.running import run

import framewire as fw


class Blocker(fw.Actor):
    def __init__(self, seen):
        self.seen = seen

    @fw.handles(Question)
    async def block(self, _):
        wait_without_mercy(self.seen)
        return Answer()

    @fw.handles(Answer, inline=True)
    def block_inline(self, _):
        wait_without_mercy(self.seen)
        return Question()


def wait_without_mercy(seen):
    """Block until the watcher has noticed."""
    assert seen.wait(20)


@pytest.mark.parametrize(
    ("payload", "name"),
    [(Question(), "Blocker.block"), (Answer(), "Blocker.block_inline")],
    ids=["async", "inline"],
)
def test_a_blocked_loop_is_reported_with_the_handlers_name_and_stack(payload, name, caplog):
    async def main():
        seen = threading.Event()
        stalls = []
        node = fw.Node(stall_after=0.05)

        @node.on_stall
        def record(stall):
            stalls.append(stall)
            seen.set()

        async with node:
            await node.host(Blocker(seen))
            await node.hub.ask(payload, Question if isinstance(payload, Answer) else Answer)
            assert node.stats().stalls >= 1
        assert stalls[0].handler.endswith(name)
        assert stalls[0].seconds > 0.05
        assert "wait_without_mercy" in stalls[0].stack

    run(main())
    assert f"in {name}" in caplog.text


def test_what_blocks_outside_of_handlers_is_reported_without_a_name():
    async def main():
        seen = threading.Event()
        stalls = []
        node = fw.Node(stall_after=0.05)

        @node.on_stall
        def record(stall):
            stalls.append(stall)
            seen.set()

        async with node:
            wait_without_mercy(seen)
        assert stalls[0].handler == ""
        assert "wait_without_mercy" in stalls[0].stack

    run(main())


def test_one_stall_is_reported_once():
    async def main():
        async with fw.Node(stall_after=0.15) as node:
            before = node.stats().stalls
            time.sleep(0.8)  # noqa: ASYNC251 - the loop is to stand still for many times the threshold
            assert node.stats().stalls == before + 1

    run(main())


def test_a_loop_that_turns_is_not_reported():
    async def main():
        async with fw.Node(stall_after=5) as node:
            await asyncio.sleep(0.05)
            assert node.stats().stalls == 0

    run(main())


def test_a_hook_that_fails_does_not_end_the_watch():
    async def main():
        node = fw.Node(stall_after=0.03)
        calls = threading.Semaphore(0)

        @node.on_stall
        def fail(_):
            calls.release()
            raise ValueError("hook")

        async with node:
            for _ in range(2):
                assert calls.acquire(timeout=20)
                await asyncio.sleep(0.02)

    run(main())


def test_a_node_that_is_not_watched_says_so():
    async def main():
        node = fw.Node(stall_after=None)
        with pytest.raises(fw.UsageError, match="nothing is watched"):
            node.on_stall(print)
        async with node:
            assert node.stats().stalls == 0

    run(main())
