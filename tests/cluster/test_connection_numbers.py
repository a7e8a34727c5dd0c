"""Connections are numbered by libzmq: nobody can guess the next number, and nobody is told one."""

import contextlib
import itertools
import struct
import subprocess
import sys

import msgspec
import pytest
from fuzz import zmtp
from fuzz.forging import question
from tests.cluster.clustering import Named, handled_by, make_node, uri_of
from tests.cluster.strangers import MODES, Cluster, attacked, intruder
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster.connections import ConnectionNames
from framewire.wire import Message

AT_ONCE = 128


def unseeded(count):
    """What C's rand() gives where nobody has seeded it, by the algorithm of the GNU C library."""
    state = [1]
    for at in range(1, 31):
        state.append(16_807 * state[at - 1] % 2_147_483_647)
    state += state[:3]
    for at in range(34, 344 + count):
        state.append((state[at - 3] + state[at - 31]) % 2**32)
    return [value >> 1 for value in state[344:]]


def guesses():
    """A thousand numbers that a ROUTER socket would give next: 64 seeds, and 16 connections after each."""
    for low, high in _pairs():
        for connections in range(16):
            yield b"\0" + struct.pack(">I", (low + (high << 31) + connections) % 2**32)


def _pairs():
    drawn = unseeded(128)
    return zip(drawn[::2], drawn[1::2], strict=True)


def test_the_guesses_are_those_that_would_hit_a_socket_that_is_not_seeded():
    assert next(guesses()) == b"\0\x6b\x8b\x45\x67"
    assert sum(1 for _ in guesses()) == 1024


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["node", "server"])
def test_a_thousand_guesses_at_the_next_connections_number_do_nothing(kind, mode, tmp_path):
    cluster = Cluster(mode, tmp_path)
    with attacked(kind, cluster) as target:
        names, guessed = guesses(), 0
        while claimed := list(itertools.islice(names, AT_ONCE)):
            with contextlib.ExitStack() as held:
                for name in [*claimed, *[None] * 16]:  # first the claims, then connections that need a number
                    refused = contextlib.suppress(ConnectionError) if mode == "curve" else contextlib.nullcontext()
                    with refused:
                        held.enter_context(zmtp.connect(target.uri, identity=name))
                    guessed += name is not None
                assert target.is_alive, "a guess has hit"
        assert guessed == 1024

        async def main():
            link = {"peers": [target.uri]} if kind == "node" else {"rendezvous": [target.uri]}
            async with fw.Node(signals=False, heartbeat=0.2, **link, **cluster.node_options) as node:
                if kind == "node":
                    await handled_by(1, node)
                    assert (await node.hub.ask(Question(), Answer)).text == "attacked"
                else:
                    (way,) = node._transport._ways._servers.values()
                    heard = way.patience.seen
                    await eventually(lambda: way.patience.seen > heard)

        run(main())
        assert target.is_alive


FORKS = """
import os, zmq
from framewire.cluster.sockets import make_socket

def first_number():
    with zmq.Context() as context:
        router, dealer = make_socket(context, zmq.ROUTER), make_socket(context, zmq.DEALER)
        port = router.bind_to_random_port("tcp://127.0.0.1")
        dealer.connect(f"tcp://127.0.0.1:{port}")
        dealer.send(b"which?")
        os.write(1, router.recv().hex().encode() + b"\\n")
        router.close(0)
        dealer.close(0)

first_number()
first_number()
for _ in range(3):
    child = os.fork()
    if not child:
        first_number()
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_each_socket_begins_at_another_number_and_so_does_that_of_a_forked_process():
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=True)
    assert len(set(done.stdout.split())) == 5, done.stdout


# --- and nobody is told


def asked_by(connection):
    """A question that says nothing about who asks: all that the node knows is the connection."""
    connection.send(
        question(
            Message(
                b"open.question",
                body_frames=(b"\x81\xa4text\xa0",),
                hops=1,
            )
        )
    )


@fw.message("open.question")
class OpenQuestion(msgspec.Struct):
    """Of no domain."""

    text: str = ""


class Source(fw.Actor):
    def __init__(self):
        self.sources = []

    @fw.handles(OpenQuestion)
    async def note(self, _, ctx: fw.Context):
        self.sources.append(ctx.source)


@pytest.mark.parametrize("mode", MODES)
def test_a_handler_is_told_a_name_of_each_connection_and_not_its_number(mode, tmp_path):
    cluster = Cluster(mode, tmp_path)

    async def main():
        async with make_node(**cluster.node_options) as node:
            there = Source()
            await node.host(there)
            numbers = _numbers(node)
            with intruder(mode, uri_of(node), None) as one, intruder(mode, uri_of(node), None) as two:
                if mode == "curve":
                    return
                for connection, count in ((one, 1), (two, 2), (one, 3)):
                    asked_by(connection)
                    await eventually(lambda count=count: len(there.sources) == count)
            first, second, third = there.sources
            assert first == third != second
            assert len(numbers) == 2
            assert not numbers & set(there.sources)

    run(main())


def _numbers(node):
    """The numbers that a node's socket gives, as they come in."""
    seen, take = set(), node._transport._front._take

    def noted(frames):
        seen.add(frames[0])
        take(frames)

    node._transport._front._take = noted
    return seen


@pytest.mark.parametrize("mode", MODES)
def test_what_is_refused_is_told_by_names_that_say_nothing_about_numbers(mode, tmp_path):
    cluster = Cluster(mode, tmp_path)

    async def main():
        async with (
            make_node(max_frames=64, **cluster.node_options) as node,
            make_node(peers=[uri_of(node)], **cluster.node_options) as asker,
        ):
            await node.host(Named("home"))
            numbers = _numbers(node)
            with intruder(mode, uri_of(node), None) as stranger:
                if stranger is not None:
                    stranger.send([b"", b"", *[b"junk"] * 20])
                    stranger.send([b"x"] * 100)
                    await eventually(lambda: node.dead_letters.counts.total() == 2)
            await handled_by(1, asker)
            assert (await asker.hub.ask(Question(), Answer)).text == "home"
            told = node.stats().refused
            if mode == "curve":
                assert not told
                return
            assert list(told.values()) == [{"malformed": 1, "oversized": 1}], "it is still one connection"
            letters = [frame for letter in node.dead_letters for frame in letter.frames]
            assert numbers
            for number in numbers:
                assert number not in letters
                assert not any(number.hex()[2:] in name for name in told)

    run(main())


def test_a_name_cannot_be_chosen_that_another_connection_has():
    names = ConnectionNames()
    theirs = names.name(b"\0\1\2\3\4")
    assert theirs == names.name(b"\0\1\2\3\4")
    assert names.name(theirs) != theirs
    assert names.name(b"stranger") == b"stranger"
    assert names.routing_id(theirs) == b"\0\1\2\3\4"
    assert ConnectionNames().name(b"\0\1\2\3\4") != theirs


def test_so_many_connections_are_remembered(monkeypatch):
    monkeypatch.setattr("framewire.cluster.connections._MAX_CONNECTIONS", 2)
    names = ConnectionNames()
    first, second, third = (names.name(b"\0%d" % number) for number in range(3))
    assert (names.routing_id(first), names.routing_id(second), names.routing_id(third)) == (
        None,
        b"\x001",
        b"\x002",
    )
    assert names.name(b"\x000") == first, "it keeps its name"
