"""Messages between framewire and kino, in both directions, and the frames of a live .NET cluster replayed."""

import asyncio
import contextlib

import pytest
import zmq
from tests.cluster.clustering import peers
from tests.cluster.interop import DOT_NET, Echo, Host, News, Reply, answer, node_at, recorded, together
from tests.cluster.kino_peer import KinoNode, KinoRendezvous, living
from tests.cluster.kino_wire import EXCEPTION, RECEIPT, Letter, bson_texts
from tests.node.running import eventually, run

import framewire as fw
from framewire.capture import read
from framewire.wire import decode


def test_framewire_asks_kino():
    async def main(node, _, kino):
        assert await node.hub.ask(Echo(b"abc"), Reply) == b"cba"
        assert await node.hub.ask(Echo(b"xyz"), Reply, to_node=kino.identity) == b"zyx"

    together(main)


def test_an_exception_of_kino_comes_back_though_its_document_is_padded():
    async def main(node, *_):
        with pytest.raises(fw.RemoteError, match="kino does not like this") as caught:
            await node.hub.ask(Echo(b"fail"), Reply)
        assert caught.value.type_name == "System.ArgumentException"
        assert caught.value.traceback.strip() == "at Kino"

    together(main)


def test_kino_confirms_what_framewire_sends():
    async def main(node, *_):
        await node.hub.send(Echo(b"abc"))

    together(main)


def test_kino_asks_framewire():
    async def main(node, _, kino):
        reply = await answer(kino, kino.ask(node.identity, b"fw.echo", b"abc", b"fw.reply"))
        assert (reply.identity, reply.body) == (b"fw.reply", b"cba")
        assert (reply.receiver, reply.receiver_node) == (kino.hub, kino.identity)
        assert reply.hops == 1
        assert {identity for _, identity in reply.routes} == {kino.identity, node.identity}

    together(main)


def test_an_exception_of_framewire_reaches_kino_as_bson():
    async def main(node, _, kino):
        reply = await answer(kino, kino.ask(node.identity, b"fw.echo", b"fail", b"fw.reply"))
        assert reply.identity == EXCEPTION
        told = bson_texts(reply.body)
        assert told["Message"] == "framewire does not like this"
        assert told["ExceptionType"].endswith("ValueError")
        assert "framewire does not like this" in told["StackTrace"]

    together(main)


def test_framewire_confirms_what_kino_sends():
    async def main(node, _, kino):
        receipt = await answer(kino, kino.ask(node.identity, b"fw.echo", b"abc", RECEIPT))
        assert (receipt.identity, receipt.body) == (RECEIPT, b"")

    together(main)


def test_broadcasts_reach_both():
    async def main(node, host, kino):
        await node.hub.broadcast(News(b"from framewire"))
        await eventually(lambda: kino.news and host.news)
        assert [(letter.body, letter.hops) for letter in kino.news] == [(b"from framewire", 1)]
        kino.post(node.identity, Letter(b"both.news", b"from kino", distribution=1))
        await eventually(lambda: len(host.news) == 2)
        assert host.news == [b"from framewire", b"from kino"]
        assert len(kino.news) == 1

    together(main)


@pytest.mark.parametrize("asked_first", [False, True])
def test_a_burst_of_kinos_arrives_at_a_node_that_kino_has_spoken_to(asked_first):
    """At first contact it is lost as a whole; the answer to a question of ours is a first contact."""

    async def main(node, host, kino):
        if asked_first:
            await node.hub.ask(Echo(b"abc"), Reply)
        for number in range(5):
            kino.post(node.identity, Letter(b"both.news", b"%d" % number, distribution=1))
        await eventually(lambda: len(host.news) + len(kino.lost) == 5)
        assert host.news == ([b"0", b"1", b"2", b"3", b"4"] if asked_first else [])
        reply = await answer(kino, kino.ask(node.identity, b"fw.echo", b"abc", b"fw.reply"))
        assert reply.body == b"cba"

    together(main)


# --- what a live .NET node wrote


@fw.message("PY.ECHO")
class PyEcho(bytes):
    pass


@fw.message("PY.ECHO.REPLY")
class PyEchoReply(bytes):
    pass


@fw.message("PY.FAIL")
class PyFail(bytes):
    pass


@fw.message("PY.BCAST")
class PyBroadcast(bytes):
    pass


@contextlib.contextmanager
def dot_net(context):
    """The sockets of the recorded node, and its frames with the addresses that these have now."""
    front, back, health = context.socket(zmq.ROUTER), context.socket(zmq.DEALER), context.socket(zmq.PUB)
    front.setsockopt(zmq.ROUTING_ID, DOT_NET)
    places = {}
    for socket, was in ((front, b"tcp://127.0.0.1:15101"), (health, b"tcp://127.0.0.1:15201")):
        now = b""
        while len(now) != len(was):
            socket.bind("tcp://127.0.0.1:*")
            now = socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0")
        places[was] = now

    def moved(frames):
        for was, now in places.items():
            frames = [frame.replace(was, now) for frame in frames]
        return frames

    try:
        yield front, back, moved
    finally:
        for socket in (front, back, health):
            socket.close(0)


def test_what_a_live_dot_net_node_wrote_is_understood():
    async def main():
        server = KinoRendezvous()
        with zmq.Context() as context, dot_net(context) as (front, back, moved):
            async with living(server), node_at(server, identity="00000000-0000-0000-0000-000000001111") as node:
                broadcast = []

                @node.handler(PyEcho)
                async def echo(body):
                    return PyEchoReply(body[::-1])

                @node.handler(PyFail)
                async def fail(_):
                    raise ValueError("as recorded")

                @node.handler(PyBroadcast)
                async def take(body):
                    broadcast.append(bytes(body))

                def registered():
                    for frames in recorded("rendezvous PUB", "KINO.REGEXTROUTE"):
                        server.tell(moved(frames))
                    return DOT_NET in peers(node)

                await eventually(registered)
                assert list(node._router.table.all(fw.MessageId(b"NET.ECHO")))
                back.connect(node._transport.uri)
                for identity in ("PY.ECHO", "PY.FAIL", "PY.BCAST"):
                    [frames] = recorded(".NET back", identity)
                    back.send_multipart(moved(frames)[1:])
                await eventually(lambda: broadcast == [b"\x01"])
                await eventually(lambda: front.poll(0))
                replies = {}

                def both():
                    while front.poll(0):
                        letter = Letter.read(front.recv_multipart())
                        replies[letter.identity] = letter
                    return len(replies) == 2

                await eventually(both)
                echoed, failed = replies[b"PY.ECHO.REPLY"], replies[EXCEPTION]
                assert (echoed.body, echoed.callback_key) == (b"\x03\x02\x01", 2)
                assert echoed.receiver == b"\x00d5d75f2f-7b76-4375-b4dc-8d21e0b9f81c"
                assert echoed.receiver_node == DOT_NET
                assert bson_texts(failed.body)["Message"] == "as recorded"
                [frames] = recorded("rendezvous PUB", "KINO.UNREGNODE")
                server.tell(moved(frames))
                await eventually(lambda: DOT_NET not in peers(node))

    run(main())


def test_an_exception_that_a_live_dot_net_node_wrote_is_understood():
    [frames] = recorded(".NET back", "KINO.EXCEPTION")

    async def main():
        server = KinoRendezvous()
        async with living(server), node_at(server) as node:
            with zmq.Context() as context, dot_net(context) as (front, back, moved):

                def registered():
                    for registration in recorded("rendezvous PUB", "KINO.REGEXTROUTE"):
                        server.tell(moved(registration))
                    return DOT_NET in peers(node)

                await eventually(registered)
                asking = asyncio.create_task(node.hub.ask(Echo(b"x"), Reply, to_node=DOT_NET))
                await eventually(lambda: front.poll(0))
                asked = Letter.read(front.recv_multipart())
                said = Letter.read(moved(frames))
                said.receiver, said.receiver_node = asked.callback_receiver, asked.callback_node
                said.callback_key, said.callback_receiver = asked.callback_key, asked.callback_receiver
                said.callback_node, said.correlation = asked.callback_node, asked.correlation
                back.connect(node._transport.uri)
                back.send_multipart(said.frames()[1:])
                with pytest.raises(fw.RemoteError) as caught:
                    await asking
        assert caught.value.detail
        assert caught.value.type_name.startswith("System.")

    run(main())


def test_what_kino_traces_is_recorded_whole_with_its_flow(tmp_path):
    async def main():
        server = KinoRendezvous()
        kino = KinoNode(server.unicast, server.broadcast, {})
        recorder = fw.Capture(tmp_path, sample=0.0, bodies="drop")
        async with living(server, kino), node_at(server, capture=recorder) as node:
            await node.host(Host())
            kino.register()

            def known():
                kino.ask_for_routes()
                return kino.table.actors(node.identity, b"fw.echo")

            await eventually(known)
            for trace in (0, 1):
                await answer(kino, kino.ask(node.identity, b"fw.echo", b"abc%d" % trace, b"fw.reply", trace=trace))

    run(main())
    rows = read(tmp_path).to_pylist()
    bodies = {(row["direction"], decode(row["frames"]).body) for row in rows if row["direction"] != "trace"}
    assert bodies == {("received", b"abc1"), ("delivered", b"abc1"), ("sent", b"1cba")}
    steps = [decode(row["frames"]).body_frames[0] for row in rows if row["direction"] == "trace"]
    assert steps == [b"received", b"routed", b"replied", b"routed", b"handled"]
