"""Five nodes, two rendezvous servers, a name server, strangers and the links, and what can be done to them.

Each node and server is a process, and so are the links together, and the strangers.
"""

import contextlib
import json
import signal
import time

from tests.chaos.members import Members, Server, Told, free_ports
from tests.chaos.names import Names
from tests.chaos.plan import NAMES, NODES, SERVERS, STRANGERS, ways
from tests.cluster.clustering import in_a_row

HEARTBEAT, MISSES = 1.0, 2
SOON = 3 * HEARTBEAT
"""Within which the routes are right again."""


class Town:
    """The whole of it. Every connection goes through the links, so each can be troubled on its own."""

    def __init__(self, folder, *, seed, rate):
        self._rate = rate
        self._ports = iter(free_ports(4 * len(NODES) + 2 * len(NODES) * len(SERVERS) + len(SERVERS)))
        self._links = {}
        self._ways = ways()
        self._closing = contextlib.ExitStack()
        self.names = Names(folder)
        self.names.open()
        self._closing.callback(self.names.close)
        firsts = {name: in_a_row(3) for name in SERVERS}
        self.servers = {}
        for name, other in zip(SERVERS, reversed(SERVERS), strict=True):
            through = self._link(f"{other}.relay", firsts[other] + 2)
            self.servers[name] = Server(
                firsts[name],
                partners=[self.names.uri(other, through - 2)],
                heartbeat=HEARTBEAT,
                inside=self.names.inside,
            )
        self.members = Members(
            folder,
            seed=seed,
            inside=self.names.inside,
            heartbeat=HEARTBEAT,
            misses=MISSES,
            max_message_bytes=1 << 20,
        )
        self._settings = {name: self._places(name, firsts) for name in NODES}
        self._attacked = {
            "fronts": [places["bind"] for places in self._settings.values()],
            "inboxes": [_tcp(first) for first in firsts.values()],
            "publishers": [
                *(places["health"] for places in self._settings.values()),
                *(_tcp(first + further) for first in firsts.values() for further in (1, 2)),
            ],
        }
        self.strangers = {}
        """What strangers have done."""
        self._seed = seed
        self.stopped = []
        """When which node stood still: (identity, from, to)."""
        self._since = {}
        self.damaged = 0

    def _link(self, name, target):
        listen = next(self._ports)
        self._links[name] = (listen, target)
        return listen

    def _places(self, name, firsts):
        front, health = next(self._ports), next(self._ports)
        return {
            "bind": _tcp(front),
            "advertise": self.names.uri(name, self._link(f"{name}.front", front)),
            "health": _tcp(health),
            "advertise_health": self.names.uri(name, self._link(f"{name}.health", health)),
            "rendezvous": [
                [
                    self.names.uri(server, self._link(f"{name}.{server}.say", firsts[server])),
                    self.names.uri(server, self._link(f"{name}.{server}.hear", firsts[server] + 1)),
                ]
                for server in SERVERS
            ],
        }

    def open(self):
        """Start everything, and wait until everyone knows everyone."""
        self._relay = Told("tests.chaos.links_process", json.dumps({"links": self._links, "seed": self._seed}))
        self._closing.callback(self._relay.kill)
        assert self._relay.answer() == {"links": len(self._links)}
        self._strangers = Told("tests.chaos.stranger_process", json.dumps(self._attacked))
        self._closing.callback(self._strangers.kill)
        self.strangers = self._strangers.answer()
        for server in self.servers.values():
            self._closing.callback(server.close)
            server.start()
        self._closing.callback(self.members.close)
        for name in NODES:
            self._begin(name)
        self.members.ready(*NODES)
        assert self.settled(20) is not None, f"they do not find together: {self.members.tables()}"

    def _begin(self, name):
        self.members.begin(name, node=self._settings[name], rate=self._rate)

    def settled(self, seconds):
        """How long it takes until everyone knows everyone who is there, and nobody else."""
        return self.members.settled(set(self.members.identities.values()), seconds)

    def close(self):
        self._closing.close()

    # --- what can be done to it

    def do(self, fault):
        """Let something go wrong."""
        if fault.where == NAMES:
            self.names.silence()
        elif fault.where == STRANGERS:
            self.strangers = self._strangers.tell(" ".join(["attack", *self.members.identities.values()]))
        elif fault.where in NODES:
            self._do_to_node(fault.kind, fault.where)
        elif fault.where in SERVERS:
            server = self.servers[fault.where]
            if fault.kind == "kill":
                server.close()
            else:
                server.signal(signal.SIGSTOP)
        else:
            trouble = {
                "cut": {"cut": True},
                "hold": {"held": True},
                "delay": {"delay": fault.amount},
                "damage": {"damage": fault.amount},
            }
            self._change(fault.where, **trouble[fault.kind])

    def undo(self, fault):
        """Let it be right again; by the end of this, it is."""
        if fault.where == NAMES:
            self.names.speak()
        elif fault.where == STRANGERS:
            self.strangers = self._strangers.tell("rest")
        elif fault.where in NODES:
            self._undo_to_node(fault.kind, fault.where)
        elif fault.where in SERVERS:
            server = self.servers[fault.where]
            if fault.kind == "kill":
                server.start()
            else:
                server.signal(signal.SIGCONT)
        else:
            self._change(fault.where)

    def _do_to_node(self, kind, name):
        process = self.members.processes[name]
        if kind == "kill":
            self.members.kill(name)
        elif kind == "stop":
            self._since[name] = time.monotonic()
            process.signal(signal.SIGSTOP)
        else:
            process.signal(signal.SIGTERM)

    def _undo_to_node(self, kind, name):
        if kind == "stop":
            self.members.processes[name].signal(signal.SIGCONT)
            self.stopped.append((self.members.identities[name], self._since.pop(name), time.monotonic()))
            return
        if kind == "drain":
            self.members.drained(name)
        self._begin(name)
        self.members.ready(name)

    def _change(self, where, **trouble):
        told = self._relay.tell(json.dumps({"links": self._ways[where], **trouble}))
        self.damaged = told["damaged"]


def _tcp(port):
    return f"tcp://127.0.0.1:{port}"
