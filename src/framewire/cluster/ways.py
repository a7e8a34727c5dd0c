"""The sockets over which a node takes part in discovery: to rendezvous servers, and to peers it was told of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import zmq
from zmq.utils.monitor import parse_monitor_message

from framewire.cluster.addresses import next_port
from framewire.cluster.settings import ClusterSettings, Server
from framewire.cluster.sockets import Reader, connect, make_socket
from framewire.errors import ConfigError

__all__ = ["Ways"]

log = logging.getLogger("framewire.cluster")

_WAITING = 1000
"""Messages that wait for a rendezvous server that is not there."""


class Ways:
    """What is said goes to every server and peer; what any server broadcasts is heard."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        settings: ClusterSettings,
        *,
        hear: Callable[[list[bytes]], None],
        connected: Callable[[], None],
    ) -> None:
        self._context = context
        self._connected = connected
        self._servers: dict[tuple[str, str], zmq.Socket[bytes]] = {}
        self._listener = make_socket(context, zmq.SUB, SUBSCRIBE=b"", RCVHWM=100_000)
        # Peers are told when they are connected, so nothing needs to wait for one that is not there.
        self._peers = [make_socket(context, zmq.DEALER, IMMEDIATE=1) for _ in settings.peers]
        try:
            for peer, uri in zip(self._peers, settings.peers, strict=True):
                connect(peer, uri)
            self.use(settings.rendezvous)
        except zmq.ZMQError as problem:
            raise ConfigError("cluster settings", [f"rendezvous or peers: {problem}"]) from None
        self._monitors = [
            Reader(watched.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED), self._happened, 10, 4096)
            for watched in (self._listener, *self._peers)
        ]
        self._reader = Reader(self._listener, hear, settings.max_frames, settings.max_message_bytes)

    def use(self, servers: Iterable[Server]) -> None:
        """Talk to these servers from now on, and to no others."""
        wanted = dict.fromkeys(
            server if isinstance(server, tuple) else (server, next_port(server)) for server in servers
        )
        for place in self._servers.keys() - wanted:
            self._servers.pop(place).close(0)
            self._listener.disconnect(place[1])
        for place in wanted:
            if place not in self._servers:
                self._servers[place] = speaker = make_socket(self._context, zmq.DEALER, SNDHWM=_WAITING)
                connect(speaker, place[0])
                connect(self._listener, place[1])

    def say(self, frames: list[bytes]) -> None:
        """Send a service message to all."""
        for way in (*self._servers.values(), *self._peers):
            try:
                way.send_multipart(frames, zmq.NOBLOCK)
            except zmq.Again:
                log.debug("a rendezvous server or a peer is not there; it will be told when it is")

    def _happened(self, frames: list[bytes]) -> None:
        log.debug("connected to %s", parse_monitor_message(frames)["endpoint"].decode(errors="replace"))
        self._connected()

    def close(self, linger: int) -> None:
        """Hear and say no more, once what was said is out."""
        for watched, monitor in zip((self._listener, *self._peers), self._monitors, strict=True):
            watched.disable_monitor()
            monitor.close()
        self._reader.close()
        for way in (*self._servers.values(), *self._peers):
            way.close(linger)
