"""For how long somebody who should give signs of life may be silent.

A connection may be dead without anybody being told: a cable was pulled, or a machine lost its power. So whoever is
silent for longer than promised is connected to anew. Until something was promised, each try is given more time.
"""

from __future__ import annotations

from framewire.cluster import service
from framewire.errors import WireError
from framewire.wire import decode

__all__ = ["Patience"]

_SHORTEST = 0.05
"""Seconds between signs of life below which nobody is believed."""
_LONGEST = 600.0
"""Seconds for which somebody who has promised nothing may be silent."""


class Patience:
    """Patience with one peer; ``interval`` is what it is expected to promise."""

    def __init__(self, interval: float, misses: int, now: float) -> None:
        self._misses = misses
        self._promised = False
        self.seconds = interval * misses
        self.seen = now

    def heard(self, frames: list[bytes], now: float) -> bool:
        """Take a sign of life, which every message is; whether it was nothing but that."""
        self.seen = now
        if len(frames) < 6 or frames[-6] != service.HEARTBEAT.identity:
            return False
        try:
            interval = service.seconds(service.parse(decode(frames)).interval)
        except (WireError, ValueError):
            return True
        self._promised = True
        self.seconds = max(interval, _SHORTEST) * self._misses
        return True

    def is_over(self, now: float) -> bool:
        """Whether the silence has been too long; if so, another begins."""
        if now - self.seen <= self.seconds:
            return False
        if not self._promised:
            self.seconds = min(2 * self.seconds, max(_LONGEST, self.seconds))
        self.seen = now
        return True
