"""Which node a message came from, on chains of framewire and kino nodes, which write their entries differently."""

import contextlib

import pytest
import zmq
from tests.cluster.clustering import acquainted, make_node, served, uri_of
from tests.cluster.interop import node_at
from tests.cluster.kino_peer import KinoNode, KinoRendezvous, living
from tests.cluster.kino_wire import Letter
from tests.node.running import eventually, run

import framewire as fw
from framewire.capture import read
from framewire.cluster.senders import Senders
from framewire.wire import Message, RouterAddress, decode, encode


@fw.message("kino.first")
class KinoFirst(bytes):
    pass


@fw.message("kino.second")
class KinoSecond(bytes):
    pass


@fw.message("fw.first")
class OurFirst(bytes):
    pass


@fw.message("fw.second")
class OurSecond(bytes):
    pass


@fw.message("chain.done")
class Done(bytes):
    pass


class First(fw.Actor):
    """Passes on what comes, to the next of a chain."""

    def __init__(self):
        self.sources = []

    @fw.handles(OurFirst)
    async def first(self, body: OurFirst, ctx: fw.Context):
        self.sources.append(ctx.source)
        if body == b"twice":
            return KinoSecond(body)
        return OurSecond(body)


class Second(fw.Actor):
    def __init__(self):
        self.sources = []

    @fw.handles(OurSecond)
    async def second(self, body: OurSecond, ctx: fw.Context):
        self.sources.append(ctx.source)
        if body == b"fail":
            raise ValueError("the end of the chain")
        return Done(body)


def fails_if_told(letter):
    if letter.body == b"fail":
        raise ValueError("kino fails")
    return b"chain.done", letter.body


@contextlib.asynccontextmanager
async def four_nodes(tmp_path):
    """Two framewire nodes that record, and two of kino, all of whom know one another."""
    server = KinoRendezvous()
    places = (server.unicast, server.broadcast)
    kino = KinoNode(*places, {b"kino.first": lambda letter: (b"fw.second", letter.body)})
    other = KinoNode(*places, {b"kino.second": fails_if_told})
    captures = fw.Capture(tmp_path / "one"), fw.Capture(tmp_path / "two")
    nodes = [node_at(server, capture=capture) for capture in captures]
    async with living(server, kino, other), nodes[0] as one, nodes[1] as two:
        first, second = First(), Second()
        await one.host(first)
        await two.host(second)

        def acquainted():
            for peer in (kino, other):
                peer.register()
                peer.ask_for_routes()
            everybody = {one.identity, two.identity, kino.identity, other.identity}
            known = all({*node._router.table.nodes, node.identity} == everybody for node in (one, two))
            return known and all(peer.table.actors(two.identity, b"fw.second") for peer in (kino, other))

        await eventually(acquainted)
        yield one, two, kino, other, first, second


def came_from(path, message):
    """The peers that a node recorded for what came of a message."""
    rows = read(path, directions=["received"]).to_pylist()
    return {row["peer"] for row in rows if decode(row["frames"]).identity == message}


def test_what_kino_passes_on_comes_from_kino(tmp_path):
    """One asks kino, which asks two: the entries are those of the next test, and the sender is not."""

    async def main():
        async with four_nodes(tmp_path) as (one, two, kino, _, _, second):
            steps = []
            two.on_trace(steps.append)
            assert await one.hub.ask(KinoFirst(b"x"), Done, trace=True) == b"x"
            assert second.sources == [kino.identity]
            received = [step.detail for step in steps if step.step == "received"]
            assert received == [f"from node {kino.identity.decode()}"]
            return kino.identity, two.identity

    kino, two = run(main())
    assert came_from(tmp_path / "two", b"fw.second") == {kino}
    assert came_from(tmp_path / "one", b"chain.done") == {two}, "though kino is its first entry"


def test_what_framewire_passes_on_for_kino_comes_from_framewire(tmp_path):
    async def main():
        async with four_nodes(tmp_path) as (one, _, kino, _, first, second):
            key = kino.ask(one.identity, b"fw.first", b"x", b"chain.done")
            await eventually(lambda: key in kino.answers)
            assert (first.sources, second.sources) == ([kino.identity], [one.identity])
            return kino.identity, one.identity

    kino, one = run(main())
    assert came_from(tmp_path / "one", b"fw.first") == {kino}
    assert came_from(tmp_path / "two", b"fw.second") == {one}


def test_the_same_entries_are_told_apart_by_their_connections_however_often_they_come(tmp_path):
    async def main():
        async with four_nodes(tmp_path) as (one, _, kino, _, _, second):
            for count in range(1, 6):
                await one.hub.tell(KinoFirst(b"x"))
                await eventually(lambda count=count: len(second.sources) == 2 * count - 1)
                kino.post(one.identity, Letter(b"fw.first", b"x"))
                await eventually(lambda count=count: len(second.sources) == 2 * count)
            assert second.sources == [kino.identity, one.identity] * 5
            return kino.identity, one.identity

    kino, one = run(main())
    rows = read(tmp_path / "two", directions=["received"]).to_pylist()
    seen = [row["peer"] for row in rows if decode(row["frames"]).identity == b"fw.second"]
    assert seen == [kino, one] * 5


def test_the_sender_is_right_on_a_chain_that_crosses_twice(tmp_path):
    """Kino, one, the other kino, and back."""

    async def main():
        async with four_nodes(tmp_path) as (one, _, kino, other, first, _):
            answered = kino.ask(one.identity, b"fw.first", b"twice", b"chain.done")
            await eventually(lambda: answered in kino.answers)
            routes = [identity for _, identity in kino.answers[answered].routes]
            assert routes == [other.identity, one.identity, kino.identity], "kino writes itself first"
            assert first.sources == [kino.identity]
            assert await one.hub.ask(KinoSecond(b"x"), Done) == b"x"
            return other.identity

    other = run(main())
    assert came_from(tmp_path / "one", b"chain.done") == {other}


def test_an_error_was_last_seen_at_the_node_that_sent_it(tmp_path):
    async def main():
        async with four_nodes(tmp_path) as (one, two, _, other, *_):
            with pytest.raises(fw.RemoteError) as caught:
                await one.hub.ask(KinoFirst(b"fail"), Done)
            assert caught.value.last_hop == two._transport.uri
            assert f"last seen at {two._transport.uri}" in str(caught.value)
            with pytest.raises(fw.RemoteError) as caught:
                await one.hub.ask(KinoSecond(b"fail"), Done)
            assert caught.value.last_hop == other.uri

    run(main())


def test_a_kino_node_is_sent_no_introduction(tmp_path):
    async def main():
        async with four_nodes(tmp_path) as (one, two, kino, other, *_):
            seen = []
            for peer in (kino, other):
                peer._receive = lambda letter, take=peer._receive: (seen.append(letter.identity), take(letter))
            assert await one.hub.ask(KinoFirst(b"x"), Done) == b"x"
            assert await two.hub.ask(KinoSecond(b"x"), Done) == b"x"
            assert sorted(seen) == [b"kino.first", b"kino.second"]

    run(main())


# --- what a node knows of connections

OWN, FIRST, SECOND = (
    RouterAddress(f"tcp://127.0.0.1:{port}", name) for port, name in ((1, b"own"), (2, b"one"), (3, b"two"))
)


def introduction(*routing):
    return encode(Message(b"KINO.PING", routing=routing, hops=1))


def test_the_node_that_introduced_itself_is_the_sender():
    senders = Senders(OWN)
    senders.announced(b"one", introduces=False)
    assert senders.sender(b"connection", (FIRST, SECOND)) == FIRST
    senders.introduced(b"connection", introduction(SECOND))
    assert senders.sender(b"connection", (FIRST, SECOND)) == SECOND
    assert senders.sender(b"another", (FIRST, SECOND)) == FIRST


def test_an_introduction_counts_only_where_the_message_names_that_node_too():
    senders = Senders(OWN)
    senders.introduced(b"connection", introduction(RouterAddress("tcp://127.0.0.1:9", b"member")))
    assert senders.sender(b"connection", (FIRST, SECOND)) == SECOND


@pytest.mark.parametrize("frames", [introduction(), introduction(FIRST, SECOND), [b"", b"", b"junk"]])
def test_what_names_no_node_is_no_introduction(frames):
    senders = Senders(OWN)
    senders.announced(b"one", introduces=False)
    senders.introduced(b"connection", frames)
    assert senders.sender(b"connection", (FIRST, SECOND)) == FIRST


def test_of_nodes_that_nobody_announced_the_last_entry_is_the_sender():
    senders = Senders(OWN)
    assert senders.sender(b"connection", (FIRST, SECOND)) == SECOND
    senders.announced(b"one", introduces=False)
    senders.forget(b"one")
    assert senders.sender(b"connection", (FIRST, SECOND)) == SECOND


def test_connections_that_are_introduced_take_bounded_memory():
    senders = Senders(OWN)
    for number in range(10_001):
        senders.introduced(b"%d" % number, introduction(FIRST))
    assert len(senders._nodes) == 10_000
    assert b"0" not in senders._nodes


def test_a_peer_is_introduced_to_only_if_it_understands():
    senders = Senders(OWN)
    assert senders.introduction(b"one") is None
    senders.announced(b"one", introduces=False)
    assert senders.introduction(b"one") is None
    assert senders.announced(b"one", introduces=True)
    said = decode(senders.introduction(b"one"))
    assert (said.identity, said.routing, said.socket_identity) == (b"KINO.PING", (OWN,), b"one")
    assert not senders.announced(b"one", introduces=True)


# --- and what a stranger gains by it


def test_what_a_stranger_does_in_the_name_of_a_member_counts_against_its_own_connection():
    async def main(server):
        async with make_node(server) as one, make_node(server) as member:
            await acquainted(one, member)
            with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
                stranger.setsockopt(zmq.LINGER, 0)
                stranger.connect(uri_of(one))
                named = RouterAddress(uri_of(member), member.identity)
                stranger.send_multipart(introduction(named)[1:])
                stranger.send_multipart([b"", *[b"junk"] * 20])
                await eventually(lambda: one.dead_letters.counts.total() == 1)
            assert list(one.stats().refused.values()) == [{"malformed": 1}]
            assert not any(member.identity.decode() in name for name in one.stats().refused)

    run(served(main))
