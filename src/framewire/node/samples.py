"""What goes to which node by message, and how long answers take, as far as samples tell.

A node that has little to do counts everything. One that is busy looks at every seventeenth message only, which
costs next to nothing; messages hardly ever come in patterns of seventeen.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import nlargest

from framewire.wire import MessageId

__all__ = ["Sampled", "Samples"]

_EVERY = 17
_BUSY = 1000
"""Messages a second from which on a node is busy."""
_MOST = 1000
"""Ways that are told apart; the one that was there first makes room."""
_KEPT = 64
"""Answers of each way that are remembered."""


@dataclass(slots=True)
class Sampled:
    """One message to one node."""

    sent: int = 0
    """How many of them have left, about."""
    took: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """Seconds from the question to the answer, of the last that were looked at."""

    def quantile(self, part: float) -> float | None:
        """The time within which that part of the answers came; None where none did."""
        ordered = sorted(self.took)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None


class Samples:
    """What one node has sent to others."""

    def __init__(self) -> None:
        self._ways: dict[tuple[bytes, MessageId], Sampled] = {}
        self.every = 1
        """One of so many messages is looked at."""
        self.due = 1
        """How many more leave before one is."""

    def busiest(self, most: int) -> list[tuple[bytes, MessageId, Sampled]]:
        """The ways of which most was sent."""
        ways = ((node, message_id, found) for (node, message_id), found in self._ways.items())
        return nlargest(most, ways, key=lambda way: way[2].sent)

    def adapt(self, per_second: float) -> None:
        """So many messages leave in a second."""
        self.every = _EVERY if per_second >= _BUSY else 1

    def sent(self, node: bytes, message_id: MessageId) -> None:
        """One that is looked at has left."""
        self.due = self.every
        self._way(node, message_id).sent += self.every

    def answered(self, node: bytes, message_id: MessageId, seconds: float) -> None:
        """One that is looked at was answered."""
        self._way(node, message_id).took.append(seconds)

    def _way(self, node: bytes, message_id: MessageId) -> Sampled:
        way = (node, message_id)
        found = self._ways.get(way)
        if found is None:
            if len(self._ways) >= _MOST:
                del self._ways[next(iter(self._ways))]
            found = self._ways[way] = Sampled()
        return found
