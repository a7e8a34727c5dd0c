"""Rendezvous servers that speak ZMTP 2.0, as kino's do: libzmq tells nothing of their handshakes."""

import asyncio
import socket
import time

import pytest
from tests.cluster.clustering import acquainted, make_node, peers, served, uri_of
from tests.cluster.interop import Host, OurEcho, OurReply, node_at
from tests.cluster.zmtp2 import OldRendezvous
from tests.node.running import eventually, run

import framewire as fw

LONG_S = 60.0
"""Heartbeats and questions that come too late to explain anything."""


def patient(server, **options):
    servers = [(server.unicast, server.broadcast)]
    return make_node(rendezvous=servers, heartbeat=LONG_S, rediscover=LONG_S, **options)


def test_nodes_meet_at_a_server_that_speaks_zmtp_2():
    async def main():
        async with OldRendezvous() as server, node_at(server) as one, node_at(server) as two:
            await asyncio.wait_for(one.joined(), 5)
            await acquainted(one, two)
            await two.host(Host())
            assert await one.hub.ask(OurEcho(b"abc"), OurReply) == b"cba"

    run(main())


async def within_a_second(tried):
    """Try up to three times: a busy machine may be slow once."""
    for _ in range(3):
        if await tried() < 1:
            return
    raise AssertionError("in three tries it took more than a second")


@pytest.mark.parametrize("identity", [None, "configured"])
def test_a_node_that_knows_only_a_follower_is_known_at_the_leader_within_a_second(identity):
    async def main():
        async with OldRendezvous() as follower, OldRendezvous() as leader:
            follower.leader = leader
            async with patient(leader) as one:
                await eventually(lambda: b"KINO.REGEXTROUTE" in leader.told)

                async def tried():
                    began = time.monotonic()
                    async with patient(follower, **({"identity": identity} if identity else {})) as two:
                        await eventually(lambda: two.identity in peers(one))
                        took = time.monotonic() - began
                        await eventually(lambda: one.identity in peers(two))
                        assert two.has_joined
                    await eventually(lambda: two.identity not in peers(one))
                    return took

                await within_a_second(tried)

    run(main())


def test_a_node_that_is_sent_to_other_servers_is_known_there_within_a_second():
    async def main():
        async with OldRendezvous() as old, OldRendezvous() as new, patient(new) as one:
            await asyncio.wait_for(one.joined(), 5)

            async def tried():
                async with patient(old) as two:
                    await asyncio.wait_for(two.joined(), 5)
                    began = time.monotonic()
                    old.reconfigure(new)
                    await eventually(lambda: two.identity in peers(one))
                    took = time.monotonic() - began
                    assert two._transport._ways.servers == ((new.unicast, new.broadcast),)
                return took

            await within_a_second(tried)

    run(main())


def test_a_node_of_a_configured_identity_is_checked_at_a_server_that_speaks_zmtp_2():
    async def main():
        async with OldRendezvous() as server, node_at(server, identity="same"):
            with pytest.raises(fw.ConfigError, match="is the identity of another node"):
                await node_at(server, identity="same").start()

    run(main())


def test_a_connection_without_a_word_is_no_server_that_was_reached():
    """As one to a process that stands still: the system accepts connections for it."""

    async def main():
        with socket.create_server(("127.0.0.1", 0)) as frozen, socket.create_server(("127.0.0.1", 0)) as also:
            places = tuple(f"tcp://127.0.0.1:{each.getsockname()[1]}" for each in (frozen, also))
            assumed = []
            node = make_node(rendezvous=[places], identity="configured")
            try:
                starting = asyncio.create_task(node.start())
                await eventually(lambda: hasattr(node._transport, "_ways"))
                way = node._transport._ways._servers[places]
                assume, way._assumed = way._assumed, lambda: (assumed.append(1), assume())
                await starting
                await eventually(lambda: assumed)
                assert not node.has_joined
                assert not node._transport._namesakes.is_held
            finally:
                await node.stop(0)

    run(main())


def test_a_peer_that_speaks_a_later_protocol_is_told_of_once():
    async def main(server):
        async with make_node(server, heartbeat=LONG_S) as one:
            assumed = []
            for way in one._transport._ways._servers.values():
                way._assumed = lambda: assumed.append(1)
            await asyncio.wait_for(one.joined(), 5)
            async with make_node(peers=[uri_of(one)], heartbeat=LONG_S) as two:
                await acquainted(one, two)
            assert not assumed

    run(served(main))
