"""How nodes come to know of each other, over real sockets."""

import asyncio
import os

import msgspec
import pytest
import zmq
from tests.cluster.clustering import (
    Named,
    acquainted,
    handled_by,
    handlers,
    make_node,
    peers,
    rendezvous,
    served,
    uri_of,
)
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster import service
from framewire.wire import Message, encode


@fw.message("test.question", version=7)
class Newer(msgspec.Struct):
    pass


SALES = fw.DomainKey("sales", os.urandom(32))
SIGNED = {"sales": ["test.*"]}


def test_a_rendezvous_is_all_that_two_nodes_need():
    async def main(server):
        async with make_node(server) as one, make_node(server) as other:
            await other.host(Named("other"))
            await handled_by(1, one)
            assert (await one.hub.ask(Question(), Answer)).text == "other"

    run(served(main))


def test_a_node_that_comes_later_learns_what_is_there():
    async def main(server):
        async with make_node(server) as first:
            await first.host(Named("first"))
            async with make_node(server) as late:
                await handled_by(1, late)
                assert (await late.hub.ask(Question(), Answer)).text == "first"

    run(served(main))


def test_joining_and_leaving_is_seen_by_all():
    async def main(server):
        async with make_node(server) as one, make_node(server) as two:
            async with make_node(server) as third:
                await acquainted(one, two, third)
            await eventually(lambda: third.identity not in peers(one) | peers(two))
            assert peers(one) == {two.identity}

    run(served(main))


def test_an_actor_that_is_added_and_removed_is_seen_by_all():
    async def main(server):
        async with make_node(server) as one, make_node(server) as two, make_node(server) as three:
            await acquainted(one, two, three)
            route = await three.host(Named("three"))
            await handled_by(1, one, two, three)
            await three.unhost(route)
            await handled_by(0, one, two, three)

    run(served(main))


def test_a_local_actor_is_not_told_of():
    async def main(server):
        async with make_node(server) as one, make_node(server) as two:
            await acquainted(one, two)
            await two.host(Named("secret"), local=True)
            await two.host(Named("public"))
            await handled_by(1, one)
            assert handlers(two) == 2

    run(served(main))


@pytest.mark.parametrize("configured", [["one"], ["two"], ["one", "two"]])
def test_static_peers_need_no_rendezvous_and_one_side_that_knows(configured, tmp_path):
    uris = {name: f"ipc://{tmp_path}/{name}" for name in ("one", "two")}

    def told(name, other):
        return {"bind": uris[name], "peers": [uris[other]] if name in configured else []}

    async def main():
        async with make_node(**told("one", "two")) as one, make_node(**told("two", "one")) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            assert (await one.hub.ask(Question(), Answer)).text == "two"
            await one.host(Named("one"))
            await handled_by(2, two)
            assert {(await two.hub.ask(Question(), Answer)).text for _ in range(2)} == {"one", "two"}

    run(main())


def test_static_peers_find_each_other_again_after_one_was_away(tmp_path):
    uri = f"ipc://{tmp_path}/home"

    async def main():
        async with make_node(bind=uri) as home, make_node(peers=uri) as away:
            await acquainted(home, away)
        async with make_node(peers=uri) as away:
            async with make_node(bind=uri) as home:
                await acquainted(home, away)
            await eventually(lambda: not peers(away))
            async with make_node(bind=uri) as home:
                await acquainted(home, away)

    run(main())


def test_an_unknown_route_is_asked_for_and_the_message_waits():
    async def main(server):
        async with make_node(server, route_grace=10) as one, make_node(server) as two:
            await acquainted(one, two)
            asking = asyncio.create_task(one.hub.ask(Question(), Answer))
            await asyncio.sleep(0)
            assert not asking.done()
            await two.host(Named("two"))
            assert (await asking).text == "two"

    run(served(main))


def test_a_route_that_was_forgotten_is_found_by_asking():
    async def main(server):
        async with make_node(server, route_grace=10) as one, make_node(server) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            one._router.table.remove_node(two.identity)
            assert (await one.hub.ask(Question(), Answer)).text == "two"

    run(served(main))


def test_a_message_that_nobody_handles_is_no_route_naming_the_versions_that_are_known():
    async def main(server):
        async with make_node(server, route_grace=0.1) as one, make_node(server) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            with pytest.raises(fw.NoRoute, match=r"asked 1 node for 0\.1 s\. Known: test\.question v1"):
                await one.hub.ask(Newer(), Answer)

    run(served(main))


def test_who_asks_for_all_there_is_also_hears_what_there_is_no_longer():
    async def main(server):
        async with make_node(server) as one, make_node(server) as two:
            route = await two.host(Named("two"))
            await handled_by(1, one)
            await two.unhost(route)
            await handled_by(0, one)
            one._router.peer_registered(two.identity, [(route, (fw.MessageId(b"test.question"),))])
            one._transport._announcer.introduce()
            await handled_by(0, one)

    run(served(main))


def test_an_asker_that_is_not_known_is_answered_without_a_server():
    async def main():
        with rendezvous() as server:
            one, two = make_node(server), make_node(server)
            await one.start()
            await two.start()
            await two.host(Named("two"))
            await handled_by(1, one)
            await acquainted(one, two)
        two._transport._gone(one.identity, "forgotten for the test")
        assert (await one.hub.ask(Question(), Answer)).text == "two"
        await one.stop()
        await two.stop()

    run(main())


def keyed(key=SALES, identities=SIGNED):
    return fw.KeyRing([key], identities)


def test_nodes_that_share_a_key_see_each_others_routes_in_its_domain():
    async def main(server):
        async with make_node(server, keyring=keyed()) as one, make_node(server, keyring=keyed()) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            assert (await one.hub.ask(Question(), Answer)).text == "two"

    run(served(main))


@pytest.mark.parametrize(
    "stranger",
    [
        None,
        fw.KeyRing([fw.DomainKey("sales", os.urandom(32))], SIGNED),
        fw.KeyRing([fw.DomainKey("other", os.urandom(32))]),
    ],
    ids=["no keys", "wrong key", "another domain"],
)
def test_a_node_without_the_key_neither_sees_the_routes_of_a_domain_nor_handles_its_messages(stranger, caplog):
    async def main(server):
        async with make_node(server, keyring=keyed()) as one, make_node(server, keyring=keyed()) as two:
            outside = make_node(server, keyring=stranger, route_grace=0.1)
            async with outside:
                await outside.host(Named("outside"))
                await two.host(Named("two"))
                await handled_by(1, one)
                await acquainted(one, outside)
                assert {(await one.hub.ask(Question(), Answer)).text for _ in range(4)} == {"two"}
                assert handlers(outside) == 1
                with pytest.raises((fw.BadSignature, fw.NoRoute, fw.Unreachable)):
                    await outside.hub.ask(Question(), Answer, to_node=two.identity, timeout=5)

    run(served(main))
    guessed = stranger is not None and "sales" in stranger.domains
    assert ("a service message is ignored" in caplog.text) == guessed, "other domains are no concern of a node"


def registration(identity=b"stranger", uri="tcp://127.0.0.1:1", health="tcp://127.0.0.1:1", interval=None):
    contract = service.body("MessageContract", version=1, identity=b"test.question", partition=b"")
    return service.service_message(
        service.REGISTER_EXTERNAL_ROUTE,
        uri=uri,
        node_identity=identity,
        routes=[service.body("RouteRegistration", receiver_identity=b"\x01actor", contracts=[contract])],
        health=service.body("Health", uri=health, interval=interval or service.time_span(60)),
    )


BAD = {
    "one frame": [b""],
    "no message": [b"", b"", b"nonsense"],
    "no protobuf": encode(Message(b"KINO.REGEXTROUTE").replace(body=b"\xff")),
    "no text": encode(Message(b"KINO.REGEXTROUTE").replace(body=b"\x0a\x02\xff\xfe\x12\x01x")),
    "no address": encode(registration(uri="nowhere")),
    "any address": encode(registration(uri="tcp://*:*")),
    "address in a process": encode(registration(uri="inproc://framewire")),
    "no health address": encode(registration(health="tcp://127.0.0.1:99999")),
    "nobody": encode(registration(identity=b"")),
    "a hub": encode(registration(identity=b"\x00hub")),
    "a long name": encode(registration(identity=b"x" * 256)),
    "no time": encode(registration(interval=service.body("TimeSpan", value=1, scale=15))),
    "no servers": encode(service.service_message(service.RENDEZVOUS_RECONFIGURED)),
}


@pytest.mark.parametrize("straight", [False, True], ids=["through a server", "straight"])
def test_bad_service_messages_are_ignored_and_what_follows_is_heard(straight, caplog):
    async def main(server):
        async with make_node(server) as node, make_node(server) as other:
            await acquainted(node, other)
            with zmq.Context() as context, context.socket(zmq.DEALER) as speaker:
                speaker.connect(uri_of(node) if straight else server.uri)
                for frames in BAD.values():
                    speaker.send_multipart(frames)
                speaker.send_multipart(encode(registration()))
                await eventually(lambda: b"stranger" in peers(node))
            assert peers(node) == {b"stranger", other.identity}
            assert node._transport._liveness._thread.is_alive()

    run(served(main))
    assert "could not be taken in" not in caplog.text
