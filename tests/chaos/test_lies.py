"""A rendezvous server that lies, beside one that does not: what nodes believe, and how they come back from it.

Without keys a node believes what servers say, and finds out by itself. With a signed domain nobody without the key
can say of its nodes that they have moved or left.
"""

import asyncio
import os
import time
from functools import partial

import pytest
from tests.chaos.liars import NOWHERE, lying
from tests.cluster.clustering import HEARTBEAT, Named, acquainted, handled_by, make_node, peers, served
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster import service
from framewire.security import DomainKey, KeyRing

MISSES = 5
PATIENCE = HEARTBEAT * MISSES


def ring(key):
    return KeyRing([DomainKey("shop", key)], {"shop": ["test.*"]})


def lied_to(main, *, signed=False):
    """Run a test on two nodes that know each other and hear a liar; the second answers questions."""
    key = os.urandom(32)

    async def with_nodes(server):
        with lying() as liar:
            told = {"misses": MISSES, "keyring": ring(key) if signed else None, "timeout": 5.0}
            async with make_node([server, liar], **told) as one, make_node([server, liar], **told) as two:
                await two.host(Named("two"))
                await acquainted(one, two)
                await handled_by(1, one, two)
                await eventually(lambda: liar.is_heard_by(2))
                await main(liar, one, two)

    run(served(with_nodes), timeout=60)


async def asked(node, seconds=5.0):
    """The answer, or the kind of error."""
    try:
        return (await node.hub.ask(Question("who"), Answer, timeout=seconds)).text
    except fw.MessageError as problem:
        return type(problem).__name__


async def answered(node, seconds):
    """Ask until there are answers alone, for so many seconds at most."""
    deadline = time.monotonic() + seconds
    while {await asked(node, 1.0) for _ in range(3)} != {"two"}:
        assert time.monotonic() < deadline, "nobody answers any more"


async def insist(lie, is_believed):
    """Say something until it is heard: nodes connect anew to a server as silent as the liar, and may miss it.

    Returns how often it was said.
    """
    deadline, said = time.monotonic() + 10, 0
    while not is_believed():
        assert time.monotonic() < deadline, "nobody believes it"
        lie()
        said += 1
        await asyncio.sleep(HEARTBEAT)
    return said


def test_asks_of_nodes_that_do_not_exist_end_as_unreachable_and_the_nodes_are_forgotten():
    async def main(liar, one, two):
        def announce_three():
            for number in range(3):
                liar.announce(b"phantom-%d" % number)

        await insist(announce_three, lambda: len(peers(one)) == 4)
        outcomes = await asyncio.gather(*(asked(one, 30.0) for _ in range(8)))
        assert {"two", "Unreachable"} == set(outcomes)
        assert outcomes.count("two") == 2, "they take turns, and one of four is there"
        await eventually(lambda: peers(one) == {two.identity})
        assert {await asked(one) for _ in range(5)} == {"two"}

    lied_to(main)


def forgetting(node):
    """The nodes that a node forgets from now on; it may find them again before anybody has looked."""
    forgotten, forget = [], node._router.peer_lost
    node._router.peer_lost = lambda peer: (forgotten.append(peer), forget(peer))
    return forgotten


def believing(node):
    """Where a node believes others to be from now on; it may know better before anybody has looked."""
    believed = []

    class Noted(dict):
        def __setitem__(self, peer, place):
            believed.append((peer, place[0]))
            super().__setitem__(peer, place)

    node._transport._places = Noted(node._transport._places)
    return believed


@pytest.mark.parametrize("what", ["moved", "left"])
def test_a_node_that_is_said_to_have_moved_or_left_is_found_again(what):
    async def main(liar, one, two):
        if what == "moved":
            believed = believing(one)
            lie = partial(liar.announce, two.identity, uri=NOWHERE, health=NOWHERE)
            await insist(lie, lambda: (two.identity, NOWHERE) in believed)
        else:
            forgotten = forgetting(one)
            lie = partial(liar.say, service.UNREGISTER_NODE, uri=two.uri, node_identity=two.identity)
            await insist(lie, lambda: two.identity in forgotten)
        await answered(one, 4 * PATIENCE + 10)
        assert one._transport.uri_of(two.identity) == two.uri

    lied_to(main)


@pytest.mark.parametrize("what", ["moved", "left"])
def test_nobody_without_the_key_can_say_that_a_node_of_a_signed_domain_has_moved_or_left(what):
    async def main(liar, one, two):
        if what == "moved":
            lie = partial(liar.announce, two.identity, uri=NOWHERE, health=NOWHERE)
        else:
            lie = partial(liar.say, service.UNREGISTER_NODE, uri=two.uri, node_identity=two.identity)
        said = await insist(lie, lambda: one.dead_letters.counts["bad_signature"] >= 3)
        assert one.dead_letters.counts["bad_signature"] <= said, "each is counted once"
        assert one._transport.uri_of(two.identity) == two.uri
        assert {await asked(one) for _ in range(5)} == {"two"}

    lied_to(main, signed=True)


def test_a_node_is_not_told_about_itself_by_others():
    async def main(liar, _, two):
        def lie():
            liar.announce(two.identity, uri=NOWHERE, health=NOWHERE)
            liar.say(service.UNREGISTER_NODE, uri=two.uri, node_identity=two.identity)
            liar.announce(b"phantom")

        await insist(lie, lambda: b"phantom" in peers(two))
        assert (await two.hub.ask(Question("who"), Answer, to_node=two.identity)).text == "two"
        assert two.identity not in peers(two)

    lied_to(main)


def test_a_flood_of_names_is_bounded_and_the_nodes_that_exist_go_on_answering():
    async def main(liar, one, two):
        for number in range(1500):
            nowhere = f"tcp://127.9.{number // 250}.{number % 250 + 1}:1"
            liar.announce(b"phantom-%d" % number, uri=nowhere, health=nowhere, receiver=b"\x01nobody-%d" % number)
        await eventually(lambda: b"phantom-1499" in peers(one), 30)
        where = (
            await asyncio.gather(*(one.hub.ask(Question("who"), Answer, to_node=two.identity) for _ in range(20)))
        )[0]
        assert where.text == "two"
        await eventually(lambda: peers(one) == {two.identity}, 40)
        assert {await asked(one) for _ in range(5)} == {"two"}
        await eventually(lambda: len(one._transport._liveness._watched) <= 300)

    lied_to(main)
