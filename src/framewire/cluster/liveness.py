"""Signs of life, given and taken on a thread of its own.

A handler may block the event loop for as long as it likes: its node goes on saying that it is there, and goes
on noticing when others are not.
"""

from __future__ import annotations

import contextlib
import logging
import math
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import zmq

from framewire.cluster.addresses import reachable
from framewire.cluster.channel import open_channel
from framewire.cluster.curve import PLAIN, Mechanism
from framewire.cluster.service import HEARTBEAT, parse, seconds, service_message, time_span
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.sockets import bind_first, connect, make_socket
from framewire.errors import WireError
from framewire.wire import decode, encode

__all__ = ["Liveness"]

log = logging.getLogger("framewire.cluster")

_LARGEST = 65_536
"""Bytes of a sign of life; nobody has that much to say with one."""
_REMEMBERED, _MOST_LOST = 600.0, 256
"""Seconds for which the heartbeat of a node that was given up is still listened for, and how many such nodes: each
costs a try to connect all the time, and whoever makes up names must not get that for all of them."""


@dataclass(slots=True)
class _Watched:
    uri: str
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
        mechanism: Mechanism = PLAIN,
        lost: Callable[[bytes], object],
        found: Callable[[bytes], object],
        refused: Callable[[int, str], object] = lambda _, __: None,
    ) -> None:
        """``refused`` is called with how many signs of life were none, and why the last of them."""
        self._context = context
        self._settings = settings
        self._identity = identity
        self._lost = lost
        self._found = found
        self._refused = refused
        self._strange, self._why = 0, ""
        self._mechanism = mechanism
        self._publisher = make_socket(context, zmq.PUB, **mechanism.listening)
        bound = bind_first(self._publisher, addresses)
        self.uri = reachable(bound, advertise)
        self._commands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._bell_address = f"inproc://framewire-liveness-{id(self)}"
        self._listener_bell = make_socket(context, zmq.PULL)
        self._listener_bell.bind(self._bell_address)
        self._bell = make_socket(context, zmq.PUSH)
        self._bell.connect(self._bell_address)
        self._watched: dict[bytes, _Watched] = {}
        self._listening: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._run, name="framewire liveness", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def watch(self, identity: bytes, uri: str, interval: float) -> None:
        """Expect heartbeats of a node from now on."""
        patience = max(interval, 0.001) * self._settings.misses
        self._tell(lambda: self._begin(identity, uri, patience))

    def ignore(self, identity: bytes) -> None:
        """Expect nothing of a node any more."""
        self._tell(lambda: self._end(identity))

    def stop(self) -> None:
        """Say nothing more."""
        self._tell(None)
        self._thread.join()
        self._bell.close(0)

    def _tell(self, command: Callable[[], None] | None) -> None:
        self._commands.put(command)
        with contextlib.suppress(zmq.Again):  # then it is ringing already
            self._bell.send(b"", zmq.NOBLOCK)

    # --- on the thread

    def _run(self) -> None:
        # A try that nobody answers is given up early: the system's own next try may be many seconds away.
        self._subscriber = make_socket(
            self._context,
            zmq.SUB,
            SUBSCRIBE=b"",
            CONNECT_TIMEOUT=max(1000, round(self._settings.heartbeat * 1000)),
            MAXMSGSIZE=_LARGEST,
            **self._mechanism.connecting,
        )
        heard = open_channel(self._subscriber, max_bytes=_LARGEST)
        poller = zmq.Poller()
        poller.register(self._subscriber, zmq.POLLIN)
        poller.register(self._listener_bell, zmq.POLLIN)
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
                    self._publisher.send_multipart(beat, zmq.NOBLOCK)
                    due = max(due + interval, now)
                poller.poll(max(0, math.ceil((min(due, look) - time.monotonic()) * 1000)))
                # Polling has already begun to read: a peer whose message is half read must not be disconnected,
                # or libzmq ends the process. So hear first, and obey then.
                for frames in heard.receive(1000):
                    self._hear(frames)
                if self._strange:
                    self._refused(self._strange, f"a sign of life is ignored: {self._why}")
                    self._strange = 0
                if not self._obeyed():
                    return
                now = time.monotonic()
                if now - checked > 2 * interval:
                    self._excuse(now)  # this process stood still: that others were silent means nothing
                checked = now
                look = self._check(now)
        except zmq.ContextTerminated:
            return
        finally:
            self._subscriber.close(0)
            self._publisher.close(0)
            self._listener_bell.close(0)

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

    def _begin(self, identity: bytes, uri: str, patience: float) -> None:
        known = self._watched.get(identity)
        if known is None or known.uri != uri:
            if known is not None:
                self._end(identity)
            try:
                if uri not in self._listening:
                    connect(self._subscriber, uri)
            except zmq.ZMQError as problem:
                log.warning("the heartbeats of a node cannot be heard at %s: %s", uri, problem)
                return
            self._listening[uri] += 1
        self._watched[identity] = _Watched(uri, patience, time.monotonic())

    def _end(self, identity: bytes) -> None:
        known = self._watched.pop(identity, None)
        if known is None:
            return
        self._listening[known.uri] -= 1
        if not self._listening[known.uri]:
            del self._listening[known.uri]
            try:
                self._subscriber.disconnect(known.uri)
            except zmq.ZMQError as problem:
                log.debug("disconnecting from %s: %s", known.uri, problem)

    def _hear(self, frames: list[bytes]) -> None:
        try:
            beat = _beat(frames)
            patience = max(seconds(beat.interval), 0.001) * self._settings.misses
        except (WireError, ValueError) as problem:
            self._strange += 1
            self._why = str(problem)
            return
        known = self._watched.get(beat.socket_identity)
        if known is None:
            return
        known.seen = time.monotonic()
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
        try:
            self._subscriber.disconnect(watched.uri)
            connect(self._subscriber, watched.uri)
        except zmq.ZMQError as problem:
            log.debug("connecting to %s anew: %s", watched.uri, problem)


def _beat(frames: list[bytes]) -> Any:
    message = decode(frames)
    if message.message_id != HEARTBEAT:
        raise ValueError(f"{message.message_id} is none")
    return parse(message)
