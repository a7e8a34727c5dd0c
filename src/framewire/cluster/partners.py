"""The ways to other rendezvous servers: what these relay is heard, and one that falls silent is connected to anew.

A partner's name may have several addresses, and others later: each is a server. One that the name server no longer
lists is used for as long as it is there.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator

import zmq

from framewire.cluster.addresses import is_everywhere, tcp_parts
from framewire.cluster.channel import open_channel
from framewire.cluster.curve import PLAIN, Mechanism
from framewire.cluster.patience import Patience
from framewire.cluster.resolver import AddressBook, Resolver, is_name
from framewire.cluster.sockets import connect, make_socket

__all__ = ["Partner", "Partners"]

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

    def check(self) -> bool:
        """Connect anew where the partner has been silent for too long; return whether it was."""
        if not self.patience.is_over(time.monotonic()):
            return False
        log.info("the partner at %s gives no sign of life; connecting anew", self._uri)
        try:
            fresh = self._opened()
        except zmq.ZMQError as problem:
            # The server must not end for it: whoever is connected still needs it, and the old way may recover.
            log.warning("there is no new connection to the partner at %s: %s", self._uri, problem)
            return True
        self.close()
        self._socket, self._monitor = fresh
        self._watch()
        return True

    def close(self) -> None:
        """Hear no more."""
        for source in (self._socket, self._monitor):
            self._poller.unregister(source)
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close(0)


class Partners:
    """The ways to all partners; for the thread that made it. ``open_`` makes the way to one numeric address.

    A name that also has this server's own address, as a name for all servers does, is no partner there: ``own`` is
    where this server speaks to partners.
    """

    def __init__(self, uris: list[str], open_: Callable[[str], Partner], own: str, resolver: Resolver) -> None:
        self._uris = uris
        self._open = open_
        self._own = own
        self._book = AddressBook(resolver)
        self._partners: dict[str, Partner] = {}
        self.settle()

    def __iter__(self) -> Iterator[Partner]:
        return iter(tuple(self._partners.values()))

    @property
    def is_waiting(self) -> bool:
        """Whether a name is being looked up."""
        return self._book.is_waiting

    def settle(self) -> None:
        """Connect to the addresses that are new; names are looked up again where that is due."""
        for uri in self._uris:
            for number in self._book.numbers(uri):
                if number in self._partners or (is_name(uri) and _is_same(number, self._own)):
                    continue
                try:
                    self._partners[number] = self._open(number)
                except zmq.ZMQError as problem:
                    log.warning("there is no connection to the partner at %s: %s", number, problem)

    def check(self) -> None:
        """Connect anew to partners that are silent; let go of those that no name has any more."""
        silent = {number for number, partner in self._partners.items() if partner.check()}
        for uri in self._uris:
            if silent.intersection(self._book.numbers(uri)):
                self._book.numbers(uri, fresh=True)
        listed = {number for uri in self._uris for number in self._book.numbers(uri)}
        for number in silent - listed:
            log.info("the partner at %s is gone, and its name no longer has that address", number)
            self._partners.pop(number).close()
        self.settle()

    def close(self) -> None:
        """Hear no more."""
        for partner in self._partners.values():
            partner.close()
        self._partners.clear()


def _is_same(number: str, own: str) -> bool:
    """Whether a numeric address is where this process listens: the same port, and the same host or this one."""
    parts, ours = tcp_parts(number), tcp_parts(own)
    if parts is None or ours is None or parts[1] != ours[1]:
        return False
    if not is_everywhere(own):
        return parts[0] == ours[0]
    host = parts[0].strip("[]")
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))  # of a datagram socket: only whether the address is this host's
    except OSError:
        return False
    return True
