"""Where a node connects because a stranger says so: to how many nodes, to which addresses, and for what."""

import asyncio
import contextlib
import socket

import pytest
from fuzz import forging, zmtp
from tests.cluster.clustering import Named, acquainted, handled_by, make_node, peers, served, uri_of
from tests.cluster.strangers import MODES, Cluster
from tests.cluster.test_stolen_names import MADE_UP, lure
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.strangers import Strangers

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
def test_a_name_counts_as_the_addresses_that_it_stands_for(way, is_local, monkeypatch):
    system = socket.getaddrinfo

    def look_up(host, *arguments, **options):
        return system("127.0.0.1" if host == "trap.example" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def main():
        async with make_node() as node:
            if not is_local:  # as if it were elsewhere
                node._transport._strangers = Strangers((WHERE,), (), asyncio.get_running_loop().time)
            with zmtp.Listener() as trap, zmtp.connect(uri_of(node), b"DEALER", b"stranger") as stranger:
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


def test_nothing_of_a_signed_domain_goes_to_a_node_that_was_announced_without_a_signature(tmp_path):
    cluster = Cluster("signed", tmp_path)

    async def main():
        async with make_node(**cluster.node_options) as node:
            with zmtp.Listener() as trap, zmtp.connect(uri_of(node), b"DEALER", b"stranger") as stranger:
                stranger.send(forging.announcement(b"member", trap.uri))
                await eventually(lambda: b"member" in peers(node))
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


def test_a_member_that_signs_finds_a_place_where_strangers_have_taken_all(monkeypatch, tmp_path):
    monkeypatch.setattr("framewire.cluster.transport._MOST_PEERS", 5)
    cluster = Cluster("signed", tmp_path)

    async def main():
        async with make_node(**cluster.node_options) as node:
            with zmtp.connect(uri_of(node), b"DEALER", b"stranger") as stranger:
                for number in range(8):
                    stranger.send(forging.announcement(b"made up %d" % number, "tcp://127.0.0.1:9"))
                await eventually(lambda: node.dead_letters.counts[fw.Reason.MALFORMED] == 3)
                async with make_node(peers=[uri_of(node)], **cluster.node_options) as member:
                    await member.host(Named("member"))
                    await handled_by(1, node)
                    assert (await node.hub.ask(Question(), Answer)).text == "member"
                    assert len(node._transport._places) == 5

    run(main())


def test_a_closed_node_follows_no_server_that_is_named_without_a_signature(tmp_path):
    cluster = Cluster("signed", tmp_path)

    async def main(server):
        async with make_node(server, open=False, **cluster.node_options) as node:
            ways = node._transport._ways
            with socket.create_server(("127.0.0.1", 0)) as trap:
                uri = f"tcp://127.0.0.1:{trap.getsockname()[1]}"
                node._transport._hear(forging.leader(uri))
                node._transport._hear(forging.reconfiguration(uri))
                assert node.dead_letters.counts[fw.Reason.BAD_SIGNATURE] == 2
                assert {unicast for unicast, _ in ways.servers} == {server.uri}

    run(served(main))


def test_open_is_true_or_false():
    with pytest.raises(fw.ConfigError, match="open: 'no'; must be true or false"):
        ClusterSettings(open="no")
