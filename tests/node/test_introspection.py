"""What a node says about itself."""

import asyncio
import os
import time

import msgspec
import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.node.core import Counters
from framewire.node.introspection import Rates
from framewire.node.reports import FlowInfo, FlowSteps, Ping, Pong
from framewire.node.samples import Samples
from framewire.testing import Cluster


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
    rates = Rates(clock, counters, Samples())
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
            counted = {
                "sent",
                "handled",
                "failed",
                "received",
                "forwarded",
                "replies",
                "turned_away",
                "entries_dropped",
            }
        assert set(node.stats().rates) == counted
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


def test_stats_have_the_last_dead_letters_the_newest_first_if_asked_for():
    async def main():
        async with fw.Node() as node:
            for number in range(3):
                await node.hub.tell(Done(number), correlation_id=b"flow-%d" % number)
            assert (await node.hub.ask(fw.NodeInfo(), fw.NodeStats)).letters == []
            told = await node.hub.ask(fw.NodeInfo(letters=2), fw.NodeStats)
            assert [letter.flow for letter in told.letters] == ["flow-2", "flow-1"]
            assert {(letter.reason, letter.message) for letter in told.letters} == {("no_route", "test.done v1")}
            assert told.letters[1].age >= told.letters[0].age >= 0
            assert "nobody handles it" in told.letters[0].detail

    run(main())


def test_stats_say_where_the_node_is():
    async def main():
        async with fw.Node(bind="tcp://127.0.0.1:*", signals=False) as node:
            told = await node.hub.ask(fw.NodeInfo(), fw.NodeStats)
            assert (told.uri, told.pid, told.version) == (node.uri, os.getpid(), fw.__version__)
            assert told.host

    run(main())


def test_stats_say_which_handler_blocked_the_event_loop():
    class Blocks(fw.Actor):
        @fw.handles(Job)
        async def job(self, _):
            time.sleep(0.5)  # noqa: ASYNC251 - this is what is to be noticed
            return Done(1)

    async def main():
        async with fw.Node(stall_after=0.1) as node:
            await node.host(Blocks())
            await node.hub.ask(Job(1), Done)
            told = await node.hub.ask(fw.NodeInfo(), fw.NodeStats)
            (name,) = told.stalled
            assert name.endswith("Blocks.job")
            assert told.stalled[name] == told.stalls == 1

    run(main())


def test_a_node_remembers_the_steps_of_a_traced_flow():
    async def main():
        async with fw.Node() as node:
            busy = Busy()
            busy.go.set()
            await node.host(busy)
            await node.hub.ask(Job(2), Done, trace=True, correlation_id=b"seen")
            await node.hub.ask(Job(2), Done, trace=True, correlation_id=b"other")
            told = await node.hub.ask(FlowInfo(b"seen"), FlowSteps)
            steps = [step.step for step in told.steps]
            assert steps[:2] == ["received", "routed"]
            assert "handled" in steps
            ages = [step.age for step in told.steps]
            assert ages == sorted(ages, reverse=True)
            assert (await node.hub.ask(FlowInfo(b"nobody's"), FlowSteps)).steps == []

    run(main())


def test_a_ping_is_answered_by_the_node_that_is_asked():
    async def main():
        async with fw.Node(identity="me") as node:
            assert await node.hub.ask(Ping(), Pong, to_node=b"me") == Pong("me")

    run(main())


def domain_ring(**identities):
    return fw.KeyRing([fw.DomainKey(domain, os.urandom(32)) for domain in identities], identities)


async def told_to_another(ring):
    """What a node of a cluster tells another, after it has had to do with two domains."""
    async with Cluster(2, keyring=ring, route_grace=0) as cluster:
        one, other = cluster[0], cluster[1]
        busy = Busy()
        await other.host(busy)
        await cluster.settled()
        promises = [other.hub.start(Job(2), Done, trace=True, correlation_id=b"traced")]
        await other.hub.tell(Secret())
        await other.hub.tell(Done())
        await other.hub.tell(Secret(), to_node=one.identity)
        question = fw.NodeInfo(letters=10)
        local = await other.hub.ask(question, fw.NodeStats, to_node=other.identity)
        remote = await one.hub.ask(question, fw.NodeStats, to_node=other.identity)
        steps = await one.hub.ask(FlowInfo(b"traced"), FlowSteps, to_node=other.identity)
        busy.go.set()
        await asyncio.gather(*promises)
        return local, remote, steps


def names(stats):
    handled = {handler.message for actor in stats.actors for handler in actor.handlers}
    waiting = {each.message for each in stats.pending}
    told = handled | waiting | {letter.message for letter in stats.letters} | {way.message for way in stats.ways}
    return {name for name in told if not name.startswith("FRAMEWIRE.")}


@fw.message("secret.thing")
class Secret(msgspec.Struct):
    pass


def test_what_is_of_a_domain_is_not_told_to_whoever_asks_outside_of_one():
    local, remote, steps = run(told_to_another(domain_ring(secret=["secret.*", "test.job"])))
    assert {"secret.thing v1", "test.job v1", "test.question v1", "test.done v1"} <= names(local)
    assert {each.domain for actor in local.actors for each in actor.handlers} == {"", "secret"}
    assert "test.question v1" in names(remote)
    assert "test.done v1" in names(remote)
    assert not {"secret.thing v1", "test.job v1"} & names(remote)
    assert all(not each.domain for actor in remote.actors for each in actor.handlers)
    assert remote.dead_letters == local.dead_letters
    assert steps.steps == []


def test_where_the_questions_are_of_a_domain_those_who_have_its_key_are_told_all():
    ring = domain_ring(secret=["secret.*", "test.job"], operators=["FRAMEWIRE.*"])
    local, remote, steps = run(told_to_another(ring))
    assert names(remote) == names(local)
    assert steps.steps
