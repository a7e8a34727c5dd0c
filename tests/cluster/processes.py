"""Nodes and rendezvous servers as processes of their own, and what all of them know."""

import asyncio
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster.clustering import in_a_row
from tests.cluster.node_process import Name, Who
from tests.node.running import eventually

import framewire as fw
from framewire.cluster.route_requests import MessageRoutes, RequestMessageRoutes

SCRIPT = str(Path(__file__).with_name("node_process.py"))
HEARTBEAT, MISSES = 1.0, 2
"""Realistic, and slow enough for a busy machine: a node is given up two seconds after its last sign of life."""
SOON = 3 * HEARTBEAT
"""Within which the routes are right again."""
NODES = "abcde"
WHO = fw.MessageId(b"process.who")
EXTRA = fw.MessageId(b"process.extra")


def start(*command, pure=False):
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **({"FRAMEWIRE_PURE": "1"} if pure else {})},
    )


def line_of(stream, seconds=60):
    """The first line that a process writes."""
    with selectors.DefaultSelector() as ready:
        ready.register(stream, selectors.EVENT_READ)
        assert ready.select(seconds), "the process says nothing"
    return stream.readline().decode()


def end(process):
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.communicate(timeout=10)


class Processes:
    """Processes by name; a node or a server that is started again gets the address that it had.

    ``inside`` is what a process is started with, such as a command that puts it into a namespace.
    """

    def __init__(self, servers, *, pure=False, heartbeat=HEARTBEAT, misses=MISSES):
        self.servers = servers
        self.pure = pure
        self.settings = {"heartbeat": heartbeat, "misses": misses}
        self.addresses = {}
        self.identities = {}
        self.processes = {}

    def serve(self, *names, inside=()):
        for name in names:
            partners = [f"--partner={uri}" for other, uri in self.servers.items() if other != name]
            heartbeat = f"--heartbeat={self.settings['heartbeat']}"
            command = (sys.executable, "-m", "framewire", "rendezvous", self.servers[name], heartbeat, *partners)
            self.processes[name] = start(*inside, *command, pure=self.pure)
        for name in names:
            assert "listening at" in line_of(self.processes[name].stderr)

    def launch(self, *names, servers=(), inside=(), **options):
        for name in names:
            told = {
                "bind": self.addresses.get(name) or f"tcp://127.0.0.1:{in_a_row(1)}",
                "rendezvous": [self.servers[server] for server in servers or self.servers],
                **self.settings,
                **options,
            }
            self.processes[name] = start(*inside, sys.executable, SCRIPT, name, json.dumps(told), pure=self.pure)
        for name in names:
            said = line_of(self.processes[name].stdout)
            assert said, self.processes[name].stderr.read().decode()
            identity, self.addresses[name] = said.split()
            self.identities[name] = identity.encode()

    def kill(self, name):
        end(self.processes.pop(name))

    def close(self):
        for name in tuple(self.processes):
            self.kill(name)

    @contextlib.contextmanager
    def stopped(self, name):
        """A process that stands still, and does not count as alive meanwhile."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)
            self.processes[name] = process

    @contextlib.asynccontextmanager
    async def observer(self, **options):
        """A node of this process that is part of the cluster, once everybody knows everybody."""
        told = {"rendezvous": list(self.servers.values()), **self.settings, **options}
        async with fw.Node(signals=False, stop_timeout=0, **told) as node:
            await eventually(
                lambda: {route.node for route in node._router.table.all(WHO)} >= set(self.alive.values()), 20
            )
            await self.settled(node, 20)
            yield node

    @property
    def alive(self):
        return {name: identity for name, identity in self.identities.items() if name in self.processes}

    async def tables(self, observer, message=WHO):
        """Who handles a message, as far as each node knows."""

        async def asked(name, identity):
            with contextlib.suppress(fw.MessageError):
                target = RequestMessageRoutes(message)
                found = await observer.hub.ask(target, MessageRoutes, to_node=identity, timeout=5)
                nodes = [found.internal, *found.external]
                return name, {known.node for known in nodes if known is not None}
            return name, None

        everyone = {**self.alive, "observer": observer.identity}
        return dict(await asyncio.gather(*(asked(*one) for one in everyone.items())))

    async def settled(self, observer, seconds, *, message=WHO, handlers=None):
        """Wait until all tables are right, for so many seconds at most; that counts which is asked by then."""
        deadline = time.monotonic() + seconds
        while True:
            began = time.monotonic()
            right = set(self.alive.values()) if handlers is None else {self.identities[name] for name in handlers}
            tables = await self.tables(observer, message)
            if all(table == right for table in tables.values()):
                return
            assert began < deadline, f"after {seconds} s there is {tables}, not {right}"
            await asyncio.sleep(0.02)

    async def answering(self, observer):
        """The names of those who answer, when everybody is asked in turn, twice."""
        count = 2 * len(self.alive)
        return {(await observer.hub.ask(Who(), Name, timeout=5)).name for _ in range(count)}


@contextlib.contextmanager
def running(*, pure=False):
    """Five nodes and two servers: one node knows the left server, one the right, the others both."""
    first = in_a_row(6)
    made = Processes({"left": f"tcp://127.0.0.1:{first}", "right": f"tcp://127.0.0.1:{first + 3}"}, pure=pure)
    with contextlib.closing(made):
        made.serve("left", "right")
        made.launch("a", servers=["left"])
        made.launch("b", servers=["right"])
        made.launch("c", "d", "e")
        yield made


def within(seconds, main):
    """Run a coroutine to its end; what processes it starts outlive it, so their pipes are no leak."""
    asyncio.run(asyncio.wait_for(main, seconds))
