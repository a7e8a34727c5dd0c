"""Five nodes and two rendezvous servers, each a process of its own, and what happens when any of them dies.

Each test says from when the time is measured in which the routes must be right again: three heartbeats. A node that
is killed or stopped is given up after two missing heartbeats here, so its time can begin with the fault itself.
"""

import asyncio
import time

import pytest
from tests.cluster.node_process import Block, Change, ExtraActor, Name, Never, Who
from tests.cluster.processes import EXTRA, HEARTBEAT, MISSES, NODES, SOON, Processes, running, within

import framewire as fw

KNOWN = {"a": ["left"], "b": ["right"]}
"""The servers of the nodes that do not know both."""


@pytest.fixture(scope="module", params=["compiled", pytest.param("pure", marks=pytest.mark.long)])
def cluster(request):
    with running(pure=request.param == "pure") as made:
        yield made


def some(names, *, of):
    """Some cases for every day, and all of them for the long run."""
    return pytest.mark.parametrize(
        "name", [name if name in names else pytest.param(name, marks=pytest.mark.long) for name in of]
    )


def test_five_nodes_behind_two_servers_all_know_and_answer_each_other(cluster):
    async def main():
        async with cluster.observer() as observer:
            assert await cluster.answering(observer) == set(NODES)
            answers = [await observer.hub.ask(Who(), Name, to_node=node) for node in cluster.alive.values()]
            assert not cluster.pure or not any(answer.compiled for answer in answers)

    within(60, main())


@some(["left"], of=["left", "right"])
def test_a_server_may_be_killed_and_started_again(cluster, name):
    async def main():
        async with cluster.observer() as observer:
            cluster.kill(name)
            assert await cluster.answering(observer) == set(NODES)
            cluster.kill("e")
            cluster.launch("e")  # known to all but those who know only the server that is gone
            blind = {"left": "a", "right": "b"}[name]
            await known_to_all_but(blind, observer)
            cluster.serve(name)
            await cluster.settled(observer, SOON)
            assert await cluster.answering(observer) == set(NODES)

    async def known_to_all_but(blind, observer):
        deadline = time.monotonic() + SOON
        while True:
            tables = await cluster.tables(observer)
            if all(cluster.identities["e"] in (table or ()) for node, table in tables.items() if node != blind):
                return
            assert time.monotonic() < deadline, tables

    within(60, main())


def test_what_changed_while_all_servers_were_down_is_known_one_heartbeat_after_they_are_back(cluster):
    """The time is measured from when the servers say that they listen."""

    async def main():
        async with cluster.observer() as observer:
            await observer.hub.ask(Change(there=True), Name, to_node=cluster.identities["d"])
            await cluster.settled(observer, SOON, message=EXTRA, handlers="d")
            cluster.kill("left")
            cluster.kill("right")
            await observer.hub.ask(Change(there=False), Name, to_node=cluster.identities["d"])
            for name in "bc":
                await observer.hub.ask(Change(there=True), Name, to_node=cluster.identities[name])
            tables = await cluster.tables(observer, EXTRA)
            assert tables["observer"] == {cluster.identities["d"]}, "nobody could tell"
            assert await cluster.answering(observer) == set(NODES), "what is known goes on working"
            cluster.serve("left", "right")
            await cluster.settled(observer, HEARTBEAT, message=EXTRA, handlers="bc")
            for name in "bc":
                await observer.hub.ask(Change(there=False), Name, to_node=cluster.identities[name])
            await cluster.settled(observer, SOON, message=EXTRA, handlers="")

    within(60, main())


@some(["c"], of=NODES)
def test_a_node_that_is_killed_is_gone_from_all_tables_and_known_when_it_is_back_on_its_port(cluster, name):
    """The times are measured from the kill, and from when the new process says that it listens."""

    async def main():
        async with cluster.observer() as observer:
            place = cluster.addresses[name]
            cluster.kill(name)
            await cluster.settled(observer, SOON)
            assert await cluster.answering(observer) == set(NODES) - {name}
            cluster.launch(name, servers=KNOWN.get(name, ()))
            assert cluster.addresses[name] == place
            await cluster.settled(observer, SOON)
            assert await cluster.answering(observer) == set(NODES)

    within(60, main())


def test_a_node_that_is_back_on_its_port_before_it_is_missed_is_known_and_its_forerunner_is_forgotten(cluster):
    """The time is measured from when the new process says that it listens."""

    async def main():
        async with cluster.observer() as observer:
            cluster.kill("d")
            cluster.launch("d")
            await cluster.settled(observer, SOON)
            assert await cluster.answering(observer) == set(NODES)

    within(60, main())


def test_asks_that_wait_for_a_node_that_is_killed_end_as_unreachable_by_its_misses(cluster):
    """The time is measured from the kill."""

    async def main():
        async with cluster.observer() as observer:
            asking = [
                asyncio.create_task(observer.hub.ask(Never(), Name, to_node=cluster.identities["c"], timeout=60))
                for _ in range(100)
            ]
            await observer.hub.ask(Who(), Name, to_node=cluster.identities["c"])  # they came before this
            began = time.monotonic()
            cluster.kill("c")
            done, waiting = await asyncio.wait(asking, timeout=SOON)
            assert not waiting
            assert time.monotonic() - began > HEARTBEAT * (MISSES - 1), "not before its misses"
            assert all(isinstance(ended.exception(), fw.Unreachable) for ended in done)
            cluster.launch("c")
            await cluster.settled(observer, SOON)

    within(60, main())


@some(["d"], of=NODES)
def test_a_node_that_stands_still_for_five_seconds_is_gone_meanwhile_and_known_when_it_goes_on(cluster, name):
    """The times are measured from the stop, and from when it goes on."""

    async def main():
        async with cluster.observer() as observer:
            stands_still = time.monotonic()
            with cluster.stopped(name):
                await cluster.settled(observer, SOON)
                assert await cluster.answering(observer) == set(NODES) - {name}
                await asyncio.sleep(max(0.0, stands_still + 5 - time.monotonic()))  # the standing still itself
            await cluster.settled(observer, SOON)
            assert await cluster.answering(observer) == set(NODES)

    within(60, main())


@pytest.mark.parametrize("seconds", [2 * HEARTBEAT * MISSES, pytest.param(30.0, marks=pytest.mark.long)])
def test_a_handler_that_blocks_does_not_make_its_node_look_dead_and_is_reported_as_stalled(cluster, seconds):
    async def main():
        async with cluster.observer() as observer:
            blocked = cluster.identities["b"]
            asking = asyncio.create_task(observer.hub.ask(Block(seconds), Name, to_node=blocked, timeout=60))
            others = {"observer": observer.identity, **cluster.alive}
            del others["b"]
            began = time.monotonic()
            while not asking.done():
                tables = await cluster.tables(observer) if time.monotonic() - began > seconds / 2 else {}
                assert all(blocked in tables[name] for name in tables.keys() & others.keys())
                await asyncio.wait([asking], timeout=HEARTBEAT / 4)
            assert (await asking).name.endswith("block"), "the stall was reported while it lasted"
            stats = await observer.hub.ask(fw.NodeInfo(), fw.NodeStats, to_node=blocked, timeout=5)
            assert stats.stalls >= 1
            await cluster.settled(observer, SOON)

    within(90, main())


def test_static_peers_as_processes_survive_a_kill_without_any_server():
    """The times are measured from the kill, and from when the new process says that it listens."""
    made = Processes({})

    async def main():
        made.launch("a")
        made.launch("b", peers=[made.addresses["a"]])
        made.launch("c", peers=[made.addresses["a"], made.addresses["b"]])
        async with made.observer(peers=list(made.addresses.values())) as observer:
            made.kill("b")
            route = await observer.host(ExtraActor())
            await observer.unhost(route)
            await made.settled(observer, SOON)
            made.launch("b", peers=[made.addresses["a"]])
            await made.settled(observer, SOON)
            assert await made.answering(observer) == set("abc")
            assert not observer.dead_letters.counts, "what a node tells of itself is no dead letter"

    try:
        within(60, main())
    finally:
        made.close()
