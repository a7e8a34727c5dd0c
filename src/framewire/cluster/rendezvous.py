"""The server through which nodes find each other: what one node says, all nodes hear.

It keeps nothing, so it can be killed and started again at any time. Several servers relay to each other, and a
node that is connected to any of them hears everyone.
"""

from __future__ import annotations

import heapq
import logging
import math
import threading
import time
from collections.abc import Iterable

import zmq

from framewire.cluster import service
from framewire.cluster.addresses import can_bind, can_connect, next_port
from framewire.cluster.channel import open_channel
from framewire.cluster.curve import PLAIN, Doorkeeper
from framewire.cluster.duplicate_watch import ASK_AFTER_S, DuplicateWatch
from framewire.cluster.open_paths import OpenPaths
from framewire.cluster.partners import Partner, Partners
from framewire.cluster.publishing import Publisher
from framewire.cluster.resolver import Resolver
from framewire.cluster.service import HEARTBEAT, PING, PONG, REQUEST_CLUSTER_ROUTES, service_message, time_span
from framewire.cluster.sockets import bind_first, make_socket
from framewire.errors import ConfigError, WireError
from framewire.security.curve import Curve
from framewire.wire import MessageId, encode, peek

__all__ = ["Rendezvous"]

log = logging.getLogger("framewire.rendezvous")

_REPEATED = frozenset(
    (
        service.REGISTER_EXTERNAL_ROUTE,
        service.UNREGISTER_MESSAGE_ROUTE,
        service.UNREGISTER_NODE,
        service.UNREGISTER_UNREACHABLE_NODE,
        service.REQUEST_CLUSTER_ROUTES,
        service.REQUEST_NODE_ROUTES,
        service.DISCOVER_MESSAGE_ROUTE,
    )
)
"""What nodes say. Whatever else somebody sends is not repeated, least of all what only servers may say."""
_TRIES = 20
_LARGEST = 16 * 1024 * 1024
"""Bytes of a message; a node that handles tens of thousands of messages needs a few of these millions."""
_TOLERATED = 2
"""How many times as large a single frame may be to be dropped alone; ZeroMQ ends the connection of a larger one."""
_SETTLING = 0.05
"""Seconds that a partner needs to take note of a new subscription."""
_MOST_DUE = 1000
"""Messages of its own that a server is about to send."""
_NAMES_S = 0.05
"""Between looks at whether a partner's name was found that is being looked up."""


class Rendezvous:
    """A rendezvous server. ``run`` serves until ``stop`` is called, from a signal handler or another thread.

    It listens at ``uri``, speaks at ``broadcast`` (the next port unless given), and relays to and from
    ``partners``, given by their own ``uri``, over the port after that. Partners name each other. With ``curve``,
    only those get anywhere whose keys are allowed.
    """

    def __init__(
        self,
        uri: str,
        *,
        broadcast: str | None = None,
        partners: Iterable[str] = (),
        heartbeat: float = 1.0,
        curve: Curve | None = None,
    ) -> None:
        partners = list(partners)
        _check(uri, broadcast, partners, heartbeat)
        self._paths = OpenPaths()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._heartbeat = heartbeat
        self._partners = [next_port(partner, 2) for partner in partners]
        self._stopping = threading.Event()
        self.dropped = 0
        """Messages that were no node's, or too large, and so were not repeated."""
        self._watch = DuplicateWatch()
        self.pulse: float | None = None
        """When it last came round, by the monotonic clock; None before it serves."""
        self._bell = make_socket(self._context, zmq.PAIR)
        self._ringer = make_socket(self._context, zmq.PAIR)
        address = f"inproc://framewire-rendezvous-{id(self)}"
        self._bell.bind(address)
        self._ringer.connect(address)
        self._doorkeeper: Doorkeeper | None = None
        self._mechanism = PLAIN
        try:
            if curve is not None:
                self._doorkeeper = Doorkeeper(self._context, curve)
                self._mechanism = self._doorkeeper.mechanism
            self._listen(self._paths.settle(uri), broadcast and self._paths.settle(broadcast))
        except BaseException:
            self.close()
            raise

    def _listen(self, uri: str, broadcast: str | None) -> None:
        """Find the places to listen and to speak at; where the port is open, so that there are three in a row."""
        for tries_left in reversed(range(_TRIES if uri.endswith(":*") else 1)):
            options = self._mechanism.listening
            self._inbox = make_socket(
                self._context, zmq.ROUTER, RCVHWM=100_000, MAXMSGSIZE=_LARGEST * _TOLERATED, **options
            )
            self._speaker = Publisher(self._context, SNDHWM=100_000, **options)
            self._relay = Publisher(self._context, SNDHWM=100_000, **options)
            try:
                self.uri = bind_first(self._inbox, [uri])
                self.broadcast = self._speaker.bind([broadcast or next_port(self.uri)])
                self.relay = self._relay.bind([next_port(self.uri, 2)])
            except ConfigError:
                if not tries_left:
                    raise
                self._inbox.close(0)
                self._speaker.close()
                self._relay.close()
            else:
                return

    def run(self) -> None:
        """Serve until told to stop."""
        inbox = open_channel(self._inbox, max_bytes=_LARGEST)
        speaker, relay = self._speaker, self._relay
        poller = zmq.Poller()
        for source in (self._inbox, self._bell, speaker.socket, relay.socket):
            poller.register(source, zmq.POLLIN)
        partners: Partners | None = None
        resolver = Resolver()
        beat = encode(service_message(HEARTBEAT, interval=time_span(self._heartbeat)))
        pong = encode(service_message(PONG))
        # Nobody in particular asks, so everybody answers, and asks in turn: see Discovery.
        call = encode(service_message(REQUEST_CLUSTER_ROUTES, requestor_uri="", requestor_node_identity=b""))
        due = [(time.monotonic(), beat)]
        unreadable = 0
        try:
            partners = Partners(
                self._partners,
                lambda uri: Partner(self._context, uri, self._heartbeat, poller, self._mechanism),
                self.relay,
                resolver,
            )
            log.info("listening at %s, speaking at %s", self.uri, self.broadcast)
            while not self._stopping.is_set():
                now = self.pulse = time.monotonic()
                while due[0][0] <= now:
                    _, frames = heapq.heappop(due)
                    speaker.send(frames)
                    if frames is beat:
                        relay.send(beat)
                        heapq.heappush(due, (now + self._heartbeat, beat))
                        partners.check()
                wait = due[0][0] - time.monotonic()
                waiting = partners.is_waiting
                poller.poll(max(0, math.ceil((min(wait, _NAMES_S) if waiting else wait) * 1000)))
                for publisher in (speaker, relay):
                    socket = publisher.socket
                    if publisher.check():
                        poller.unregister(socket)
                        poller.register(publisher.socket, zmq.POLLIN)
                if waiting:
                    partners.settle()
                for frames in inbox.receive(1000):
                    said = frames[1:]  # without what the socket put on top
                    kind = _kind(said)
                    if kind == PING:
                        speaker.send(pong)
                    elif kind in _REPEATED:
                        speaker.send(said)
                        relay.send(said)
                        question = self._watch.heard(frames[0], kind, said, time.monotonic())
                        if question is not None and len(due) < _MOST_DUE:
                            heapq.heappush(due, (time.monotonic() + ASK_AFTER_S, question))
                    else:
                        self.dropped += 1
                before, unreadable = unreadable, inbox.oversized + inbox.unread
                self.dropped += unreadable - before
                for partner in partners:
                    for frames in partner.receive():
                        speaker.send(frames)
                    if partner.has_arrived():
                        # It may be slow to take note of who listens, so there are two calls.
                        for delay in (_SETTLING, max(2 * _SETTLING, self._heartbeat / 2)):
                            heapq.heappush(due, (time.monotonic() + delay, call))
        finally:
            resolver.close()
            if partners is not None:
                partners.close()
            self.close()

    def close(self) -> None:
        """Give the addresses up, where it is not to run; where it runs, ``stop`` does."""
        if self._doorkeeper is not None:
            self._doorkeeper.close()
        self._context.destroy(0)
        self._paths.close()

    @property
    def duplicates(self) -> int:
        """How often two nodes of one identity were noticed."""
        return self._watch.found

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """End ``run``, within a moment."""
        self._stopping.set()
        try:
            self._ringer.send(b"", zmq.NOBLOCK)
        except zmq.ZMQError:
            log.debug("already stopped")


def _kind(frames: list[bytes]) -> MessageId | None:
    try:
        return peek(frames).message_id
    except WireError:
        return None


def _check(uri: str, broadcast: str | None, partners: list[str], heartbeat: float) -> None:
    listen = "must be like tcp://host:port, tcp://*:port or ipc://path"
    problems = [f"address: {uri!r}; {listen}"] if not can_bind(uri) else []
    if broadcast is not None and not can_bind(broadcast):
        problems.append(f"broadcast: {broadcast!r}; {listen}")
    problems += [
        f"partner: {partner!r}; must be like tcp://host:port or ipc://path"
        for partner in partners
        if not can_connect(partner)
    ]
    if not (heartbeat > 0 and math.isfinite(heartbeat)):
        problems.append(f"heartbeat: {heartbeat!r}; must be a positive number of seconds")
    if problems:
        raise ConfigError("rendezvous", problems)
