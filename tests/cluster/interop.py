"""A framewire node and a kino node in one cluster, and what a live .NET cluster wrote."""

from tests.cluster.clustering import HEARTBEAT, peers
from tests.cluster.kino_peer import KinoNode, KinoRendezvous, living
from tests.node.running import eventually, run
from tests.wire.vectors import load

import framewire as fw


@fw.message("kino.echo")
class Echo(bytes):
    pass


@fw.message("kino.reply")
class Reply(bytes):
    pass


@fw.message("fw.echo")
class OurEcho(bytes):
    pass


@fw.message("fw.reply")
class OurReply(bytes):
    pass


@fw.message("both.news")
class News(bytes):
    pass


class Host(fw.Actor):
    def __init__(self):
        self.news = []

    @fw.handles(OurEcho)
    async def echo(self, echo):
        if echo == b"fail":
            raise ValueError("framewire does not like this")
        return OurReply(echo[::-1])

    @fw.handles(News)
    async def take(self, news):
        self.news.append(bytes(news))


def node_at(server, **options):
    servers = [(server.unicast, server.broadcast)]
    return fw.Node(rendezvous=servers, heartbeat=HEARTBEAT, misses=10, signals=False, timeout=10.0, **options)


def together(main):
    """Run a test with a framewire node and a kino node at a kino rendezvous, when they know each other."""
    news = []

    def echo(letter):
        if letter.body == b"fail":
            raise ValueError("kino does not like this")
        return b"kino.reply", letter.body[::-1]

    async def with_peers():
        server = KinoRendezvous()
        kino = KinoNode(
            server.unicast,
            server.broadcast,
            {b"kino.echo": echo, b"both.news": news.append},
        )
        async with living(server, kino), node_at(server) as node:
            host = Host()
            await node.host(host)

            def known():
                kino.ask_for_routes()
                return kino.identity in peers(node) and b"fw.echo" in kino.table.handled_by(node.identity)

            kino.register()
            await eventually(known)
            kino.news = news
            await main(node, host, kino)

    run(with_peers())


async def answer(kino, key):
    await eventually(lambda: key in kino.answers)
    return kino.answers[key]


DOT_NET = b"00c7184d-4d88-400f-9691-9c1084666c8d"
RECORDED = load("live_capture_null_security")


def recorded(channel, identity):
    return [case["frames"] for case in RECORDED if channel in case["channel"] and case["identity"] == identity]
