"""The ways to rendezvous servers: silence, and servers that name others."""

import contextlib
import errno

import pytest
import zmq
from tests.cluster.clustering import Named, handled_by, make_node, served
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

from framewire.cluster import server_way, service
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.sockets import make_socket
from framewire.cluster.ways import Ways
from framewire.wire import encode


class Server:
    """The two sockets of a rendezvous server that does only what it is told."""

    def __init__(self, context):
        self.inbox, self.speaker = context.socket(zmq.ROUTER), context.socket(zmq.PUB)
        for bound in (self.inbox, self.speaker):
            bound.bind("tcp://127.0.0.1:*")
        self.place = tuple(
            bound.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0") for bound in (self.inbox, self.speaker)
        )

    def beat(self, interval=0.05):
        span = service.time_span(interval)
        self.speaker.send_multipart(encode(service.service_message(service.HEARTBEAT, interval=span)))

    def tell(self):
        self.speaker.send_multipart(encode(service.service_message(service.PONG)))


@contextlib.asynccontextmanager
async def opened(*, heartbeat=0.05, misses=3):
    """Ways to one server; what is heard, and how often there was a connection."""
    context = zmq.Context()
    server = Server(context)
    heard, connections = [], []
    settings = ClusterSettings(rendezvous=(server.place,), heartbeat=heartbeat, misses=misses)
    ways = Ways(context, settings, hear=heard.append, connected=lambda: connections.append(1))
    try:
        await eventually(lambda: connections)
        yield ways, server, heard, connections
    finally:
        ways.close(0)
        context.destroy(0)


@pytest.mark.parametrize("which", [1, 2])
def test_a_way_that_cannot_be_opened_anew_is_tried_again(monkeypatch, which):
    async def main():
        async with opened() as (_, __, ___, connections):
            made = []

            def none_left(*arguments, **options):
                made.append(1)
                if len(made) % 2 == which % 2:
                    raise zmq.ZMQError(errno.EMFILE)
                return make_socket(*arguments, **options)

            with monkeypatch.context() as patch:
                patch.setattr(server_way, "make_socket", none_left)
                await eventually(lambda: len(made) > 2 * which)
            before = len(connections)
            await eventually(lambda: len(connections) > before)

    run(main())


def test_a_server_that_promised_signs_of_life_and_falls_silent_is_connected_to_anew():
    async def main():
        async with opened(heartbeat=0.05, misses=6) as (ways, server, heard, connections):
            patience = ways._servers[server.place].patience

            def promised():
                server.beat(0.06)
                return patience.seconds == pytest.approx(0.36)

            await eventually(promised)
            before = len(connections)
            await eventually(lambda: len(connections) > before)

            def told():
                server.tell()
                return heard

            await eventually(told)

    run(main())


def test_whatever_a_server_says_is_a_sign_of_life():
    async def main():
        async with opened(heartbeat=60.0) as (ways, server, heard, connections):
            way = ways._servers[server.place]

            def expected():
                server.beat(60)
                return way.patience.seconds == 180

            await eventually(expected)
            way.patience.seen -= 1000

            def told():
                server.tell()
                return heard

            await eventually(told)
            way.check(ways._loop.time(), excused=False)
            assert len(connections) == 1

    run(main())


def test_a_node_that_slept_itself_does_not_blame_its_servers():
    async def main():
        async with opened(heartbeat=60.0) as (ways, server, _, __):
            way = ways._servers[server.place]
            way.patience.seconds, way.patience.seen = 1.0, ways._loop.time() - 1000
            ways._checked -= 1000
            ways._timer.cancel()
            sockets = way._sockets
            ways._check()
            assert way._sockets is sockets
            way.patience.seen = ways._loop.time() - 1000
            ways._timer.cancel()
            ways._check()
            assert way._sockets is not sockets

    run(main())


def test_only_so_many_servers_are_followed_and_those_that_were_configured_stay():
    async def main():
        async with opened() as (ways, server, *_):
            named = [(f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{port + 1}") for port in range(2, 62, 2)]
            for place in named:
                ways.follow(place)
                ways.follow(place)
            assert ways.servers == (server.place, *named[-16:])
            ways.use([server.place])
            assert ways.servers == (server.place,)

    run(main())


def test_a_leader_at_an_address_that_is_none_is_not_followed(caplog):
    async def main():
        async with opened() as (ways, server, *_):
            ways.follow(("nowhere", "tcp://127.0.0.1:1"))
            assert ways.servers == (server.place,)

    run(main())
    assert "cannot be reached at nowhere" in caplog.text


def test_a_server_that_comes_back_after_a_silence_is_told_everything():
    async def main(server):
        async with make_node(server) as one, make_node(server) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            for node in (one, two):
                for way in node._transport._ways._servers.values():
                    way.check(way.patience.seen + 1000, excused=False)
            await two.host(Named("another"))
            await handled_by(2, one)
            assert (await one.hub.ask(Question(), Answer)).text in {"two", "another"}

    run(served(main))
