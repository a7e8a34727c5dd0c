"""What a node counts of what it sends to whom."""

import asyncio

import msgspec
import pytest
from tests.cluster.clustering import between
from tests.cluster.test_links import PEER, read, ways
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster import service
from framewire.cluster.links import Traffic
from framewire.node.payloads import type_of
from framewire.node.reports import TrafficStats
from framewire.wire import encode
from framewire.wire.message import readable


def test_what_leaves_alone_and_what_leaves_together_is_counted():
    async def main():
        async with ways(send_queue=1000) as opened:
            peer = opened.peer()
            for number in range(200):
                opened.send(b"%d" % number)
            await read(peer, 200)
            assert opened.links.traffic == {PEER: Traffic(200)}

    run(main())


def test_what_waits_is_told_apart_from_what_has_left():
    async def main():
        async with ways() as opened:
            peer = opened.peer()
            count = await opened.fill()
            assert opened.links.traffic == {PEER: Traffic(count - 2, 0, 2)}
            await read(peer, count)
            await eventually(lambda: opened.links.traffic == {PEER: Traffic(count)})

    run(main())


def test_each_peer_has_its_own_count():
    async def main():
        async with ways(send_queue=10) as opened:
            one, other = opened.peer(b"one", "inproc://one"), opened.peer(b"other", "inproc://other")
            opened.send(b"1", b"one")
            for _ in range(3):
                opened.send(b"2", b"other")
            await read(one, 1)
            await read(other, 3)
            assert opened.links.traffic == {b"one": Traffic(1), b"other": Traffic(3)}

    run(main())


def test_what_a_full_queue_refuses_is_counted_as_dropped():
    async def main():
        async with ways(send_overflow="reject") as opened:
            opened.peer()
            count = await opened.fill()
            with pytest.raises(fw.Overloaded):
                opened.send(b"refused")
            assert opened.links.traffic == {PEER: Traffic(count - 2, 1, 2)}

    run(main())


def test_what_is_too_large_to_be_sent_is_counted_as_dropped_and_not_as_sent():
    async def main():
        async with ways(max_message_bytes=1024) as opened:
            peer = opened.peer()
            opened.send(b"small")
            await read(peer, 1)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            with pytest.raises(fw.BadBody):
                opened.send(bytes(2048))
            opened.send(bytes(2048))
            await eventually(lambda: opened.undelivered)
            told = opened.links.traffic[PEER]
            assert (told.sent, told.dropped) == (1, 1)

    run(main())


def test_what_its_sender_gave_up_is_counted_as_dropped():
    async def main():
        async with ways() as opened:
            peer = opened.peer()
            count = await opened.fill()
            opened.send(b"given up").cancel()
            kept = opened.send(b"kept")
            await read(peer, count + 1)
            await kept
            assert opened.links.traffic == {PEER: Traffic(count + 1, 1)}

    run(main())


def test_a_peer_that_is_gone_is_remembered_and_goes_on_counting_when_it_comes_back():
    async def main():
        async with ways(send_queue=10) as opened:
            peer = opened.peer()
            opened.send(b"before")
            await read(peer, 1)
            opened.links.forget(PEER, "it has left")
            opened.links.count_drop(PEER)
            assert opened.links.traffic == {PEER: Traffic(1, 1)}
            peer.close(0)
            again = opened.peer(uri="inproc://again")
            opened.send(b"after")
            await read(again, 1)
            assert opened.links.traffic == {PEER: Traffic(2, 1)}

    run(main())


def test_only_so_many_peers_that_are_gone_are_remembered(tmp_path):
    async def main():
        async with ways() as opened:
            for number in range(1010):
                name = b"peer %d" % number
                opened.links.learn(name, f"ipc://{tmp_path}/nobody")
                opened.send(b"in vain", name)
                opened.links.forget(name, "it has left")
            assert len(opened.links.traffic) == 1000
            assert b"peer 9" not in opened.links.traffic

    run(main())


def test_a_node_tells_what_it_sent_to_whom():
    async def main(one, two, *_):
        name = readable(two.identity)
        before = one.stats().traffic.get(name, TrafficStats(sent=0)).sent
        for number in range(20):
            await one.hub.ask(Question(f"{number}"), Answer)
        told = await one.hub.ask(fw.NodeInfo(), fw.NodeStats, to_node=one.identity)
        assert told.traffic[name] == TrafficStats(sent=before + 20)

    between(main)


def test_a_message_that_dies_on_its_way_to_a_node_is_told_as_dropped_there():
    async def main(one, two, *_):
        answers = await asyncio.gather(
            *(one.hub.ask(Question("x" * size), Answer) for size in (1, 1, 5000)), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [Answer, Answer, fw.BadBody]
        assert one.stats().traffic[readable(two.identity)].dropped == 1

    between(main, max_message_bytes=4096)


def test_what_nodes_tell_of_themselves_is_no_loss_to_one_that_is_gone():
    async def main(one, two, *_):
        await one.hub.ask(Question("are you there?"), Answer)
        question = [two.identity, b"", *encode(service.service_message(service.PING))]
        one._transport._undelivered(question, fw.Unreachable("gone"))
        assert one.stats().traffic[readable(two.identity)].dropped == 0
        assert not one.dead_letters.counts

    between(main)


def test_a_node_that_does_not_count_its_traffic_is_understood():
    kind = type_of(fw.NodeStats)
    told = msgspec.to_builtins(fw.Node().stats())
    del told["traffic"]
    assert kind.decode(msgspec.msgpack.encode(told)).traffic == {}
