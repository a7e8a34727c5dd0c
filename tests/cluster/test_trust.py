"""What a node believes about others, and from whom: keys that change, and service messages without one."""

import os

import pytest
import zmq
from tests.cluster.clustering import Named, handled_by, handlers, make_node, peers, served, uri_of
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster import service
from framewire.wire import decode, encode

SALES = fw.DomainKey("sales", os.urandom(32))
MINE = {"sales": ["test.*"]}


def ring(*keys):
    return fw.KeyRing(keys or [SALES], MINE)


# --- other keys while it runs


def test_a_node_that_gets_a_domains_key_sees_its_routes_and_is_seen():
    async def main(server):
        async with make_node(server, keyring=ring()) as one, make_node(server) as two:
            await one.host(Named("one"))
            await eventually(lambda: one.identity in peers(two))
            assert handlers(two) == 0
            two.use_keys(ring())
            await handled_by(1, two)
            assert (await two.hub.ask(Question(), Answer)).text == "one"
            await two.host(Named("two"))
            await handled_by(2, one, two)

    run(served(main))


def test_a_node_that_loses_a_domains_key_sees_its_routes_no_longer_and_is_not_seen():
    async def main(server):
        async with make_node(server, keyring=ring()) as one, make_node(server, keyring=ring()) as two:
            await one.host(Named("one"))
            await two.host(Named("two"))
            await handled_by(2, one, two)
            two.use_keys(None)
            assert handlers(two) == 1  # its own
            await handled_by(1, one)

    run(served(main))


def test_a_node_that_has_no_keys_any_more_believes_what_is_not_signed():
    async def main(server):
        async with make_node(server, keyring=ring()) as one, make_node(server, keyring=ring()) as two:
            await eventually(
                lambda: two.identity in peers(one) and two.identity in one._transport._discovery._vouched
            )
            one.use_keys(None)
            left = []
            one._transport._discovery._left = left.append
            with Liar(server.uri) as liar:
                liar.says(service.UNREGISTER_NODE, uri=uri_of(two), node_identity=two.identity)
                await eventually(lambda: left == [two.identity])

    run(served(main))


def test_a_message_that_moves_into_a_domain_is_announced_there():
    async def main(server):
        async with make_node(server, keyring=fw.KeyRing([SALES])) as one, make_node(server, keyring=ring()) as two:
            await one.host(Named("one"))
            await eventually(lambda: one.identity in peers(two))
            assert handlers(two) == 0
            one.use_keys(ring())
            await handled_by(1, two)
            assert (await two.hub.ask(Question(), Answer)).text == "one"

    run(served(main))


def test_what_is_no_ring_is_refused_and_the_keys_stay():
    async def main():
        async with make_node(keyring=ring()) as node:
            with pytest.raises(fw.UsageError, match="bytes is not a KeyRing"):
                node.use_keys(b"secret")
            assert node._core.keyring is not None

    run(main())


# --- service messages without a key


class Liar:
    """Says what it likes through a server, or straight to a node."""

    def __init__(self, uri):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(uri)

    def says(self, message, **fields):
        self.socket.send_multipart(encode(service.service_message(message, **fields)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.destroy(0)


def health():
    return service.body("Health", uri="tcp://127.0.0.1:1", interval=service.time_span(1))


@pytest.mark.parametrize("lie", ["moved", "left"])
def test_nobody_without_the_key_can_say_that_a_member_of_a_domain_has_moved_or_left(lie):
    async def main(server):
        async with make_node(server, keyring=ring()) as one, make_node(server, keyring=ring()) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            with Liar(server.uri) as liar:
                if lie == "left":
                    liar.says(service.UNREGISTER_NODE, uri=uri_of(two), node_identity=two.identity)
                else:
                    liar.says(
                        service.REGISTER_EXTERNAL_ROUTE,
                        uri="tcp://127.0.0.1:2",
                        node_identity=two.identity,
                        routes=[],
                        health=health(),
                    )
                await eventually(lambda: one.dead_letters.counts[fw.Reason.BAD_SIGNATURE] == 1)
            (letter,) = one.dead_letters
            assert "it is known by a signature" in letter.detail
            assert one._transport.uri_of(two.identity) == uri_of(two)
            assert (await one.hub.ask(Question(), Answer)).text == "two"

    run(served(main))


def test_a_member_that_leaves_is_gone_at_once():
    async def main(server):
        async with make_node(server, keyring=ring()) as one:
            async with make_node(server, keyring=ring()) as two:
                await eventually(lambda: two.identity in peers(one))
            await eventually(lambda: not peers(one))
            assert not one.dead_letters.counts

    run(served(main))


def test_a_member_that_moves_is_followed():
    async def main(server):
        async with make_node(server, keyring=ring()) as one:
            async with make_node(server, keyring=ring(), identity="same") as before:
                await before.host(Named("before"))
                await handled_by(1, one)
                before._transport._announcer.leave = lambda: None  # as if it were killed
            async with make_node(server, keyring=ring(), identity="same") as after:
                await after.host(Named("after"))
                await eventually(lambda: one._transport.uri_of(b"same") == uri_of(after))
                await handled_by(1, one)
                assert (await one.hub.ask(Question(), Answer)).text == "after"
                with Liar(server.uri) as liar:
                    liar.says(service.UNREGISTER_NODE, uri=uri_of(after), node_identity=b"same")
                    await eventually(lambda: one.dead_letters.counts[fw.Reason.BAD_SIGNATURE] > 0)
                assert peers(one) == {b"same"}

    run(served(main))


def test_a_goodbye_that_is_replayed_is_believed_until_the_node_speaks_up_again():
    async def main(server):
        with Liar(server.uri) as liar:
            listener = liar.context.socket(zmq.SUB)
            listener.subscribe(b"")
            listener.connect(server.broadcast)
            assert listener.poll(10_000)  # so it hears everything from now on
            async with make_node(server, keyring=ring()) as one:
                async with make_node(server, keyring=ring(), identity="same") as before:
                    await eventually(lambda: before.identity in peers(one))
                goodbye = None
                while goodbye is None:
                    assert listener.poll(10_000)
                    heard = decode(listener.recv_multipart())
                    goodbye = heard if heard.domain and heard.message_id == service.UNREGISTER_NODE else None
                async with make_node(server, keyring=ring(), identity="same") as again:
                    await eventually(lambda: again.identity in peers(one))
                    liar.socket.send_multipart(encode(goodbye))
                    await eventually(lambda: again.identity not in peers(one))
                    again._transport._announcer.introduce()
                    await eventually(lambda: again.identity in peers(one))

    run(served(main))


def test_a_service_message_with_a_wrong_signature_is_a_dead_letter():
    async def main(server):
        stranger = ring(fw.DomainKey("sales", os.urandom(32)))
        async with make_node(server, keyring=ring()) as one, make_node(server, keyring=stranger) as other:
            await other.host(Named("other"))
            await eventually(lambda: one.dead_letters.counts[fw.Reason.BAD_SIGNATURE] > 0)
            assert handlers(one) == 0

    run(served(main))


def test_those_who_ask_again_and_again_are_answered_together():
    async def main():
        async with make_node(bind="tcp://127.0.0.1:*") as node:
            await node.host(Named("one"))
            told = []
            node._transport._announcer.tell_all_in = told.append
            with Liar(uri_of(node)) as liar:
                for number in range(1000):
                    liar.says(
                        service.REQUEST_CLUSTER_ROUTES,
                        requestor_uri="",
                        requestor_node_identity=str(number).encode(),
                    )
                await eventually(lambda: not liar.socket.poll(0) and node._transport._discovery._owed)
                await eventually(lambda: not node._transport._discovery._owed)
            assert 2 <= len(told) < 100

    run(main())


def test_names_that_are_made_up_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("framewire.cluster.transport._MOST_PEERS", 10)

    async def main():
        async with make_node(bind="tcp://127.0.0.1:*") as node:
            with Liar(uri_of(node)) as liar:
                for number in range(30):
                    liar.says(
                        service.REGISTER_EXTERNAL_ROUTE,
                        uri="tcp://127.0.0.1:2",
                        node_identity=b"made up %d" % number,
                        routes=[],
                        health=health(),
                    )
                await eventually(lambda: node.dead_letters.counts[fw.Reason.MALFORMED] == 20)
            assert len(node._transport._places) == 10

    run(main())
