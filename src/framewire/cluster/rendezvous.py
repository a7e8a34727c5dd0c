"""The server through which nodes find each other: what one node says, all nodes hear.

It keeps nothing, so it can be killed and started again at any time. Several servers relay to each other, and a
node that is connected to any of them hears everyone.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterable

import zmq

from framewire.cluster.channel import open_channel
from framewire.cluster.service import HEARTBEAT, PING, PONG, service_message, time_span
from framewire.cluster.settings import next_port
from framewire.cluster.sockets import bind_first, connect, make_socket
from framewire.errors import WireError
from framewire.wire import encode, peek

__all__ = ["Rendezvous"]

log = logging.getLogger("framewire.rendezvous")


class Rendezvous:
    """A rendezvous server. ``run`` serves until ``stop`` is called, from a signal handler or another thread.

    It listens at ``uri``, speaks at ``broadcast`` (the next port unless given), and relays to and from
    ``partners``, given by their own ``uri``, over the port after that.
    """

    def __init__(
        self, uri: str, *, broadcast: str | None = None, partners: Iterable[str] = (), heartbeat: float = 1.0
    ) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._heartbeat = heartbeat
        self._stopping = threading.Event()
        self._bell = make_socket(self._context, zmq.PAIR)
        self._ringer = make_socket(self._context, zmq.PAIR)
        address = f"inproc://framewire-rendezvous-{id(self)}"
        self._bell.bind(address)
        self._ringer.connect(address)
        try:
            self._inbox = make_socket(self._context, zmq.ROUTER, RCVHWM=100_000)
            self.uri = bind_first(self._inbox, [uri])
            self._speaker = make_socket(self._context, zmq.PUB, SNDHWM=100_000)
            self.broadcast = bind_first(self._speaker, [broadcast or next_port(self.uri)])
            self._relay = make_socket(self._context, zmq.PUB, SNDHWM=100_000)
            self.relay = bind_first(self._relay, [next_port(self.uri, 2)])
            self._partners = make_socket(self._context, zmq.SUB, SUBSCRIBE=b"", RCVHWM=100_000)
        except BaseException:
            self._context.destroy(0)
            raise
        for partner in partners:
            connect(self._partners, next_port(partner, 2))

    def run(self) -> None:
        """Serve until told to stop."""
        inbox, partners, speaker, relay = map(
            open_channel, (self._inbox, self._partners, self._speaker, self._relay)
        )
        poller = zmq.Poller()
        for source in (self._inbox, self._partners, self._bell):
            poller.register(source, zmq.POLLIN)
        beat = encode(service_message(HEARTBEAT, interval=time_span(self._heartbeat)))
        pong = encode(service_message(PONG))
        due = time.monotonic()
        log.info("listening at %s, speaking at %s", self.uri, self.broadcast)
        try:
            while not self._stopping.is_set():
                now = time.monotonic()
                if now >= due:
                    speaker.send(beat)
                    due = max(due + self._heartbeat, now)
                poller.poll(max(0, math.ceil((due - time.monotonic()) * 1000)))
                for frames in inbox.receive(1000):
                    said = frames[1:]  # without what the socket put on top
                    if _is_ping(said):
                        speaker.send(pong)
                    elif said:
                        speaker.send(said)
                        relay.send(said)
                for frames in partners.receive(1000):
                    speaker.send(frames)
        finally:
            self._context.destroy(0)

    def stop(self) -> None:
        """End ``run``, within a moment."""
        self._stopping.set()
        try:
            self._ringer.send(b"", zmq.NOBLOCK)
        except zmq.ZMQError:
            log.debug("already stopped")


def _is_ping(frames: list[bytes]) -> bool:
    try:
        return peek(frames).message_id == PING
    except WireError:
        return False
