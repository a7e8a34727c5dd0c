"""``hub.send``: done when the node that handles the message has it, here or elsewhere."""

import asyncio

import pytest
from tests.cluster_seam.messages import Question, answerers
from tests.node.running import run

import framewire as fw
from framewire.testing import Cluster, Faults, ManualClock


@pytest.mark.parametrize("where", [0, 1], ids=["local", "remote"])
def test_a_receipt_does_not_wait_for_the_handler(where):
    async def scenario():
        async with Cluster(2) as cluster:
            release, done = asyncio.Event(), asyncio.Event()

            @cluster[where].handler(Question)
            async def slow(_: Question) -> None:
                await release.wait()
                done.set()

            await cluster.settled()
            await cluster[0].hub.send(Question(), timeout=10)
            assert not done.is_set()
            release.set()
            await cluster.settled()
            assert done.is_set()
            assert len(cluster[0].dead_letters) == 0

    run(scenario())


@pytest.mark.parametrize("where", [0, 1], ids=["local", "remote"])
def test_a_failure_after_the_receipt_is_no_answer(where):
    async def scenario():
        async with Cluster(2) as cluster:

            @cluster[where].handler(Question)
            async def broken(_: Question) -> None:
                raise ValueError("after all")

            await cluster.settled()
            await cluster[0].hub.send(Question(), timeout=10)
            await cluster.settled()
            assert cluster[0].dead_letters.counts[fw.Reason.DUPLICATE_REPLY] == 0
            assert cluster[0].dead_letters.counts[fw.Reason.UNKNOWN_REPLY] == 0

    run(scenario())


def test_no_receipt_without_a_handler():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock) as cluster:
            sending = asyncio.create_task(cluster[0].hub.send(Question(), timeout=10))
            await clock.advance(2)
            with pytest.raises(fw.NoRoute):
                await sending

    run(scenario())


def test_a_receipt_that_is_lost_is_an_expired_send():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock) as cluster:
            [answerer] = await answerers(cluster, 1)
            cluster.disturb(Faults(drop=1.0), sender=1)
            sending = asyncio.create_task(cluster[0].hub.send(Question(), timeout=10))
            await clock.advance(11)
            with pytest.raises(fw.Expired):
                await sending
            assert len(answerer.messages) == 1

    run(scenario())


def test_a_receipt_waits_for_room_in_the_mailbox():
    async def scenario():
        async with Cluster(2) as cluster:
            started, release = asyncio.Event(), asyncio.Event()

            async def slow(_: Question) -> None:
                started.set()
                await release.wait()

            cluster[1].handler(Question, mailbox=1)(slow)
            await cluster.settled()
            await cluster[0].hub.send(Question(1), timeout=10)
            async with asyncio.timeout(5):
                await started.wait()
            await cluster[0].hub.send(Question(2), timeout=10)
            third = asyncio.create_task(cluster[0].hub.send(Question(3), timeout=10))
            await cluster.settled(handlers=False)
            assert not third.done()
            release.set()
            await third

    run(scenario())
