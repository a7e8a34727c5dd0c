"""Links that are full: senders wait, nothing is lost, and nothing waits without a limit."""

import asyncio

import msgspec
import pytest
from tests.cluster_seam.messages import Answer, Question, answerers
from tests.node.running import eventually, run

import framewire as fw
from framewire.routing import Route
from framewire.testing import Cluster, Faults, ManualClock
from framewire.wire import MessageId

QUESTION = MessageId(b"seam.question")


def test_tell_returns_when_there_is_room_on_the_way():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, limit=2) as cluster:
            [answerer] = await answerers(cluster, 1)
            cluster.disturb(Faults(delay=(1.0, 1.0)), sender=0)
            told = [asyncio.create_task(cluster[0].hub.tell(Question(n))) for n in range(5)]
            await clock.advance(0.5)
            assert [task.done() for task in told] == [True, True, False, False, False]
            await clock.advance(1.0)
            assert [task.done() for task in told] == [True] * 4 + [False]
            await clock.advance(5.0)
            assert len(answerer.messages) == 5

    run(scenario())


def test_no_room_in_time_is_overloaded():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, limit=1) as cluster:
            await answerers(cluster, 1)
            cluster.disturb(Faults(delay=(60.0, 60.0)), sender=0)
            await cluster[0].hub.tell(Question())
            telling = asyncio.create_task(cluster[0].hub.tell(Question(), ttl=5.0))
            await clock.advance(6)
            with pytest.raises(fw.Overloaded, match=r"waited 5\.0 s for room"):
                await telling
            assert cluster[0].dead_letters.counts == {fw.Reason.OVERLOADED: 1}
            await clock.advance(60)

    run(scenario())


def test_an_ask_that_times_out_while_it_waits_for_room_is_never_sent():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, limit=1) as cluster:
            [answerer] = await answerers(cluster, 1)
            cluster.disturb(Faults(delay=(10.0, 10.0)), sender=0)
            await cluster[0].hub.tell(Question(1))
            promise = cluster[0].hub.start(Question(2), Answer, ttl=60, timeout=1.0)
            await clock.advance(2)
            with pytest.raises(fw.Expired):
                promise.result()
            await clock.advance(30)
            assert len(answerer.messages) == 1

    run(scenario())


def test_what_is_passed_on_waits_within_limits():
    async def scenario():
        clock = ManualClock()
        async with Cluster(3, clock=clock, limit=2, hold=3) as cluster:
            [answerer] = await answerers(cluster, 2)
            cluster[0].port.peer_lost(b"node-2")
            cluster[0].port.peer_registered(b"node-1", [(Route(b"\x01" + bytes(16)), (QUESTION,))])
            cluster.disturb(Faults(delay=(1.0, 1.0)), sender=1, receiver=2)
            promises = []
            for number in range(10):
                promises.append(cluster[0].hub.start(Question(number), Answer, timeout=60))
                await clock.advance(0)
            # Two are on the link and three wait for it; the others are refused.
            await clock.advance(0.1)
            assert sum(promise.done for promise in promises) == 5
            with pytest.raises(fw.Overloaded, match="3 messages already wait to be passed on") as caught:
                promises[-1].result()
            assert caught.value.node == b"node-1"
            await clock.advance(10)
            assert len(answerer.messages) == 5
            assert [promise.result().number for promise in promises[:5]] == [0, 1, 2, 3, 4]

    run(scenario())


def test_a_thousand_asks_through_a_narrow_link_all_get_their_own_answer():
    async def scenario():
        async with Cluster(2, limit=3) as cluster:
            await answerers(cluster, 1)
            asks = [cluster[0].hub.ask(Question(n), Answer, timeout=20) for n in range(1000)]
            answers = await asyncio.gather(*asks)
            assert [answer.number for answer in answers] == list(range(1000))

    run(scenario(), timeout=30)


def test_a_mailbox_on_another_node_makes_messages_wait_as_one_of_this_node_does():
    async def scenario():
        async with Cluster(2) as cluster:
            started, release = asyncio.Event(), asyncio.Event()

            async def slow(question: Question) -> Answer:
                started.set()
                await release.wait()
                return Answer(question.number)

            cluster[1].handler(Question, mailbox=2, overflow="wait")(slow)
            await cluster.settled()
            promises = [cluster[0].hub.start(Question(0), Answer, timeout=20)]
            async with asyncio.timeout(5):
                await started.wait()
            promises += [cluster[0].hub.start(Question(n), Answer, timeout=20) for n in range(1, 8)]
            # One is handled, two are in the mailbox, and the others wait outside.
            await eventually(lambda: cluster[1].stats().actors[-1].waiting == 5)
            release.set()
            assert [(await promise).number for promise in promises] == list(range(8))

    run(scenario())


def test_a_sender_that_gives_up_at_the_moment_it_is_let_in_does_no_harm():
    async def scenario():
        async with Cluster(1) as cluster:
            started, release, seen = asyncio.Event(), asyncio.Event(), []

            async def slow(question: Question) -> None:
                started.set()
                await release.wait()
                seen.append(question.number)

            cluster[0].handler(Question, mailbox=1)(slow)
            await cluster[0].hub.tell(Question(0))
            async with asyncio.timeout(5):
                await started.wait()
            await cluster[0].hub.tell(Question(1))
            waiting = [asyncio.create_task(cluster[0].hub.tell(Question(n))) for n in (2, 3)]
            await asyncio.sleep(0)
            release.set()
            waiting[0].cancel()
            await asyncio.wait(waiting)
            await cluster.settled()
            assert seen == [0, 1, 3]

    run(scenario())


def test_a_handler_that_waits_for_the_way_to_another_node_goes_on_when_its_actor_is_wanted():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, limit=1) as cluster:
            [answerer] = await answerers(cluster, 1)
            begun, ended = [], []

            @cluster[0].handler(Work)
            async def worker(work: Work, ctx: fw.Context) -> None:
                begun.append(work.number)
                for number in range(3):
                    await ctx.tell(Question(number))
                ended.append(work.number)

            cluster.disturb(Faults(delay=(1.0, 1.0)), sender=0)
            await cluster[0].hub.tell(Work(1))
            await clock.advance(0)
            assert (begun, ended) == ([1], [])  # one message is on the link, so it waits for the way
            await cluster[0].hub.tell(Work(2))
            await clock.advance(0)
            assert (begun[:2], ended[:1]) == ([1, 2], [1])
            await clock.advance(30)
            assert ended == [1, 2]
            assert len(answerer.messages) == 6  # and nothing was lost

    run(scenario())


def test_flows_that_begin_leave_room_on_the_way_for_those_under_way():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, limit=2, max_queued=10) as cluster:
            [answerer] = await answerers(cluster, 1)

            @cluster[0].handler(Work)
            async def worker(work: Work, ctx: fw.Context) -> None:
                await ctx.tell(Question(100 + work.number))

            cluster.disturb(Faults(delay=(4.0, 4.0)), sender=0)
            began = [cluster[0].hub.start(Question(number), Answer, timeout=600) for number in range(10)]
            await clock.advance(0)
            # Two are on the link and half of ten wait for it; the others are refused.
            refused = [promise for promise in began if promise.done]
            assert refused == began[7:]
            for promise in refused:
                with pytest.raises(fw.Overloaded, match="5 messages already wait for node node-1") as caught:
                    promise.result()
                assert caught.value.retry_after > 0
            for number in range(3):
                await cluster[0].hub.tell(Work(number))
            await clock.advance(0)
            assert cluster[0].dead_letters.counts == {fw.Reason.OVERLOADED: 3}
            await clock.advance(600)
            assert len(answerer.messages) == 7 + 3

    run(scenario())


@fw.message("seam.work")
class Work(msgspec.Struct):
    number: int = 0
