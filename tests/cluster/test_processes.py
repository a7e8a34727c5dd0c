"""Five nodes and two rendezvous servers, each a process of its own, and what happens when any of them dies."""

import asyncio
import contextlib
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cluster.clustering import free_ports
from tests.cluster.node_process import Block, Name, Never, Who
from tests.node.running import eventually

import framewire as fw

SCRIPT = str(Path(__file__).with_name("node_process.py"))
HEARTBEAT, MISSES = 0.2, 5
PATIENCE = HEARTBEAT * MISSES
SOON = 5.0
"""Seconds that a busy machine may take for what should take a few heartbeats."""


def start(*command):
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def line_of(stream, seconds=30):
    """The first line that a process writes."""
    with selectors.DefaultSelector() as ready:
        ready.register(stream, selectors.EVENT_READ)
        assert ready.select(seconds), "the process says nothing"
    return stream.readline().decode()


def end(process):
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.communicate(timeout=10)


class Cluster:
    """Processes by name; a node or a server that is started again gets the address that it had."""

    def __init__(self, uris):
        self.servers = dict(zip(("left", "right"), uris, strict=True))
        self.addresses = {}
        self.identities = {}
        self.processes = {}

    def serve(self, name):
        partners = [f"--partner={uri}" for other, uri in self.servers.items() if other != name]
        self.processes[name] = start(
            *(sys.executable, "-m", "framewire", "rendezvous", self.servers[name], f"--heartbeat={HEARTBEAT}"),
            *partners,
        )

    def launch(self, *names):
        for name in names:
            bind = self.addresses.get(name, "tcp://127.0.0.1:*")
            # Each node knows one of the servers, or both.
            servers = {"a": ["left"], "b": ["right"]}.get(name, ["left", "right"])
            self.processes[name] = start(
                *(sys.executable, SCRIPT, name, bind, str(HEARTBEAT), str(MISSES)),
                *(self.servers[server] for server in servers),
            )
        for name in names:
            identity, self.addresses[name] = line_of(self.processes[name].stdout).split()
            self.identities[name] = identity.encode()

    def kill(self, name):
        end(self.processes.pop(name))

    @contextlib.asynccontextmanager
    async def observer(self):
        """A node of this process that is part of the cluster, once everybody knows everybody."""
        node = fw.Node(
            rendezvous=self.servers.values(), heartbeat=HEARTBEAT, misses=MISSES, signals=False, stop_timeout=0
        )
        async with node:
            await self.settled(node)
            yield node

    async def tables(self, observer):
        """What each node says of whom it knows, besides the observer, and whom that one knows."""
        tables = {"observer": {peer.encode() for peer in observer.stats().peers}}
        for name, identity in self.identities.items():
            if name in self.processes:
                with contextlib.suppress(fw.MessageError):
                    stats = await observer.hub.ask(fw.NodeInfo(), fw.NodeStats, to_node=identity, timeout=1)
                    tables[name] = {peer.encode() for peer in stats.peers} - {observer.identity}
        return tables

    def right_tables(self):
        alive = {name: identity for name, identity in self.identities.items() if name in self.processes}
        tables = {name: set(alive.values()) - {identity} for name, identity in alive.items()}
        return {"observer": set(alive.values()), **tables}

    async def settled(self, observer, seconds=20.0):
        """Wait until all tables are right; how long that took."""
        began = time.monotonic()
        while await self.tables(observer) != self.right_tables():
            assert time.monotonic() - began < seconds, f"{await self.tables(observer)} != {self.right_tables()}"
            await asyncio.sleep(HEARTBEAT / 4)
        return time.monotonic() - began


@pytest.fixture(scope="module")
def cluster():
    taken, first = free_ports(5)
    taken.close()
    made = Cluster([f"tcp://127.0.0.1:{first}", f"tcp://127.0.0.1:{first + 3}"])
    try:
        made.serve("left")
        made.serve("right")
        made.launch("a", "b", "c", "d", "e")
        yield made
    finally:
        for process in made.processes.values():
            end(process)


def within(seconds, main):
    """Run a coroutine to its end; what processes it starts outlive it, so their pipes are no leak."""
    asyncio.run(asyncio.wait_for(main, seconds))


async def answering(observer, count):
    """Who answers, when everybody is asked in turn."""
    return {(await observer.hub.ask(Who(), Name, timeout=5)).name for _ in range(count)}


def test_five_nodes_behind_two_servers_all_know_and_answer_each_other(cluster):
    async def main():
        async with cluster.observer() as observer:
            await eventually(lambda: len(list(observer._router.table.all(fw.MessageId(b"process.who")))) == 5)
            assert await answering(observer, 5) == set("abcde")

    within(60, main())


@pytest.mark.parametrize("name", ["left", "right"])
def test_a_server_may_be_killed_and_started_again(cluster, name):
    async def main():
        async with cluster.observer() as observer:
            cluster.kill(name)
            assert len(await answering(observer, 5)) == 5
            cluster.kill("e")  # nobody can tell those who know only the server that is gone
            await cluster.settled(observer)
            cluster.launch("e")
            cluster.serve(name)
            assert await cluster.settled(observer) < SOON + 5
            assert await answering(observer, 5) == set("abcde")

    within(90, main())


def test_a_node_that_is_killed_is_gone_from_all_tables_and_what_waited_for_it_ends(cluster):
    async def main():
        async with cluster.observer() as observer:
            asking = asyncio.create_task(
                observer.hub.ask(Never(), Name, to_node=cluster.identities["c"], timeout=60)
            )
            await asyncio.sleep(0)
            assert len(await answering(observer, 5)) == 5
            began = time.monotonic()
            cluster.kill("c")
            with pytest.raises(fw.Unreachable, match="is gone"):
                await asking
            assert time.monotonic() - began < PATIENCE + SOON
            assert await cluster.settled(observer) < PATIENCE + SOON
            assert await answering(observer, 8) == set("abde")
            cluster.launch("c")
            assert await cluster.settled(observer) < SOON
            assert await answering(observer, 5) == set("abcde")

    within(60, main())


def test_a_node_that_is_stopped_for_a_while_is_known_again_when_it_goes_on(cluster):
    async def main():
        async with cluster.observer() as observer:
            process = cluster.processes.pop("d")
            process.send_signal(signal.SIGSTOP)
            try:
                assert await cluster.settled(observer) < PATIENCE + SOON
                assert await answering(observer, 8) == set("abce")
            finally:
                process.send_signal(signal.SIGCONT)
                cluster.processes["d"] = process
            assert await cluster.settled(observer) < SOON
            assert await answering(observer, 5) == set("abcde")

    within(60, main())


def test_a_handler_that_blocks_for_longer_than_the_misses_does_not_make_its_node_look_dead(cluster):
    async def main():
        async with cluster.observer() as observer:
            blocked = cluster.identities["b"]
            asking = asyncio.create_task(observer.hub.ask(Block(PATIENCE * 2), Name, to_node=blocked, timeout=30))
            while not asking.done():
                assert blocked.decode() in observer.stats().peers
                await asyncio.sleep(0.05)
            assert (await asking).name == "b"
            stats = await observer.hub.ask(fw.NodeInfo(), fw.NodeStats, to_node=blocked, timeout=5)
            assert stats.stalls >= 1
            assert await cluster.settled(observer) < SOON

    within(60, main())
