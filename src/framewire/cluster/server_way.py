"""The way to one rendezvous server: a socket to speak to it, and one to listen.

A server promises signs of life, and one that is silent for too long is connected to anew (see ``patience``).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable

import zmq
from zmq.utils.monitor import parse_monitor_message

from framewire.cluster.curve import PLAIN, Mechanism
from framewire.cluster.patience import Patience
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.sockets import Reader, connect, make_socket

__all__ = ["Arrivals", "Place", "ServerWay"]

log = logging.getLogger("framewire.cluster")

_WAITING = 1000
"""Messages that wait for a server that is not there."""

HANDSHAKE_S = 0.1
"""After which a connection without a finished handshake is taken to be one of ZMTP 2.0."""

Place = tuple[str, str]
"""Where a server listens, and where it speaks."""


_FAILED = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL


class Arrivals:
    """Tells whenever a socket has a connection that works; ``refused``, when one was made that does not.

    ``lost`` is called when a connection has ended. ``assumed`` is called for a connection whose handshake has not
    ended within ``HANDSHAKE_S``: of peers that speak ZMTP 2.0, as the NetMQ of kino does, libzmq tells only that
    there is a connection. It may also be a peer that stands still.
    """

    def __init__(
        self,
        watched: zmq.Socket[bytes],
        connected: Callable[[], None],
        refused: Callable[[], None] = lambda: None,
        lost: Callable[[], None] = lambda: None,
        assumed: Callable[[], None] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched = watched
        self._connected = connected
        self._refused = refused
        self._lost = lost
        self._assumed = assumed
        self._timer: asyncio.TimerHandle | None = None
        events = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED | _FAILED
        monitor = watched.get_monitor_socket(events | (zmq.EVENT_CONNECTED if assumed is not None else 0))
        self._reader = Reader(monitor, self._happened, 10, 4096)

    def _happened(self, frames: list[bytes]) -> None:
        told = parse_monitor_message(frames)
        event, endpoint = told["event"], told["endpoint"].decode(errors="replace")
        self._cancel()
        if event == zmq.EVENT_CONNECTED:
            self._timer = self._loop.call_later(HANDSHAKE_S, self._assume, endpoint)
        elif event & _FAILED:
            self._refused()
        elif event == zmq.EVENT_DISCONNECTED:
            self._lost()
        else:
            log.debug("connected to %s", endpoint)
            self._connected()

    def _assume(self, endpoint: str) -> None:
        self._timer = None
        if self._assumed is not None:
            log.debug("connected to %s, which tells of no handshake: ZMTP 2.0, or it stands still", endpoint)
            self._assumed()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """Tell no more."""
        self._cancel()
        self._watched.disable_monitor()
        self._reader.close()


class _Sockets:
    """A socket to speak, one to listen, and what tells of their connections; either all of it, or ``ZMQError``."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        settings: ClusterSettings,
        place: Place,
        mechanism: Mechanism,
        *,
        take: Callable[[list[bytes]], None],
        arrived: Callable[[], None],
        refused: Callable[[], None],
        assumed: Callable[[], None],
    ) -> None:
        largest = settings.max_message_bytes
        # A try that nobody answers is given up early: the system's own next try may be many seconds away.
        options = {"CONNECT_TIMEOUT": max(1000, round(settings.heartbeat * 1000)), **mechanism.connecting}
        with contextlib.ExitStack() as closing:
            self.speaker = make_socket(context, zmq.DEALER, SNDHWM=_WAITING, **options)
            closing.callback(self.speaker.close)
            listener = make_socket(context, zmq.SUB, SUBSCRIBE=b"", RCVHWM=100_000, MAXMSGSIZE=largest, **options)
            closing.callback(listener.close)
            reader = Reader(listener, take, settings.max_frames, largest)
            closing.callback(reader.close)
            # Watched before they connect: an arrival that was missed is not told again.
            # CURVE is only spoken with a later ZMTP.
            arrivals = Arrivals(listener, arrived, refused, assumed=None if mechanism.is_curve else assumed)
            closing.callback(arrivals.close)
            refusals = Arrivals(self.speaker, lambda: None, refused)
            closing.callback(refusals.close)
            connect(self.speaker, place[0])
            connect(listener, place[1])
            self._closing = closing.pop_all()

    def close(self, linger: int) -> None:
        """Hear and say no more, once what was said is out."""
        self.speaker.linger = linger
        self._closing.close()


class ServerWay:
    """Speaks and listens to one server at numeric addresses; ``name`` is what the configuration calls it.

    ``connected`` is called for each connection, ``assumed`` instead where its handshake is not told of, and
    ``reached`` when it is known that the server is there: a handshake has ended, or something was heard.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        settings: ClusterSettings,
        place: Place,
        *,
        name: str = "",
        mechanism: Mechanism = PLAIN,
        hear: Callable[[list[bytes]], None],
        connected: Callable[[], None],
        assumed: Callable[[], None] = lambda: None,
        reached: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._name = place[0] if name in ("", place[0]) else f"{name} ({place[0]})"
        self._hear = hear
        self._connected = connected
        self._assumed = assumed
        self._reached = reached
        self._is_reached = False
        self._given_up = False
        self._open = functools.partial(
            _Sockets,
            context,
            settings,
            place,
            mechanism,
            take=self._take,
            arrived=self._arrived,
            refused=self._refused,
            assumed=self._assume,
        )
        self.patience = Patience(settings.heartbeat, settings.misses, self._loop.time())
        self._sockets = self._open()

    def say(self, frames: list[bytes]) -> None:
        """Send a service message."""
        try:
            self._sockets.speaker.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            log.debug("the rendezvous server at %s is not there; it will be told when it is", self._name)

    def _arrived(self) -> None:
        self.patience.seen = self._loop.time()
        self._reach()
        self._connected()

    def _assume(self) -> None:
        self.patience.seen = self._loop.time()
        self._assumed()

    def _reach(self) -> None:
        if not self._is_reached:
            self._is_reached = True
            self._reached()

    def _refused(self) -> None:
        """ZeroMQ does not try again where it was refused. A key may be allowed later, so we do."""
        self._given_up = True

    def _take(self, frames: list[bytes]) -> None:
        self._reach()
        if not self.patience.heard(frames, self._loop.time()):
            self._hear(frames)

    def check(self, now: float, *, excused: bool) -> bool:
        """Connect anew where the server has been silent for too long; ``excused`` where it was us who slept.

        Return whether it was silent, or refuses this node.
        """
        if excused:
            self.patience.seen = now
        if not (self._given_up or self.patience.is_over(now)):
            return False
        why = "refuses this node" if self._given_up else "gives no sign of life"
        log.info("the rendezvous server at %s %s; connecting anew", self._name, why)
        try:
            fresh = self._open()
        except zmq.ZMQError as problem:
            # Out of files, most likely. The old way may recover by itself, and there will be another try.
            log.warning("there is no new connection to the rendezvous server at %s: %s", self._name, problem)
            return True
        self._sockets.close(0)
        self._sockets = fresh
        self._given_up = False
        return True

    def close(self, linger: int) -> None:
        """Hear and say no more, once what was said is out."""
        self._sockets.close(linger)
