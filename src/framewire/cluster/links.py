"""Connections to other nodes: for each peer a ROUTER socket, and a bounded queue of what it cannot take yet.

A peer is addressed by its identity, so a message never reaches a node that has taken another's place. A socket for
each peer makes an identity count only at the address where it was announced: in a socket that several share, any of
them could call itself like another and get its messages. While a connection is being made, or made again, messages
wait; when that takes too long the peer is lost.

The first message in a turn of the event loop leaves at once. What follows it in the same turn is gathered and
leaves together when the loop comes round: each hand-over to libzmq may wake its thread and cost a system call
there, and a busy node has many messages in a turn (bench/cluster.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import logging
from collections import deque
from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

import zmq

from framewire.cluster.channel import Channel, open_channel
from framewire.cluster.curve import PLAIN, Mechanism
from framewire.cluster.resolver import Dialer, Resolver
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.sockets import make_socket
from framewire.cluster.strangers import max_connections
from framewire.errors import BadBody, MessageError, Overloaded, Unreachable
from framewire.node.mailbox import Room
from framewire.wire.message import readable

__all__ = ["Links", "Traffic"]

log = logging.getLogger("framewire.cluster")

_FIRST_TRY, _LAST_TRY = 0.001, 0.05
_GATHERED = 64
"""Messages to one peer that leave without waiting for the end of the turn."""
_SAID_BACK, _MAX_SAID_BACK = 65_536, 10
"""Bytes of a message that a peer may send where it should only listen, and how many are received; none is read."""
_TOO_MANY_WAITING = 10
"""How many times the queue's length of senders may wait, unless the node has a bound of its own."""
_REMEMBERED = 1000
"""Peers whose traffic is still told of after they are gone: it is then that somebody looks."""


class Traffic(NamedTuple):
    """Messages for one peer: how many have left, were dropped, and wait."""

    sent: int
    dropped: int = 0
    waiting: int = 0


class _Waiting(NamedTuple):
    """A message that waits for a peer, what its sender waits for, and the bytes that count against the bound."""

    frames: list[bytes]
    room: Room | None = None
    size: int = 0


class _Link:
    __slots__ = (
        "channel",
        "dialer",
        "dropped",
        "gathered",
        "identity",
        "introduced",
        "queue",
        "queued_bytes",
        "sent",
        "silent_since",
        "socket",
        "timer",
        "tries",
        "uri",
    )

    def __init__(
        self,
        identity: bytes,
        uri: str,
        before: Traffic,
        socket: zmq.Socket[bytes],
        channel: Channel,
        dialer: Dialer,
    ) -> None:
        self.identity = identity
        self.uri = uri
        self.socket = socket
        self.channel = channel
        self.dialer = dialer
        self.sent, self.dropped, _ = before
        self.queue: deque[_Waiting] = deque()
        self.queued_bytes = 0
        """Bytes of those messages that are queued beyond the limit of the queue."""
        self.silent_since: float | None = None
        self.introduced = False
        """Whether the peer was told on this connection which node makes it, or need not be."""
        self.tries = 0
        self.timer: asyncio.TimerHandle | None = None
        self.gathered: list[list[bytes]] = []
        """What leaves when the event loop comes round. Where something is queued the peer takes nothing now."""

    @property
    def waiting(self) -> int:
        return len(self.queue) + len(self.gathered)


class Links:
    """Connections to other nodes, made when they are first needed."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        settings: ClusterSettings,
        *,
        resolver: Resolver | None = None,
        mechanism: Mechanism = PLAIN,
        lost: Callable[[bytes], None],
        undelivered: Callable[[list[bytes], MessageError], None],
        allows: Callable[[bytes, str], bool] = lambda _, __: True,
        vouched: Callable[[bytes], bool] = lambda _: False,
        strangers: Container[bytes] = frozenset(),
        turn: Callable[[int], None] = lambda _: None,
        alone: Callable[[], None] = lambda: None,
        introduction: Callable[[bytes], list[bytes] | None] = lambda _: None,
        max_queued: int | None = None,
        max_queued_bytes: int = 256 * 1024 * 1024,
    ) -> None:
        """``max_queued`` messages may wait for one peer in all, and ``max_queued_bytes`` of those beyond its queue.

        ``introduction`` gives what is said first on each connection to a peer; None for nothing.

        ``turn`` is called whenever the event loop has come round, with how many messages left together.

        ``alone`` is called where that was one, and all is done. ``allows`` tells whether a peer with a name may be
        connected to at one of that name's numeric addresses. ``strangers`` are the peers that nobody vouches for,
        where others sign; ``vouched`` tells whether somebody does.
        """
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._lost = lost
        self._undelivered = undelivered
        self._told = turn
        self._was_alone = alone
        self._introduction = introduction
        self._allows = allows
        self._vouched = vouched
        self._strangers = strangers
        self._max_strangers = max_connections()
        self._context = context
        self._options: dict[str, int | bytes] = {
            "ROUTER_MANDATORY": 1,
            "ROUTER_HANDOVER": 1,  # a new connection counts, though the old one may still be closing
            "IMMEDIATE": 1,  # an identity is forgotten with its connection: a port may have a new owner
            "SNDHWM": settings.send_queue,
            "RCVHWM": _MAX_SAID_BACK,
            "RECONNECT_IVL": 50,
            "RECONNECT_IVL_MAX": 2000,
            "MAXMSGSIZE": _SAID_BACK,
            **mechanism.connecting,
        }
        self._resolver = resolver or Resolver()
        self._links: dict[bytes, _Link] = {}
        self._known: dict[bytes, str] = {}
        self._past: dict[bytes, Traffic] = {}
        self._closed = False
        self._emptier = asyncio.Event()
        self._turn: asyncio.Handle | None = None
        self._gathering: list[_Link] = []
        self._most_gathered = min(_GATHERED, settings.send_queue)
        self._most = max(max_queued or settings.send_queue * _TOO_MANY_WAITING, settings.send_queue)
        self._most_bytes = max_queued_bytes

    @property
    def queued(self) -> int:
        """Messages that wait for their peers."""
        return sum(link.waiting for link in self._links.values())

    @property
    def traffic(self) -> Mapping[bytes, Traffic]:
        """What went to each peer, those included that are gone, as far as they are remembered."""
        return self._past | {
            identity: Traffic(link.sent, link.dropped, link.waiting) for identity, link in self._links.items()
        }

    def count_drop(self, identity: bytes) -> None:
        """Count a message that will not get to a peer."""
        link = self._links.get(identity)
        if link is not None:
            link.dropped += 1
        elif identity in self._past:
            before = self._past[identity]
            self._past[identity] = before._replace(dropped=before.dropped + 1)

    def learn(self, identity: bytes, uri: str) -> None:
        """Remember where a node is reached."""
        self._known[identity] = uri

    def take_back(self, identity: bytes) -> list[list[bytes]]:
        """What still waits for a node and has not been sent, for whoever will send it elsewhere."""
        link = self._links.get(identity)
        if link is None:
            return []
        waiting = [*link.queue, *map(_Waiting, link.gathered)]
        link.queue.clear()
        link.queued_bytes = 0
        link.gathered.clear()
        taken = []
        for frames, room, _ in waiting:
            if room is None or not room.done():
                taken.append(frames)
            if room is not None and not room.done():
                room.set_result(None)
        return taken

    def forget(self, identity: bytes, why: str) -> None:
        """Let go of a node, and tell of everything that still waits for it."""
        self._known.pop(identity, None)
        link = self._links.pop(identity, None)
        if link is None:
            return
        self._past[identity] = Traffic(link.sent, link.dropped)
        if len(self._past) > _REMEMBERED:
            del self._past[next(iter(self._past))]
        if link.timer is not None:
            link.timer.cancel()
        self._disconnect(link, 0)
        self._emptier.set()
        link.queue.extend(map(_Waiting, link.gathered))
        link.gathered.clear()
        for frames, room, _ in link.queue:
            if room is None or not room.done():
                self._undelivered(frames, Unreachable(f"node {readable(identity)} is gone: {why}"))
            if room is not None and not room.done():
                room.set_result(None)

    def send(self, identity: bytes, frames: list[bytes]) -> Room | None:
        """Send a message to a node, at once or as soon as it can be; what is returned is done by then."""
        link = self._links.get(identity) or self._connect(identity)
        frames[0] = identity
        if link.queue:
            return self._enqueue(link, frames)
        if self._turn is None:
            try:
                sent = self._sent(link, frames)
            finally:
                self._turn = self._loop.call_soon(self._turned)  # not before: somebody waits for the message
            return None if sent else self._enqueue(link, frames)
        gathered = link.gathered
        if not gathered:
            self._gathering.append(link)
        gathered.append(frames)
        if len(gathered) >= self._most_gathered:
            self._told(len(gathered))
            self._flush(link)
        return None

    def introduce(self, identity: bytes) -> None:
        """Say to a peer, before the next message, which node this is: it has only now announced what it knows."""
        link = self._links.get(identity)
        if link is not None:
            link.introduced = False

    def _introduce(self, link: _Link) -> bool:
        """Say first on a connection which node makes it; whether messages may follow. ``OSError`` if it is gone."""
        frames = self._introduction(link.identity)
        if frames is not None:
            try:
                if not link.channel.send(frames):
                    return False
            except OSError as problem:
                if problem.errno == errno.EHOSTUNREACH:
                    raise
        link.introduced = True
        return True

    def _sent(self, link: _Link, frames: list[bytes]) -> bool:
        try:
            sent = (link.introduced or self._introduce(link)) and link.channel.send(frames)
        except OSError as problem:
            if problem.errno != errno.EHOSTUNREACH:
                link.dropped += 1
                raise self._refusal(link, frames, problem) from None
            link.introduced = False
            return False
        if sent:
            link.silent_since = None
            link.sent += 1
        return sent

    def _turned(self) -> None:
        """The event loop has come round: send what was gathered meanwhile."""
        gathering, self._gathering = self._gathering, []
        self._told(sum(len(link.gathered) for link in gathering) or 1)
        self._turn = self._loop.call_soon(self._turned) if gathering else None
        for link in gathering:
            if link.gathered:
                self._flush(link)
        if not gathering:
            self._was_alone()

    def _connect(self, identity: bytes) -> _Link:
        if self._closed:
            raise Unreachable("this node is stopping")
        uri = self._known.get(identity)
        if uri is None:
            raise Unreachable(f"nobody knows where node {readable(identity)} is")
        if (
            identity in self._strangers
            and sum(map(self._strangers.__contains__, self._links)) >= self._max_strangers
        ):
            raise Unreachable(
                f"node {readable(identity)} at {uri}: there are {self._max_strangers} connections already to nodes "
                "that were announced without a signature; raise the limit of open files (ulimit -n)"
            )
        try:
            socket = make_socket(self._context, zmq.ROUTER, **self._options)
        except zmq.ZMQError as problem:
            raise Unreachable(
                f"node {readable(identity)} at {uri}: {problem}; raise the limit of open files (ulimit -n)"
            ) from None
        try:
            dialer = self._dial(identity, uri, socket)
            channel = open_channel(socket, self._settings.max_frames, self._settings.max_message_bytes)
        except zmq.ZMQError as problem:
            socket.close(0)
            raise Unreachable(f"node {readable(identity)} at {uri}: {problem}") from None
        link = _Link(identity, uri, self._past.pop(identity, Traffic(0)), socket, channel, dialer)
        self._loop.add_reader(int(socket.getsockopt(zmq.FD)), self._changed, link)
        self._links[identity] = link
        return link

    def _dial(self, identity: bytes, uri: str, socket: zmq.Socket[bytes]) -> Dialer:
        """Connect a socket to a peer; where it has a name, when that was looked up."""

        def found() -> None:
            self._loop.call_soon_threadsafe(dialer.settle)

        trusted = self._vouched(identity)
        dialer = Dialer(
            socket, self._resolver, found, lambda number: self._allows(identity, number), trusted=trusted
        )
        dialer.connect(uri)
        return dialer

    def _disconnect(self, link: _Link, linger: int) -> None:
        self._loop.remove_reader(int(link.socket.getsockopt(zmq.FD)))
        link.socket.close(linger)

    def _enqueue(self, link: _Link, frames: list[bytes]) -> Room | None:
        limit = self._settings.send_queue
        room: Room | None = None
        size = 0
        if len(link.queue) >= limit:
            full = f"{len(link.queue)} messages already wait for node {readable(link.identity)}"
            if self._settings.send_overflow == "drop_oldest":
                dropped = self._pop(link)
                self._undelivered(dropped.frames, Overloaded(full))
                if dropped.room is not None and not dropped.room.done():
                    dropped.room.set_result(None)
            else:
                size = sum(map(len, frames))
                if (
                    self._settings.send_overflow == "reject"
                    or len(link.queue) >= self._most
                    or link.queued_bytes + size > self._most_bytes
                ):
                    link.dropped += 1
                    raise Overloaded(full)
                room = self._loop.create_future()
                link.queued_bytes += size
        link.queue.append(_Waiting(frames, room, size))
        if link.timer is None:
            self._try_again(link)
        return room

    def _pop(self, link: _Link) -> _Waiting:
        first = link.queue.popleft()
        link.queued_bytes -= first.size
        return first

    def _try_again(self, link: _Link) -> None:
        delay = min(_LAST_TRY, _FIRST_TRY * 2 ** min(link.tries, 10))
        link.tries += 1
        link.timer = self._loop.call_later(delay, self._flush, link)

    def _changed(self, link: _Link) -> None:
        link.socket.getsockopt(zmq.EVENTS)  # takes note of what the descriptor told, or it would tell it again
        link.introduced = False  # it may be another connection
        if link.queue or link.gathered:
            self._flush(link)

    def _flush(self, link: _Link) -> None:
        if link.timer is not None:
            link.timer.cancel()
            link.timer = None
        if self._links.get(link.identity) is not link:
            return
        if self._emptied(link):
            link.tries = 0
            self._emptier.set()
            return
        silent = 0.0 if link.silent_since is None else self._loop.time() - link.silent_since
        if silent:
            link.dialer.renew(link.uri)
        if silent > self._settings.patience:
            self._lost(link.identity)
        else:
            self._try_again(link)

    def _emptied(self, link: _Link) -> bool:
        """Send what the peer takes; whether that was all."""
        queue, gathered = link.queue, link.gathered
        if gathered:
            link.gathered = []
            if not queue and self._all_sent(link, gathered):
                return True
            queue.extend(map(_Waiting, gathered))
        while queue:
            batch: list[list[bytes]] = []
            for frames, room, _ in itertools.islice(queue, _GATHERED):
                if room is not None and room.done():
                    break  # whoever sent it has given up
                batch.append(frames)
            if not batch:
                self._pop(link)
                link.dropped += 1
                continue
            try:
                if not (link.introduced or self._introduce(link)):
                    return False
                sent = link.channel.send_many(batch)
                link.sent += sent
            except OSError as problem:
                if problem.errno == errno.EHOSTUNREACH:
                    link.introduced = False
                    if link.silent_since is None:
                        link.silent_since = self._loop.time()
                    return False
                del batch[1:]
                sent = 1
                self._undelivered(batch[0], self._refusal(link, batch[0], problem))
                if self._links.get(link.identity) is not link:
                    return True  # it was let go of meanwhile, and its socket is closed
            link.silent_since = None
            if sent:
                link.tries = 0
            for _ in range(sent):
                room = self._pop(link).room
                if room is not None and not room.done():
                    room.set_result(None)
            if sent < len(batch):
                return False  # it is there, only slow
        return True

    def _all_sent(self, link: _Link, gathered: list[list[bytes]]) -> bool:
        """Send what was gathered; what does not pass at once stays in the list, and tells why when tried again."""
        with contextlib.suppress(OSError):
            if not (link.introduced or self._introduce(link)):
                return False
            sent = link.channel.send_many(gathered)
            link.sent += sent
            del gathered[:sent]
            link.silent_since = None
        return not gathered

    def _refusal(self, link: _Link, frames: list[bytes], problem: OSError) -> MessageError:
        if problem.errno != errno.EMSGSIZE:
            return Unreachable(f"node {readable(link.identity)}: {problem.strerror}")
        size, most = sum(map(len, frames)), self._settings.max_message_bytes
        return BadBody(
            f"the message has {size} bytes in {len(frames)} frames; at most {most} (max_message_bytes) in "
            f"{self._settings.max_frames} (max_frames) can be sent"
        )

    async def drained(self, limit: float) -> None:
        """Wait, for so many seconds at most, until nothing waits for a peer any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while self.queued:
                    self._emptier.clear()
                    await self._emptier.wait()

    def close(self, linger: int) -> None:
        """Let go of everyone, but give what is on its way so many milliseconds to get there."""
        if self._turn is not None:
            self._turn.cancel()
        self._closed = True
        for link in tuple(self._links.values()):
            if link.timer is not None:
                link.timer.cancel()
            self._emptied(link)
            for frames, room, _ in link.queue:
                self._undelivered(frames, Unreachable("this node is stopping"))
                if room is not None and not room.done():
                    room.set_result(None)
        for link in self._links.values():
            self._disconnect(link, linger)
        self._links.clear()
