"""Floods, over real sockets: everything is counted, little of it is followed up, and good traffic goes on."""

import contextlib
import logging
import os

import pytest
import zmq
from tests.cluster.clustering import Named, handled_by, make_node, uri_of
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.wire import Message, MessageId, RouterAddress, encode

MANY = 3000
MINE = {"sales": ["test.*"]}


@contextlib.contextmanager
def flooder(node):
    """A socket that is connected to a node, and nothing else."""
    context = zmq.Context()
    made = context.socket(zmq.DEALER)
    try:
        made.connect(uri_of(node))
        yield made
    finally:
        context.destroy(0)


KEY = os.urandom(32)


def ring(secret=KEY):
    return fw.KeyRing([fw.DomainKey("sales", secret)], MINE)


def question(**changes):
    """A question of somebody who wants to be told."""
    asked = Message(
        b"test.question",
        body_frames=(b"\x81\xa4text\xa0",),
        callback_receiver_identity=b"\0hub",
        callback_receiver_node_identity=b"somebody",
        callback_points=(MessageId(b"test.answer"), MessageId(b"KINO.EXCEPTION")),
        callback_key=1,
        routing=(RouterAddress("tcp://127.0.0.1:9", b"somebody"),),
        hops=1,
    )
    return asked.replace(**changes)


FLOODS = {
    "malformed": ([b"", b"", *[b"junk"] * 20], fw.Reason.MALFORMED),
    "hardly anything": ([b"x"], fw.Reason.MALFORMED),
    "wrongly signed": (encode(ring(os.urandom(32)).sign(question())), fw.Reason.BAD_SIGNATURE),
    "unsigned": (encode(question()), fw.Reason.BAD_SIGNATURE),
    "too many frames": ([b""] * 100, fw.Reason.OVERSIZED),
    "too many bytes": ([b"", b"", *[b"x" * 1000] * 20], fw.Reason.OVERSIZED),
    "a service message": (
        encode(ring(os.urandom(32)).sign(Message(b"KINO.REGEXTROUTE"), domain="sales")),
        fw.Reason.BAD_SIGNATURE,
    ),
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_is_counted_and_hardly_followed_up_and_asks_go_on(kind, caplog):
    frames, reason = FLOODS[kind]
    caplog.set_level(logging.WARNING)

    async def main():
        limits = {"max_frames": 64, "max_message_bytes": 16_384, "keyring": ring()}
        async with make_node(**limits) as node:
            await node.host(Named("home"))
            async with make_node(peers=[uri_of(node)], **limits) as other:
                await handled_by(1, other)
                letters = []
                node.on_dead_letter(letters.append)
                with flooder(node) as flood:
                    for _ in range(MANY):
                        flood.send_multipart(frames)
                    for _ in range(20):
                        assert (await other.hub.ask(Question(), Answer)).text == "home"
                    counts = node.dead_letters.counts
                    await eventually(lambda: counts[reason] + counts[fw.Reason.THROTTLED] == MANY)
                (counted,) = node._core.conduct.counts.values()
                assert counted == {name: count for name, count in counts.items() if count}
                assert counted[reason] >= 1000  # so many are looked at, and then nothing of that connection
                assert len(letters) < MANY / 4
                assert len(caplog.records) < 20
                (told,) = node.stats().refused.values()
                assert sum(told.values()) == MANY

    run(main())


def test_what_is_beyond_the_rate_of_a_connection_is_dropped_and_others_are_not():
    async def main():
        async with make_node(peer_rate=100) as node:
            home = Named("home")
            await node.host(home)
            async with make_node(peers=[uri_of(node)]) as other:
                await handled_by(1, other)
                with flooder(node) as flood:
                    for _ in range(MANY):
                        flood.send_multipart(encode(question(callback_points=())))
                    counts = node.dead_letters.counts
                    await eventually(lambda: len(home.asked) + counts[fw.Reason.THROTTLED] == MANY)
                assert 100 <= len(home.asked) < MANY / 2
                assert (await other.hub.ask(Question(), Answer)).text == "home"

    run(main())


@pytest.mark.parametrize("rate", [0, -1, 0.5, "many", float("nan")])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(fw.ConfigError, match=r"peer_rate: .* must be a whole number of messages, at least 1"):
        fw.Node(peer_rate=rate)
