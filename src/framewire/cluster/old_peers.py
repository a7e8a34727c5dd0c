"""Peers that speak an older format of the wire.

A peer is answered with the format frame that it writes itself: what reads V4 is the same but for that frame. V1 is
another matter: it knows no nodes, so its callers are guests of the node that they are connected to. A request is
brought up to V5 on entry, with a stand-in on this node as its callback receiver, and what comes to the stand-in
goes back as V1 over the connection that the request came in on.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from framewire.errors import BadBody, UsageError
from framewire.wire import Message, MessageId, encode, upgrade

__all__ = ["V5", "Formats", "Guests"]

_TICKS_PER_MILLISECOND = 10_000
_MOST = 10_000
"""Stand-ins at a time; the one that was not needed for longest makes room."""


def _format_frame(version: int) -> bytes:
    """The last frame of a message in a format."""
    return encode(Message(b"x"), version)[-1]


V5 = _format_frame(5)


class Formats:
    """What each peer writes, and so is written to."""

    def __init__(self, version: int) -> None:
        self.usual = _format_frame(version)
        self.others: dict[bytes, bytes] = {}

    def of(self, peer: bytes) -> bytes:
        """The last frame of a message to a peer."""
        return self.others.get(peer, self.usual)

    def note(self, peer: bytes, last: bytes) -> None:
        """A peer has written a message with this last frame."""
        if last == V5:
            self.others.pop(peer, None)
        else:
            self.others[peer] = last

    def forget(self, peer: bytes) -> None:
        self.others.pop(peer, None)


@dataclass(frozen=True, slots=True)
class _Guest:
    connection: bytes
    receiver: bytes
    points: tuple[MessageId, ...]
    """As the guest wrote them, with versions that are bytes."""


class Guests:
    """The V1 callers of one node, each with a stand-in among the node's own receivers.

    ``admit`` and ``dismiss`` make a stand-in known to the node and forget it again.
    """

    def __init__(
        self,
        node: bytes,
        versions: Mapping[bytes, int],
        *,
        admit: Callable[[bytes, Callable[[Message], None]], None],
        dismiss: Callable[[bytes], None],
        send: Callable[[list[bytes]], None],
    ) -> None:
        self._node = node
        self._versions = versions
        self._admit = admit
        self._dismiss = dismiss
        self._send = send
        self._stand_ins: OrderedDict[_Guest, bytes] = OrderedDict()
        self._numbers = itertools.count()

    def upgraded(self, message: Message, connection: bytes) -> Message:
        """A V1 message as V5; ``UsageError`` where a version has no number."""
        raised = upgrade(message, self._versions)
        if not message.callback_points:
            return raised
        guest = _Guest(connection, message.callback_receiver_identity, message.callback_points)
        return raised.replace(
            callback_receiver_identity=self._stand_in(guest, raised.callback_points),
            callback_receiver_node_identity=self._node,
        )

    def _stand_in(self, guest: _Guest, points: tuple[MessageId, ...]) -> bytes:
        identity = self._stand_ins.get(guest)
        if identity is not None:
            self._stand_ins.move_to_end(guest)
            return identity
        if len(self._stand_ins) >= _MOST:
            _, oldest = self._stand_ins.popitem(last=False)
            self._dismiss(oldest)
        identity = self._stand_ins[guest] = b"\x00V1-%d-%s" % (next(self._numbers), self._node)
        written = dict(zip(points, guest.points, strict=True))
        self._admit(identity, lambda reply: self._send(_lowered(reply, guest, written)))
        return identity


def _lowered(reply: Message, guest: _Guest, written: Mapping[MessageId, MessageId]) -> list[bytes]:
    """A reply as V1, in the versions that the guest itself wrote."""
    try:
        return encode(
            reply.replace(
                version=_version(reply.message_id, written),
                receiver_identity=guest.receiver,
                receiver_node_identity=b"",
                callback_receiver_identity=guest.receiver,
                callback_receiver_node_identity=b"",
                callback_key=0,
                callback_points=guest.points,
                ttl_ticks=reply.ttl_ticks // _TICKS_PER_MILLISECOND * _TICKS_PER_MILLISECOND,
                body_frames=reply.body_frames or (b"",),
                socket_identity=guest.connection,
            ),
            1,
        )
    except UsageError as problem:
        raise BadBody(f"this cannot be said in V1: {problem}", message_id=reply.message_id) from None


def _version(message: MessageId, written: Mapping[MessageId, MessageId]) -> int | bytes:
    known = written.get(message)
    return str(message.version).encode() + b".0" if known is None else known.version
