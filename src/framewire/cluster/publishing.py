"""A socket that publishes to everyone who listens, and that subscriptions cannot fill.

Everyone here subscribes to everything, with an empty topic. libzmq keeps every other topic for as long as its
connection lasts, at about 60 bytes for each of its bytes, and can neither refuse one nor end a single connection; a
manual XPUB keeps them as well. So topics are counted, and where there are too many the socket is made anew at the
same address: honest listeners connect again within a moment, by themselves.
"""

from __future__ import annotations

import contextlib
import logging
import time

import zmq

from framewire.cluster.channel import Channel, open_channel
from framewire.cluster.sockets import bind_first, make_socket
from framewire.errors import ConfigError

__all__ = ["Publisher"]

log = logging.getLogger("framewire.cluster")

_PLAIN = {"MAXMSGSIZE": 100, "RCVHWM": 1}
"""Bytes of a frame that a listener may send, where a larger one ends its connection, and how many may wait.
libzmq takes in all that has come before it tells of the first: the longer that takes, the more come meanwhile."""
_CURVE = {"MAXMSGSIZE": 512, "RCVHWM": 10}
"""The same for members: the handshake of CURVE needs more."""
_MAX_TOPIC_BYTES = 1 << 18
"""Bytes of all topics together; they take about 16 MB."""
_TOPIC_OVERHEAD = 16
"""Bytes that a topic counts besides its own."""
_MAX_RETURNED = 4
"""How many times that much may be unsubscribed from, until the socket is made anew. It does not tell whose topic
that was, nor whether it was anybody's, so more would let topics be taken for gone that are still there."""
_BATCH, _MAX_BATCHES = 100, 100
_TRY_EVERY_S, _TRY_FOR_S = 0.005, 0.5
"""Seconds between tries to listen anew where the old socket is just being closed, and for how long at a time."""


class Publisher:
    """An XPUB socket. It belongs to one thread at a time, which calls ``check`` whenever it is readable."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], **options: int | bytes) -> None:
        self._context = context
        # Told of each topic of each connection: one that several have takes room for each of them.
        self._options = {
            "XPUB_VERBOSER": 1,
            **(_CURVE if options.get("CURVE_SERVER") else _PLAIN),
            **options,
        }
        self.socket = make_socket(context, zmq.XPUB, **self._options)
        self._channel: Channel | None = None
        self._address = ""
        self._is_bound = False
        self._topics = self._returned = 0

    def bind(self, addresses: list[str]) -> str:
        """Bind to the first address that is free; return where that is."""
        self._address = bind_first(self.socket, addresses)
        self._is_bound = True
        return self._address

    def send(self, frames: list[bytes]) -> None:
        """Send a message to everyone who listens."""
        if self._is_bound:
            if self._channel is None:  # it belongs to the thread that uses it
                self._channel = open_channel(self.socket)
            self._channel.send(frames)

    def check(self) -> bool:
        """Count topics, and listen anew where there are too many; return whether the socket is another now."""
        if not self._is_bound:
            return self._open_anew()
        if self._channel is None:
            self._channel = open_channel(self.socket)
        for _ in range(_MAX_BATCHES):
            heard = self._channel.receive(_BATCH)
            for frames in heard:
                if len(frames) == 1 and len(frames[0]) > 1 and frames[0][0] <= 1:
                    size = len(frames[0]) + _TOPIC_OVERHEAD
                    if frames[0][0]:
                        self._topics += size
                    elif self._returned + size <= _MAX_RETURNED * _MAX_TOPIC_BYTES:
                        self._returned += size
                        self._topics -= size
            if self._topics > _MAX_TOPIC_BYTES:
                log.warning("listeners at %s subscribe to too many topics; they are disconnected", self._address)
                self.socket.unbind(self._address)
                return self._open_anew()
            if len(heard) < _BATCH:
                break
        return False

    def _open_anew(self) -> bool:
        self.close()
        self._is_bound = False
        self._channel, self._topics, self._returned = None, 0, 0
        self.socket = make_socket(self._context, zmq.XPUB, **self._options)
        deadline = time.monotonic() + _TRY_FOR_S
        while not self._is_bound and time.monotonic() < deadline:
            try:
                bind_first(self.socket, [self._address])
                self._is_bound = True
            except ConfigError:
                time.sleep(_TRY_EVERY_S)
        if not self._is_bound:
            log.warning("cannot listen at %s again yet", self._address)
        return True

    def close(self) -> None:
        """Publish no more."""
        with contextlib.suppress(zmq.ZMQError):
            self.socket.close(0)
