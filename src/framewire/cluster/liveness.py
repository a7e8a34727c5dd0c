"""Signs of life, given and taken on a thread of its own.

A handler may block the event loop for as long as it likes: its node goes on saying that it is there, and goes
on noticing when others are not.

Heartbeats are not signed, so what counts is where they come from: each health address has a socket of its own, and
what is heard there counts only for the nodes that were announced there. Nodes that were announced with a signature
share no socket with others, whose connections come and go as anybody likes.
"""

from __future__ import annotations

import contextlib
import logging
import math
import queue
import selectors
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import zmq

from framewire.cluster.addresses import reachable
from framewire.cluster.channel import Channel, open_channel
from framewire.cluster.curve import PLAIN, Mechanism
from framewire.cluster.publishing import Publisher
from framewire.cluster.resolver import Dialer, Resolver
from framewire.cluster.service import HEARTBEAT, parse, seconds, service_message, time_span
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.sockets import make_socket
from framewire.errors import WireError
from framewire.wire import decode, encode

__all__ = ["Liveness"]

log = logging.getLogger("framewire.cluster")

_LARGEST = 65_536
"""Bytes of a sign of life; nobody has that much to say with one."""
_REMEMBERED, _MOST_LOST = 600.0, 256
"""Seconds for which the heartbeat of a node that was given up is still listened for, and how many such nodes: each
costs a try to connect all the time, and whoever makes up names must not get that for all of them."""
_SHORTEST_INTERVAL_S, _LONGEST_INTERVAL_S = 0.05, 300.0
"""What is taken for the interval of a peer that promises less or more."""
_MAX_UNHEARD, _MAX_QUEUED = 256, 10_000
"""Unsigned addresses that are listened at though nothing was heard there yet, and nodes that wait for that."""
_PROMOTE_EVERY_S = 0.1
_BATCH, _WAITING = 100, 1000
"""Heartbeats that are read from an address before others have their turn, and how many may wait there."""
_NAMES_S = 0.05
"""Between looks at whether a name was found that is being looked up."""


class _Ear:
    """What is heard at one health address, for the nodes that were announced there."""

    __slots__ = ("channel", "descriptor", "dialer", "heard", "nodes", "opened", "signed", "socket", "uri")

    def __init__(self, uri: str, *, signed: bool) -> None:
        self.uri = uri
        self.signed = signed
        self.nodes = 0
        self.opened = self.heard = -math.inf
        self.socket: zmq.Socket[bytes] | None = None
        self.channel: Channel | None = None
        self.dialer: Dialer | None = None
        self.descriptor = -1


@dataclass(slots=True)
class _Watched:
    place: tuple[str, bool]
    """Its health address, and whether that was signed."""
    patience: float
    seen: float
    lost_at: float | None = None
    tried: float = 0.0
    """When the way to a node that is lost was last made anew."""


class Liveness:
    """Sends heartbeats and watches those of peers. What it tells of is told on the watcher's thread."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        settings: ClusterSettings,
        identity: bytes,
        addresses: list[str],
        advertise: str | None,
        *,
        host: str | None = None,
        resolver: Resolver | None = None,
        mechanism: Mechanism = PLAIN,
        lost: Callable[[bytes], object],
        found: Callable[[bytes], object],
        allows: Callable[[str], bool] = lambda _: True,
        refused: Callable[[int, str], object] = lambda _, __: None,
    ) -> None:
        """``refused`` is called with how many signs of life were none, and why the last of them.

        ``allows`` tells whether a numeric address of a name may be connected to that was announced unsigned.
        """
        self._context = context
        self._settings = settings
        self._identity = identity
        self._lost = lost
        self._found = found
        self._allows = allows
        self._refused = refused
        self._strange, self._why = 0, ""
        self.max_unsigned: int | None = None
        """Addresses of nodes without a signature that are listened at; None for any number."""
        self._unsigned = 0
        self._mechanism = mechanism
        self._publisher = Publisher(context, **mechanism.listening)
        self.uri = reachable(self._publisher.bind(addresses), advertise, host)
        self._resolver = resolver or Resolver()
        self._commands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._bell_address = f"inproc://framewire-liveness-{id(self)}"
        self._listener_bell = make_socket(context, zmq.PULL)
        self._listener_bell.bind(self._bell_address)
        self._bell = make_socket(context, zmq.PUSH)
        self._bell.connect(self._bell_address)
        self._watched: dict[bytes, _Watched] = {}
        self._ears: dict[tuple[str, bool], _Ear] = {}
        self._unread: set[_Ear] = set()
        self._looking: set[_Ear] = set()
        """Those whose names are being looked up."""
        self._unheard: dict[_Ear, None] = {}
        self._queued: dict[bytes, tuple[tuple[str, bool], float]] = {}
        self._thread = threading.Thread(target=self._run, name="framewire liveness", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def watch(self, identity: bytes, uri: str, interval: float, *, signed: bool = False) -> None:
        """Expect heartbeats of a node from now on; ``signed`` where the node was announced with a signature."""
        patience = self._patience(interval)
        self._tell(lambda: self._begin(identity, (uri, signed), patience))

    def ignore(self, identity: bytes) -> None:
        """Expect nothing of a node any more."""
        self._tell(lambda: self._end(identity))

    def stop(self) -> None:
        """Say nothing more."""
        self._tell(None)
        self._thread.join()
        self._bell.close(0)

    def _patience(self, interval: float) -> float:
        return min(max(interval, _SHORTEST_INTERVAL_S), _LONGEST_INTERVAL_S) * self._settings.misses

    def _tell(self, command: Callable[[], None] | None) -> None:
        self._commands.put(command)
        with contextlib.suppress(zmq.Again):  # then it is ringing already
            self._bell.send(b"", zmq.NOBLOCK)

    # --- on the thread

    def _run(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(int(self._listener_bell.getsockopt(zmq.FD)), selectors.EVENT_READ)
        publishing = self._watch_publisher()
        interval = self._settings.heartbeat
        beat = encode(
            service_message(
                HEARTBEAT,
                interval=time_span(interval),
                socket_identity=self._identity,
                health_uri=self.uri,
            ),
            self._settings.wire_version,
        )
        due = checked = look = time.monotonic()
        try:
            while True:
                now = time.monotonic()
                if now >= due:
                    self._publisher.send(beat)
                    due = max(due + interval, now)
                wait = 0.0 if self._unread else max(0.0, min(due, look) - time.monotonic())
                if self._looking:
                    wait = min(wait, _NAMES_S)
                for key, _ in self._selector.select(min(wait, _LONGEST_INTERVAL_S)):
                    if key.data is not None:
                        self._unread.add(key.data)
                if self._publisher.check():
                    self._selector.unregister(publishing)
                    publishing = self._watch_publisher()
                for ear in tuple(self._unread):
                    self._listen(ear)
                if self._strange:
                    self._refused(self._strange, f"a sign of life is ignored: {self._why}")
                    self._strange = 0
                self._settle_names()
                if not self._obeyed():
                    return
                now = time.monotonic()
                if now - checked > 2 * interval:
                    self._excuse(now)  # this process stood still: that others were silent means nothing
                checked = now
                look = self._check(now)
        except (zmq.ContextTerminated, OSError) as problem:
            if problem.errno != zmq.ETERM:
                raise
        finally:
            for ear in self._ears.values():
                self._cover(ear)
            self._selector.close()
            self._publisher.close()
            self._listener_bell.close(0)

    def _watch_publisher(self) -> int:
        """Wake up for what listeners say; return the descriptor that tells of it."""
        descriptor = int(self._publisher.socket.getsockopt(zmq.FD))
        self._selector.register(descriptor, selectors.EVENT_READ)
        return descriptor

    def _obeyed(self) -> bool:
        """Do as was told; False where that was to stop."""
        while self._listener_bell.poll(0):
            self._listener_bell.recv()
        while not self._commands.empty():
            command = self._commands.get()
            if command is None:
                return False
            command()
        return True

    def _begin(self, identity: bytes, place: tuple[str, bool], patience: float) -> None:
        known = self._watched.get(identity)
        if known is None or known.place != place:
            if known is not None:
                self._end(identity)
            ear = self._ears.get(place) or self._new_ear(identity, place, patience)
            if ear is None:
                return
            ear.nodes += 1
        self._watched[identity] = _Watched(place, patience, time.monotonic())

    def _new_ear(self, identity: bytes, place: tuple[str, bool], patience: float) -> _Ear | None:
        """Listen at another address, unless that must wait or cannot be."""
        uri, signed = place
        if not signed and not self._has_room:
            if len(self._queued) < _MAX_QUEUED:
                self._queued[identity] = (place, patience)
            return None
        ear = _Ear(uri, signed=signed)
        try:
            self._open(ear)
        except zmq.ZMQError as problem:
            log.warning("the heartbeats of a node cannot be heard at %s: %s", uri, problem)
            return None
        self._ears[place] = ear
        if not signed:
            self._unheard[ear] = None
            self._unsigned += 1
        return ear

    @property
    def _has_room(self) -> bool:
        """Whether one more unsigned address may be listened at."""
        most = self.max_unsigned
        return len(self._unheard) < _MAX_UNHEARD and (most is None or self._unsigned < most)

    def _promote(self, now: float) -> None:
        """Listen for nodes that wait for it, in place of those that were never heard for too long."""
        stale = {ear for ear in self._unheard if now - ear.opened >= self._settings.patience}
        for identity, watched in tuple(self._watched.items()) if stale else ():
            if self._ears[watched.place] in stale:
                if watched.lost_at is None:
                    self._lost(identity)
                self._end(identity)
        while self._queued and self._has_room:
            identity = next(iter(self._queued))
            self._begin(identity, *self._queued.pop(identity))

    def _end(self, identity: bytes) -> None:
        self._queued.pop(identity, None)
        known = self._watched.pop(identity, None)
        if known is None:
            return
        ear = self._ears[known.place]
        ear.nodes -= 1
        if not ear.nodes:
            del self._ears[known.place]
            self._unheard.pop(ear, None)
            self._unsigned -= not ear.signed
            self._cover(ear)

    def _open(self, ear: _Ear) -> None:
        """Listen at an address; ``ZMQError`` where that cannot be."""
        # A try that nobody answers is given up early: the system's own next try may be many seconds away.
        made = make_socket(
            self._context,
            zmq.SUB,
            SUBSCRIBE=b"",
            RCVHWM=_WAITING,
            CONNECT_TIMEOUT=max(1000, round(self._settings.heartbeat * 1000)),
            MAXMSGSIZE=_LARGEST,
            **self._mechanism.connecting,
        )
        allows = _everything if ear.signed else self._allows
        dialer = Dialer(made, self._resolver, allows=allows, trusted=ear.signed)
        try:
            dialer.connect(ear.uri)
        except zmq.ZMQError:
            made.close(0)
            raise
        if dialer.is_waiting:
            self._looking.add(ear)
        ear.socket, ear.channel, ear.dialer = made, open_channel(made, max_bytes=_LARGEST), dialer
        ear.opened, ear.descriptor = time.monotonic(), int(made.getsockopt(zmq.FD))
        self._selector.register(ear.descriptor, selectors.EVENT_READ, ear)

    def _cover(self, ear: _Ear) -> None:
        """Listen no more at an address."""
        self._unread.discard(ear)
        self._looking.discard(ear)
        if ear.socket is not None:
            self._selector.unregister(ear.descriptor)
            ear.socket.close(0)
            ear.socket = ear.channel = ear.dialer = None

    def _settle_names(self) -> None:
        """Connect to the addresses of names that were found since."""
        for ear in tuple(self._looking):
            if ear.dialer is not None:
                ear.dialer.settle()
            if ear.dialer is None or not ear.dialer.is_waiting:
                self._looking.discard(ear)

    def _listen(self, ear: _Ear) -> None:
        """Hear what is there; the descriptor tells of changes, so what is left has its turn without one."""
        heard = ear.channel.receive(_BATCH) if ear.channel is not None else []
        if len(heard) < _BATCH:
            self._unread.discard(ear)
        for frames in heard:
            self._hear(frames, ear)

    def _hear(self, frames: list[bytes], ear: _Ear) -> None:
        try:
            beat = _beat(frames)
            patience = self._patience(seconds(beat.interval))
        except (WireError, ValueError) as problem:
            self._strange += 1
            self._why = str(problem)
            return
        known = self._watched.get(beat.socket_identity)
        if known is None or self._ears[known.place] is not ear:
            return
        known.seen = ear.heard = time.monotonic()
        self._unheard.pop(ear, None)
        known.patience = patience
        if known.lost_at is not None:
            known.lost_at = None
            self._found(beat.socket_identity)

    def _excuse(self, now: float) -> None:
        for watched in self._watched.values():
            watched.seen = now

    def _check(self, now: float) -> float:
        """Tell of those who have been silent for too long; when there may be others."""
        look = math.inf
        if self._queued:
            self._promote(now)
            look = now + _PROMOTE_EVERY_S
        lost = sorted((one.lost_at, name) for name, one in self._watched.items() if one.lost_at is not None)
        for _, identity in lost[: max(0, len(lost) - _MOST_LOST)]:
            self._end(identity)
        for identity, watched in tuple(self._watched.items()):
            if watched.lost_at is not None:
                if now - watched.lost_at > _REMEMBERED:
                    self._end(identity)
                    continue
                if now - watched.tried > watched.patience:
                    self._connect_anew(watched, now)
                look = min(look, watched.tried + watched.patience)
            elif now - watched.seen > watched.patience:
                watched.lost_at = now
                self._connect_anew(watched, now)
                look = min(look, now + watched.patience)
                self._lost(identity)
            else:
                look = min(look, watched.seen + watched.patience)
        return look

    def _connect_anew(self, watched: _Watched, now: float) -> None:
        """Make the way to a lost node anew: where a cable was pulled, the old one may stay silent long after."""
        watched.tried = now
        ear = self._ears[watched.place]
        if now - max(ear.opened, ear.heard) < max(watched.patience, self._settings.patience):
            return  # it works for others that were announced there, or has only just been made
        self._cover(ear)
        try:
            self._open(ear)
            if ear.dialer is not None:
                ear.dialer.renew(ear.uri)
                self._looking.add(ear)
        except zmq.ZMQError as problem:
            log.debug("connecting to %s anew: %s", ear.uri, problem)


def _everything(_: str) -> bool:
    return True


def _beat(frames: list[bytes]) -> Any:
    message = decode(frames)
    if message.message_id != HEARTBEAT:
        raise ValueError(f"{message.message_id} is none")
    return parse(message)
