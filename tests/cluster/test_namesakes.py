"""Two nodes of one identity: both and the server are told, and the newer is refused unless the older is gone."""

import asyncio
import contextlib
import logging

import pytest
import zmq
from tests.cluster.clustering import (
    HEARTBEAT,
    Named,
    handled_by,
    in_a_row,
    make_node,
    peers,
    rendezvous,
    served,
    uri_of,
)
from tests.cluster.interop import node_at
from tests.cluster.kino_peer import KinoNode, KinoRendezvous, living
from tests.cluster.processes import Processes
from tests.cluster.strangers import MODES, Cluster
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster import duplicate_watch, namesakes, service
from framewire.cluster.duplicate_watch import DuplicateWatch
from framewire.wire import encode

KEY = b"0123456789abcdef0123456789abcdef"
TWO = "there are two nodes of the identity 'same'"


def errors(caplog, logger):
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == logger and record.levelno >= logging.ERROR
    ]


def ring():
    return fw.KeyRing([fw.DomainKey("sales", KEY)], {"sales": ["test.*"]})


@contextlib.contextmanager
def speaking(server):
    """A stranger's way to say things through a server."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
        stranger.linger = 0
        stranger.connect(server.uri)

        def say(message):
            with contextlib.suppress(zmq.Again):  # CURVE does not even let it in
                stranger.send_multipart(encode(message), zmq.NOBLOCK)

        yield say


def registration(identity, uri, health, interval=HEARTBEAT):
    return service.service_message(
        service.REGISTER_EXTERNAL_ROUTE,
        uri=uri,
        node_identity=identity,
        routes=[service.body("RouteRegistration", receiver_identity=b"\0hub")],
        health=service.body("Health", uri=health, interval=service.time_span(interval)),
    )


@pytest.mark.parametrize("keys", [lambda: None, ring], ids=["unsigned", "signed"])
def test_the_newer_of_two_nodes_of_one_identity_does_not_start_and_all_are_told(caplog, keys):
    async def main(server):
        older = make_node(server, identity="same", keyring=keys())
        async with make_node(server, keyring=keys()) as one, older:
            await older.host(Named("older"))
            await handled_by(1, one)
            moved = []
            one._transport._gone = lambda peer, why: moved.append((peer, why))
            newer = make_node(server, identity="same", keyring=keys())
            with pytest.raises(fw.ConfigError) as caught:
                await newer.start()
            (problem,) = caught.value.problems
            assert f"identity: 'same' is the identity of another node, at {uri_of(older)}" in problem
            assert "stop that one, or give this one an identity of its own" in problem
            await eventually(lambda: server.duplicates == 1)
            assert older.dead_letters.counts[fw.Reason.DUPLICATE_IDENTITY] == 1
            assert newer.dead_letters.counts[fw.Reason.DUPLICATE_IDENTITY] == 1
            assert (await one.hub.ask(Question(), Answer)).text == "older"
            assert one._transport.uri_of(b"same") == uri_of(older)
            assert not moved
            told = errors(caplog, "framewire.cluster")
            assert any(TWO in line and f"this one at {uri_of(older)}" in line for line in told)
            assert any("is refused: identity: 'same'" in line for line in told)
            (line,) = errors(caplog, "framewire.rendezvous")
            assert TWO in line
            assert uri_of(older) in line

    run(served(main))


def test_a_node_that_was_killed_is_started_again_at_once_at_another_address_and_nobody_is_alarmed(caplog):
    async def main(server):
        processes = Processes({"server": server.uri}, heartbeat=HEARTBEAT)
        async with make_node(server) as one:
            with contextlib.closing(processes):
                await asyncio.to_thread(processes.launch, "first", identity="same")
                await eventually(lambda: b"same" in peers(one))
                processes.kill("first")
            async with make_node(server, identity="same") as again:
                await again.host(Named("again"))
                await handled_by(1, one)
                assert (await one.hub.ask(Question(), Answer, to_node=b"same")).text == "again"
                await asyncio.sleep(2 * duplicate_watch.ASK_AFTER_S)  # in which the server would notice
                assert not server.duplicates
                assert not again.dead_letters.counts[fw.Reason.DUPLICATE_IDENTITY]

    run(served(main))
    assert not errors(caplog, "framewire.cluster")
    assert not errors(caplog, "framewire.rendezvous")


def test_a_node_that_left_in_good_order_is_started_again_at_once():
    async def main(server):
        for _ in range(3):
            async with make_node(server, identity="same") as node:
                await node.host(Named("same"))
        assert not server.duplicates

    run(served(main))


def test_a_node_that_is_only_announced_and_gives_no_sign_of_life_is_gone():
    """As where a server tells late what a node said that was killed since."""

    async def main(server):
        with speaking(server) as say:

            async def announce():
                while True:
                    say(registration(b"same", "tcp://127.0.0.1:1", "tcp://127.0.0.1:2"))
                    await asyncio.sleep(0.05)

            announcing = asyncio.create_task(announce())
            try:
                async with make_node(server, identity="same", misses=2) as node, make_node(server) as one:
                    announcing.cancel()
                    node._transport._announcer.introduce()
                    await eventually(lambda: one._transport.uri_of(b"same") == uri_of(node))
            finally:
                announcing.cancel()
                await asyncio.wait([announcing])

    run(served(main))


@pytest.mark.parametrize("mode", MODES)
def test_a_stranger_without_the_key_cannot_keep_a_member_from_starting(mode, tmp_path):
    cluster = Cluster(mode, tmp_path)

    async def main(server):
        with speaking(server) as say, zmq.Context() as context, context.socket(zmq.PUB) as heart:
            health = f"tcp://127.0.0.1:{heart.bind_to_random_port('tcp://127.0.0.1')}"
            beat = service.service_message(
                service.HEARTBEAT,
                interval=service.time_span(HEARTBEAT),
                socket_identity=b"same",
                health_uri=health,
            )

            async def pretend():
                while True:
                    say(registration(b"same", "tcp://127.0.0.1:1", health))
                    heart.send_multipart(encode(beat))
                    await asyncio.sleep(0.02)

            pretending = asyncio.create_task(pretend())
            try:
                if mode == "open":
                    with pytest.raises(fw.ConfigError, match="gives signs of life"):
                        await make_node(server, identity="same").start()
                else:
                    async with make_node(server, identity="same", **cluster.node_options) as node:
                        assert not node.dead_letters.counts[fw.Reason.DUPLICATE_IDENTITY]
            finally:
                pretending.cancel()
                await asyncio.wait([pretending])

    run(served(main, **cluster.server_options))


def test_a_node_with_the_identity_of_a_kino_node_does_not_start_and_kino_notices_nothing():
    async def main():
        server = KinoRendezvous()
        kino = KinoNode(server.unicast, server.broadcast, {})
        async with living(server, kino):
            kino.register()
            await eventually(lambda: kino.heard)
            with pytest.raises(fw.ConfigError, match="is the identity of another node"):
                await node_at(server, identity=kino.identity).start()
            about = [dict(reversed(body)) for kind, body in kino.heard if kind == b"KINO.REGEXTROUTE"]
            assert {body[1].decode() for body in about} == {kino.uri}
            assert not [kind for kind, _ in kino.heard if kind.startswith(b"KINO.UNREG")]

    run(main())


def test_of_two_that_are_started_at_the_same_time_one_starts():
    async def main(server):
        both = [make_node(server, identity="same") for _ in range(2)]
        outcomes = await asyncio.gather(*(node.start() for node in both), return_exceptions=True)
        (refusal,) = (outcome for outcome in outcomes if outcome is not None)
        assert isinstance(refusal, fw.ConfigError)
        assert "is the identity of another node" in str(refusal)
        for node in both:
            await node.stop()

    run(served(main))


def test_a_node_that_starts_without_a_server_stops_when_there_is_one_and_an_older_node(caplog):
    async def main():
        first = in_a_row(6)
        left, right = f"tcp://127.0.0.1:{first}", f"tcp://127.0.0.1:{first + 3}"
        with rendezvous(left, partners=[right]) as server:
            async with make_node(server, identity="same") as older:
                older._transport._namesakes._held_at -= namesakes.PROBATION_S  # as if it had been there for longer
                async with make_node(identity="same", rendezvous=[right]) as newer:
                    with rendezvous(right, partners=[left]):
                        with pytest.raises(
                            fw.ConfigError, match=r"identity: 'same' is the identity of another node"
                        ):
                            await newer.serve()
                        with pytest.raises(fw.NodeStopped):
                            await newer.hub.tell(Question())
                        await eventually(lambda: older.dead_letters.counts[fw.Reason.DUPLICATE_IDENTITY])
                assert older.running
                assert older.dead_letters.counts[fw.Reason.DUPLICATE_IDENTITY] == 1

    run(main())
    assert "it is not known whether another node has the identity 'same'" in caplog.text


def test_a_node_that_hears_late_of_an_older_one_stops_and_the_older_is_found_again(monkeypatch):
    """The older one was slow to answer: its event loop was blocked while the newer asked."""

    async def main(server):
        async with make_node(server) as one, make_node(server, identity="same") as older:
            await older.host(Named("older"))
            await handled_by(1, one)
            older._transport._namesakes._held_at -= namesakes.PROBATION_S
            with monkeypatch.context() as patch:
                patch.setattr(older._transport._discovery, "hear", lambda *_, **__: b"")
                newer = make_node(server, identity="same")
                await newer.start()
            newer._transport._announcer.introduce()
            with pytest.raises(fw.ConfigError, match="is the identity of another node"):
                await newer.serve()
            await eventually(lambda: one._transport.uri_of(b"same") == uri_of(older))
            await handled_by(1, one)
            assert (await one.hub.ask(Question(), Answer)).text == "older"

    run(served(main))


def test_a_node_that_was_asked_for_and_is_slow_to_answer_is_the_older_one_however_new(monkeypatch):
    monkeypatch.setattr(namesakes, "PROBATION_S", 60.0)  # however long this takes on a busy machine

    async def main(server):
        async with make_node(server) as one, make_node(server, identity="same") as older:
            await older.host(Named("older"))
            await handled_by(1, one)  # what it announced when it started is not still on its way to the newer one
            newer = make_node(server, identity="same")
            with monkeypatch.context() as patch:
                patch.setattr(older._transport._discovery, "_answer", lambda *_: None)
                await newer.start()
            newer._transport._announcer.introduce()
            with pytest.raises(fw.ConfigError, match="is the identity of another node"):
                await newer.serve()
            assert older.running

    run(served(main))


def test_two_that_have_long_been_there_are_both_told(monkeypatch, caplog):
    """They could not hear of each other until now."""
    monkeypatch.setattr(namesakes, "PROBATION_S", 0.0)

    async def main():
        first = in_a_row(6)
        left, right = f"tcp://127.0.0.1:{first}", f"tcp://127.0.0.1:{first + 3}"
        with rendezvous(left) as server:
            async with make_node(server, identity="same") as one:
                with rendezvous(right, partners=[left]) as other:
                    async with make_node(rendezvous=[left, right], peers=[uri_of(one)]) as third:
                        two = make_node(other, identity="same")
                        two._transport._check_identity = False  # as if it had been checked long ago
                        async with two:
                            one._transport._announcer.introduce()
                            counts = [node.dead_letters.counts for node in (one, two)]
                            await eventually(lambda: counts[1][fw.Reason.DUPLICATE_IDENTITY])
                            two._transport._ways.use([left, right])
                            await eventually(lambda: counts[0][fw.Reason.DUPLICATE_IDENTITY])
                            assert one.running
                            assert two.running
                            assert third.running

    run(main())
    assert len([line for line in errors(caplog, "framewire.cluster") if TWO in line]) >= 2


def test_a_server_whose_connection_nothing_tells_of_is_asked_all_the_same():
    """As that of an old kino: ZMTP 2.0 has no handshake that libzmq would report."""

    async def main(server):
        async with make_node(server) as one:
            node = make_node(server, identity="same")
            node._transport._connected = lambda: None
            async with node:
                await node.host(Named("same"))
                await handled_by(1, one)
                other = make_node(server, identity="same")
                other._transport._connected = lambda: None
                with pytest.raises(fw.ConfigError, match="is the identity of another node"):
                    await other.start()

    run(served(main))


def test_a_node_whose_identity_was_made_up_for_it_does_not_wait():
    async def main(server):
        async with make_node(server) as node:
            assert node._transport._namesakes.is_held

    run(served(main))


# --- what a server makes of it


def said(uri, identity=b"same", kind=service.REGISTER_EXTERNAL_ROUTE):
    if kind == service.REGISTER_EXTERNAL_ROUTE:
        return encode(registration(identity, uri, "tcp://127.0.0.1:2"))
    return encode(service.service_message(kind, requestor_uri=uri, requestor_node_identity=identity))


def watched(*words):
    """What a watch finds; each word is (when, connection, address)."""
    watch = DuplicateWatch()
    asked = [
        when
        for when, connection, uri in words
        if watch.heard(connection, service.REGISTER_EXTERNAL_ROUTE, said(uri), when) is not None
    ]
    return watch.found, asked


def test_a_server_notices_when_both_speak_after_its_question():
    assert watched((0, b"1", "tcp://a:1"), (1, b"2", "tcp://b:1"), (1.2, b"1", "tcp://a:1")) == (1, [1])


def test_a_server_takes_what_was_said_before_its_question_for_late():
    assert watched((0, b"1", "tcp://a:1"), (1, b"2", "tcp://b:1"), (1.05, b"1", "tcp://a:1")) == (0, [1])


def test_a_server_takes_a_node_that_connects_anew_or_moves_for_one():
    assert watched((0, b"1", "tcp://a:1"), (1, b"2", "tcp://a:1"), (2, b"2", "tcp://a:1")) == (0, [])
    assert watched((0, b"1", "tcp://a:1"), (1, b"2", "tcp://b:1"), (9, b"3", "tcp://c:1")) == (0, [1, 9])


def test_a_server_asks_and_tells_no_more_often_than_that():
    words = [(number / 100, b"%d" % (number % 2), f"tcp://host-{number % 2}:1") for number in range(500)]
    found, asked = watched(*words)
    assert found == 1
    assert len(asked) <= 1


def test_a_server_remembers_only_so_many_and_reads_nothing_into_nonsense(monkeypatch):
    monkeypatch.setattr(duplicate_watch, "MAX_IDENTITIES", 3)
    watch = DuplicateWatch()
    request = service.REQUEST_CLUSTER_ROUTES
    for number in range(10):
        assert watch.heard(b"1", request, said("tcp://a:1", b"%d" % number, request), 0) is None
    assert len(watch._speakers) == 3
    for frames in ([b""], [b"x"] * 30, encode(service.service_message(service.PING).replace(body=b"\xff" * 50))):
        assert watch.heard(b"2", request, frames, 1) is None
    assert watch.heard(b"2", service.PING, encode(service.service_message(service.PING)), 1) is None
    assert len(watch._speakers) == 3
