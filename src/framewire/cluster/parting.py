"""Leaving without loss: a node that leaves listens for a moment longer, and others wait for its last answers.

That a node leaves is said through the servers, while messages and answers go straight. So some are sent to it by
those who have not heard yet, and the news may overtake its answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from framewire.node.transport import Port

__all__ = ["LastCalls", "Partings"]

_HEARD = 0.1
"""Seconds after which the others have heard, where nothing comes that tells otherwise."""
_CALM = 0.25
"""Seconds without a message after which no more are expected, where some came late."""
_LONGEST = 2.0
"""Seconds after which a node leaves, though somebody may send to it all the time."""


class LastCalls:
    """What comes to a node that leaves: still taken in, so that it is answered or passed on to another."""

    def __init__(self, port: Port) -> None:
        self._loop = asyncio.get_running_loop()
        self._port = port
        self._calm = self._loop.time() + _HEARD

    def receive(self, peer: bytes, frames: list[bytes]) -> None:
        """Take in a message."""
        self._calm = self._loop.time() + _CALM
        self._port.receive(peer, frames)

    def receive_alike(self, peer: bytes, messages: list[list[bytes]]) -> None:
        """Take in several."""
        self._calm = self._loop.time() + _CALM
        self._port.receive_alike(peer, messages)

    async def over(self) -> None:
        """Wait until nobody sends any more."""
        latest = self._loop.time() + _LONGEST
        while (left := min(self._calm, latest) - self._loop.time()) > 0:  # noqa: ASYNC110 - messages put it off
            await asyncio.sleep(left)


class Partings:
    """Nodes that have left in good order. ``over`` is called with each that is waited for no longer."""

    def __init__(self, patience: float, over: Callable[[bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._patience = patience
        self._over = over
        self._timers: dict[bytes, asyncio.TimerHandle] = {}

    def begin(self, peer: bytes) -> None:
        """A node has just left."""
        self.end(peer)
        self._timers[peer] = self._loop.call_later(self._patience, self.end, peer)

    def end(self, peer: bytes) -> None:
        """Wait no longer for a node, where it has left."""
        timer = self._timers.pop(peer, None)
        if timer is not None:
            timer.cancel()
            self._over(peer)

    def close(self) -> None:
        """Wait for nobody."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
