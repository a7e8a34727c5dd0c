"""V1 nodes of the configuration: a connection to each, over which messages leave in V1 and answers come back.

A V1 node announces nothing and gives no sign of life. It is known by its address and by what the configuration says
that it handles, and it is there while its connection is: its routes come and go with that. A socket that needs no
identities (DEALER) reaches whatever listens at the address. Answers are taken from this connection, and from those
that the V1 node makes to this node by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
from collections import deque
from collections.abc import Callable, Mapping

import zmq
from zmq.utils.monitor import parse_monitor_message

from framewire.cluster.links import Traffic
from framewire.cluster.resolver import AddressBook, Resolver
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.sockets import Reader, connect, make_socket
from framewire.cluster.v1_messages import V1Asks, lowered, v1_handled, v1_name
from framewire.errors import BadBody, MessageError, Overloaded, Unreachable
from framewire.node.mailbox import Room
from framewire.node.transport import Port
from framewire.routing import Route
from framewire.wire import Message, MessageId, decode
from framewire.wire.message import readable

__all__ = ["V1Nodes"]

log = logging.getLogger("framewire.cluster")

_FAILED = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)
_MADE = zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
_FIRST_LOOK_S, _LAST_LOOK_S = 0.001, 0.05
"""Seconds between looks whether a connection takes messages."""
_LOOKUP_S = 1.0
"""Seconds between looks at the address of a node that is away, and until a refused connection is tried again."""
_TOO_MANY_WAITING = 10
"""How many times the queue's length of senders may wait beyond it."""


class _Waiting:
    """A message that the connection could not take yet: as V1, and as V5 for telling of it."""

    __slots__ = ("frames", "original", "room")

    def __init__(self, frames: list[bytes], original: list[bytes], room: Room | None) -> None:
        self.frames, self.original, self.room = frames, original, room

    @property
    def is_given_up(self) -> bool:
        return self.room is not None and self.room.done()

    def settle(self) -> None:
        if self.room is not None and not self.room.done():
            self.room.set_result(None)


class _V1Node:
    """The connection to one V1 node, with a bounded queue of what it cannot take yet."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        settings: ClusterSettings,
        uri: str,
        handled: Mapping[MessageId, bytes],
        *,
        resolver: Resolver,
        take: Callable[[bytes, list[bytes]], None],
        changed: Callable[[_V1Node], None],
        undelivered: Callable[[list[bytes], MessageError], None],
        refused: Callable[[bytes, int], None],
        failed: Callable[[bytes, list[bytes], Exception], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = context
        self._settings = settings
        self.uri = uri
        self.name = v1_name(uri)
        self.handled = handled
        self._take = take
        self._changed = changed
        self._undelivered = undelivered
        self._refused = refused
        self._failed = failed
        self.is_there = False
        """Whether its connection is made, and takes messages."""
        self.sent = self.dropped = 0
        self._queue: deque[_Waiting] = deque()
        self._tries = 0
        self._is_made = False
        """Whether there is a connection, with or without a finished handshake."""
        self._is_refused = False
        """Whether a handshake has failed on this socket."""
        self._timer: asyncio.TimerHandle | None = None
        self._address = ""
        self._book = AddressBook(resolver, lambda: self._loop.call_soon_threadsafe(self._settle))
        self._sockets: contextlib.ExitStack | None = None
        self._open()

    @property
    def waiting(self) -> int:
        """Messages that wait for it."""
        return len(self._queue)

    # --- the connection

    def _open(self) -> None:
        settings, patience = self._settings, self._settings.patience
        beat = max(1, round(settings.heartbeat))
        with contextlib.ExitStack() as opened:
            self._socket = make_socket(
                self._context,
                zmq.DEALER,
                IMMEDIATE=1,  # nothing waits in libzmq for a connection that is not there
                SNDHWM=settings.send_queue,
                RCVHWM=10_000,
                MAXMSGSIZE=settings.max_message_bytes,
                RECONNECT_IVL=50,
                RECONNECT_IVL_MAX=2000,
                CONNECT_TIMEOUT=max(1000, round(settings.heartbeat * 1000)),
                # A machine that is switched off says nothing, and there are no heartbeats that would be missed.
                TCP_KEEPALIVE_IDLE=beat,
                TCP_KEEPALIVE_INTVL=beat,
                TCP_KEEPALIVE_CNT=settings.misses,
                TCP_MAXRT=max(1000, round(patience * 1000)),
            )
            opened.callback(self._socket.close, 0)
            self._reader = Reader(
                self._socket,
                lambda frames: self._take(self.name, frames),
                settings.max_frames,
                settings.max_message_bytes,
                dropped=lambda offenders: self._refused(self.name, offenders.total()),
                failed=lambda frames, problem: self._failed(self.name, frames, problem),
            )
            self._linger = 0
            opened.callback(lambda: self._reader.close(self._linger))
            monitor = self._socket.get_monitor_socket(_MADE | zmq.EVENT_DISCONNECTED | _FAILED)
            events = Reader(monitor, self._happened, 10, 4096)
            opened.callback(events.close)
            opened.callback(self._socket.disable_monitor)
            self._sockets = opened.pop_all()
        self._address = ""
        self._is_made = self._is_refused = False
        self._settle()
        self._look_soon(_LOOKUP_S)

    def _settle(self) -> None:
        """Connect to the address, or to the first of a name's addresses, and look that up where it is due."""
        if self._sockets is None or self.is_there or self._is_made:
            return  # an address is used for as long as something is there
        numbers = self._book.numbers(self.uri, fresh=True)
        if not numbers or self._address in numbers:
            return
        if self._address:
            with contextlib.suppress(zmq.ZMQError):
                self._socket.disconnect(self._address)
        self._address = numbers[0]
        connect(self._socket, self._address)

    def _happened(self, frames: list[bytes]) -> None:
        event = parse_monitor_message(frames)["event"]
        self._is_made = bool(event & _MADE)
        if self._is_made:
            self._tries = 0
            self._look_soon(_FIRST_LOOK_S)
        elif event & _FAILED:
            self._is_refused = True
            self._lose()
        else:
            self._lose()

    def _reopen(self) -> None:
        """Make another socket: libzmq may not connect again after a failed handshake."""
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None
        try:
            self._open()
        except zmq.ZMQError as problem:
            log.warning("no connection to %s, which is tried again: %s", readable(self.name), problem)
            self._look_soon(_LOOKUP_S)

    def _look_soon(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """See whether the connection takes messages. V1's ZMTP 2.0 has no handshake that would be reported."""
        self._timer = None
        if self._sockets is None or (self._is_refused and not self._is_made):
            self._reopen()
            return
        writable = bool(int(self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLOUT)
        self._reader.drain()  # looking takes note of what came in, and then the descriptor does not tell
        if writable and not self.is_there:
            self.is_there, self._is_refused = True, False
            self._changed(self)
        if self._queue and self.is_there:
            self._flush()
        if self.is_there and not self._queue:
            self._tries = 0
        elif self.is_there or self._is_made:
            self._tries += 1
            self._look_soon(min(_LAST_LOOK_S, _FIRST_LOOK_S * 2 ** min(self._tries, 10)))
        else:
            self._settle()
            self._look_soon(_LOOKUP_S)

    def _lose(self) -> None:
        self._reader.drain()  # its last answers may be here already
        self._look_soon(_LOOKUP_S)
        if not self.is_there:
            return
        self.is_there = False
        queue, self._queue = self._queue, deque()
        for each in queue:
            if not each.is_given_up:
                self.dropped += 1
                self._undelivered(each.original, Unreachable(f"the connection to {readable(self.name)} is lost"))
            each.settle()
        self._changed(self)

    def close(self, linger: int) -> None:
        """Let go of the node; what was sent has so many milliseconds to get out."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sockets is None:
            return
        self._flush()
        queue, self._queue = self._queue, deque()
        for each in queue:
            if not each.is_given_up:
                self._undelivered(each.original, Unreachable("this node is stopping"))
            each.settle()
        self._linger = linger
        self._sockets.close()
        self._sockets = None

    # --- messages

    def send(self, frames: list[bytes], original: list[bytes]) -> Room | None:
        """Send a V1 message, at once or as soon as it can be; what is returned is done by then."""
        if not self.is_there:
            raise Unreachable(f"{readable(self.name)} is not connected")
        if not self._queue and self._is_sent(frames):
            return None
        return self._enqueue(frames, original)

    def reply(self, frames: list[bytes]) -> None:
        """Send a V1 message that nobody waits for room for."""
        if not self.is_there:
            raise Unreachable(f"{readable(self.name)} is not connected any more; it must ask again")
        if self._queue or not self._is_sent(frames):
            raise Overloaded(f"{readable(self.name)} does not read its answers")

    def _is_sent(self, frames: list[bytes]) -> bool:
        try:
            sent = self._reader.send(frames)
        except OSError as problem:
            if problem.errno == errno.EMSGSIZE:
                size, most = sum(map(len, frames)), self._settings.max_message_bytes
                raise BadBody(
                    f"the message has {size} bytes; at most {most} (max_message_bytes) can be sent"
                ) from None
            raise Unreachable(f"{readable(self.name)}: {problem.strerror}") from None
        self.sent += sent
        return sent

    def _enqueue(self, frames: list[bytes], original: list[bytes]) -> Room | None:
        limit, room = self._settings.send_queue, None
        if len(self._queue) >= limit:
            full = f"{len(self._queue)} messages already wait for {readable(self.name)}"
            if self._settings.send_overflow == "drop_oldest":
                oldest = self._queue.popleft()
                self.dropped += 1
                self._undelivered(oldest.original, Overloaded(full))
                oldest.settle()
            elif self._settings.send_overflow == "reject" or len(self._queue) >= limit * _TOO_MANY_WAITING:
                self.dropped += 1
                raise Overloaded(full)
            else:
                room = self._loop.create_future()
        self._queue.append(_Waiting(frames, original, room))
        if self._timer is None:
            self._look_soon(_FIRST_LOOK_S)
        return room

    def _flush(self) -> None:
        queue = self._queue
        while queue:
            first = queue[0]
            if not first.is_given_up:
                try:
                    if not self._is_sent(first.frames):
                        return
                except MessageError as problem:
                    self.dropped += 1
                    self._undelivered(first.original, problem)
            queue.popleft()
            first.settle()


class V1Nodes:
    """The V1 nodes that one node can send messages to."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        settings: ClusterSettings,
        port: Port,
        *,
        resolver: Resolver,
        now: Callable[[], float],
        take: Callable[[list[bytes]], None],
        undelivered: Callable[[list[bytes], MessageError], None],
        refused: Callable[[bytes, int], None],
        domain_of: Callable[[bytes], str],
    ) -> None:
        """``take`` has what V1 nodes send, with their name as the first frame."""
        self._versions = settings.versions
        self._port = port
        self._domain_of = domain_of
        self._undelivered = undelivered
        self._asks = V1Asks(port.identity, settings.versions, now)
        self._nodes: dict[bytes, _V1Node] = {}
        try:
            for uri, messages in settings.v1_nodes.items():
                node = _V1Node(
                    context,
                    settings,
                    uri,
                    v1_handled(messages, settings.versions),
                    resolver=resolver,
                    take=lambda name, frames: take([name, *frames]),
                    changed=self._changed,
                    undelivered=self._forget,
                    refused=refused,
                    failed=port.unread,
                )
                self._nodes[node.name] = node
        except BaseException:
            self.close(0)
            raise
        self._uris = {name: node.uri for name, node in self._nodes.items()}

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def uri_of(self, name: bytes) -> str:
        """Return the address of a V1 node; empty where it is none."""
        return self._uris.get(name, "")

    @property
    def traffic(self) -> Mapping[bytes, Traffic]:
        """What went to each of them."""
        return {name: Traffic(node.sent, node.dropped, node.waiting) for name, node in self._nodes.items()}

    def send(self, name: bytes, frames: list[bytes]) -> Room | None:
        """Send a V5 message to a V1 node in V1; raises what V1 cannot carry as ``BadBody`` or ``BadSignature``."""
        node, message = self._nodes[name], decode(frames)
        written = lowered(message, node.uri, node.handled, self._versions, self._domain_of)
        if not node.is_there:
            raise Unreachable(f"{readable(name)} is not connected")
        frames[0] = name
        self._asks.add(message, name)
        try:
            return node.send(written, frames)
        except MessageError:
            self._asks.remove(message, name)
            raise

    def send_back(self, name: bytes, frames: list[bytes]) -> None:
        """Send a V1 message over the connection on which a V1 node has asked for it."""
        frames[0] = b""
        self._nodes[name].reply(frames)

    def answer(self, message: Message) -> Message | None:
        """Return a V1 message as V5 where it belongs to the flow of an ask to a V1 node, else None."""
        return self._asks.answer(message, self._uris)

    def register(self) -> None:
        """Make known again what the nodes that are there handle."""
        for node in self._nodes.values():
            if node.is_there:
                self._port.peer_registered(node.name, [(Route(b"\x01" + node.name), tuple(node.handled))])

    def _forget(self, frames: list[bytes], error: MessageError) -> None:
        self._asks.remove(decode(frames), frames[0])
        self._undelivered(frames, error)

    def _changed(self, node: _V1Node) -> None:
        if node.is_there:
            log.info("%s is there", readable(node.name))
            self._port.peer_registered(node.name, [(Route(b"\x01" + node.name), tuple(node.handled))])
        else:
            log.warning("%s is gone", readable(node.name))
            self._asks.lose(node.name)
            self._port.peer_lost(node.name)

    def close(self, linger: int) -> None:
        """Let go of all of them."""
        for node in self._nodes.values():
            node.close(linger)
