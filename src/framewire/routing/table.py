"""Which handlers a message can go to, and which one it goes to now.

Pure: knows no sockets and no clock, so every rule of routing is a plain test.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from framewire.wire import MessageId

__all__ = ["Route", "RoutingTable"]


class Route(msgspec.Struct, frozen=True, gc=False):
    """One place that handles a message: a receiver here, or a receiver on another node."""

    receiver: bytes
    node: bytes = b""
    """The other node's identity; empty for a receiver on this one."""


class _Ring:
    """Routes taken in turn. Additions go to the end; a removal does not skip or repeat anyone."""

    __slots__ = ("routes", "turn")

    def __init__(self) -> None:
        self.routes: list[Route] = []
        self.turn = 0

    def next(self) -> Route:
        routes, turn = self.routes, self.turn
        self.turn = turn + 1 if turn + 1 < len(routes) else 0
        return routes[turn]

    def add(self, route: Route) -> None:
        # A newcomer waits for its turn until all others have had theirs: the end is just before whoever is next.
        if self.turn:
            self.routes.insert(self.turn, route)
            self.turn += 1
        else:
            self.routes.append(route)

    def remove(self, route: Route) -> None:
        index = self.routes.index(route)
        del self.routes[index]
        if index < self.turn:
            self.turn -= 1
        if self.turn >= len(self.routes):
            self.turn = 0


class RoutingTable:
    """All receivers that a node knows, its own and those of other nodes."""

    def __init__(self) -> None:
        self._everywhere: dict[MessageId, _Ring] = {}
        self._here: dict[MessageId, _Ring] = {}
        self._handled: dict[Route, set[MessageId]] = {}
        self._found: dict[bytes, Route] = {}
        self._hidden: dict[bytes, list[Route]] = {}
        self._nodes: dict[bytes, set[Route]] = {}

    def add(self, message: MessageId, route: Route) -> bool:
        """Register a receiver for a message; False if that was known."""
        handled = self._handled.get(route)
        if handled is not None and message in handled:
            return False
        self.add_receiver(route)
        self._handled[route].add(message)
        self._everywhere.setdefault(message, _Ring()).add(route)
        if not route.node:
            self._here.setdefault(message, _Ring()).add(route)
        return True

    def add_receiver(self, route: Route) -> None:
        """Register a receiver that is found by its identity alone: a message hub."""
        if route in self._handled:
            return
        self._handled[route] = set()
        known = self._found.setdefault(route.receiver, route)
        if known is not route:
            # Two claim one identity. The newer is found, but no claim from elsewhere hides a receiver of this node.
            self._found[route.receiver], hidden = (route, known) if known.node else (known, route)
            self._hidden.setdefault(route.receiver, []).append(hidden)
        if route.node:
            self.add_node(route.node)
            self._nodes[route.node].add(route)

    def add_node(self, node: bytes) -> None:
        """Make another node known, whether or not it handles anything."""
        self._nodes.setdefault(node, set())

    def remove(self, message: MessageId, route: Route) -> bool:
        """Forget that a receiver handles a message; False if it was not known to."""
        handled = self._handled.get(route)
        if handled is None or message not in handled:
            return False
        handled.remove(message)
        for rings in (self._everywhere,) if route.node else (self._everywhere, self._here):
            rings[message].remove(route)
            if not rings[message].routes:
                del rings[message]
        return True

    def remove_receiver(self, route: Route) -> None:
        """Forget a receiver and everything it handles."""
        for message in tuple(self._handled.get(route, ())):
            self.remove(message, route)
        if self._handled.pop(route, None) is None:
            return
        hidden = self._hidden.get(route.receiver, [])
        if self._found[route.receiver] != route:
            hidden.remove(route)
        elif hidden:
            self._found[route.receiver] = hidden.pop()
        else:
            del self._found[route.receiver]
        if not hidden:
            self._hidden.pop(route.receiver, None)
        if route.node in self._nodes:
            self._nodes[route.node].discard(route)

    def remove_node(self, node: bytes) -> None:
        """Forget another node and all of its receivers."""
        for route in tuple(self._nodes.get(node, ())):
            self.remove_receiver(route)
        self._nodes.pop(node, None)

    def next(self, message: MessageId) -> Route | None:
        """The next route for a unicast, round-robin over local and remote alike."""
        ring = self._everywhere.get(message)
        if ring is None:
            return None
        routes = ring.routes
        return routes[0] if len(routes) == 1 else ring.next()

    def next_here(self, message: MessageId) -> Route | None:
        """The next route among the receivers of this node."""
        ring = self._here.get(message)
        return ring.next() if ring is not None else None

    def only_here(self, message: MessageId) -> Route | None:
        """The receiver of this node, where it has just one."""
        ring = self._here.get(message)
        return ring.routes[0] if ring is not None and len(ring.routes) == 1 else None

    def all(self, message: MessageId) -> Iterator[Route]:
        """Every receiver of a message, wherever it is."""
        ring = self._everywhere.get(message)
        return iter(tuple(ring.routes)) if ring is not None else iter(())

    def all_here(self, message: MessageId) -> Iterator[Route]:
        """Every receiver of a message on this node."""
        ring = self._here.get(message)
        return iter(tuple(ring.routes)) if ring is not None else iter(())

    def find(self, receiver: bytes) -> Route | None:
        """Where the receiver with this identity is."""
        return self._found.get(receiver)

    def handles(self, route: Route, message: MessageId) -> bool:
        """Whether a receiver is registered for a message."""
        return message in self._handled.get(route, ())

    def handles_anything(self, route: Route) -> bool:
        """Return whether a receiver is registered for any message."""
        return bool(self._handled.get(route))

    def routes_of(self, node: bytes) -> int:
        """Return how much another node takes of the table: its receivers, and what each of them handles."""
        return sum(1 + len(self._handled[route]) for route in self._nodes.get(node, ()))

    def knows_node(self, node: bytes) -> bool:
        return node in self._nodes

    @property
    def nodes(self) -> tuple[bytes, ...]:
        """The other nodes that are known."""
        return tuple(self._nodes)

    @property
    def routes(self) -> dict[Route, frozenset[MessageId]]:
        """Every receiver with what it handles."""
        return {route: frozenset(handled) for route, handled in self._handled.items()}

    def alike(self, message: MessageId) -> list[MessageId]:
        """Other versions and partitions of a message that somebody does handle."""
        return [known for known in self._everywhere if known.identity == message.identity]
