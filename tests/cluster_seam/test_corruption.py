"""Frames that were damaged on the way: dead letters that say how, and never an exception out of a node."""

import pytest
from tests.cluster_seam.messages import Answer, Question, answerers
from tests.node.running import run

import framewire as fw
from framewire.testing import Cluster, Fate, Faults, ManualClock
from framewire.wire import decode, encode


def test_frames_that_are_no_message_are_malformed():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock) as cluster:
            await answerers(cluster, 1)
            cluster.network.intercept(lambda _, __, frames: [*frames[:-1], b"\x63\x00"])
            promise = cluster[0].hub.start(Question(), Answer, timeout=5)
            await clock.advance(1)
            assert cluster[1].dead_letters.counts == {fw.Reason.MALFORMED: 1}
            [letter] = cluster[1].dead_letters
            assert letter.detail == "unknown_version: wire_version (frame n-1): this is version 99"
            assert letter.message is None
            assert letter.frames[-1] == b"\x63\x00"
            # Nobody can tell whose message it was, so the caller learns it from the clock.
            await clock.advance(5)
            with pytest.raises(fw.Expired):
                promise.result()

    run(scenario())


@pytest.mark.parametrize("seed", range(8))
def test_every_message_that_was_damaged_is_accounted_for(seed):
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, seed=seed) as cluster:
            await answerers(cluster, 1)
            cluster.disturb(Faults(seed=seed, corrupt=1.0), sender=0)
            promises = [cluster[0].hub.start(Question(n), Answer, timeout=5) for n in range(100)]
            await clock.advance(10)
            assert all(promise.done for promise in promises)
            assert cluster.journal.counts[Fate.CORRUPTED] == 100
            assert cluster[1].dead_letters.counts[fw.Reason.MALFORMED] > 0
            told = cluster[1].stats().totals
            assert told["received"] == 100
            # Each was handled, or is a dead letter for one reason or another.
            assert told["handled"] + len(cluster[1].dead_letters) >= 100

    run(scenario())


@pytest.mark.parametrize(
    "changes",
    [
        {"ttl_ticks": 2**63 - 1},
        {"ttl_ticks": -1},
        {"receiver_identity": b"\x07"},
        {"receiver_node_identity": b"nowhere"},
        {"callback_receiver_identity": b""},
        {"callback_receiver_node_identity": b"nowhere"},
        {"callback_key": -(2**63)},
        {"callback_points": ()},
        {"trace_options": 0xFFFF},
        {"hops": 0xFFFF},
        {"domain": "somebody else's"},
        {"identity": b""},
        {"body_frames": ()},
        {"distribution": 1},
    ],
    ids=lambda changes: next(iter(changes)),
)
@pytest.mark.parametrize("direction", [0, 1], ids=["question", "answer"])
def test_whatever_a_message_says_no_node_raises_and_the_ask_ends(changes, direction):
    async def scenario():
        clock = ManualClock()
        async with Cluster(3, clock=clock, max_hops=0xFFFE) as cluster:
            await answerers(cluster, 1)
            cluster[2].port.peer_lost(b"node-1")
            cluster[2].port.peer_registered(b"node-1", cluster[1].port.registrations)

            def rewrite(sender, _, frames):
                return encode(decode(frames).replace(**changes)) if sender == b"node-%d" % direction else frames

            cluster.network.intercept(rewrite)
            promises = [cluster[0].hub.start(Question(n), Answer, timeout=5) for n in range(3)]
            await clock.advance(60)
            assert all(promise.done for promise in promises)

    run(scenario())


def test_a_limit_of_many_thousand_years_survives_being_passed_on():
    async def scenario():
        async with Cluster(3) as cluster:
            [answerer] = await answerers(cluster, 2)
            cluster[0].port.peer_lost(b"node-2")
            cluster[0].port.peer_registered(b"node-1", [r for r in cluster[2].port.registrations if r[1]])

            def forever(sender, _, frames):
                return encode(decode(frames).replace(ttl_ticks=2**63 - 1)) if sender == b"node-0" else frames

            cluster.network.intercept(forever)
            assert await cluster[0].hub.ask(Question(3), Answer, timeout=10) == Answer(3, "2")
            assert answerer.messages[0].hops == 2

    run(scenario())
