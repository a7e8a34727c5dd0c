"""Signed messages between nodes: what is in order passes, and what is not is refused and told."""

import os

import msgspec
import pytest
from tests.node.running import run

import framewire as fw
from framewire.testing import Cluster
from framewire.wire import decode, encode


@fw.message("pay.charge")
class Charge(msgspec.Struct):
    cents: int = 0


@fw.message("pay.charged")
class Charged(msgspec.Struct):
    cents: int = 0


KEY = os.urandom(32)


def ring(secret=KEY, **options):
    return fw.KeyRing([fw.DomainKey("payments", secret)], {"payments": ["pay.*"]}, **options)


NO_KEY = fw.KeyRing(identities={"payments": ["pay.*"]})


async def cashier_on(cluster, index):
    charges = []

    @cluster[index].handler(Charge)
    async def charge(asked: Charge, ctx: fw.Context) -> Charged:
        charges.append(ctx.message)
        return Charged(asked.cents)

    await cluster.settled()
    return charges


def tampering(identity, **changes):
    """An interceptor that changes messages of one identity."""

    def tamper(_, __, frames):
        message = decode(frames)
        return encode(message.replace(**changes)) if message.identity == identity else frames

    return tamper


def test_members_of_a_domain_understand_each_other():
    async def scenario():
        async with Cluster(2, keyring=ring()) as cluster:
            charges = await cashier_on(cluster, 1)
            signed = []
            cluster.network.intercept(lambda _, __, frames: signed.append(decode(frames)) or frames)
            assert (await cluster[0].hub.ask(Charge(100), Charged, timeout=10)).cents == 100
            assert [(m.domain, len(m.signature)) for m in signed] == [("payments", 32), ("payments", 32)]
            assert len(charges) == 1

    run(scenario())


def test_a_signature_survives_being_passed_on():
    async def scenario():
        async with Cluster(3, keyring=ring()) as cluster:
            charges = await cashier_on(cluster, 2)
            claim = [(route, messages) for route, messages in cluster[2].port.registrations if messages]
            cluster[0].port.peer_lost(b"node-2")
            cluster[0].port.peer_registered(b"node-1", claim)
            assert (await cluster[0].hub.ask(Charge(100), Charged, timeout=10)).cents == 100
            assert charges[0].hops == 2

    run(scenario())


@pytest.mark.parametrize(
    "changes",
    [{"body": b"\x81\xa5cents\x01"}, {"signature": b""}, {"signature": bytes(32)}, {"domain": ""}],
    ids=["other body", "no signature", "other signature", "no domain"],
)
def test_a_question_that_was_tampered_with_is_a_dead_letter_and_the_caller_is_told(changes):
    async def scenario():
        async with Cluster(2, keyring=ring()) as cluster:
            charges = await cashier_on(cluster, 1)
            cluster.network.intercept(tampering(b"pay.charge", **changes))
            with pytest.raises(fw.BadSignature) as caught:
                await cluster[0].hub.ask(Charge(100), Charged, timeout=10)
            assert (caught.value.node, caught.value.domain) == (b"node-1", "payments")
            assert charges == []
            assert cluster[1].dead_letters.counts == {fw.Reason.BAD_SIGNATURE: 1}

    run(scenario())


def test_an_answer_that_was_tampered_with_ends_the_ask():
    async def scenario():
        async with Cluster(2, keyring=ring()) as cluster:
            charges = await cashier_on(cluster, 1)
            cluster.network.intercept(tampering(b"pay.charged", body=b"\x81\xa5cents\x01"))
            with pytest.raises(fw.BadSignature, match="does not match") as caught:
                await cluster[0].hub.ask(Charge(100), Charged, timeout=10)
            assert caught.value.node == b"node-0"
            assert len(charges) == 1
            assert cluster[0].dead_letters.counts == {fw.Reason.BAD_SIGNATURE: 1}

    run(scenario())


@pytest.mark.parametrize("keyring", [NO_KEY, fw.KeyRing(), None], ids=["no key", "empty ring", "no ring"])
def test_a_node_without_the_key_neither_handles_nor_passes_on(keyring):
    async def scenario():
        async with Cluster(1, keyring=ring()) as cluster:
            await cluster.join(keyring=keyring)
            charges = await cashier_on(cluster, 1)
            with pytest.raises(fw.BadSignature) as caught:
                await cluster[0].hub.ask(Charge(100), Charged, timeout=10)
            assert caught.value.node == b"node-1"
            assert charges == []
            assert cluster[1].dead_letters.counts == {fw.Reason.BAD_SIGNATURE: 1}

    run(scenario())


def test_a_node_without_the_key_cannot_send_to_others_either():
    async def scenario():
        async with Cluster(1, keyring=ring()) as cluster:
            await cluster.join(keyring=NO_KEY)
            charges = await cashier_on(cluster, 0)
            with pytest.raises(fw.BadSignature, match="no key for 'payments'"):
                await cluster[1].hub.ask(Charge(100), Charged, timeout=10)
            assert charges == []
            assert cluster[1].dead_letters.counts == {fw.Reason.BAD_SIGNATURE: 1}

    run(scenario())


def test_a_rotated_key_is_accepted_where_it_is_known():
    async def scenario():
        new = fw.DomainKey("payments", os.urandom(32))
        async with Cluster(1, keyring=ring()) as cluster:
            await cluster.join(keyring=ring().rotated(new))
            await cashier_on(cluster, 1)
            promise = cluster[0].hub.start(Charge(100), Charged, timeout=10)
            # The old key is still good for the question; the answer is signed with a key that node-0 has not.
            with pytest.raises(fw.BadSignature) as caught:
                await promise
            assert caught.value.node == b"node-0"
            await cluster.join(keyring=ring().rotated(new))
            await cluster.settled()
            assert (await cluster[2].hub.ask(Charge(7), Charged, timeout=10)).cents == 7

    run(scenario())


def test_messages_of_no_domain_pass_between_all():
    async def scenario():
        async with Cluster(1, keyring=ring()) as cluster:
            await cluster.join(keyring=None)
            for asking, asked in ((0, b"node-1"), (1, b"node-0")):
                stats = await cluster[asking].hub.ask(fw.NodeInfo(), fw.NodeStats, to_node=asked, timeout=10)
                assert stats.node.encode() == asked

    run(scenario())
