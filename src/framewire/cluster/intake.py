"""What a node takes from each of its connections, where there is a limit to that.

What is beyond it is dropped before anybody looks at it: that is all that a flood costs, besides receiving it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from framewire.node.conduct import Allowance
from framewire.node.deadletters import Reason
from framewire.node.transport import Port

__all__ = ["Intake"]

_MOST = 10_000
"""Connections that are told apart; the one that was silent for longest makes room."""


class Intake:
    """Hands on so many messages of each connection in a second, with a second's worth in reserve."""

    def __init__(
        self, rate: float, port: Port, take: Callable[[list[bytes]], None], now: Callable[[], float]
    ) -> None:
        self._rate = rate
        self._port = port
        self._take = take
        self._now = now
        self._allowances: OrderedDict[bytes, Allowance] = OrderedDict()

    def take(self, frames: list[bytes]) -> None:
        """Take a message in, or drop it."""
        now = self._now()
        connection = frames[0]
        allowance = self._allowances.get(connection)
        if allowance is None:
            if len(self._allowances) >= _MOST:
                self._allowances.popitem(last=False)
            allowance = self._allowances[connection] = Allowance(self._rate, now)
        else:
            self._allowances.move_to_end(connection)
        if allowance.spend(now):
            self._take(frames)
        else:
            detail = f"more than {self._rate:g} messages a second on one connection (peer_rate)"
            self._port.refused(connection, Reason.THROTTLED, detail, frames)
