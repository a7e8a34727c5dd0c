"""What a kino node knows of the routes of other nodes, with the fault that the original's table has."""

from dataclasses import dataclass, field

HUB, ACTOR = 0, 1


class BrokenRouteError(Exception):
    """The table has a node for a message, but no actor of it: in kino a look-up that throws."""


@dataclass
class Known:
    """Another node; heartbeats are promised every so many seconds."""

    uri: str
    health_uri: str
    interval: float
    hubs: set = field(default_factory=set)


class ExternalTable:
    """Nodes by message, and actors by node and message: two maps, of which one may forget what the other keeps."""

    def __init__(self):
        self.nodes = {}
        self._rings = {}
        self._actors = {}

    def register(self, node, known, routes):
        """Add receivers of a node; raise ``ValueError`` for what kino's handler throws at."""
        there = self.nodes.setdefault(node, known)
        for receiver, messages in routes:
            if receiver[:1] == bytes([HUB]):
                there.hubs.add(receiver)
            elif receiver[:1] != bytes([ACTOR]) or not messages:
                raise ValueError(f"{receiver} is no receiver, or handles nothing")
            for message in messages:
                ring = self._rings.setdefault(message, [])
                if node not in ring:
                    ring.append(node)
                self._actors.setdefault((node, message), set()).add(receiver)

    def unregister(self, node, routes):
        """Take receivers off; raise ``ValueError`` for an entry without messages.

        Of an actor with several messages, kino forgets the actor, but the node only for the last of them.
        """
        for receiver, messages in routes:
            if not messages:
                raise ValueError("a route without contracts")
            if receiver[:1] == bytes([HUB]) and node in self.nodes:
                self.nodes[node].hubs.discard(receiver)
            for number, message in enumerate(messages):
                actors = self._actors.get((node, message))
                if actors is None or receiver[:1] == bytes([HUB]):
                    continue
                actors.intersection_update(actors - {receiver} if receiver else ())
                if not actors:
                    del self._actors[node, message]
                    if not receiver or number == len(messages) - 1:
                        self._rings[message].remove(node)

    def remove(self, node):
        """Forget a node, as far as its actors are known."""
        self.nodes.pop(node, None)
        for message in self.handled_by(node):
            del self._actors[node, message]
            self._rings[message].remove(node)

    def next(self, message):
        """Return the node whose turn it is; None where no node handles a message."""
        ring = self._rings.get(message)
        if not ring:
            return None
        ring.append(ring.pop(0))
        return self._checked(ring[-1], message)

    def all(self, message):
        """Return all nodes that handle a message."""
        return [self._checked(node, message) for node in self._rings.get(message, ())]

    def _checked(self, node, message):
        if (node, message) not in self._actors:
            raise BrokenRouteError(f"{node} has no actor for {message}")
        return node

    def handled_by(self, node):
        """Return the messages that a node has actors for."""
        return {message for known, message in self._actors if known == node}

    def actors(self, node, message):
        """Return the actors of a node that handle a message."""
        return self._actors.get((node, message), set())
