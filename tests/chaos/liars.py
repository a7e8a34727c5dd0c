"""A rendezvous server that lies: nodes listen to it as to any other, and it says whatever a test wants."""

import contextlib

import zmq
from tests.cluster.clustering import in_a_row

from framewire.cluster import service
from framewire.wire import MessageId, encode

NOWHERE = "tcp://127.0.0.1:1"
"""Where nobody listens."""
QUESTION = MessageId(b"test.question")


class Liar:
    """Its ``uri`` is for nodes to be told; what they tell it is ignored."""

    def __init__(self, context):
        port = in_a_row(3)
        self.uri = f"tcp://127.0.0.1:{port}"
        self._inbox = context.socket(zmq.ROUTER)
        self._inbox.bind(self.uri)
        self._speaker = context.socket(zmq.XPUB)
        self._speaker.setsockopt(zmq.SNDHWM, 0)
        self._speaker.setsockopt(zmq.XPUB_VERBOSE, 1)  # tells of every listener, not only of the first
        self._speaker.bind(f"tcp://127.0.0.1:{port + 1}")
        self.listeners = 0

    def is_heard_by(self, count):
        """Whether so many nodes listen by now."""
        while self._speaker.poll(0):
            self.listeners += self._speaker.recv()[:1] == b"\x01"
        return self.listeners >= count

    def say(self, message, **fields):
        """Say something to all who listen."""
        self._speaker.send_multipart(encode(service.service_message(message, **fields)))

    def announce(self, identity, *, uri=NOWHERE, health=NOWHERE, receiver=b"\x01nobody", interval=0.2):
        """Say that a node is there and handles questions."""
        contracts = [service.contract(QUESTION)]
        self.say(
            service.REGISTER_EXTERNAL_ROUTE,
            uri=uri,
            node_identity=identity,
            routes=[service.body("RouteRegistration", receiver_identity=receiver, contracts=contracts)],
            health=service.body("Health", uri=health, interval=service.time_span(interval)),
        )

    def close(self):
        self._inbox.close(0)
        self._speaker.close(0)


@contextlib.contextmanager
def lying():
    """A liar, for as long as it is needed."""
    with zmq.Context() as context, contextlib.closing(Liar(context)) as liar:
        yield liar
