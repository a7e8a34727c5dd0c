"""Handlers whose time is over, or whose caller has given up."""

import asyncio
import threading

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.node.cancelling import Cancel
from framewire.testing import Cluster


class Slow(fw.Actor):
    """Waits for ever, and notes how that ended."""

    def __init__(self):
        self.began, self.ended = 0, []

    @fw.handles(Job)
    async def job(self, _):
        self.began += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise


def test_a_handler_whose_deadline_has_passed_is_cancelled_and_its_worker_goes_on():
    async def main():
        async with fw.Node() as node:
            slow = Slow()
            await node.host(slow)
            with pytest.raises(fw.Expired):
                await node.hub.ask(Job(), Done, timeout=0.05)
            await eventually(lambda: slow.ended == ["cancelled"])
            assert node.dead_letters.counts[fw.Reason.EXPIRED] == 1
            node.hub.start(Job(), Done, timeout=0.05)
            await eventually(lambda: len(slow.ended) == 2)

    run(main())


def test_a_handler_that_is_not_to_be_cancelled_finishes_what_is_late():
    async def main():
        async with fw.Node() as node:
            go, ended = asyncio.Event(), []

            @node.handler(Job, cancel_late=False)
            async def careful(_):
                await go.wait()
                ended.append("finished")

            with pytest.raises(fw.Expired):
                await node.hub.ask(Job(), Done, timeout=0.03)
            await asyncio.sleep(0.1)  # longer than it takes to see that a handler is late
            go.set()
            await eventually(lambda: ended == ["finished"])

    run(main())


def test_a_handler_that_heeds_no_cancellation_is_cancelled_once_and_its_worker_goes_on():
    async def main():
        async with fw.Node() as node:
            cancelled, go = [], asyncio.Event()

            @node.handler(Job)
            async def stubborn(job):
                while not go.is_set():
                    try:
                        await go.wait()
                    except asyncio.CancelledError:
                        cancelled.append(job.number)
                return Done(job.number)

            with pytest.raises(fw.Expired):
                await node.hub.ask(Job(1), Done, timeout=0.03)
            await eventually(lambda: cancelled == [1])
            go.set()
            assert await node.hub.ask(Job(2), Done) == Done(2)
            assert cancelled == [1]

    run(main())


def test_a_handler_in_a_thread_is_told_that_its_time_is_over():
    async def main():
        async with fw.Node() as node:
            told = threading.Event()

            @node.handler(Job)
            def patient(_, ctx):
                assert not ctx.cancelled
                while not ctx.cancelled:
                    told.wait(0.005)
                told.set()

            with pytest.raises(fw.Expired):
                await node.hub.ask(Job(), Done, timeout=0.05)
            await eventually(told.is_set)

    run(main())


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("way", ["promise", "task"])
def test_what_runs_for_a_caller_that_gives_up_is_cancelled_on_all_nodes(nodes, way):
    async def main():
        async with Cluster(nodes) as cluster:
            slow = Slow()
            await cluster[-1].host(slow)
            await cluster.settled()
            hub = cluster[0].hub
            given_up = hub.start(Job(), Done) if way == "promise" else asyncio.create_task(hub.ask(Job(), Done))
            await eventually(lambda: slow.began)
            given_up.cancel()
            await eventually(lambda: slow.ended == ["cancelled"])
            assert cluster[-1].dead_letters.counts == {fw.Reason.CANCELLED: 1}
            await cluster.settled()

    run(main())


@pytest.mark.parametrize("nodes", [1, 2])
def test_what_waits_for_a_caller_that_gives_up_is_dropped(nodes):
    async def main():
        async with Cluster(nodes) as cluster:
            go, handled = asyncio.Event(), []

            @cluster[-1].handler(Job, mailbox=2)
            async def slow(job):
                await go.wait()
                handled.append(job.number)
                return Done(job.number)

            await cluster.settled()
            promises = [cluster[0].hub.start(Job(number), Done) for number in range(5)]
            await eventually(lambda: cluster[-1].stats().actors[-1].waiting == 2)
            for promise in promises[1:]:
                promise.cancel()
            # Two of this node's own were not in the mailbox yet, so nothing has to be recorded of them.
            dropped = 2 if nodes == 1 else 4
            await eventually(lambda: cluster[-1].dead_letters.counts[fw.Reason.CANCELLED] == dropped)
            assert cluster[-1].stats().actors[-1].queued == cluster[-1].stats().actors[-1].waiting == 0
            go.set()
            assert await promises[0] == Done(0)
            assert handled == [0]

    run(main())


def test_giving_up_goes_through_the_asks_of_handlers():
    async def main():
        async with Cluster(3) as cluster:
            slow = Slow()
            await cluster[2].host(slow)

            @cluster[1].handler(Question)
            async def middle(_, ctx):
                return Answer(str(await ctx.ask(Job(), Done)))

            await cluster.settled()
            promise = cluster[0].hub.start(Question(), Answer)
            await eventually(lambda: slow.began)
            promise.cancel()
            await eventually(lambda: slow.ended == ["cancelled"])
            await cluster.settled()
            assert not any(node.stats().totals["pending"] for node in cluster)

    run(main())


def test_what_still_comes_for_a_caller_that_has_given_up_is_dropped():
    async def main():
        async with Cluster(2) as cluster:
            go, handled = asyncio.Event(), []

            @cluster[1].handler(Question)
            async def first(_):
                try:
                    await go.wait()
                except asyncio.CancelledError:
                    return Job(1)  # it does not heed it, and sends the flow on

            @cluster[0].handler(Job)
            async def second(job):
                handled.append(job)

            await cluster.settled()
            promise = cluster[0].hub.start(Question(), Answer)
            await cluster.settled(handlers=False)
            promise.cancel()
            await eventually(lambda: cluster[0].dead_letters.counts[fw.Reason.CANCELLED] == 1)
            assert not handled

    run(main())


def test_an_ask_is_not_cancelled_by_one_who_has_not_seen_its_messages():
    async def main():
        async with Cluster(2) as cluster:
            slow = Slow()
            await cluster[1].host(slow)
            await cluster.settled()
            promise = cluster[0].hub.start(Job(), Done)
            await eventually(lambda: slow.began)
            hub = cluster[0].hub
            guesses = [(hub.identity, promise.key, b"some flow"), (hub.identity, promise.key, b"")]
            await hub.broadcast(Cancel(guesses))
            await cluster.settled(handlers=False)
            assert not slow.ended
            await hub.broadcast(Cancel([(hub.identity, promise.key, promise.parcel.correlation_id)]))
            await eventually(lambda: slow.ended == ["cancelled"])
            promise.cancel()
            await cluster.settled()

    run(main())
