"""How long a message is good for."""

import asyncio
import threading

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, run
from tests.node.transports import Recording

import framewire as fw


class Blocked(fw.Actor):
    def __init__(self):
        self.go = asyncio.Event()
        self.handled = []

    @fw.handles(Job)
    async def job(self, job, ctx):
        self.handled.append((job.number, ctx.remaining))
        await self.go.wait()
        return Done(job.number)


def test_the_time_of_a_message_is_the_timeout_by_default():
    async def main():
        async with fw.Node(timeout=7) as node:
            blocked = Blocked()
            blocked.go.set()
            await node.host(blocked)
            await node.hub.ask(Job(1), Done)
            await node.hub.ask(Job(2), Done, timeout=3)
            (_, first), (_, second) = blocked.handled
            assert 0 < second <= 3 < first <= 7

    run(main())


def test_ttl_can_be_set_apart_from_the_timeout():
    async def main():
        async with fw.Node() as node:
            blocked = Blocked()
            blocked.go.set()
            await node.host(blocked)
            await node.hub.ask(Job(1), Done, timeout=10, ttl=2)
            await node.hub.send(Job(2), ttl=2)
            await node.hub.tell(Job(3), ttl=2)
            await node.hub.broadcast(Job(4), ttl=2)
            await eventually(lambda: len(blocked.handled) == 4)
            assert all(0 < remaining <= 2 for _, remaining in blocked.handled)

    run(main())


def test_a_message_whose_time_is_over_is_not_handled_and_the_caller_is_told():
    async def main():
        async with fw.Node() as node:
            blocked = Blocked()
            await node.host(blocked)
            first = node.hub.start(Job(1), Done, timeout=10)
            late = node.hub.start(Job(2), Done, timeout=10, ttl=0.01)
            await eventually(lambda: node._core.now() > late.parcel.deadline)
            blocked.go.set()
            with pytest.raises(fw.Expired, match=r"reached Blocked .* too late") as raised:
                await late
            assert raised.value.elapsed < 10
            assert await first == Done(1)
            assert [number for number, _ in blocked.handled] == [1]
            assert node.dead_letters.counts == {fw.Reason.EXPIRED: 1}

    run(main())


def test_an_inline_handler_is_not_run_either():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def slow(_, ctx):
                await eventually(lambda: ctx.remaining == 0)
                return Job(1)

            @node.handler(Job, inline=True)
            def never(_):
                pytest.fail("its time was over")

            with pytest.raises(fw.Expired, match=r"which came of it: reached .* too late"):
                await node.hub.ask(Question(), Done, timeout=10, ttl=0.01)

    run(main())


def test_a_message_that_waits_for_a_thread_too_long_is_not_handled():
    async def main():
        go = threading.Event()
        handled = []
        async with fw.Node(threads=1) as node:

            @node.handler(Job, concurrency=2)
            def block(job):
                handled.append(job.number)
                go.wait(10)
                return Done(job.number)

            first = node.hub.start(Job(1), Done, timeout=10)
            late = node.hub.start(Job(2), Done, timeout=10, ttl=0.01)
            await eventually(lambda: node._core.now() > late.parcel.deadline)
            go.set()
            with pytest.raises(fw.Expired):
                await late
            assert await first == Done(1)
            assert handled == [1]

    run(main())


def test_what_is_left_of_the_time_is_enforced_when_forwarding():
    async def main():
        async with fw.Node(transport=Recording()) as node:
            node.port.peer_registered(b"there", [(fw.Route(b"\x01far"), (fw.MessageId(b"test.job"),))])

            @node.handler(Question)
            async def slow(_, ctx):
                await eventually(lambda: ctx.remaining == 0)
                return Job(1)

            with pytest.raises(fw.Expired, match="before it left this node"):
                await node.hub.ask(Question(), Done, timeout=10, ttl=0.01)
            assert node._transport.diary == ["started"]
            assert node.dead_letters.counts == {fw.Reason.EXPIRED: 1}

    run(main())


def test_a_message_without_a_limit_never_expires():
    async def main():
        async with fw.Node() as node:
            seen = []

            @node.handler(Question)
            async def look(_, ctx):
                seen.append((ctx.remaining, ctx.message.ttl_ticks))
                return Answer()

            await node.hub.tell(Question())
            await eventually(lambda: seen)
            assert seen == [(None, 0)]

    run(main())
