"""A node's side of the transport seam that only writes down what it is told."""

from tests.node.running import eventually

from framewire.node.transport import Registration
from framewire.routing import Route
from framewire.testing import MemoryNetwork, MemoryTransport
from framewire.wire import Message, MessageId, decode, encode

PING = MessageId(b"kit.ping")
ACTOR = Route(b"\x01actor")


class NotedPort:
    def __init__(self, name: str, *registrations: Registration) -> None:
        self.identity = name.encode()
        self.registrations = list(registrations)
        self.received: list[tuple[bytes, list[bytes]]] = []
        self.heard: list[tuple[object, ...]] = []

    def receive(self, peer: bytes, frames: list[bytes]) -> None:
        self.received.append((peer, frames))

    def peer_registered(self, peer, registrations) -> None:
        self.heard.append(("registered", peer, *registrations))

    def peer_unregistered(self, peer, registrations, grace=None) -> None:  # noqa: ARG002 - nobody waits here
        self.heard.append(("unregistered", peer, *registrations))

    def peer_lost(self, peer) -> None:
        self.heard.append(("lost", peer))

    @property
    def numbers(self) -> list[int]:
        """The bodies that arrived, as the numbers that they are."""
        return [int(decode(frames).body) for _, frames in self.received]


def letter(number: int) -> list[bytes]:
    return encode(Message(b"kit.ping", body_frames=(b"%d" % number,), correlation_id=b"flow"))


async def connected(network: MemoryNetwork, *ports: NotedPort) -> list[MemoryTransport]:
    """Transports for ports, each of which has heard of all others and forgotten it again."""
    transports = []
    for port in ports:
        transport = MemoryTransport(network)
        await transport.start(port)
        transports.append(transport)
    await quiet(network)
    for port in ports:
        port.heard.clear()
    return transports


async def quiet(network: MemoryNetwork) -> None:
    """Wait until nothing is under way; for networks without delays."""

    await eventually(lambda: not list(network.unsettled()))
