"""The numbers that ZeroMQ gives to connections without a name: unpredictable, and known to the transport alone.

A ROUTER socket counts anonymous connections from a number of C's ``rand()``, which libzmq does not seed. A peer
that knows the next number can claim it as its own name, and then the next anonymous connection fails an assertion
that ends the process (libzmq 4.3.5). So each ROUTER socket begins at a number of the operating system's, and
nothing outside the transport sees a number: it would tell the following ones.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os

__all__ = ["ConnectionNames", "seed_connection_numbers"]

_MAX_CONNECTIONS = 10_000
"""Connections whose names are kept; the one that was met first makes room."""
_KEY_BYTES, _NAME_BYTES = 16, 8


@functools.cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None if os.name == "posix" else "ucrtbase")


def seed_connection_numbers() -> None:
    """Seed C's ``rand()`` from the operating system; call it before each ROUTER socket is made.

    Each socket gets a seed of its own: one whose numbers became known says nothing about another, and a process
    that was forked does not repeat its parent's.
    """
    _c_library().srand(ctypes.c_uint(int.from_bytes(os.urandom(4), "little")))


class ConnectionNames:
    """Names for the connections of one ROUTER socket, which tell nothing about their numbers.

    A peer that chose its name keeps it, unless it begins with a zero byte: those are the socket's own.
    """

    def __init__(self) -> None:
        self._key = os.urandom(_KEY_BYTES)
        self.known: dict[bytes, bytes] = {}
        """Names by what the socket calls a connection: see ``name`` for one that is not among them."""
        self._routing_ids: dict[bytes, bytes] = {}

    def name(self, routing_id: bytes) -> bytes:
        """Return the name of a connection."""
        name = self.known.get(routing_id)
        if name is None:
            if len(self.known) >= _MAX_CONNECTIONS:
                self._routing_ids.pop(self.known.pop(next(iter(self.known))), None)
            name = routing_id if routing_id[:1] != b"\0" else b"\0" + self._digest(routing_id)
            self.known[routing_id] = name
            self._routing_ids[name] = routing_id
        return name

    def routing_id(self, name: bytes) -> bytes | None:
        """Return what the socket calls a connection, or None for one that is not known any more."""
        return self._routing_ids.get(name)

    def _digest(self, routing_id: bytes) -> bytes:
        return hashlib.blake2b(routing_id, key=self._key, digest_size=_NAME_BYTES).digest()
