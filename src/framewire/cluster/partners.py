"""The way to another rendezvous server: what it relays is heard, and one that falls silent is connected to anew."""

from __future__ import annotations

import logging
import time

import zmq

from framewire.cluster.channel import open_channel
from framewire.cluster.curve import PLAIN, Mechanism
from framewire.cluster.patience import Patience
from framewire.cluster.sockets import connect, make_socket

__all__ = ["Partner"]

log = logging.getLogger("framewire.rendezvous")

_MISSES = 3


class Partner:
    """The way to one partner. It belongs to the thread that made it, and so does the poller."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        uri: str,
        heartbeat: float,
        poller: zmq.Poller,
        mechanism: Mechanism = PLAIN,
    ) -> None:
        self._context = context
        self._uri = uri
        self._mechanism = mechanism
        self._timeout = max(1000, round(heartbeat * 1000))
        self._poller = poller
        self.patience = Patience(heartbeat, _MISSES, time.monotonic())
        self._socket, self._monitor = self._opened()
        self._watch()

    def _opened(self) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
        """A socket to the partner, and one that tells of its connections; ``ZMQError`` where neither can be had."""
        # A try that nobody answers is given up early: the system's own next try may be many seconds away.
        made = make_socket(
            self._context,
            zmq.SUB,
            SUBSCRIBE=b"",
            RCVHWM=100_000,
            CONNECT_TIMEOUT=self._timeout,
            **self._mechanism.connecting,
        )
        try:
            monitor = made.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
            connect(made, self._uri)
        except zmq.ZMQError:
            made.close(0)
            raise
        return made, monitor

    def _watch(self) -> None:
        self._channel = open_channel(self._socket)
        for source in (self._socket, self._monitor):
            self._poller.register(source, zmq.POLLIN)

    def receive(self) -> list[list[bytes]]:
        """What the partner has relayed since, signs of life apart."""
        now = time.monotonic()
        return [frames for frames in self._channel.receive(1000) if not self.patience.heard(frames, now)]

    def has_arrived(self) -> bool:
        """Whether there is a new connection."""
        arrived = False
        while self._monitor.poll(0):
            self._monitor.recv_multipart()
            arrived = True
        if arrived:
            self.patience.seen = time.monotonic()
        return arrived

    def check(self) -> None:
        """Connect anew where the partner has been silent for too long."""
        if self.patience.is_over(time.monotonic()):
            log.info("the partner at %s gives no sign of life; connecting anew", self._uri)
            try:
                fresh = self._opened()
            except zmq.ZMQError as problem:
                # The server must not end for it: whoever is connected still needs it, and the old way may recover.
                log.warning("there is no new connection to the partner at %s: %s", self._uri, problem)
                return
            self.close()
            self._socket, self._monitor = fresh
            self._watch()

    def close(self) -> None:
        """Hear no more."""
        for source in (self._socket, self._monitor):
            self._poller.unregister(source)
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close(0)
