"""Which node a message came from, where its routing entries name several.

A framewire node appends its own entry, so it is the last one; kino's lists come back reversed from each decode, so
a kino node is entry 0. The entries alone do not tell: the same two are written where a kino node passes on what a
framewire node sent, and the other way round. The connection does: a framewire node introduces itself on each
connection that it makes to another framewire node (``KINO.PING`` with its own entry), before anything else.

None of this is proof. A peer writes all entries itself and may write any, so they serve recordings, errors and
statistics; limits, replays and fairness go by the connection.
"""

from __future__ import annotations

from framewire.cluster import service
from framewire.errors import WireError
from framewire.wire import Message, RouterAddress, decode, encode

__all__ = ["Senders"]

_MAX_CONNECTIONS = 10_000
"""Connections whose nodes are remembered; the one that was introduced first makes room."""
_MAX_IDENTITY_BYTES = 255


class Senders:
    """What one node knows of the connections that others make to it, and of how they write routing entries."""

    def __init__(self, own: RouterAddress) -> None:
        self._own = own
        self._nodes: dict[bytes, bytes] = {}
        """Nodes by the names of their connections."""
        self._introduce: dict[bytes, bool] = {}
        """Whether a node introduces itself, by what it announced: framewire nodes do, kino nodes do not."""

    def announced(self, node: bytes, *, introduces: bool) -> bool:
        """Note what a node announced of itself; return whether that is news."""
        news = self._introduce.get(node) is not introduces
        self._introduce[node] = introduces
        return news

    def forget(self, node: bytes) -> None:
        """Forget what a node announced."""
        self._introduce.pop(node, None)

    def introduction(self, node: bytes) -> list[bytes] | None:
        """Return what is said first on a connection to a node; None where that node would not understand it."""
        if not self._introduce.get(node, False):
            return None
        ping = Message(service.PING.identity, 1, correlation_id=service.NO_FLOW, routing=(self._own,), hops=1)
        frames = encode(ping)
        frames[0] = node
        return frames

    def introduced(self, connection: bytes, frames: list[bytes]) -> None:
        """Note which node made a connection, from its ``KINO.PING``; one without a routing entry says nothing."""
        try:
            routing = decode(frames).routing
        except WireError:
            return
        if len(routing) != 1 or not 0 < len(routing[0].identity) <= _MAX_IDENTITY_BYTES:
            return
        self._nodes.pop(connection, None)
        if len(self._nodes) >= _MAX_CONNECTIONS:
            del self._nodes[next(iter(self._nodes))]
        self._nodes[connection] = routing[0].identity

    def sender(self, connection: bytes, routing: tuple[RouterAddress, ...]) -> RouterAddress:
        """Return the entry of the node that a message came from, out of its first and its last."""
        first, last = routing[0], routing[-1]
        node = self._nodes.get(connection)
        if node is not None:
            return first if node == first.identity != last.identity else last
        # Nobody has introduced itself. A node that is known not to do so writes itself first.
        return last if self._introduce.get(first.identity, True) else first
