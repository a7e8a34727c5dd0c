"""A stranger that calls itself like a member: it gets nothing of what is meant for that one."""

import asyncio
import contextlib

import pytest
from fuzz import forging, zmtp
from tests.cluster.clustering import Named, acquainted, handled_by, make_node, served, uri_of
from tests.cluster.strangers import MODES, Cluster
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

from framewire.wire import Message, MessageId, RouterAddress

MADE_UP = b"made up"
OTHER = b"other.question"


def lure(uri):
    """A question that nobody handles, of a made-up node: to tell it so, the asked one connects to where it says."""
    asked = Message(
        OTHER,
        callback_receiver_identity=b"\0hub",
        callback_receiver_node_identity=MADE_UP,
        callback_points=(MessageId(b"other.answer"), MessageId(b"KINO.EXCEPTION")),
        callback_key=1,
        routing=(RouterAddress(uri, MADE_UP),),
        hops=1,
    )
    return forging.question(asked)


@pytest.mark.parametrize("way", ["asks", "announces itself"])
@pytest.mark.parametrize("mode", MODES)
def test_a_stranger_that_calls_itself_like_a_member_gets_none_of_its_messages(mode, way, tmp_path):
    cluster = Cluster(mode, tmp_path)

    async def main(server):
        async with (
            make_node(server, **cluster.node_options) as asker,
            make_node(server, **cluster.node_options) as victim,
        ):
            await victim.host(Named("victim"))
            await acquainted(asker, victim)
            await handled_by(1, asker)
            with zmtp.Listener() as trap, contextlib.ExitStack() as held:
                lured = await asyncio.to_thread(attack, held, uri_of(asker), trap, victim.identity)
                assert (lured is None) == (mode == "curve")
                for _ in range(50):
                    assert (await asker.hub.ask(Question(), Answer)).text == "victim"
                if lured is not None:
                    lured.connection.setblocking(False)
                    with pytest.raises(BlockingIOError):
                        lured.connection.recv(1)

    def attack(held, front, trap, victim):
        try:
            stranger = held.enter_context(zmtp.connect(front, b"DEALER", b"stranger"))
        except ConnectionError:
            return None
        if way == "announces itself":
            stranger.send(forging.announcement(MADE_UP, trap.uri, routes=[(b"\1any", [b"other.answer"])]))
        stranger.send(lure(trap.uri))
        with contextlib.suppress(TimeoutError):
            return held.enter_context(trap.accept(b"ROUTER", victim, timeout=2))
        return None

    run(served(main, **cluster.server_options))


@pytest.mark.parametrize("mode", MODES)
def test_a_member_that_is_started_again_on_another_port_is_reached_there(mode, tmp_path):
    cluster = Cluster(mode, tmp_path)

    async def main(server):
        async with make_node(server, **cluster.node_options) as asker:
            for name in ("first", "second", "third"):
                async with make_node(server, identity="same", **cluster.node_options) as member:
                    await member.host(Named(name))
                    await eventually(lambda member=member: asker._transport.uri_of(b"same") == uri_of(member))
                    await handled_by(1, asker)
                    assert (await asker.hub.ask(Question(), Answer)).text == name
                    member._transport._announcer.leave = lambda: None  # as if it were killed

    run(served(main, **cluster.server_options))
