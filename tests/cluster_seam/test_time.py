"""Time that travels with a message: less of it at every node, and none of it given back."""

import asyncio

import pytest
from tests.cluster_seam.messages import Answer, Question, answerers
from tests.node.running import run

import framewire as fw
from framewire.routing import Route
from framewire.testing import Cluster, Faults, ManualClock
from framewire.wire import MessageId

QUESTION = MessageId(b"seam.question")


def test_time_spent_in_a_handler_is_gone_at_the_next():
    async def scenario():
        clock = ManualClock()
        async with Cluster(3, clock=clock, faults=Faults(delay=(0.2, 0.2))) as cluster:
            [last] = await answerers(cluster, 2)

            @fw.message("seam.before")
            class Before(bytes):
                pass

            @cluster[1].handler(Before)
            async def first(_: Before) -> Question:
                await cluster[1]._core.sleep(0.4)
                return Question()

            await cluster.settled()
            promise = cluster[0].hub.start(Before(), Answer, ttl=1.0, timeout=10)
            await clock.advance(2)
            assert promise.done
            # Nodes have no common clock, so time on the wire is nobody's to count; that at a node is.
            assert last.remaining == [pytest.approx(0.6, abs=1e-6)]
            assert last.messages[0].ttl_ticks == pytest.approx(6_000_000, abs=10)

    run(scenario())


def test_time_spent_while_held_is_gone_when_passed_on():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, route_grace=5.0) as cluster:
            promise = cluster[0].hub.start(Question(), Answer, ttl=1.0, timeout=10)
            await clock.advance(0.7)
            [answerer] = await answerers(cluster, 1)
            assert promise.done
            assert answerer.remaining == [pytest.approx(0.3, abs=1e-6)]

    run(scenario())


def test_a_node_in_between_passes_on_what_is_left():
    async def scenario():
        clock = ManualClock()
        async with Cluster(3, clock=clock, route_grace=5.0) as cluster:
            cluster.partition([0], [2])
            await cluster.settled()
            cluster[0].port.peer_registered(b"node-1", [(Route(b"\x01" + bytes(16)), (QUESTION,))])
            await cluster[0].hub.tell(Question(), ttl=1.0)
            await clock.advance(0.25)
            [answerer] = await answerers(cluster, 2)
            [message] = answerer.messages
            assert message.hops == 2
            assert answerer.remaining == [pytest.approx(0.75, abs=1e-6)]

    run(scenario())


def test_what_has_no_limit_gets_none_on_the_way():
    async def scenario():
        async with Cluster(2) as cluster:
            [answerer] = await answerers(cluster, 1)
            await cluster[0].hub.tell(Question())
            await cluster.settled()
            assert answerer.remaining == [None]

    run(scenario())


def test_what_is_spent_is_not_passed_on():
    async def scenario():
        clock = ManualClock()
        async with Cluster(3, clock=clock, route_grace=5.0) as cluster:
            cluster.partition([0], [2])
            await cluster.settled()
            cluster[0].port.peer_registered(b"node-1", [(Route(b"\x01" + bytes(16)), (QUESTION,))])
            promise = cluster[0].hub.start(Question(), Answer, ttl=1.0, timeout=10)
            await clock.advance(2)
            assert not promise.done
            [answerer] = await answerers(cluster, 2)
            with pytest.raises(fw.Expired, match="before it left this node") as caught:
                promise.result()
            assert caught.value.node == b"node-1"
            assert answerer.messages == []
            assert cluster[1].dead_letters.counts == {fw.Reason.EXPIRED: 1}

    run(scenario())


def test_an_answer_that_comes_after_the_timeout_is_late():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock) as cluster:
            await answerers(cluster, 1)
            cluster.disturb(Faults(delay=(3.0, 3.0)), sender=1)
            promise = cluster[0].hub.start(Question(), Answer, timeout=2)
            await clock.advance(2.5)
            with pytest.raises(fw.Expired, match=r"no answer in 2\.0 s"):
                promise.result()
            await clock.advance(2)
            assert cluster[0].dead_letters.counts == {fw.Reason.LATE_REPLY: 1}

    run(scenario())


def test_an_ask_within_a_flow_has_no_more_time_than_the_flow():
    async def scenario():
        clock = ManualClock()
        async with Cluster(3, clock=clock) as cluster:
            inner = []

            @fw.message("seam.outer")
            class Outer(bytes):
                pass

            @cluster[1].handler(Outer, cancel_late=False)
            async def outer(_: Outer, ctx: fw.Context) -> Answer:
                return await ctx.ask(Question(), Answer)

            @cluster[2].handler(Question)
            async def never(_: Question, ctx: fw.Context) -> None:
                inner.append(ctx.remaining)
                await asyncio.Event().wait()

            await cluster.settled()
            promise = cluster[0].hub.start(Outer(), Answer, ttl=2.0, timeout=10)
            await clock.advance(2.5)
            assert inner == [pytest.approx(2.0, abs=1e-6)]
            with pytest.raises(fw.RemoteError) as caught:
                promise.result()
            assert caught.value.type_name == "framewire.errors.Expired"
            await cluster.kill(2)

    run(scenario())
