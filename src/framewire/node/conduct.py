"""What is wrong with what peers send: counted by peer and reason, and followed up within limits.

To keep a dead letter and tell the caller costs many times what it costs to drop a message, and the answer goes to
whomever the message names. So a peer that sends rubbish must not get that for each: beyond so many a second its bad
messages are counted, and that is all. Where there are still more it is shunned for a second: what it sends is not
even looked at.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping

from framewire.node.deadletters import Reason

__all__ = ["OTHERS", "Allowance", "Conduct"]

OTHERS = b""
"""Stands for peers that are not known, and for those that are not kept apart any more."""
_MOST_PEERS = 1000
_EACH, _ALL = 100, 1000
"""How many bad messages of one peer, and of all together, are followed up in a second."""
_BORNE = 1000
"""How many of one peer are looked at in a second."""
_SHUNNED = 1.0
"""Seconds."""


class Allowance:
    """So much a second, with a second's worth in reserve."""

    __slots__ = ("_left", "_rate", "_then")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._left = max(rate, 1.0)
        self._then = now

    def spend(self, now: float) -> bool:
        """Take one, if there is one left."""
        self._left = min(self._left + (now - self._then) * self._rate, max(self._rate, 1.0))
        self._then = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class _Peer:
    __slots__ = ("allowance", "counts", "patience", "until")

    def __init__(self, now: float) -> None:
        self.counts: Counter[Reason] = Counter()
        self.allowance = Allowance(_EACH, now)
        self.patience = Allowance(_BORNE, now)
        self.until = now


class Conduct:
    """How the peers of one node behave. A peer is a connection: what it says of itself may be a lie."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._peers: OrderedDict[bytes, _Peer] = OrderedDict()
        self._others: Counter[Reason] = Counter()
        self._all = Allowance(_ALL, now())
        self.shunned: set[bytes] = set()
        """Those whose messages are not looked at; ask ``shuns`` whether that is still so."""

    @property
    def counts(self) -> Mapping[bytes, Mapping[Reason, int]]:
        """Messages that were refused, by peer and reason."""
        found: dict[bytes, Mapping[Reason, int]] = {peer: known.counts for peer, known in self._peers.items()}
        return found | {OTHERS: self._others} if self._others else found

    def note(self, peer: bytes, reason: Reason, count: int = 1) -> bool:
        """Count bad messages; whether they are to be followed up."""
        now = self._now()
        if peer == OTHERS:
            self._others[reason] += count
            return self._all.spend(now)
        known = self._peers.get(peer) or self._meet(peer, now)
        known.counts[reason] += count
        if not known.patience.spend(now) and peer not in self.shunned:
            known.until = now + _SHUNNED
            self.shunned.add(peer)
        return known.allowance.spend(now) and self._all.spend(now)

    def shuns(self, peer: bytes) -> bool:
        """Whether a message of a peer is to be dropped unseen; then it is counted."""
        known = self._peers.get(peer)
        if known is None or self._now() >= known.until:
            self.shunned.discard(peer)
            return False
        known.counts[Reason.THROTTLED] += 1
        return True

    def _meet(self, peer: bytes, now: float) -> _Peer:
        if len(self._peers) >= _MOST_PEERS:
            peer_gone, oldest = self._peers.popitem(last=False)
            self.shunned.discard(peer_gone)
            self._others += oldest.counts
        known = self._peers[peer] = _Peer(now)
        return known
