"""Messages between nodes over real sockets: every way to send one, over every kind of address."""

import asyncio
import contextlib
import os
import threading
from collections import Counter

import pytest
import zmq
from tests.cluster.clustering import (
    HEARTBEAT,
    Named,
    between,
    free_ports,
    handled_by,
    make_node,
    peers,
    served,
    uri_of,
)
from tests.cluster.node_process import Name, Never, Who
from tests.cluster.processes import Processes
from tests.node.messages import Answer, Job, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.wire import Message, decode, encode


@fw.message("test.large")
class Large(bytes):
    pass


def test_an_ask_is_answered():
    async def main(one, _, actor, __):
        assert (await one.hub.ask(Question("hello"), Answer)).text == "two"
        assert actor.asked == ["hello"]

    between(main)


def test_a_send_returns_when_the_other_node_has_confirmed_it():
    async def main(one, two, actor, _):
        await one.hub.send(Question("hello"))
        assert two.stats().totals["received"] >= 1
        await eventually(lambda: actor.asked == ["hello"])

    between(main)


def test_a_tell_arrives():
    async def main(one, _, actor, __):
        await one.hub.tell(Question("hello"))
        await eventually(lambda: actor.asked == ["hello"])

    between(main)


def test_an_exception_comes_back_with_type_text_and_place():
    async def main(one, two, *_):
        with pytest.raises(fw.RemoteError, match="two does not like this") as caught:
            await one.hub.ask(Question("fail"), Answer)
        assert caught.value.type_name == "ValueError"
        assert "does not like this" in caught.value.traceback
        assert caught.value.node == two.identity

    between(main)


def test_a_large_body_arrives_whole():
    async def main(one, two, *_):
        got = []

        @two.handler(Large)
        async def take(large):
            got.append(large)

        body = os.urandom(5_000_000)
        await one.hub.send(Large(body))
        await eventually(lambda: got)
        assert got == [body]

    between(main)


def test_broadcast_and_gather_reach_every_node_once():
    async def main(server):
        nodes = [make_node(server) for _ in range(3)]
        actors = [Named(str(number)) for number in range(3)]
        async with nodes[0], nodes[1], nodes[2]:
            for node, actor in zip(nodes, actors, strict=True):
                await node.host(actor)
            await handled_by(3, *nodes)
            replies = await nodes[0].hub.gather(Question("all"), Answer, stop_after=3)
            assert sorted(reply.text for reply in replies) == ["0", "1", "2"]
            await nodes[1].hub.broadcast(Question("news"))
            await eventually(lambda: all(actor.asked == ["all", "news"] for actor in actors))

    run(served(main))


def test_every_copy_of_a_broadcast_has_one_hop_and_its_senders_address():
    async def main(server):
        async with make_node(server) as one, make_node(server) as two, make_node(server) as three:
            seen = []
            for node in (two, three):

                @node.handler(Job)
                async def note(_, ctx):
                    seen.append((ctx.message.hops, [hop.identity for hop in ctx.message.routing]))

            await eventually(lambda: len(list(one._router.table.all(fw.MessageId(b"test.job")))) == 2)
            await one.hub.broadcast(Job())
            await eventually(lambda: len(seen) == 2)
            assert seen == [(1, [one.identity])] * 2

    run(served(main))


def test_unicast_takes_turns_over_local_and_remote_handlers():
    async def main(one, *_):
        await one.host(Named("one"))
        texts = [(await one.hub.ask(Question(), Answer)).text for _ in range(20)]
        assert Counter(texts) == {"one": 10, "two": 10}

    between(main)


def test_a_message_can_be_sent_to_one_node_or_one_actor():
    async def main(one, two, _, route):
        await one.host(Named("one"))
        there = fw.Route(route.receiver, two.identity)
        for target in ({"to_node": two.identity}, {"to_actor": there}, {"to_actor": route.receiver}):
            assert {(await one.hub.ask(Question(), Answer, **target)).text for _ in range(4)} == {"two"}
        assert {(await one.hub.ask(Question(), Answer, to_node=one.identity)).text for _ in range(4)} == {"one"}

    between(main)


def test_an_answer_finds_its_way_to_an_asker_that_was_never_heard_of():
    async def main(one, two, *_):
        two._transport._gone(one.identity, "forgotten for the test")
        assert one.identity not in peers(two)
        assert (await one.hub.ask(Question(), Answer, timeout=0.9)).text == "two"

    between(main, route_grace=5.0)


def test_many_asks_at_once_each_get_their_own_answer():
    async def main(one, two, *_):
        @two.handler(Large)
        async def echo(large):
            return Answer(large.decode())

        await eventually(lambda: list(one._router.table.all(fw.MessageId(b"test.large"))))
        replies = await asyncio.gather(*(one.hub.ask(Large(b"%d" % n), Answer) for n in range(2000)))
        assert [reply.text for reply in replies] == [str(n) for n in range(2000)]

    between(main, mailbox=5000)


def test_what_a_sender_tells_a_receiver_keeps_its_order():
    async def main(one, two, *_):
        numbers = []

        @two.handler(Job)
        async def note(job):
            numbers.append(job.number)

        await eventually(lambda: list(one._router.table.all(fw.MessageId(b"test.job"))))
        for number in range(3000):
            await one.hub.tell(Job(number))
        await eventually(lambda: len(numbers) == 3000)
        assert numbers == list(range(3000))

    between(main, mailbox=5000)


def test_a_node_that_stops_in_good_order_delivers_its_last_answers():
    async def main(one, two, *_):
        go = asyncio.Event()

        @two.handler(Job)
        async def slow(_):
            await go.wait()
            return Answer("the last")

        await eventually(lambda: list(one._router.table.all(fw.MessageId(b"test.job"))))
        asking = asyncio.create_task(one.hub.ask(Job(), Answer))
        await eventually(lambda: any(actor.busy for actor in two.stats().actors))
        stopping = asyncio.create_task(two.stop())
        await asyncio.sleep(0)
        go.set()
        await stopping
        assert (await asking).text == "the last"

    between(main)


def test_asks_to_a_node_that_leaves_without_answering_end_as_unreachable():
    async def main(one, two, *_):
        @two.handler(Job)
        async def never(_):
            await asyncio.Event().wait()

        await eventually(lambda: list(one._router.table.all(fw.MessageId(b"test.job"))))
        asking = asyncio.create_task(one.hub.ask(Job(), Answer))
        await eventually(lambda: any(actor.busy for actor in two.stats().actors))
        await two.stop(0)
        with pytest.raises((fw.Unreachable, fw.NodeStopped)):
            await asking

    between(main)


@pytest.mark.parametrize("kind", ["tcp://127.0.0.1:*", "tcp://[::1]:*", "ipc"])
def test_nodes_can_be_reached_over(kind, tmp_path):
    async def main(server):
        binds = [f"ipc://{tmp_path}/{name}" if kind == "ipc" else kind for name in ("one", "two")]
        async with make_node(server, bind=binds[0]) as one, make_node(server, bind=binds[1]) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            assert (await one.hub.ask(Question(), Answer)).text == "two"
            assert uri_of(one).startswith(kind[:3])

    uri = f"ipc://{tmp_path}/server" if kind == "ipc" else kind
    run(served(main, uri=uri))


def test_a_taken_port_of_a_range_is_passed_over_and_a_range_that_is_taken_is_an_error():
    async def main():
        taken, first = free_ports(1)
        with taken:
            span = f"tcp://127.0.0.1:{first}-{first + 1}"
            async with make_node(bind=span) as one:
                assert uri_of(one) == f"tcp://127.0.0.1:{first + 1}"
                with pytest.raises(fw.ConfigError, match=f":{first + 1}: Address already in use"):
                    await make_node(bind=span).start()

    run(main())


def test_a_health_address_that_is_taken_is_an_error_and_leaves_nothing_behind():
    async def main():
        taken, first = free_ports(0)
        with taken, pytest.raises(fw.ConfigError, match="cannot listen at"):
            await make_node(health=f"tcp://127.0.0.1:{first}").start()

    run(main())


def test_others_are_told_the_advertised_addresses():
    async def main(server):
        async with make_node(server) as one:
            told = {"advertise": "tcp://localhost:*", "advertise_health": "tcp://localhost:*"}
            async with make_node(server, **told) as two:
                await two.host(Named("two"))
                await handled_by(1, one)
                uri, health = one._transport._places[two.identity]
                assert uri == uri_of(two)
                assert uri.startswith("tcp://localhost:")
                assert health.startswith("tcp://localhost:")
                assert (await one.hub.ask(Question(), Answer)).text == "two"

    run(served(main))


def test_a_node_that_stops_leaves_no_thread_task_socket_or_file():
    async def main(server):
        threads = set(threading.enumerate())
        async with make_node(server) as one, make_node(server) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            await one.hub.ask(Question(), Answer)
        started = {thread.name for thread in set(threading.enumerate()) - threads}
        assert not [name for name in started if not name.startswith("asyncio")]

    run(served(main))


def test_a_node_that_was_started_anew_under_its_name_is_met_anew():
    async def main(server):
        processes = Processes({"server": server.uri}, heartbeat=HEARTBEAT)
        async with make_node(server, misses=1000) as one:  # so nobody is missed for being silent
            with contextlib.closing(processes):
                await asyncio.to_thread(processes.launch, "first", identity="phoenix")
                await eventually(lambda: b"phoenix" in peers(one))
                asking = asyncio.create_task(one.hub.ask(Never(), Name, to_node=b"phoenix", timeout=60))
                assert (await one.hub.ask(Who(), Name, to_node=b"phoenix")).name == "first"
                processes.kill("first")
            async with make_node(server, identity="phoenix") as second:
                await second.host(Named("reborn"))
                with pytest.raises(fw.Unreachable, match="is gone"):
                    await asking
                await handled_by(1, one)
                assert (await one.hub.ask(Question(), Answer, to_node=b"phoenix")).text == "reborn"
            assert not server.duplicates

    run(served(main))


def test_uvloop_runs_it_too():
    uvloop = pytest.importorskip("uvloop")

    async def main(server):
        async with make_node(server) as one, make_node(server) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            assert (await one.hub.ask(Question(), Answer)).text == "two"

    uvloop.run(served(main))


def test_frames_that_are_no_message_are_dead_letters():
    async def main(one, *_):
        with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
            stranger.connect(uri_of(one))
            for frames in ([b""], [b"x"] * 30, [b"", b"", *[b""] * 16, b"\x05\x00"]):
                stranger.send_multipart(frames)
            await eventually(lambda: one.dead_letters.counts["malformed"] == 3)

    between(main)


def test_what_waits_for_a_node_that_was_forgotten_meanwhile_is_told_of():
    async def main(one, *_):
        links = one._transport._links
        links.learn(b"ghost", "tcp://127.0.0.1:1")
        links.send(b"ghost", encode(Message(b"test.question", receiver_node_identity=b"ghost")))
        await eventually(lambda: one.dead_letters.counts == {"unreachable": 1})
        assert not links.queued

    between(main, misses=2)


def test_what_is_left_of_its_time_travels_with_a_message():
    async def main(one, two, *_):
        left = []

        @two.handler(Job)
        async def note(_, ctx):
            left.append(ctx.deadline)

        await eventually(lambda: list(one._router.table.all(fw.MessageId(b"test.job"))))
        frames = []
        send = one._transport._links.send
        one._transport._links.send = lambda peer, sent: (frames.append(decode(sent)), send(peer, sent))[1]
        await one.hub.tell(Job(), ttl=5)
        assert 0 < frames[0].ttl_ticks < 5 * 10**7
        await eventually(lambda: left)

    between(main)
