"""The sockets over which a node takes part in discovery: to rendezvous servers, and to peers it was told of."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from functools import partial

import zmq

from framewire.cluster.addresses import next_port
from framewire.cluster.curve import PLAIN, Mechanism
from framewire.cluster.server_way import Arrivals, Place, ServerWay
from framewire.cluster.settings import ClusterSettings, Server
from framewire.cluster.sockets import connect, make_socket
from framewire.errors import ConfigError

__all__ = ["Ways"]

log = logging.getLogger("framewire.cluster")

_MOST_LEADERS = 16
"""Servers that other servers have named; the one that was named first makes room."""
_OFTEN = 1.0
"""Seconds between looks at who is silent, at most."""


class Ways:
    """What is said goes to every server and peer; what any server broadcasts is heard."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        settings: ClusterSettings,
        *,
        mechanism: Mechanism = PLAIN,
        hear: Callable[[list[bytes]], None],
        connected: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = context
        self._settings = settings
        self._mechanism = mechanism
        self._hear = hear
        self._connected = connected
        self._servers: dict[Place, ServerWay] = {}
        self._leaders: list[Place] = []
        # Peers are told when they are connected, so nothing needs to wait for one that is not there. They are told
        # something every heartbeat, and a connection that nobody confirms for too long is made anew.
        options: dict[str, int | bytes] = {"IMMEDIATE": 1, "CONNECT_TIMEOUT": _milliseconds(settings.heartbeat)}
        options["TCP_MAXRT"] = _milliseconds(settings.patience)
        options |= mechanism.connecting
        self._peers = [make_socket(context, zmq.DEALER, **options) for _ in settings.peers]
        self._retries: dict[str, asyncio.TimerHandle] = {}
        told = list(zip(self._peers, settings.peers, strict=True))
        self._arrivals = [Arrivals(peer, connected, partial(self._try_again, peer, uri)) for peer, uri in told]
        try:
            for peer, uri in told:
                connect(peer, uri)
            self.use(settings.rendezvous)
        except zmq.ZMQError as problem:
            self._close(0)
            raise ConfigError("cluster settings", [f"rendezvous or peers: {problem}"]) from None
        self._checked = self._loop.time()
        self._interval = min(settings.heartbeat, _OFTEN)
        self._timer = self._loop.call_later(self._interval, self._check)

    @property
    def servers(self) -> tuple[Place, ...]:
        """The servers that are talked to."""
        return tuple(self._servers)

    def use(self, servers: Iterable[Server]) -> None:
        """Talk to these servers from now on, and to no others."""
        wanted = dict.fromkeys(
            server if isinstance(server, tuple) else (server, next_port(server)) for server in servers
        )
        self._leaders.clear()
        for place in self._servers.keys() - wanted:
            self._servers.pop(place).close(0)
        for place in wanted:
            if place not in self._servers:
                self._open(place)

    def follow(self, leader: Place) -> None:
        """Talk to one more server, which another has named, unless that is known."""
        if any(leader[0] == unicast for unicast, _ in self._servers):
            return
        try:
            self._open(leader)
        except zmq.ZMQError as problem:
            log.warning("the leader of the rendezvous servers cannot be reached at %s: %s", leader[0], problem)
            return
        log.info("a rendezvous server has named another at %s, which is used from now on", leader[0])
        self._leaders.append(leader)
        if len(self._leaders) > _MOST_LEADERS:
            self._servers.pop(self._leaders.pop(0)).close(0)

    def _open(self, place: Place) -> None:
        self._servers[place] = ServerWay(
            self._context,
            self._settings,
            place,
            mechanism=self._mechanism,
            hear=self._hear,
            connected=self._connected,
        )

    def _try_again(self, peer: zmq.Socket[bytes], uri: str) -> None:
        """Connect anew to a peer that refuses us: ZeroMQ gives up then, but a key may be allowed later."""

        def due() -> None:
            del self._retries[uri]
            with contextlib.suppress(zmq.ZMQError):
                peer.disconnect(uri)
            connect(peer, uri)

        if uri not in self._retries:
            self._retries[uri] = self._loop.call_later(self._settings.heartbeat, due)

    def say(self, frames: list[bytes]) -> None:
        """Send a service message to all."""
        for server in self._servers.values():
            server.say(frames)
        for peer in self._peers:
            try:
                peer.send_multipart(frames, zmq.NOBLOCK)
            except zmq.Again:
                log.debug("a peer is not there; it will be told when it is")

    def _check(self) -> None:
        now = self._loop.time()
        stood_still = now - self._checked > 3 * self._interval  # then the silence of others means nothing
        self._checked = now
        for server in self._servers.values():
            server.check(now, excused=stood_still)
        self._timer = self._loop.call_later(self._interval, self._check)

    def close(self, linger: int) -> None:
        """Hear and say no more, once what was said is out."""
        self._timer.cancel()
        self._close(linger)

    def _close(self, linger: int) -> None:
        for timer in self._retries.values():
            timer.cancel()
        for arrivals in self._arrivals:
            arrivals.close()
        for server in self._servers.values():
            server.close(linger)
        for peer in self._peers:
            peer.close(linger)


def _milliseconds(seconds: float) -> int:
    """A time that a network may take; none is too slow to be given a second."""
    return round(max(1.0, seconds) * 1000)
