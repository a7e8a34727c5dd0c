"""Rendezvous servers and nodes on loopback, as the tests of the cluster need them."""

import contextlib
import random
import socket
import threading

from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster import Rendezvous

HEARTBEAT = 0.2
"""Short, so that tests need not wait; long enough for a busy machine with two cores."""


@contextlib.contextmanager
def rendezvous(uri="tcp://127.0.0.1:*", **options):
    """A server in a thread, for as long as it is needed."""
    server = Rendezvous(uri, heartbeat=HEARTBEAT, **options)
    thread = threading.Thread(target=server.run, name="framewire rendezvous")
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)
        assert not thread.is_alive()


async def served(main, **options):
    """A test's coroutine with a server that is gone by its end, with all of its sockets."""
    with rendezvous(**options) as server:
        return await main(server)


def make_node(server=None, **options):
    """A node that is quick to notice and to stop; ``server`` may be a rendezvous server or several."""
    servers = [server] if isinstance(server, Rendezvous) else server or []
    told = {"heartbeat": HEARTBEAT, "misses": 10, "signals": False, "timeout": 10.0, "bind": "tcp://127.0.0.1:*"}
    return fw.Node(**({"rendezvous": [one.uri for one in servers]} | told | options))


class Named(fw.Actor):
    """Answers with its name."""

    def __init__(self, name):
        self.name = name
        self.asked = []

    @fw.handles(Question)
    async def answer(self, question):
        self.asked.append(question.text)
        if question.text == "fail":
            raise ValueError(f"{self.name} does not like this")
        return Answer(self.name)


def handlers(node, message=Question):
    """How many handlers of a message a node knows, here and elsewhere."""
    message_id = fw.MessageId({Question: b"test.question"}.get(message, message))
    return len(list(node._router.table.all(message_id)))


def peers(node):
    return set(node._router.table.nodes)


async def acquainted(*nodes):
    """Wait until every node knows every other."""
    identities = {node.identity for node in nodes}
    await eventually(lambda: all(peers(node) | {node.identity} >= identities for node in nodes))


async def handled_by(count, *nodes):
    """Wait until every node knows so many handlers of a question."""
    await eventually(lambda: all(handlers(node) == count for node in nodes))


def between(main, *, timeout=20, **options):
    """Run a test on two nodes that know each other; the second hosts an actor."""

    async def with_nodes(server):
        async with make_node(server, **options) as one, make_node(server, **options) as two:
            actor = Named("two")
            route = await two.host(actor)
            await acquainted(one, two)
            await handled_by(1, one, two)
            await main(one, two, actor, route)

    run(served(with_nodes), timeout=timeout)


def uri_of(node):
    return node._transport.uri


def free_ports(count):
    """Ports in a row, the first of them taken for as long as the socket lives.

    They lie below those that the system gives to connections. Of those any may be taken when whoever listened there
    comes back, even by a connection to that very port, which then is one to itself.
    """
    for _ in range(1000):
        first = random.SystemRandom().randrange(15_000, 32_000)
        taken, *others = (socket.socket() for _ in range(count + 1))
        try:
            for offset, each in enumerate((taken, *others)):
                each.bind(("127.0.0.1", first + offset))
            taken.listen()
        except OSError:
            taken.close()
            continue
        else:
            return taken, first
        finally:
            for other in others:
                other.close()
    raise AssertionError("no ports in a row")


def in_a_row(count):
    """The first of some free ports in a row."""
    taken, first = free_ports(count - 1)
    taken.close()
    return first
