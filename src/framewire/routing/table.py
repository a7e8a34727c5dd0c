"""Which handlers a message can go to, and which one it goes to now.

Pure: knows no sockets and no clock, so every rule of routing is a plain test.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain, compress, islice

import msgspec

from framewire.wire import MessageId

__all__ = ["Route", "RoutingTable"]

_NOTHING: frozenset[MessageId] = frozenset()


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

    def keep(self, kept: list[bool]) -> None:
        """Remove the routes at all positions that are False, in one pass."""
        self.turn = sum(islice(kept, self.turn))
        self.routes = list(compress(self.routes, kept))
        if self.turn >= len(self.routes):
            self.turn = 0


_Turns = dict[MessageId, Route | _Ring]
"""The receivers of each message: a ring only where there are several. Other nodes may announce many thousands of
messages, and each full garbage collection would look at each ring."""


def _add(turns: _Turns, message: MessageId, route: Route) -> None:
    known = turns.setdefault(message, route)
    if known is route:
        return
    if isinstance(known, Route):
        turns[message] = ring = _Ring()
        ring.routes.append(known)
        known = ring
    known.add(route)


def _routes(known: Route | _Ring | None) -> tuple[Route, ...]:
    if known is None:
        return ()
    return (known,) if isinstance(known, Route) else tuple(known.routes)


def _remove(turns: _Turns, message: MessageId, gone: Container[Route]) -> None:
    """Remove receivers of a message, in one pass."""
    known = turns[message]
    kept = [route not in gone for route in _routes(known)]
    if True not in kept:
        del turns[message]
    elif isinstance(known, _Ring) and False in kept:
        known.keep(kept)
        if len(known.routes) == 1:
            turns[message] = known.routes[0]


class _OfNode:
    """All receivers of one node."""

    __slots__ = ("_node",)

    def __init__(self, node: bytes) -> None:
        self._node = node

    def __contains__(self, route: object) -> bool:
        return isinstance(route, Route) and route.node == self._node


class RoutingTable:
    """All receivers that a node knows, its own and those of other nodes."""

    def __init__(self) -> None:
        self._everywhere: _Turns = {}
        self._here: _Turns = {}
        self._alike: dict[bytes, dict[int | bytes, dict[MessageId, None]]] = {}
        """What is handled, by identity and version."""
        self._handled: dict[Route, set[MessageId]] = {}
        self.removals = 0
        """Counts what was removed, so that whoever has added something knows whether it may be gone."""
        self._found: dict[bytes, Route] = {}
        self._hidden: dict[bytes, list[Route]] = {}
        self._nodes: dict[bytes, set[Route]] = {}
        self._own: dict[Route, None] = {}
        self._sizes: dict[bytes, int] = {}
        """Receivers of each other node, and what they handle, together."""

    def add(self, message: MessageId, route: Route) -> bool:
        """Register a receiver for a message; False if that was known."""
        handled = self._handled.get(route)
        if handled is not None and message in handled:
            return False
        self.add_receiver(route)
        self._handled[route].add(message)
        if route.node:
            self._sizes[route.node] += 1
        if message not in self._everywhere:
            self._alike.setdefault(message.identity, {}).setdefault(message.version, {})[message] = None
        _add(self._everywhere, message, route)
        if not route.node:
            _add(self._here, message, route)
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
            self._sizes[route.node] += 1
        else:
            self._own[route] = None

    def add_node(self, node: bytes) -> None:
        """Make another node known, whether or not it handles anything."""
        if node not in self._nodes:
            self._nodes[node] = set()
            self._sizes[node] = 0

    def remove(self, message: MessageId, route: Route) -> bool:
        """Forget that a receiver handles a message; False if it was not known to."""
        handled = self._handled.get(route)
        if handled is None or message not in handled:
            return False
        self._remove_all({message: {route}})
        return True

    def remove_receiver(self, route: Route) -> None:
        """Forget a receiver and everything it handles."""
        self.remove_receivers([route])

    def remove_receivers(self, routes: Iterable[Route]) -> None:
        """Forget receivers and everything they handle, in one pass over those of each message."""
        gone: dict[MessageId, set[Route]] = {}
        known = [route for route in dict.fromkeys(routes) if route in self._handled]
        for route in known:
            for message in self._handled[route]:
                gone.setdefault(message, set()).add(route)
        self._remove_all(gone)
        self.removals += len(known)
        for route in known:
            del self._handled[route]
            self._lose(route)
            if route.node:
                self._nodes[route.node].discard(route)
                self._sizes[route.node] -= 1
            else:
                del self._own[route]

    def remove_messages(self, node: bytes, gone: Mapping[MessageId, AbstractSet[bytes]]) -> None:
        """Forget that receivers of another node handle messages: those named for each, or all where none are.

        Receivers that handle nothing any more are forgotten, too.
        """
        found: dict[MessageId, set[Route]] = {}
        named: set[Route] = set()
        for message, receivers in gone.items():
            if receivers:
                routes = {Route(receiver, node) for receiver in receivers}
            else:
                routes = {route for route in _routes(self._everywhere.get(message)) if route.node == node}
            named |= routes
            if routes := {route for route in routes if message in self._handled.get(route, ())}:
                found[message] = routes
        self._remove_all(found)
        self.remove_receivers(route for route in named if not self._handled.get(route))

    def remove_node(self, node: bytes) -> None:
        """Forget another node and all of its receivers."""
        routes = self._nodes.pop(node, None)
        self._sizes.pop(node, None)
        if not routes:
            return
        gone = _OfNode(node)
        for message in {message for route in routes for message in self._handled.pop(route)}:
            if isinstance(self._everywhere[message], Route):
                del self._everywhere[message]
            else:
                _remove(self._everywhere, message, gone)
            self._forget_alike(message)
        self.removals += 1
        for route in routes:
            self._lose(route)

    def remove_some(self, node: bytes, most: int) -> set[MessageId]:
        """Forget about so many receivers of another node, and messages of theirs; return these messages.

        For a node with many thousands, of which all at once would take long.
        """
        whole: list[Route] = []
        gone: dict[MessageId, set[bytes]] = {}
        for route in self._nodes.get(node, ()):
            handled = self._handled[route]
            if len(handled) < most:
                whole.append(route)
            for message in islice(handled, most):
                gone.setdefault(message, set()).add(route.receiver)
            most -= 1 + len(handled)
            if most <= 0:
                break
        self.remove_messages(node, gone)
        self.remove_receivers(whole)
        return set(gone)

    def _remove_all(self, gone: Mapping[MessageId, AbstractSet[Route]]) -> None:
        """Forget that receivers handle messages, which they are known to."""
        for message, routes in gone.items():
            here = False
            for route in routes:
                self._handled[route].discard(message)
                if route.node:
                    self._sizes[route.node] -= 1
                else:
                    here = True
            for turns in (self._everywhere, self._here) if here else (self._everywhere,):
                _remove(turns, message, routes)
            self._forget_alike(message)
            self.removals += 1

    def _forget_alike(self, message: MessageId) -> None:
        """Forget a message that nobody handles any more among those of its identity."""
        if message in self._everywhere:
            return
        versions = self._alike[message.identity]
        del versions[message.version][message]
        if not versions[message.version]:
            del versions[message.version]
        if not versions:
            del self._alike[message.identity]

    def _lose(self, route: Route) -> None:
        """Let a receiver be found no more by its identity, but the one that it hid."""
        hidden = self._hidden.get(route.receiver)
        if self._found[route.receiver] != route:
            if hidden is not None:
                hidden.remove(route)
        elif hidden:
            self._found[route.receiver] = hidden.pop()
        else:
            del self._found[route.receiver]
        if not hidden:
            self._hidden.pop(route.receiver, None)

    def next(self, message: MessageId) -> Route | None:
        """The next route for a unicast, round-robin over local and remote alike."""
        known = self._everywhere.get(message)
        return known.next() if isinstance(known, _Ring) else known

    def next_here(self, message: MessageId) -> Route | None:
        """The next route among the receivers of this node."""
        known = self._here.get(message)
        return known.next() if isinstance(known, _Ring) else known

    def only_here(self, message: MessageId) -> Route | None:
        """The receiver of this node, where it has just one."""
        known = self._here.get(message)
        return known if isinstance(known, Route) else None

    def all(self, message: MessageId) -> Iterator[Route]:
        """Every receiver of a message, wherever it is."""
        return iter(_routes(self._everywhere.get(message)))

    def all_here(self, message: MessageId) -> Iterator[Route]:
        """Every receiver of a message on this node."""
        return iter(_routes(self._here.get(message)))

    def find(self, receiver: bytes) -> Route | None:
        """Where the receiver with this identity is."""
        return self._found.get(receiver)

    def handles(self, route: Route, message: MessageId) -> bool:
        """Whether a receiver is registered for a message."""
        return message in self._handled.get(route, ())

    def routes_of(self, node: bytes) -> int:
        """Return how much another node takes of the table: its receivers, and what each of them handles."""
        return self._sizes.get(node, 0)

    def handled_by(self, route: Route) -> AbstractSet[MessageId]:
        """Return what a receiver handles, as a view that changes with the table."""
        return self._handled.get(route, _NOTHING)

    def receivers_of(self, node: bytes) -> tuple[Route, ...]:
        """Return the receivers of another node, or, without an identity, of this one."""
        return tuple(self._nodes.get(node, ())) if node else tuple(self._own)

    def is_handled(self, message: MessageId) -> bool:
        """Return whether a message has a receiver, wherever it is."""
        return message in self._everywhere

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

    def alike(self, message: MessageId, most: int | None = None) -> list[MessageId]:
        """Other versions and partitions of a message that somebody does handle, one of each version first."""
        versions = self._alike.get(message.identity, {}).values()
        firsts = (next(iter(known)) for known in versions)
        others = chain.from_iterable(islice(known, 1, None) for known in versions)
        return list(islice(chain(firsts, others), most))
