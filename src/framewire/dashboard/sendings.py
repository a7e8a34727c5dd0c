"""What nodes send each other now: the growth of what each of them counts for each of its peers."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from framewire.dashboard.growth import Growth, Lines
from framewire.node.reports import NodeStats, TrafficStats
from framewire.operation.observing import Seen

__all__ = ["Sending", "Sendings", "SentMessage"]


@dataclass(frozen=True, slots=True)
class SentMessage:
    """One message from one node to another."""

    message: str
    sent: int
    rate: float
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Sending:
    """What one node sends to another."""

    sender: str
    receiver: str
    sent: int
    dropped: int
    waiting: int
    rate: float
    """Messages that left in a second, between the last two looks."""
    lately: bool
    """Whether anything was sent or dropped in the last minutes."""
    trouble: float
    """The part that was dropped of all that should have left in the last minutes."""
    messages: tuple[SentMessage, ...] = ()
    """By message, the busiest first; estimates, where the sender is busy."""


class Sendings:
    """Follows what goes from node to node."""

    def __init__(self) -> None:
        self._growth = Growth()
        self._lines = Lines()

    def line(self, sender: str, receiver: str) -> tuple[float, ...]:
        """What left in a second, over the last minutes."""
        return self._lines.of(sender, receiver, "sent")

    def look(self, nodes: Iterable[Seen], known: AbstractSet[str]) -> tuple[Sending, ...]:
        """What the nodes tell now of what they sent to those who are, or were, there."""
        nodes = tuple(nodes)
        self._growth.look_again()
        for node in nodes:
            if node.stats is not None:
                self._growth.begin((node.name,), node.stats.uptime)
        found = [
            self._told(node.name, peer, told, node.stats)
            for node in nodes
            if node.stats is not None
            for peer, told in node.stats.traffic.items()
            if peer in known and peer != node.name
        ]
        self._lines.forget_quiet()
        return tuple(found)

    def _told(self, node: str, peer: str, told: TrafficStats, stats: NodeStats) -> Sending:
        way, rates, at = (node, peer), {}, stats.uptime
        for name, value in (("sent", told.sent), ("dropped", told.dropped)):
            of = (*way, name)
            rates[name] = self._growth.rate(of, value, at, part_of=(node,))
            if rates[name] or of in self._lines:
                self._lines.add(of, rates[name])
        sent, dropped = sum(self._lines.of(*way, "sent")), sum(self._lines.of(*way, "dropped"))
        return Sending(
            *way,
            told.sent,
            told.dropped,
            told.waiting,
            rates["sent"],
            lately=sent + dropped > 0,
            trouble=dropped / (sent + dropped) if dropped else 0.0,
            messages=self._messages(way, stats),
        )

    def _messages(self, way: tuple[str, str], stats: NodeStats) -> tuple[SentMessage, ...]:
        node, peer = way
        found = [
            SentMessage(
                each.message,
                each.sent,
                self._growth.rate((*way, "of", each.message), each.sent, stats.uptime, part_of=(node,)),
                each.p50,
                each.p95,
            )
            for each in stats.ways
            if each.node == peer
        ]
        return tuple(sorted(found, key=lambda each: (-each.rate, -each.sent)))
