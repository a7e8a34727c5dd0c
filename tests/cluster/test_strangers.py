"""Where a node connects because a stranger says so: to how many nodes, to which addresses, and for what."""

import asyncio
import contextlib
import socket
import threading

import pytest
import zmq
from fuzz import forging, zmtp
from tests.cluster.clustering import Named, acquainted, handled_by, make_node, peers, uri_of
from tests.cluster.strangers import MODES, Cluster, attacked, intruder
from tests.cluster.test_stolen_names import MADE_UP, lure
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run, until

import framewire as fw
from framewire.cluster import service
from framewire.cluster.resolver import MAX_THREADS
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.strangers import Strangers, max_connections
from framewire.wire import Message, RouterAddress, encode

WHERE = "tcp://192.0.2.1:7500"
"""An address of documentation: nobody is there."""


def admits(uri, *own, configured=()):
    try:
        Strangers(own or (WHERE,), configured, lambda: 0.0).admit(uri)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "uri",
    [
        "tcp://127.0.0.1:22",
        "tcp://127.8.8.8:22",
        "tcp://127.1:22",
        "tcp://2130706433:22",
        "tcp://localhost:22",
        "tcp://0.0.0.0:22",
        "tcp://[::1]:22",
        "tcp://[::]:22",
        "tcp://[::ffff:127.0.0.1]:22",
        "ipc:///run/somebody",
    ],
)
def test_an_address_of_this_machine_is_refused_unless_the_node_is_there_itself(uri):
    assert not admits(uri)
    assert not admits(uri, "tcp://0.0.0.0:7500", WHERE), "it listens everywhere, but is not reached there"
    assert admits(uri, "tcp://127.0.0.1:7500")
    assert admits(uri, "ipc:///here")
    assert admits(uri, configured=["tcp://127.0.0.1:7400"])


def test_another_address_of_this_machine_is_refused_unless_the_node_listens_there(monkeypatch):
    monkeypatch.setattr("framewire.cluster.strangers._is_of_this_machine", lambda _: True)
    assert not admits("tcp://192.0.2.2:22")
    assert admits("tcp://192.0.2.1:22")
    assert admits("tcp://192.0.2.2:22", "tcp://0.0.0.0:7500")


def test_what_is_an_address_of_this_machine_is_found_out():
    from framewire.cluster.strangers import _host, _is_of_this_machine  # noqa: PLC0415

    assert _is_of_this_machine(_host("tcp://127.0.0.1:1"))
    assert not _is_of_this_machine(_host(WHERE))


def test_other_addresses_and_names_are_admitted_but_never_its_own():
    assert admits("tcp://192.0.2.77:7500")
    assert admits("tcp://node-7.example:7500")
    assert not admits(WHERE)


def test_new_nodes_are_admitted_at_a_rate():
    now = 0.0
    strangers = Strangers((WHERE,), (), lambda: now)

    def admitted(count):
        done = 0
        for _ in range(count):
            with contextlib.suppress(ValueError):
                strangers.admit("tcp://192.0.2.77:7500")
                done += 1
        return done

    assert admitted(5000) == 2000
    now = 1.0
    assert admitted(5000) == 100


@pytest.mark.parametrize("way", ["asks", "announces itself", "says where its heartbeats are heard"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_open", [True, False])
def test_a_closed_node_connects_nowhere_because_a_stranger_says_so(mode, way, is_open, tmp_path):
    cluster = Cluster(mode, tmp_path)
    if mode == "open" and not is_open:
        with pytest.raises(fw.ConfigError, match="neither domain keys"):
            fw.Node(open=False)
        return

    async def main():
        options = {"open": is_open, **cluster.node_options}
        async with make_node(**options) as node, make_node(peers=[uri_of(node)], **options) as member:
            await member.host(Named("member"))
            await acquainted(node, member)
            with zmtp.Listener() as trap, contextlib.ExitStack() as held:
                try:
                    stranger = held.enter_context(
                        await asyncio.to_thread(zmtp.connect, uri_of(node), b"DEALER", b"stranger")
                    )
                except ConnectionError:
                    assert mode == "curve"
                    return
                health = trap.uri if way == "says where its heartbeats are heard" else ""
                if way != "asks":
                    stranger.send(forging.announcement(MADE_UP, trap.uri, health=health))
                    await eventually(lambda: (MADE_UP in peers(node)) or node.dead_letters.counts.total())
                stranger.send(lure(trap.uri))
                await eventually(lambda: node.dead_letters.counts[fw.Reason.NO_ROUTE])
                if is_open:
                    held.enter_context(await asyncio.to_thread(trap.take))
                else:
                    assert MADE_UP not in node._transport._places
                    assert trap.uri not in {uri for uri, _ in node._transport._liveness._ears}
                    with pytest.raises(TimeoutError):
                        await asyncio.to_thread(trap.take, timeout=0.5)
                await handled_by(1, node)
                assert (await node.hub.ask(Question(), Answer)).text == "member"

    run(main())


@pytest.mark.parametrize("way", ["asks", "announces itself", "says where its heartbeats are heard"])
@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_a_name_counts_as_the_addresses_that_it_stands_for(mode, way, is_local, monkeypatch, tmp_path):
    cluster = Cluster(mode, tmp_path)
    system = socket.getaddrinfo

    def look_up(host, *arguments, **options):
        return system("127.0.0.1" if host == "trap.example" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def main():
        async with make_node(**cluster.node_options) as node:
            if not is_local:  # as if it were elsewhere
                node._transport._strangers = Strangers((WHERE,), (), asyncio.get_running_loop().time)
            with zmtp.Listener() as trap, intruder(mode, uri_of(node)) as stranger:
                if stranger is None:
                    return
                uri = trap.uri.replace("127.0.0.1", "trap.example")
                if way == "says where its heartbeats are heard":
                    stranger.send(forging.announcement(MADE_UP, "tcp://192.0.2.77:7500", health=uri))
                else:
                    if way == "announces itself":
                        stranger.send(forging.announcement(MADE_UP, uri))
                    stranger.send(lure(uri))
                await eventually(lambda: MADE_UP in node._transport._places)
                if is_local:
                    (await asyncio.to_thread(trap.take)).close()
                else:
                    await eventually(lambda: node._transport._resolver.known(uri) == (trap.uri,))
                    with pytest.raises(TimeoutError):
                        await asyncio.to_thread(trap.take, timeout=0.5)

    run(main())


@pytest.mark.parametrize("mode", MODES)
def test_the_names_of_members_that_sign_are_looked_up_where_strangers_keep_the_name_server_waiting(
    mode, monkeypatch, tmp_path
):
    cluster, system, over = Cluster(mode, tmp_path), socket.getaddrinfo, threading.Event()

    def look_up(host, *arguments, **options):
        if host.startswith("silent"):
            assert over.wait(30)
        return system("127.0.0.1" if host.endswith(".example") else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def main():
        async with make_node(**cluster.node_options) as node:
            with intruder(mode, uri_of(node)) as stranger:
                if stranger is not None:
                    for number in range(MAX_THREADS + 4):
                        name = f"tcp://silent-{number}.example:9"
                        stranger.send(forging.announcement(b"made up %d" % number, name, health=name))
                    await eventually(lambda: node._transport._resolver._running == MAX_THREADS)
                named = {"bind": "tcp://127.0.0.1:*", "advertise": "tcp://member.example:*"}
                async with make_node(peers=[uri_of(node)], **named, **cluster.node_options) as member:
                    await member.host(Named("member"))
                    await handled_by(1, node)
                    asked = node.hub.ask(Question(), Answer, timeout=10 if mode != "open" else 0.5)
                    if mode == "open":
                        with pytest.raises(fw.MessageError):
                            await asked
                    else:
                        assert (await asked).text == "member"
                over.set()

    try:
        run(main())
    finally:
        over.set()


@pytest.mark.parametrize("mode", MODES)
def test_nothing_of_a_signed_domain_goes_to_a_node_that_was_announced_without_a_signature(mode, tmp_path):
    cluster = Cluster(mode, tmp_path)

    async def main():
        async with make_node(**cluster.node_options) as node:
            with zmtp.Listener() as trap, intruder(mode, uri_of(node)) as stranger:
                if stranger is None:
                    return
                stranger.send(forging.announcement(b"member", trap.uri))
                await eventually(lambda: b"member" in peers(node))
                if mode == "open":
                    await node.hub.tell(Question(), to_node=b"member")
                    with await asyncio.to_thread(trap.accept, b"ROUTER", b"member") as sent:
                        assert b"test.question" in await asyncio.to_thread(sent.receive)
                    return
                with pytest.raises(fw.BadSignature, match="known only by what nobody signed"):
                    await node.hub.ask(Question(), Answer, to_node=b"member")
                with pytest.raises(TimeoutError):
                    await asyncio.to_thread(trap.take, timeout=0.2)

    run(main())


def test_a_member_that_a_stranger_announced_before_it_did_itself_gets_its_answers(tmp_path):
    cluster = Cluster("signed", tmp_path)

    async def main():
        async with make_node(**cluster.node_options) as node:
            await node.host(Named("node"))
            with zmtp.Listener() as trap, zmtp.connect(uri_of(node), b"DEALER", b"stranger") as stranger:
                stranger.send(forging.announcement(b"member", trap.uri))
                await eventually(lambda: b"member" in peers(node))
                told = {"identity": "member", "peers": [uri_of(node)], **cluster.node_options}
                async with make_node(**told) as member:
                    await handled_by(1, member)
                    assert (await member.hub.ask(Question(), Answer)).text == "node"
                    assert node._transport.uri_of(b"member") == uri_of(member)
                    with pytest.raises(TimeoutError):
                        await asyncio.to_thread(trap.take, timeout=0.2)

    run(main())


def test_those_who_only_ask_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("framewire.cluster.transport._MAX_MET", 5)

    async def main():
        async with make_node() as node:
            with zmtp.connect(uri_of(node)) as stranger:
                for number in range(20):
                    asked = lure("tcp://127.0.0.1:9")
                    stranger.send([frame.replace(MADE_UP, b"made up %d" % number) for frame in asked])
                await eventually(lambda: b"made up 19" in node._transport._places)
            assert len(node._transport._met) == 5
            assert len(node._transport._places) == 5

    run(main())


@pytest.mark.parametrize("mode", MODES)
def test_a_member_that_signs_finds_a_place_where_strangers_have_taken_all(mode, monkeypatch, tmp_path):
    monkeypatch.setattr("framewire.cluster.transport._MOST_PEERS", 5)
    cluster = Cluster(mode, tmp_path)

    async def main():
        async with make_node(**cluster.node_options) as node:
            with intruder(mode, uri_of(node)) as stranger:
                if stranger is not None:
                    for number in range(8):
                        stranger.send(forging.announcement(b"made up %d" % number, "tcp://127.0.0.1:9"))
                    await eventually(lambda: node.dead_letters.counts[fw.Reason.MALFORMED] == 3)
                async with make_node(peers=[uri_of(node)], **cluster.node_options) as member:
                    await member.host(Named("member"))
                    if mode == "open":
                        await eventually(lambda: node.dead_letters.counts[fw.Reason.MALFORMED] > 3)
                        assert member.identity not in peers(node)
                        return
                    await handled_by(1, node)
                    assert (await node.hub.ask(Question(), Answer)).text == "member"
                    assert len(node._transport._places) == (5 if mode == "signed" else 1)

    run(main())


@contextlib.contextmanager
def made_up_nodes(count):
    """Nodes that are there and give signs of life, and that nobody vouches for: what they announce."""
    stopped = threading.Event()

    def beat():
        while not stopped.wait(0.05):
            for announced, heart in hearts:
                heart.send_multipart(forging.heartbeat(announced[0], announced[2], 1.0))

    with zmq.Context() as context, contextlib.ExitStack() as held:
        context.linger = 0
        hearts = []
        for number in range(count):
            front, heart = (
                held.enter_context(context.socket(zmq.ROUTER)),
                held.enter_context(context.socket(zmq.PUB)),
            )
            front.routing_id = name = b"made up %d" % number
            uri, health = (
                f"tcp://127.0.0.1:{each.bind_to_random_port('tcp://127.0.0.1')}" for each in (front, heart)
            )
            hearts.append(((name, uri, health), heart))
        beating = threading.Thread(target=beat)
        beating.start()
        try:
            yield [forging.announcement(name, uri, health=health) for (name, uri, health), _ in hearts]
        finally:
            stopped.set()
            beating.join()


FILES = 128


async def joins(target, cluster):
    """A new member comes, and asks a node."""
    async with make_node(peers=[target.uri], misses=50, **cluster.node_options) as member:
        await handled_by(1, member)
        assert (await member.hub.ask(Question(), Answer, timeout=10)).text == "attacked"


@pytest.mark.parametrize("mode", MODES)
def test_made_up_nodes_take_a_part_of_the_open_files_where_members_sign(mode, tmp_path):
    cluster = Cluster(mode, tmp_path)
    with attacked("node", cluster, files=FILES) as target, made_up_nodes(FILES) as announced:
        with intruder(mode, target.uri) as stranger:
            if stranger is not None:
                asks = encode(
                    service.service_message(
                        service.REQUEST_CLUSTER_ROUTES, requestor_uri=WHERE, requestor_node_identity=b"made up"
                    )
                )
                for frames in announced:
                    stranger.send(frames)
                used = 100 if mode == "open" else 60

                def are_used():
                    stranger.send(asks)  # to whoever has announced itself it answers, straight
                    return target.files >= used

                until(are_used, 20)
            if mode != "open":  # there, nothing tells a member from a stranger
                # Not ``run``, which counts files: those of the made-up nodes come and go.
                asyncio.run(asyncio.wait_for(joins(target, cluster), 20))
        assert target.is_alive


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["node", "server"])
def test_connections_that_say_nothing_use_up_the_open_files_and_the_process_goes_on_after_them(
    kind, mode, tmp_path
):
    cluster = Cluster(mode, tmp_path)
    with attacked(kind, cluster, files=FILES) as target:
        host, _, port = target.uri.removeprefix("tcp://").rpartition(":")
        with contextlib.ExitStack() as held:
            for _ in range(FILES):
                held.enter_context(socket.create_connection((host, int(port)), timeout=10))
            until(lambda: target.files > FILES - 5, 20)
        until(lambda: target.files < FILES // 2, 20)
        assert target.is_alive
        if kind == "node":
            run(joins(target, cluster))


@pytest.mark.parametrize("mode", MODES)
def test_a_message_that_never_ends_takes_memory_until_its_connection_ends(mode, tmp_path):
    cluster = Cluster(mode, tmp_path)
    with attacked("node", cluster) as target:
        before = target.memory
        with intruder(mode, target.uri) as stranger:
            if stranger is None:
                return
            for _ in range(30):
                stranger.connection.sendall(b"\3" + (1 << 20).to_bytes(8, "big") + bytes(1 << 20))
            until(lambda: target.memory - before > 25 << 20, 20)
        until(lambda: target.memory - before < 15 << 20, 20)
        run(joins(target, cluster))


def test_connections_to_strangers_are_a_share_of_the_files_that_may_be_open(monkeypatch):
    for files, most in ((1024, 128), (64, 16), (-1, 8192)):
        monkeypatch.setattr("resource.getrlimit", lambda _, files=files: (files, files))
        assert max_connections() == most


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("said", [forging.leader, forging.reconfiguration], ids=["leader", "reconfiguration"])
def test_a_closed_node_follows_no_server_that_is_named_without_a_signature(said, is_open, mode, tmp_path):
    cluster = Cluster(mode, tmp_path)
    if mode == "open" and not is_open:
        return  # a node without keys cannot be closed

    async def main():
        with zmq.Context() as context, context.socket(zmq.ROUTER) as front, context.socket(zmq.PUB) as voice:
            context.linger = 0
            places = tuple(
                f"tcp://127.0.0.1:{one.bind_to_random_port('tcp://127.0.0.1')}" for one in (front, voice)
            )
            options = {"rendezvous": [places], "open": is_open, **cluster.node_options}
            async with make_node(**options) as node:
                with zmtp.Listener() as trap:

                    def is_led_away():
                        voice.send_multipart(said(trap.uri))
                        return any(unicast == trap.uri for unicast, _ in node._transport._ways.servers)

                    if is_open and mode != "curve":
                        await eventually(is_led_away)
                        (await asyncio.to_thread(trap.take)).close()
                        return
                    if mode == "signed":
                        await eventually(lambda: is_led_away() or node.dead_letters.counts[fw.Reason.BAD_SIGNATURE])
                    with pytest.raises(TimeoutError):
                        await asyncio.to_thread(trap.take, timeout=0.5)
                    assert not is_led_away()

    run(main())


def test_open_is_true_or_false():
    with pytest.raises(fw.ConfigError, match="open: 'no'; must be true or false"):
        ClusterSettings(open="no")


def forged(node, key, flow):
    """An exception for a hub, as if a handler had failed."""
    return forging.question(
        Message(
            b"KINO.EXCEPTION",
            body_frames=(b"forged",),
            receiver_identity=node.hub.identity,
            receiver_node_identity=node.identity,
            callback_receiver_identity=node.hub.identity,
            callback_receiver_node_identity=node.identity,
            callback_points=(fw.MessageId(b"KINO.EXCEPTION"),),
            callback_key=key,
            correlation_id=flow,
            routing=(RouterAddress("tcp://127.0.0.1:9", b"stranger"),),
            hops=1,
        )
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("listens", [False, True])
def test_an_ask_is_ended_only_by_those_who_know_its_flow(listens, mode, tmp_path):
    cluster = Cluster(mode, tmp_path)

    async def main():
        options = cluster.node_options
        async with make_node(**options) as node, make_node(peers=[uri_of(node)], **options) as member:
            finish = asyncio.Event()

            @member.handler(Question)
            async def answer(_):
                await finish.wait()
                return Answer("member")

            await handled_by(1, node)
            told = {"correlation_id": b"overheard"} if listens else {}
            asked = node.hub.start(Question(), Answer, timeout=15, **told)
            with intruder(mode, uri_of(node)) as stranger:
                if stranger is None:
                    finish.set()
                    return
                for key in range(100):
                    stranger.send(forged(node, key, b"overheard" if listens else b"guessed"))
                if listens:
                    with pytest.raises(fw.MessageError):
                        await asked
                    finish.set()
                    return
                await eventually(lambda: node.dead_letters.counts[fw.Reason.UNKNOWN_REPLY] == 100)
                finish.set()
                assert (await asked).text == "member"

    run(main())
