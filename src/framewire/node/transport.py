"""The seam between a node and other nodes: frames out, frames in, peers that come and go.

A node without a transport is a world of its own. What fills the seam (sockets, or memory in tests) knows nothing
of actors and hubs, and a node knows nothing of sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from framewire.errors import MessageError
from framewire.node.deadletters import Reason
from framewire.node.mailbox import Room
from framewire.routing import Route
from framewire.wire import Message, MessageId, RouterAddress

__all__ = ["Port", "Registration", "Transport"]

Registration = tuple[Route, tuple[MessageId, ...]]
"""A receiver and what it handles; a message hub handles nothing by name."""


class Port(Protocol):
    """What a transport tells its node. All calls come on the node's event loop."""

    @property
    def identity(self) -> bytes:
        """The node's own identity."""

    @property
    def registrations(self) -> Sequence[Registration]:
        """The receivers of this node that others may know of."""

    def registered(self, message: MessageId, receiver: bytes) -> Sequence[Registration]:
        """Those of them that handle a message, or the one with an identity, with that message and no others."""

    @property
    def max_queued(self) -> int:
        """How many messages may wait for one peer."""

    @property
    def max_queued_bytes(self) -> int:
        """How many bytes those may have that wait for one peer beyond its queue."""

    @property
    def awaited(self) -> int:
        """How many promises are open here."""

    def receive(self, peer: bytes, frames: list[bytes]) -> None:
        """A message came in from a peer."""

    def receive_alike(self, peer: bytes, messages: list[list[bytes]]) -> None:
        """Several came that differ in nothing but what is new in every message (``framewire.wire.moulds``)."""

    def sender_of(self, peer: bytes, routing: tuple[RouterAddress, ...]) -> bytes:
        """Return the node that a message of a peer came from, by its routing entries."""

    def several(self) -> None:
        """Several messages have come at once, so that none of them need be handled before the next is taken in."""

    @property
    def shunned(self) -> set[bytes]:
        """Peers that have sent so much rubbish that nothing of theirs may be looked at."""

    def shuns(self, peer: bytes) -> bool:
        """Whether a message of one of those is to be dropped now; then it is counted."""

    def refused(
        self, peer: bytes, reason: Reason, detail: str, frames: list[bytes] | None = None, count: int = 1
    ) -> None:
        """Messages were dropped before the node saw them; ``peer`` is empty where nobody knows whose they were."""

    def unread(self, peer: bytes, frames: list[bytes], problem: Exception) -> None:
        """A message came in whole, and could not be read for no fault of its own: no memory, or a fault of ours."""

    def turned_away(self) -> None:
        """Somebody connected, and was not let in."""

    def undelivered(self, frames: list[bytes], error: MessageError) -> None:
        """A message that was handed over did not get to its peer after all."""

    def peer_registered(self, peer: bytes, registrations: Iterable[Registration]) -> None:
        """A peer handles these; routes carry no node, for they are the peer's own."""

    @property
    def removals(self) -> int:
        """A count that grows whenever this node forgets a route, whoever made it known."""

    def routes_of(self, peer: bytes) -> int:
        """Return how many receivers, and messages of each, are known of a peer."""

    def peer_shrinks(self, peer: bytes, most: int, *, left: bool) -> None:
        """Forget about so many routes of a peer that is to be gone: thousands at once would take long.

        ``left`` where it has left with notice.
        """

    def peer_unregistered(
        self, peer: bytes, registrations: Iterable[Registration], grace: float | None = None
    ) -> None:
        """A peer no longer handles these; an empty tuple of messages removes the receiver.

        An empty receiver stands for all that handle the messages there. ``grace`` is for how many seconds what
        nobody else handles is to be held, as the peer left in good order and may be back; None for not at all.
        """

    def returned(self, frames: list[bytes]) -> None:
        """A message that was handed over has not left, for its peer has; another may handle it."""

    def peer_left(self, peer: bytes) -> None:
        """A peer takes nothing more; its last answers may be under way until it is told to be lost."""

    def peer_lost(self, peer: bytes) -> None:
        """A peer is gone, with all that it handled."""

    def admit(self, receiver: bytes, deliver: Callable[[Message], None]) -> None:
        """Take in a guest: what is addressed to this receiver here is handed back, for the transport to deliver."""

    def dismiss(self, receiver: bytes) -> None:
        """Forget a guest."""


class Transport(Protocol):
    """What a node asks of its transport."""

    @property
    def uri(self) -> str:
        """Where other nodes reach this one; it goes into routing entries."""

    async def start(self, port: Port) -> None:
        """Open for business, and announce what the port has registered."""

    def send(self, peer: bytes, frames: list[bytes]) -> Room | None:
        """Hand a message over to a peer; what is returned is done when there is room for it.

        Raises ``Unreachable`` where the peer is not known.
        """

    def sender(self, peer: bytes, routing: tuple[RouterAddress, ...]) -> RouterAddress:
        """Return the entry of the node that a message of a peer came from: the first or the last.

        Asked only where the entries do not tell, for ``peer`` is a connection's name, which says nothing of a node.
        """

    def announce(self, registrations: Iterable[Registration]) -> None:
        """Tell the others about receivers that are new here."""

    def withdraw(self, registrations: Iterable[Registration], grace: float | None = None) -> None:
        """Tell the others about receivers that are gone from here, or that they wrongly take to be here.

        An empty receiver stands for all that handle the messages. ``grace`` is as in ``Port.peer_unregistered``.
        """

    def discover(self, message: MessageId, receiver: bytes) -> None:
        """Ask the others who handles a message, or where a receiver is; answers come as registrations."""

    async def settle(self) -> None:
        """Wait until the others have heard what was withdrawn, and send it here no more."""

    async def stop(self) -> None:
        """Take leave of the others and close everything."""
