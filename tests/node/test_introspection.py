"""What a node says about itself."""

import asyncio

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.node.core import Counters
from framewire.node.introspection import Rates


class Busy(fw.Actor):
    def __init__(self):
        self.go = asyncio.Event()

    @fw.handles(Job)
    async def job(self, job):
        await self.go.wait()
        if job.number == 1:
            raise ValueError("one")
        return Done(job.number)

    @fw.handles(Question, inline=True)
    def question(self, question):
        return Answer(question.text)


async def busy_node(node):
    busy = Busy()
    await node.host(busy, mailbox=5, overflow="reject")
    promises = [node.hub.start(Job(number), Done, timeout=20) for number in range(4)]
    await eventually(lambda: node.stats().actors[-1].busy)
    return busy, promises


def test_stats_have_the_queue_depths():
    async def main():
        async with fw.Node() as node:
            busy, promises = await busy_node(node)
            [stats] = [actor for actor in node.stats().actors if actor.name == "Busy"]
            assert (stats.queued, stats.busy, stats.waiting, stats.limit, stats.overflow) == (3, 1, 0, 5, "reject")
            busy.go.set()
            await asyncio.gather(*promises, return_exceptions=True)

    run(main())


def test_stats_have_the_open_promises_with_age_and_target_the_oldest_first():
    async def main():
        async with fw.Node() as node:
            busy, promises = await busy_node(node)
            other = await node.new_hub()
            promises.append(other.start(Job(9), Done, to_node=node.identity, correlation_id=b"mine"))
            pending = node.stats().pending
            assert len(pending) == node.stats().totals["pending"] == 5
            assert pending[0].target == "any handler"
            assert pending[-1].target == f"node {node.identity.decode()}"
            assert pending[-1].flow == "mine"
            assert pending[0].message == "test.job v1"
            ages = [each.age for each in pending]
            assert ages == sorted(ages, reverse=True)
            assert ages[-1] >= 0
            assert len(node.stats(pending=2).pending) == 2
            assert node.stats(pending=0).pending == node.stats(pending=-1).pending == []
            busy.go.set()
            await asyncio.gather(*promises, return_exceptions=True)

    run(main())


def test_stats_have_count_errors_and_time_per_handler():
    async def main():
        async with fw.Node() as node:
            busy, promises = await busy_node(node)
            busy.go.set()
            await asyncio.gather(*promises, return_exceptions=True)
            await node.hub.ask(Question(), Answer)
            handlers = {each.message: each for each in node.stats().actors[-1].handlers}
            job = handlers["test.job v1"]
            assert (job.name, job.handled, job.failed) == ("Busy.job", 4, 1)
            assert job.seconds >= job.longest > 0
            assert handlers["test.question v1"].handled == 1

    run(main())


def test_stats_have_totals_and_dead_letters_by_reason():
    async def main():
        async with fw.Node(identity="me") as node:
            await node.hub.tell(Done())
            await node.hub.tell(Done())
            stats = node.stats()
            assert stats.node == "me"
            assert stats.dead_letters == {"no_route": 2}
            assert stats.totals["sent"] == 2
            assert stats.uptime >= 0
            assert stats.peers == []

    run(main())


def test_rates_are_per_second_over_the_last_ten():
    class Clock:
        now = 0.0

        def time(self):
            return self.now

        def call_later(self, delay, callback):
            self.due = (self.now + delay, callback)

    clock, counters = Clock(), Counters()
    rates = Rates(clock, counters)
    rates.start()
    for second in range(1, 31):
        counters.handled += 100 if second <= 20 else 7
        clock.now, callback = clock.due
        callback()
    assert rates.per_second()["handled"] == pytest.approx(7)
    assert rates.per_second()["sent"] == 0


def test_rates_are_zero_at_first():
    async def main():
        async with fw.Node() as node:
            assert set(node.stats().rates) == {"sent", "handled", "failed", "received", "forwarded", "replies"}
        assert set(fw.Node().stats().rates.values()) == {0.0}

    run(main())


def test_a_node_tells_the_same_by_message():
    async def main():
        async with fw.Node(identity="me") as node:
            busy, promises = await busy_node(node)
            told = await node.hub.ask(fw.NodeInfo(), fw.NodeStats)
            asked = [actor for actor in told.actors if actor.name == "Busy"]
            assert asked == [actor for actor in node.stats().actors if actor.name == "Busy"]
            assert told.node == "me"
            # The question itself is an open promise while it is answered.
            assert [each.message for each in told.pending] == ["test.job v1"] * 4 + ["FRAMEWIRE.NODEINFO v1"]
            few = await node.hub.ask(fw.NodeInfo(pending=1), fw.NodeStats)
            assert len(few.pending) == 1
            busy.go.set()
            await asyncio.gather(*promises, return_exceptions=True)

    run(main())


def test_what_a_node_tells_survives_the_wire():
    async def main():
        async with fw.Node() as node:
            busy, promises = await busy_node(node)
            stats = node.stats()
            declared = fw.NodeStats.__framewire_message__
            assert declared.decode(declared.encode(stats)) == stats
            busy.go.set()
            await asyncio.gather(*promises, return_exceptions=True)

    run(main())
