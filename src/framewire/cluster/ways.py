"""The sockets over which a node takes part in discovery: to rendezvous servers, and to peers it was told of.

A name may have several addresses, and others later: each address of a server's name is a server, and each of a
peer's name a peer. One that the name server no longer lists is used for as long as it is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from itertools import cycle, islice

import zmq

from framewire.cluster.addresses import next_port
from framewire.cluster.curve import PLAIN, Mechanism
from framewire.cluster.resolver import AddressBook, Resolver
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


class _PeerWay:
    """The connection to one peer, at a numeric address."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        uri: str,
        options: dict[str, int | bytes],
        retry_after: float,
        *,
        connected: Callable[[], None],
        assumed: Callable[[], None] | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._uri = uri
        self._retry_after = retry_after
        self._connected = connected
        self._assumed = assumed
        self._retry: asyncio.TimerHandle | None = None
        self.is_connected = False
        self._socket = make_socket(context, zmq.DEALER, **options)
        try:
            assume = None if assumed is None else self._assume
            self._arrivals = Arrivals(self._socket, self._arrived, self._refused, self._ended, assume)
            connect(self._socket, uri)
        except zmq.ZMQError:
            self._socket.close(0)
            raise

    def say(self, frames: list[bytes]) -> None:
        """Send a service message."""
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            log.debug("the peer at %s is not there; it will be told when it is", self._uri)

    def _arrived(self) -> None:
        self.is_connected = True
        self._connected()

    def _assume(self) -> None:
        self.is_connected = True
        if self._assumed is not None:
            self._assumed()

    def _ended(self) -> None:
        self.is_connected = False

    def _refused(self) -> None:
        """Connect anew after a while: ZeroMQ gives up where it is refused, but a key may be allowed later."""
        if self._retry is None:
            self._retry = self._loop.call_later(self._retry_after, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        with contextlib.suppress(zmq.ZMQError):
            self._socket.disconnect(self._uri)
        connect(self._socket, self._uri)

    def close(self, linger: int) -> None:
        """Say no more, once what was said is out."""
        if self._retry is not None:
            self._retry.cancel()
        self._arrivals.close()
        self._socket.close(linger)


class Ways:
    """What is said goes to every server and peer; what any server broadcasts is heard.

    ``connected`` is called for each connection to a server or a peer, ``assumed`` instead where its handshake is
    not told of (``Arrivals``), and ``reached`` for each server that is there.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        settings: ClusterSettings,
        *,
        resolver: Resolver | None = None,
        mechanism: Mechanism = PLAIN,
        hear: Callable[[list[bytes]], None],
        connected: Callable[[], None],
        assumed: Callable[[], None] = lambda: None,
        reached: Callable[[], None] = lambda: None,
        opened: Callable[[str, str], None] = lambda _, __: None,
    ) -> None:
        """``opened`` is called with a server's or peer's address as it was given, and with its numeric one."""
        self._loop = asyncio.get_running_loop()
        self._context = context
        self._settings = settings
        self._mechanism = mechanism
        self._hear = hear
        self._connected = connected
        self._assumed = assumed
        self._reached = reached
        self._opened = opened
        self._book = AddressBook(resolver or Resolver(), self._found)
        self._wanted: dict[Place, None] = {}
        self._servers: dict[Place, ServerWay] = {}
        self._leaders: list[Place] = []
        # Peers are told when they are connected, so nothing needs to wait for one that is not there. They are told
        # something every heartbeat, and a connection that nobody confirms for too long is made anew.
        options: dict[str, int | bytes] = {"IMMEDIATE": 1, "CONNECT_TIMEOUT": _milliseconds(settings.heartbeat)}
        options["TCP_MAXRT"] = _milliseconds(settings.patience)
        self._peer_options: dict[str, int | bytes] = {**options, **mechanism.connecting}
        self._peers: dict[str, _PeerWay] = {}
        self._closed = False
        try:
            self._use_peers()
            self.use(settings.rendezvous)
        except zmq.ZMQError as problem:
            self._close(0)
            raise ConfigError("cluster settings", [f"rendezvous or peers: {problem}"]) from None
        self._checked = self._loop.time()
        self._interval = min(settings.heartbeat, _OFTEN)
        self._timer = self._loop.call_later(self._interval, self._check)

    @property
    def servers(self) -> tuple[Place, ...]:
        """The servers that are talked to, by their numeric addresses."""
        return tuple(self._servers)

    def use(self, servers: Iterable[Server]) -> None:
        """Talk to these servers from now on, and to no others."""
        self._wanted = dict.fromkeys(
            server if isinstance(server, tuple) else (server, next_port(server)) for server in servers
        )
        self._leaders.clear()
        found = {place for wanted in self._wanted for place in self._places(wanted)}
        for place in self._servers.keys() - found:
            self._servers.pop(place).close(0)
        for wanted in self._wanted:
            self._open(wanted)

    def follow(self, leader: Place) -> None:
        """Talk to one more server, which another has named, unless that is known."""
        if any(leader[0] == unicast for unicast, _ in (*self._servers, *self._wanted)):
            return
        try:
            self._open(leader)
        except zmq.ZMQError as problem:
            log.warning("the leader of the rendezvous servers cannot be reached at %s: %s", leader[0], problem)
            return
        log.info("a rendezvous server has named another at %s, which is used from now on", leader[0])
        self._wanted[leader] = None
        self._leaders.append(leader)
        if len(self._leaders) > _MOST_LEADERS:
            oldest = self._leaders.pop(0)
            del self._wanted[oldest]
            for place in set(self._places(oldest)) - self._listed():
                if place in self._servers:
                    self._servers.pop(place).close(0)

    # --- from names to numbers

    def _places(self, wanted: Place, *, fresh: bool = False) -> list[Place]:
        """Return the numeric addresses of a server, as far as they are known: one for each address of its name."""
        unicast, broadcast = (self._book.numbers(uri, fresh=fresh) for uri in wanted)
        if not (unicast and broadcast):
            return []
        count = max(len(unicast), len(broadcast))
        return list(zip(islice(cycle(unicast), count), islice(cycle(broadcast), count), strict=True))

    def _listed(self) -> set[Place]:
        return {place for wanted in self._wanted for place in self._places(wanted)}

    def _open(self, wanted: Place) -> None:
        for place in self._places(wanted):
            if place not in self._servers:
                self._servers[place] = ServerWay(
                    self._context,
                    self._settings,
                    place,
                    name=wanted[0],
                    mechanism=self._mechanism,
                    hear=self._hear,
                    connected=self._connected,
                    assumed=self._assumed,
                    reached=self._reached,
                )
                self._opened(wanted[0], place[0])

    def _use_peers(self) -> None:
        for uri in self._settings.peers:
            for number in self._book.numbers(uri):
                if number not in self._peers:
                    self._peers[number] = _PeerWay(
                        self._context,
                        number,
                        self._peer_options,
                        self._settings.heartbeat,
                        connected=self._connected,
                        assumed=None if self._mechanism.is_curve else self._assumed,
                    )
                    self._opened(uri, number)

    def _found(self) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._use_found)

    def _use_found(self) -> None:
        """Connect to addresses that were found since; names are looked up again where that is due."""
        if self._closed:
            return
        try:
            for wanted in self._wanted:
                self._open(wanted)
            self._use_peers()
        except zmq.ZMQError as problem:
            log.warning("there is no connection to a server or peer whose name was looked up: %s", problem)

    def _let_go(self, silent: set[Place]) -> None:
        """Let go of servers and peers that are neither there nor listed by a name server any more."""
        listed = self._listed()
        for place in silent - listed:
            log.info("the rendezvous server at %s is gone, and its name no longer has that address", place[0])
            self._servers.pop(place).close(0)
        numbers = {number for uri in self._settings.peers for number in self._book.numbers(uri)}
        for number in [uri for uri, peer in self._peers.items() if not peer.is_connected and uri not in numbers]:
            self._peers.pop(number).close(0)

    def say(self, frames: list[bytes]) -> None:
        """Send a service message to all."""
        for server in self._servers.values():
            server.say(frames)
        for peer in self._peers.values():
            peer.say(frames)

    def _check(self) -> None:
        now = self._loop.time()
        stood_still = now - self._checked > 3 * self._interval  # then the silence of others means nothing
        self._checked = now
        silent = {place for place, server in self._servers.items() if server.check(now, excused=stood_still)}
        for wanted in self._wanted if silent else ():
            if silent.intersection(self._places(wanted)):
                self._places(wanted, fresh=True)
        for uri in self._settings.peers:
            if any(
                number in self._peers and not self._peers[number].is_connected for number in self._book.numbers(uri)
            ):
                self._book.numbers(uri, fresh=True)
        self._use_found()
        self._let_go(silent)
        self._timer = self._loop.call_later(self._interval, self._check)

    def close(self, linger: int) -> None:
        """Hear and say no more, once what was said is out."""
        self._timer.cancel()
        self._close(linger)

    def _close(self, linger: int) -> None:
        self._closed = True
        for server in self._servers.values():
            server.close(linger)
        for peer in self._peers.values():
            peer.close(linger)


def _milliseconds(seconds: float) -> int:
    """A time that a network may take; none is too slow to be given a second."""
    return round(max(1.0, seconds) * 1000)
