"""Nodes that leave, die or are cut off while others wait for them."""

import asyncio
import math

import pytest
from tests.cluster_seam.messages import Answer, Question, answerers
from tests.node.running import run

import framewire as fw
from framewire.testing import Cluster, Fate, ManualClock


async def stuck_on(cluster, index):
    """A handler on a node that never answers; an event that tells when it was reached."""
    reached = asyncio.Event()

    @cluster[index].handler(Question)
    async def stuck(_: Question) -> None:
        reached.set()
        await asyncio.Event().wait()

    await cluster.settled()
    return reached


def test_asks_that_wait_for_a_dead_node_end_as_soon_as_it_is_missed():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, lost_after=3.0) as cluster:
            await stuck_on(cluster, 1)
            promise = cluster[0].hub.start(Question(), Answer, timeout=3600)
            await cluster.settled(handlers=False)
            await cluster.kill(1)
            await clock.advance(2.9)
            assert not promise.done
            await clock.advance(0.2)
            with pytest.raises(fw.Unreachable, match="node node-1 is gone") as caught:
                promise.result()
            assert caught.value.elapsed == pytest.approx(3.0)
            assert caught.value.last_hop == "node node-1"

    run(scenario())


def test_asks_that_wait_for_other_nodes_go_on():
    async def scenario():
        async with Cluster(3) as cluster:
            release = asyncio.Event()

            @cluster[2].handler(Question)
            async def slow(_: Question) -> Answer:
                await release.wait()
                return Answer(2)

            await cluster.settled()
            promise = cluster[0].hub.start(Question(), Answer, timeout=10)
            await cluster.kill(1)
            await cluster.settled(handlers=False)
            assert not promise.done
            release.set()
            assert (await promise).number == 2

    run(scenario())


def test_a_silent_death_ends_asks_by_their_timeout():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock) as cluster:
            await stuck_on(cluster, 1)
            promise = cluster[0].hub.start(Question(), Answer, timeout=60)
            await cluster.kill(1, lost_after=math.inf)
            await clock.advance(61)
            with pytest.raises(fw.Expired):
                promise.result()

    run(scenario())


def test_a_partition_that_is_noticed_ends_asks_on_both_sides():
    async def scenario():
        async with Cluster(2) as cluster:
            first, second = await stuck_on(cluster, 0), await stuck_on(cluster, 1)
            promises = [
                cluster[0].hub.start(Question(), Answer, to_node=b"node-1", timeout=60),
                cluster[1].hub.start(Question(), Answer, to_node=b"node-0", timeout=60),
            ]
            async with asyncio.timeout(5):
                await asyncio.gather(first.wait(), second.wait())
            cluster.partition([0], [1])
            for promise in promises:
                with pytest.raises(fw.Unreachable):
                    await promise
            await cluster.kill(0)
            await cluster.kill(1)

    run(scenario())


def test_a_node_that_leaves_answers_what_it_has_begun():
    async def scenario():
        async with Cluster(2) as cluster:
            reached, release = asyncio.Event(), asyncio.Event()

            @cluster[1].handler(Question)
            async def slow(question: Question) -> Answer:
                reached.set()
                await release.wait()
                return Answer(question.number)

            await cluster.settled()
            promises = [cluster[0].hub.start(Question(n), Answer, timeout=10) for n in range(3)]
            async with asyncio.timeout(5):
                await reached.wait()
            await cluster.settled(handlers=False)
            leaving = asyncio.create_task(cluster.leave(1))
            release.set()
            await leaving
            assert [(await promise).number for promise in promises] == [0, 1, 2]

    run(scenario())


def test_a_node_that_is_leaving_gets_nothing_new_where_others_can_take_it():
    async def scenario():
        async with Cluster(3) as cluster:
            reached, release = asyncio.Event(), asyncio.Event()
            [answerer] = await answerers(cluster, 2)

            @cluster[1].handler(Question)
            async def slow(_: Question) -> Answer:
                reached.set()
                await release.wait()
                return Answer(by="1")

            await cluster.settled()
            begun = cluster[0].hub.start(Question(), Answer, to_node=b"node-1", timeout=10)
            async with asyncio.timeout(5):
                await reached.wait()
            leaving = asyncio.create_task(cluster.leave(1))
            await asyncio.sleep(0)
            await cluster.settled(handlers=False)
            by = {(await cluster[0].hub.ask(Question(n), Answer, timeout=10)).by for n in range(6)}
            assert by == {"2"}
            release.set()
            await leaving
            assert (await begun).by == "1"
            assert len(answerer.messages) == 6

    run(scenario())


def test_messages_to_a_node_that_has_left_go_to_others():
    async def scenario():
        async with Cluster(3) as cluster:
            await answerers(cluster, 1, 2)
            await cluster.leave(1)
            await cluster.settled()
            by = {(await cluster[0].hub.ask(Question(), Answer, timeout=10)).by for _ in range(4)}
            assert by == {"2"}

    run(scenario())


def test_an_ask_sent_while_the_goodbye_is_under_way_is_unreachable_at_once():
    async def scenario():
        async with Cluster(2) as cluster:
            await answerers(cluster, 1)
            cluster.network.leave(b"node-1")
            with pytest.raises(fw.Unreachable, match="node node-1 is gone"):
                await cluster[0].hub.ask(Question(), Answer, timeout=60)
            assert cluster.journal.counts == {Fate.LOST: 1}

    run(scenario())


def test_after_healing_everybody_is_found_again():
    async def scenario():
        async with Cluster(3, route_grace=0) as cluster:
            await answerers(cluster, 2)
            cluster.partition([0], [1, 2])
            await cluster.settled()
            with pytest.raises(fw.NoRoute):
                await cluster[0].hub.ask(Question(), Answer)
            assert (await cluster[1].hub.ask(Question(), Answer)).by == "2"
            cluster.heal()
            await cluster.settled()
            assert (await cluster[0].hub.ask(Question(), Answer)).by == "2"

    run(scenario())


def test_an_answer_to_a_node_that_is_cut_off_is_a_dead_letter():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock) as cluster:
            reached, release = asyncio.Event(), asyncio.Event()

            @cluster[1].handler(Question)
            async def slow(_: Question) -> Answer:
                reached.set()
                await release.wait()
                return Answer()

            await cluster.settled()
            cluster[0].hub.start(Question(), Answer, timeout=10)
            async with asyncio.timeout(5):
                await reached.wait()
            cluster.partition([0], [1])
            await cluster.settled(handlers=False)
            release.set()
            await clock.advance(5)
            # The answer, and the word that it could not be delivered.
            assert cluster[1].dead_letters.counts == {fw.Reason.NO_ROUTE: 2}

    run(scenario())
