"""Framewire nodes that stop, restart or look in for a moment beside a kino node, whose table must not be harmed."""

import asyncio
import contextlib
import json
import sys

import pytest
from tests.cluster.interop import Host, node_at, together
from tests.cluster.kino_peer import KinoNode, KinoRendezvous, living
from tests.cluster.kino_table import BrokenRouteError, ExternalTable, Known
from tests.node.running import eventually, run

THERE = Known("tcp://127.0.0.1:1", "tcp://127.0.0.1:2", 1.0)
ANSWER_S = 10


def known_table():
    table = ExternalTable()
    table.register(b"one", THERE, [(b"\x01a", [b"m1", b"m2", b"m3"])])
    table.register(b"two", THERE, [(b"\x01b", [b"m1", b"m2", b"m3"])])
    return table


def test_kinos_table_breaks_where_an_actor_is_taken_off_with_several_messages():
    """As seen live, with kino's nodes and with nodes of an older framewire that stopped."""
    table = known_table()
    table.unregister(b"one", [(b"\x01a", [b"m1", b"m2", b"m3"])])
    assert [table.next(b"m3") for _ in range(3)] == [b"two"] * 3
    with pytest.raises(BrokenRouteError):
        table.next(b"m1")
    assert table.next(b"m1") == b"two"
    with pytest.raises(BrokenRouteError):
        table.next(b"m1")
    with pytest.raises(BrokenRouteError):
        table.all(b"m2")
    table.remove(b"one")
    with pytest.raises(BrokenRouteError):
        table.all(b"m2")


def test_kinos_table_takes_off_all_actors_of_a_node_where_none_is_named():
    table = known_table()
    table.register(b"one", THERE, [(b"\x01c", [b"m1"])])
    table.unregister(b"one", [(b"", [b"m1", b"m2"]), (b"", [b"m1"])])
    assert table.all(b"m1") == table.all(b"m2") == [b"two"]
    assert table.all(b"m3") == [b"one", b"two"]


def test_kinos_table_refuses_an_unregistration_without_messages():
    with pytest.raises(ValueError, match="without contracts"):
        known_table().unregister(b"one", [(b"\x00hub", [])])


@contextlib.asynccontextmanager
async def beside_kino(count):
    """A kino node, and framewire nodes that host the same; each is known."""
    server = KinoRendezvous()
    kino = KinoNode(server.unicast, server.broadcast, {})
    async with living(server, kino), contextlib.AsyncExitStack() as stack:
        kino.register()

        async def start():
            node, host = node_at(server), Host()
            await node.start()
            stack.push_async_callback(node.stop)
            await node.host(host)
            await eventually(lambda: b"fw.echo" in kino.table.handled_by(node.identity))
            return node, host

        yield kino, [await start() for _ in range(count)], start


async def asking(kino, outcomes):
    """Ask without end, one after the other, whichever node's turn it is."""
    while True:
        number = str(len(outcomes))
        key = kino.ask_any(b"fw.echo", number.encode(), b"fw.reply")
        with contextlib.suppress(AssertionError):
            await eventually(lambda key=key: key in kino.answers, ANSWER_S)
        outcomes.append(kino.answers.pop(key).body.decode() == number[::-1] if key in kino.answers else False)


def test_a_rolling_restart_of_framewire_nodes_loses_no_ask_and_no_broadcast_of_kino():
    async def main():
        async with beside_kino(2) as (kino, nodes, start):
            outcomes = []
            asker = asyncio.create_task(asking(kino, outcomes))

            async def some_more():
                before = len(outcomes)
                await eventually(lambda: len(outcomes) >= before + 20, 60)

            for number in (0, 1, 0, 1):
                await some_more()
                gone, _ = nodes[number]
                await gone.stop()
                await eventually(lambda gone=gone: gone.identity not in kino.table.nodes)
                await some_more()
                nodes[number] = await start()
            await some_more()
            asker.cancel()
            await asyncio.wait([asker])
            assert len(outcomes) >= 180
            assert outcomes.count(False) == 0
            assert not kino.lost
            kino.broadcast(b"both.news", b"after it all")
            await eventually(lambda: all(host.news for _, host in nodes))

    run(main(), timeout=120)


def test_kino_still_finds_the_actors_that_stay_where_others_leave():
    async def main(node, host, kino):
        leaves = await node.host(Host())
        await eventually(lambda: len(kino.table.actors(node.identity, b"fw.echo")) == 2)
        await node.unhost(leaves)
        await eventually(lambda: len(kino.table.actors(node.identity, b"fw.echo")) == 1)
        assert leaves.receiver not in kino.table.actors(node.identity, b"fw.echo")
        kino.broadcast(b"both.news", b"to those who stay")
        await eventually(lambda: host.news == [b"to those who stay"])
        for _ in range(3):
            kino.ask_any(b"fw.echo", b"abc", b"fw.reply")
            await eventually(lambda: kino.answers.popitem()[1].body == b"cba" if kino.answers else False)

    together(main)


@pytest.mark.parametrize("command", ["ps", "routes", "ping"])
def test_a_command_that_joins_for_a_moment_leaves_nothing_behind_in_kinos_table(command):
    async def main():
        async with beside_kino(1) as (kino, [(node, _)], __):
            server = node._transport._settings.rendezvous[0]
            arguments = [command, "--rendezvous", "|".join(server), "--json", "--wait", "20"]
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "framewire", *arguments, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
            assert process.returncode == 0
            told = json.loads(out)
            assert node.identity.decode() in json.dumps(told)
            if command == "ping":
                found = {each["node"]: (each["kind"], each["answers"], each["problem"]) for each in told["nodes"]}
                assert found == {
                    node.identity.decode(): ("framewire node", 5, None),
                    kino.identity.decode(): ("kino node", 0, None),
                }
            await eventually(lambda: set(kino.table.nodes) == {node.identity})
            handled = {message for messages in map(kino.table.handled_by, kino.table.nodes) for message in messages}
            assert b"FRAMEWIRE.NODEINFO" in handled
            assert all(kino.table.all(message) == [node.identity] for message in handled)

    run(main(), timeout=60)
