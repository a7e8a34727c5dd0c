"""A node's connection to a network in memory."""

from __future__ import annotations

from collections.abc import Iterable

from framewire.errors import Unreachable
from framewire.node.mailbox import Room
from framewire.node.transport import Port, Registration
from framewire.testing.network import MemoryNetwork
from framewire.wire import MessageId, RouterAddress
from framewire.wire.message import readable

__all__ = ["MemoryTransport"]


class MemoryTransport:
    """Fills the seam of ``framewire.node.transport`` without a socket. One for each node."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._node: bytes | None = None

    @property
    def uri(self) -> str:
        return f"memory://{readable(self._node or b'')}"

    async def start(self, port: Port) -> None:
        self._node = port.identity
        self._network.join(port)

    def send(self, peer: bytes, frames: list[bytes]) -> Room | None:
        if self._node is None:
            raise Unreachable("this node is not connected")
        return self._network.send(self._node, peer, frames)

    def sender(self, peer: bytes, routing: tuple[RouterAddress, ...]) -> RouterAddress:
        first, last = routing[0], routing[-1]
        return first if first.identity == peer != last.identity else last

    # A node talks of its receivers before it is connected, too; joining tells the others of all of them.

    def announce(self, registrations: Iterable[Registration]) -> None:
        if self._node is not None:
            self._network.announce(self._node, registrations)

    def withdraw(self, registrations: Iterable[Registration], grace: float | None = None) -> None:
        if self._node is not None:
            self._network.withdraw(self._node, registrations, grace)

    def discover(self, message: MessageId, receiver: bytes) -> None:
        if self._node is not None:
            self._network.discover(self._node, message, receiver)

    async def settle(self) -> None:
        """What the others are told on a network in memory they have heard at once."""

    async def stop(self) -> None:
        if self._node is not None:
            self._network.leave(self._node)
