"""Nodes that were taken to be gone: what has to be done so that all they have is known again when they are back.

A node may be heard of again by a part of what it has, such as where its hub is, while the rest stays unknown: so it
is asked for everything. And one may give signs of life while the way to it is broken: nothing will tell that it is
back, so it is asked over that way itself, again and again, and hears it when the way is right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from framewire.cluster.announcing import Announcer

__all__ = ["Returning"]

_MOST = 10_000
"""Nodes that are remembered; whoever makes up names must not fill the memory with them."""


class Returning:
    """Who is to be asked for everything. ``find`` makes the way to a node known, ``drop`` lets go of it."""

    def __init__(
        self,
        announcer: Announcer,
        patience: float,
        *,
        find: Callable[[bytes, str], None],
        drop: Callable[[bytes, str], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._announcer = announcer
        self._patience = patience
        self._find = find
        self._drop = drop
        self._silent: dict[bytes, None] = {}
        self._cut_off: dict[bytes, asyncio.TimerHandle] = {}

    def fell_silent(self, peer: bytes) -> None:
        """A node gives no sign of life."""
        if self._found_again(peer):
            self._drop(peer, "it gives no sign of life")
        self._silent[peer] = None
        if len(self._silent) > _MOST:
            del self._silent[next(iter(self._silent))]

    def was_cut_off(self, peer: bytes, uri: str) -> None:
        """The way to a node is broken, though it may live."""
        if peer not in self._silent and len(self._cut_off) < _MOST:
            self._ask_straight(peer, uri)

    def heard(self, peer: bytes) -> None:
        """A node that fell silent gives signs of life."""
        self._silent.pop(peer, None)
        self._announcer.ask_node(peer)

    def told(self, peer: bytes) -> None:
        """A node tells of something that it has."""
        self._found_again(peer)
        if peer in self._silent:
            del self._silent[peer]
            self._announcer.ask_node(peer)

    def left(self, peer: bytes) -> None:
        """A node has left in good order, and will not be back."""
        self._silent.pop(peer, None)
        if self._found_again(peer):
            self._drop(peer, "it has left")

    def close(self) -> None:
        """Ask nobody any more."""
        for timer in self._cut_off.values():
            timer.cancel()
        self._cut_off.clear()

    def _found_again(self, peer: bytes) -> bool:
        """Ask a node no more over its own way; whether it was."""
        timer = self._cut_off.pop(peer, None)
        if timer is not None:
            timer.cancel()
        return timer is not None

    def _ask_straight(self, peer: bytes, uri: str) -> None:
        self._cut_off[peer] = self._loop.call_later(self._patience, self._ask_again, peer, uri)
        self._find(peer, uri)
        self._announcer.ask_straight(peer)

    def _ask_again(self, peer: bytes, uri: str) -> None:
        self._drop(peer, "it cannot be reached")
        self._ask_straight(peer, uri)
