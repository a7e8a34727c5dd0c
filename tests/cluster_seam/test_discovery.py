"""Messages that nobody is known to handle: held, asked for, and given up in words that help."""

import asyncio

import pytest
from tests.cluster_seam.messages import Answer, Answerer, Question, answerers
from tests.node.running import run

import framewire as fw
from framewire.routing import Route
from framewire.testing import Cluster, ManualClock


def test_a_handler_that_appears_within_the_grace_gets_what_was_held():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, route_grace=1.0) as cluster:
            promise = cluster[0].hub.start(Question(4), Answer, timeout=10)
            await clock.advance(0.9)
            assert not promise.done
            await answerers(cluster, 1)
            assert promise.result() == Answer(4, "1")
            await clock.advance(5)
            assert len(cluster[0].dead_letters) == 0

    run(scenario())


def test_a_handler_on_a_node_that_joins_within_the_grace_gets_it_too():
    async def scenario():
        clock = ManualClock()
        async with Cluster(1, clock=clock, route_grace=1.0) as cluster:
            promise = cluster[0].hub.start(Question(4), Answer, timeout=10)
            await cluster.join()
            await answerers(cluster, 1)
            assert promise.result() == Answer(4, "1")

    run(scenario())


def test_a_route_that_was_forgotten_is_asked_for_and_found():
    async def scenario():
        async with Cluster(3, route_grace=10) as cluster:
            await answerers(cluster, 2)
            cluster[0].port.peer_lost(b"node-2")
            assert (await cluster[0].hub.ask(Question(4), Answer, timeout=5)) == Answer(4, "2")

    run(scenario())


def test_an_actor_whose_place_was_forgotten_is_asked_for_and_found():
    async def scenario():
        async with Cluster(2, route_grace=10) as cluster:
            await answerers(cluster, 1)
            address = cluster[1].port.registrations[-1][0]
            cluster[0].port.peer_lost(b"node-1")
            answer = await cluster[0].hub.ask(Question(4), Answer, to_actor=address.receiver, timeout=5)
            assert answer == Answer(4, "1")

    run(scenario())


def test_no_route_tells_how_many_were_asked_for_how_long_and_what_is_known():
    async def scenario():
        clock = ManualClock()
        async with Cluster(3, clock=clock, route_grace=1.5) as cluster:

            @fw.message("seam.question", version=2, partition="eu")
            class Question2(bytes):
                pass

            await answerers(cluster, 1)
            promise = cluster[0].hub.start(Question2(), Answer, timeout=10)
            await clock.advance(2)
            with pytest.raises(fw.NoRoute) as caught:
                promise.result()
            error = caught.value
            assert error.detail == "nobody handles it; asked 2 nodes for 1.5 s. Known: seam.question v1"
            assert str(error).startswith("seam.question v2 [eu]: nobody handles it")
            assert error.node == b"node-0"
            assert cluster[0].dead_letters.counts == {fw.Reason.NO_ROUTE: 1}

    run(scenario())


def test_no_route_to_a_node_that_is_not_known():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock) as cluster:
            promise = cluster[0].hub.start(Question(), Answer, to_node=b"node-9", timeout=10)
            await clock.advance(2)
            with pytest.raises(fw.NoRoute, match=r"node node-9 is not known; asked 1 node for 1\.0 s"):
                promise.result()

    run(scenario())


def test_no_route_to_an_actor_that_does_not_handle_the_message():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock) as cluster:
            introspection = next(route for route, messages in cluster[1].port.registrations if messages)
            address = Route(introspection.receiver, b"node-1")
            promise = cluster[0].hub.start(Question(), Answer, to_actor=address, timeout=10)
            await clock.advance(2)
            with pytest.raises(fw.NoRoute, match="does not handle it") as caught:
                promise.result()
            assert caught.value.node == b"node-1"

    run(scenario())


def test_only_so_many_messages_are_held():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, hold=3) as cluster:
            promises = [cluster[0].hub.start(Question(n), Answer, timeout=10) for n in range(5)]
            assert [promise.done for promise in promises] == [False, False, False, True, True]
            with pytest.raises(fw.NoRoute, match="nobody was asked, for 3 messages are held already"):
                promises[-1].result()
            await answerers(cluster, 1)
            assert [promise.result().number for promise in promises[:3]] == [0, 1, 2]
            # There is room again for others.
            held = cluster[0].hub.start(fw.NodeInfo(), Answer, to_node=b"node-9", timeout=10)
            assert not held.done

    run(scenario())


def test_without_a_grace_nothing_is_held():
    async def scenario():
        async with Cluster(2, route_grace=0) as cluster:
            with pytest.raises(fw.NoRoute) as caught:
                await cluster[0].hub.ask(Question(), Answer)
            assert caught.value.detail == "nobody handles it"

    run(scenario())


def test_what_is_held_when_its_node_stops_is_told_so():
    async def scenario():
        async with Cluster(2, route_grace=60) as cluster:
            promise = cluster[0].hub.start(Question(), Answer, timeout=60)
            await cluster.leave(0)
            with pytest.raises(fw.NodeStopped):
                await promise

    run(scenario())


def test_an_actor_that_is_unhosted_is_forgotten_everywhere_even_by_those_who_join_meanwhile():
    async def scenario():
        async with Cluster(2, route_grace=0) as cluster:
            await answerers(cluster, 1)
            address = cluster[1].port.registrations[-1][0]
            await cluster[1].unhost(address)
            await cluster.join()
            await cluster.settled()
            for asking in (cluster[0], cluster[2]):
                with pytest.raises(fw.NoRoute):
                    await asking.hub.ask(Question(), Answer)

    run(scenario())


@fw.message("seam.unknown")
class Unknown(bytes):
    """What nobody ever handled."""


def test_what_the_only_handler_left_behind_is_held_for_it_for_ten_seconds():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock) as cluster:
            await answerers(cluster, 1)
            leaving = asyncio.create_task(cluster.leave(1))
            await clock.advance(0.1)
            await leaving
            promises = [cluster[0].hub.start(Question(number), Answer, timeout=60) for number in range(3)]
            unknown = cluster[0].hub.start(Unknown(), Answer, timeout=60)
            await clock.advance(5)
            assert not any(promise.done for promise in promises)
            with pytest.raises(fw.NoRoute, match=r"for 1\.0 s"):
                unknown.result()
            await cluster.join()
            await answerers(cluster, 2)
            assert [(await promise).number for promise in promises] == [0, 1, 2]

    run(scenario())


def test_a_node_that_stops_waits_for_a_handler_that_is_being_restarted():
    async def scenario():
        async with Cluster(2) as cluster:
            address = await cluster[1].host(Answerer("before"))
            await cluster.settled()
            assert await cluster[0].hub.ask(Question(1), Answer) == Answer(1, "before")
            await cluster[1].unhost(address)
            await cluster.settled()
            promise = cluster[0].hub.start(Question(2), Answer)
            stopping = asyncio.create_task(cluster[0].stop())
            await cluster.settled(handlers=False)
            assert not promise.done
            await cluster[1].host(Answerer("after"))
            await stopping
            assert promise.result() == Answer(2, "after")
            assert cluster[0].dead_letters.counts == {}

    run(scenario())
