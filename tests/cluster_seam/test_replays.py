"""Signed messages that somebody has recorded and sends once more: what is noticed, and what cannot be."""

import os

import msgspec
import pytest
from tests.node.running import run

import framewire as fw
from framewire.node.core import Settings
from framewire.testing import Cluster, Faults, ManualClock
from framewire.wire import RouterAddress, decode, encode

SECRET = fw.DomainKey("payments", os.urandom(32))
ATTACKER = b"the attacker's connection"


@fw.message("pay.charge")
class Charge(msgspec.Struct):
    cents: int = 0


@fw.message("pay.charged")
class Charged(msgspec.Struct):
    cents: int = 0


def ring(**options):
    return fw.KeyRing([SECRET], {"payments": ["pay.*"]}, **options)


class Cashier(fw.Actor):
    def __init__(self):
        self.charges = []

    @fw.handles(Charge)
    async def charge(self, charge: Charge) -> Charged:
        self.charges.append(charge.cents)
        return Charged(charge.cents)


def overhearing(cluster):
    """All charges that are under way from now on, as an eavesdropper has them."""
    recorded = []

    def hear(_, __, frames):
        if decode(frames).identity == b"pay.charge":
            recorded.append(list(frames))
        return frames

    cluster.network.intercept(hear)
    return recorded


def attacked(asks, attack, *, keyring=None, **settings):
    """Let one node charge another so often, let an attacker act on what was recorded; what the cashier did."""

    async def scenario():
        async with Cluster(2, keyring=keyring or ring(), **settings) as cluster:
            cashier = Cashier()
            await cluster[1].host(cashier)
            await cluster.settled()
            recorded = overhearing(cluster)
            for _ in range(asks):
                await cluster[0].hub.ask(Charge(7), Charged, timeout=10)
            cashier.charges.clear()
            attack(cluster, recorded)
            await cluster.settled()
            return cashier.charges, cluster[1].dead_letters.counts, cluster[0].dead_letters.counts

    return run(scenario())


def replaying(cluster, recorded):
    cluster[1].port.receive(ATTACKER, recorded[-1])


@pytest.mark.parametrize("asks", [1, 5], ids=["the first of its kind", "one that is like others"])
def test_a_message_that_is_replayed_is_counted_and_not_handled_and_nobody_is_told(asks):
    charges, at_receiver, at_sender = attacked(asks, replaying)
    assert charges == []
    assert at_receiver == {fw.Reason.REPLAYED: 1}
    assert at_sender == {}


def test_a_message_that_was_replayed_before_its_original_came_is_still_handled_only_once():
    def overtaking(cluster, recorded):
        changed = decode(recorded[-1]).replace(correlation_id=b"f" * 36)
        for peer in (ATTACKER, b"node-0"):
            cluster[1].port.receive(peer, encode(changed))

    charges, at_receiver, _ = attacked(1, overtaking)
    assert (charges, at_receiver) == ([7], {fw.Reason.REPLAYED: 1})


def test_equal_messages_of_one_sender_are_no_replays():
    def told_twice(cluster, recorded):
        for _ in range(2):
            cluster[1].port.receive(b"node-0", recorded[-1])  # such as a handler that says the same thing twice

    charges, at_receiver, _ = attacked(3, told_twice)
    assert charges == [7, 7]
    assert at_receiver == {}


def test_equal_answers_of_several_nodes_are_no_replays():
    async def scenario():
        async with Cluster(4, keyring=ring()) as cluster:
            for index in (1, 2, 3):
                await cluster[index].host(Cashier())
            await cluster.settled()
            for _ in range(3):
                answers = await cluster[0].hub.gather(Charge(7), Charged, timeout=10, stop_after=3)
                assert len(answers) == 3
            assert all(not node.dead_letters.counts for node in cluster)

    run(scenario())


def test_one_message_that_comes_over_two_routes_is_no_replay():
    def over_another_node(cluster, recorded):
        message = decode(recorded[-1])
        passed_on = message.replace(routing=(*message.routing, RouterAddress("memory://c", b"c")), hops=2)
        cluster[1].port.receive(b"c", encode(passed_on))

    charges, at_receiver, _ = attacked(1, over_another_node)
    assert (charges, at_receiver) == ([7], {})


def test_a_network_that_delivers_twice_is_no_replay():
    async def scenario():
        async with Cluster(2, keyring=ring(), faults=Faults(duplicate=1.0)) as cluster:
            await cluster[1].host(Cashier())
            await cluster.settled()
            await cluster[0].hub.ask(Charge(7), Charged, timeout=10)
            await cluster.settled()
            assert fw.Reason.REPLAYED not in cluster[0].dead_letters.counts + cluster[1].dead_letters.counts

    run(scenario())


# --- what an attacker can still do, and what helps

CHANGES = [{"correlation_id": b"f" * 36}, {"callback_key": 77}, {"routing": ()}]


def changing(changes):
    def attack(cluster, recorded):
        cluster[1].port.receive(ATTACKER, encode(decode(recorded[-1]).replace(**changes)))

    return attack


@pytest.mark.parametrize("changes", CHANGES, ids=["flow", "callback key", "sender"])
def test_a_replay_that_changes_what_is_not_signed_is_not_noticed(changes):
    charges, at_receiver, _ = attacked(1, changing(changes))
    assert (charges, at_receiver) == ([7], {})


@pytest.mark.parametrize("asks", [1, 3], ids=["the first of its kind", "one that is like others"])
@pytest.mark.parametrize("changes", [*CHANGES, {}], ids=["flow", "callback key", "sender", "nothing"])
def test_where_content_never_repeats_no_change_helps(changes, asks):
    async def scenario():
        async with Cluster(2, keyring=ring(once=["payments"])) as cluster:
            cashier = Cashier()
            await cluster[1].host(cashier)
            await cluster.settled()
            recorded = overhearing(cluster)
            for number in range(asks):
                await cluster[0].hub.ask(Charge(number), Charged, timeout=10)
            changing(changes)(cluster, recorded)
            await cluster.settled()
            assert cashier.charges == list(range(asks))
            assert cluster[1].dead_letters.counts == {fw.Reason.REPLAYED: 1}

    run(scenario())


def test_where_content_never_repeats_an_honest_repetition_is_refused_too():
    async def scenario():
        async with Cluster(2, keyring=ring(once={"payments": ["pay.charge"]}), timeout=0.3) as cluster:
            await cluster[1].host(Cashier())
            await cluster.settled()
            await cluster[0].hub.ask(Charge(7), Charged)
            with pytest.raises(fw.Expired):
                await cluster[0].hub.ask(Charge(7), Charged)

    run(scenario())


def test_a_message_that_is_replayed_to_another_node_is_not_noticed():
    async def scenario():
        async with Cluster(3, keyring=ring()) as cluster:
            cashier = Cashier()
            await cluster[1].host(Cashier())
            await cluster.settled()
            recorded = overhearing(cluster)
            await cluster[0].hub.ask(Charge(7), Charged, timeout=10)
            await cluster[2].host(cashier)
            cluster[2].port.receive(ATTACKER, recorded[-1])
            await cluster.settled()
            assert cashier.charges == [7]

    run(scenario())


def test_a_replay_is_noticed_within_the_window_and_not_long_after():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, keyring=ring(), clock=clock, replay_window=60.0) as cluster:
            cashier = Cashier()
            await cluster[1].host(cashier)
            await cluster.settled()
            recorded = overhearing(cluster)
            await cluster[0].hub.tell(Charge(7))
            await cluster.settled()
            await clock.advance(59)
            cluster[1].port.receive(ATTACKER, recorded[-1])
            await cluster.settled()
            assert cashier.charges == [7]
            await clock.advance(121)
            cluster[1].port.receive(ATTACKER, recorded[-1])
            await cluster.settled()
            assert cashier.charges == [7, 7]

    run(scenario())


def test_a_window_of_nothing_notices_nothing():
    charges, at_receiver, _ = attacked(1, replaying, replay_window=0)
    assert (charges, at_receiver) == ([7], {})


def test_messages_that_are_not_signed_are_never_taken_for_replays():
    charges, at_receiver, _ = attacked(1, replaying, keyring=fw.KeyRing())
    assert (charges, at_receiver) == ([7], {})


def test_it_is_on_unless_told_otherwise():
    assert Settings().replay_window == 60.0
    assert Settings().replay_memory == 100_000
