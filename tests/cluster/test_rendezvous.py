"""Rendezvous servers: alone, in company, away and back."""

import contextlib

import pytest
import zmq
from tests.cluster.clustering import Named, acquainted, handled_by, handlers, make_node, peers, rendezvous, served
from tests.cluster.interop import node_at
from tests.cluster.kino_peer import KinoRendezvous, living
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run, until

import framewire as fw
from framewire.cluster import rendezvous as servers
from framewire.cluster import service
from framewire.wire import decode, encode


def test_two_servers_that_are_partners_join_their_nodes(tmp_path):
    async def main():
        here, there = (f"ipc://{tmp_path}/{name}" for name in ("here", "there"))
        with rendezvous(here, partners=[there]) as left, rendezvous(there, partners=[here]) as right:
            async with make_node(left) as one, make_node(right) as two:
                await two.host(Named("two"))
                await handled_by(1, one)
                assert (await one.hub.ask(Question(), Answer)).text == "two"

    run(main())


def hear(listener, identity):
    """The next message of this identity that a server broadcasts."""
    while True:
        assert listener.poll(10_000)
        message = decode(listener.recv_multipart())
        if message.identity == identity:
            return service.parse(message)


def test_a_server_that_has_found_a_partner_calls_its_nodes(tmp_path):
    here, there = (f"ipc://{tmp_path}/{name}" for name in ("here", "there"))
    with (
        rendezvous(here, partners=[there]) as server,
        zmq.Context() as context,
        context.socket(zmq.SUB) as listener,
        context.socket(zmq.PUB) as partner,
    ):
        listener.setsockopt(zmq.SUBSCRIBE, b"")
        listener.connect(server.broadcast)
        hear(listener, b"KINO.HEARTBEAT")
        partner.bind(f"{there}.2")
        assert hear(listener, b"KINO.REQCLUSTROUTES").requestor_node_identity == b""


def test_a_node_that_is_called_by_a_server_introduces_itself_anew():
    async def main(server):
        async with make_node(server) as node:
            said = []
            node._transport._announcer._say_to_all = lambda frames: said.append(decode(frames).message_id)
            call = service.service_message(
                service.REQUEST_CLUSTER_ROUTES, requestor_uri="", requestor_node_identity=b""
            )
            node._transport._discovery.hear(encode(call))
            assert said == [service.REGISTER_EXTERNAL_ROUTE, service.REQUEST_CLUSTER_ROUTES]

    run(served(main))


def test_a_node_that_knows_several_servers_works_with_any_of_them():
    async def main():
        with rendezvous() as lasting, rendezvous() as passing:
            one, two = make_node([passing, lasting]), make_node([lasting, passing])
            async with one, two:
                await acquainted(one, two)
                passing.stop()
                route = await two.host(Named("two"))
                await handled_by(1, one)
                await two.unhost(route)
                await handled_by(0, one)

    run(main())


def test_what_changed_while_no_server_was_there_is_known_when_one_is_back():
    async def main():
        with rendezvous() as server:
            one, two = make_node(server), make_node(server)
            await one.start()
            await two.start()
            await acquainted(one, two)
            route = await two.host(Named("going"))
            await handled_by(1, one)
        await two.unhost(route)
        await two.host(Named("coming"))
        await two.host(Named("coming too"))
        assert handlers(one) == 1
        with rendezvous(server.uri):
            await handled_by(2, one)
            assert (await one.hub.ask(Question(), Answer)).text.startswith("coming")
            await one.stop()
            await two.stop()

    run(main())


def test_known_peers_go_on_working_without_a_server():
    async def main():
        with rendezvous() as server:
            one, two = make_node(server), make_node(server)
            await one.start()
            await two.start()
            await two.host(Named("two"))
            await handled_by(1, one)
        assert (await one.hub.ask(Question(), Answer)).text == "two"
        await one.stop()
        await two.stop()

    run(main())


def test_a_server_may_speak_at_another_port():
    async def main(server):
        told = [(server.uri, server.broadcast)]
        async with (
            fw.Node(rendezvous=told, signals=False) as one,
            fw.Node(rendezvous=told, signals=False) as two,
        ):
            await acquainted(one, two)

    run(served(main, broadcast="tcp://127.0.0.1:*"))


def test_a_node_goes_where_the_servers_have_gone():
    async def main(new):
        old = KinoRendezvous()
        moved = service.body("RendezvousNode", unicast_uri=new.uri, broadcast_uri=new.broadcast)
        news = encode(service.service_message(service.RENDEZVOUS_RECONFIGURED, servers=[moved]))
        async with living(old), node_at(old) as one, make_node(new) as two:

            def told():
                old.tell(news)
                return two.identity in peers(one) and one.identity in peers(two)

            await eventually(told)

    run(served(main))


def test_a_ping_to_a_server_is_answered_with_a_pong_to_all():
    with rendezvous() as server, zmq.Context() as context:
        speaker, listener = context.socket(zmq.DEALER), context.socket(zmq.SUB)
        listener.setsockopt(zmq.SUBSCRIBE, b"")
        listener.connect(server.broadcast)
        speaker.connect(server.uri)
        with speaker, listener:
            assert listener.poll(10_000), "a server has its own heartbeat"
            speaker.send_multipart(encode(service.service_message(service.PING)))
            heard = set()
            while service.PONG not in heard:
                assert listener.poll(10_000)
                heard.add(decode(listener.recv_multipart()).message_id)
    assert heard == {service.HEARTBEAT, service.PONG}


@contextlib.contextmanager
def in_talk():
    """A server, a socket that hears it, and one that speaks to it."""
    with (
        rendezvous() as server,
        zmq.Context() as context,
        context.socket(zmq.SUB) as listener,
        context.socket(zmq.DEALER) as speaker,
    ):
        listener.setsockopt(zmq.SUBSCRIBE, b"")
        listener.connect(server.broadcast)
        speaker.connect(server.uri)
        hear(listener, b"KINO.HEARTBEAT")
        yield server, listener, speaker


@pytest.mark.parametrize("large", [[b"x" * 6000], [b"x" * 3000] * 2], ids=["in one frame", "in all"])
def test_a_message_that_is_too_large_for_a_server_is_dropped_alone_and_counted(monkeypatch, large):
    monkeypatch.setattr(servers, "_LARGEST", 4096)
    with in_talk() as (server, listener, speaker):
        speaker.send_multipart(large)
        speaker.send_multipart(encode(service.service_message(service.UNREGISTER_NODE, uri="", node_identity=b"x")))
        hear(listener, service.UNREGISTER_NODE.identity)
        until(lambda: server.dropped == 1)


def test_a_server_repeats_only_what_nodes_say():
    with in_talk() as (server, listener, speaker):
        place = service.body("RendezvousNode", unicast_uri="tcp://evil:1", broadcast_uri="tcp://evil:2")
        refused = [
            encode(service.service_message(service.RENDEZVOUS_RECONFIGURED, servers=[place])),
            encode(service.service_message(service.RENDEZVOUS_NOT_LEADER, leader=place)),
            encode(service.service_message(service.HEARTBEAT)),
            encode(fw.Message(b"anything")),
            [b"", b"junk"],
            [b""],
        ]
        for frames in refused:
            speaker.send_multipart(frames)
        speaker.send_multipart(encode(service.service_message(service.UNREGISTER_NODE, uri="", node_identity=b"x")))
        heard = []
        while service.UNREGISTER_NODE.identity not in heard:
            assert listener.poll(10_000)
            heard.append(decode(listener.recv_multipart()).identity)
        assert set(heard) <= {service.HEARTBEAT.identity, service.UNREGISTER_NODE.identity}
        assert server.dropped == len(refused)
