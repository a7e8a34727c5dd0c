"""Messages that are like others this node has had: read and written without going the whole way.

What is constant in a message (``framewire.wire.moulds``) also decides most of what a node does with it: what it
is, who waits for it, which way its answer goes. So a message that fits the mould of one that was read, checked and
found good is a parcel at once, and what comes of the same question as something before is frames at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from framewire.node.parcel import TICKS, Callback, Parcel, Stencil, sole_sender, unread
from framewire.routing import Route
from framewire.security import KeyRing, Replays
from framewire.wire import Message
from framewire.wire.moulds import Contents, Mould, contents

__all__ = ["Familiar", "Likeness"]

_NOBODY = (b"", b"", 0, (), False)
_MOST = 4096
"""Kinds of messages that are remembered."""
_LONGEST = 1024
"""Bytes of a frame that kinds are told by; a mould has no longer ones."""
_MAX_UNKNOWN = 8 * _MOST
"""Messages of other kinds that come while so many are remembered, before all of those are forgotten. Where more
kinds than that take turns, as with 10,000 partitions, most of the work would be remembering them in vain."""


class Likeness:
    """One kind of message that has come in before."""

    __slots__ = (
        "_is_new",
        "_unique",
        "_verified",
        "answers",
        "fits",
        "following",
        "pattern",
        "peer",
        "plain",
        "ring",
        "sender",
        "signed",
    )

    def __init__(
        self,
        mould: Mould,
        message: Message,
        parcel: Parcel,
        peer: bytes,
        ring: KeyRing | None,
        replays: Replays | None,
    ) -> None:
        self.fits = mould.fits
        """Whether something is of this kind; then so is all that is alike, and may be had from ``next``."""
        self.pattern = msgspec.structs.replace(parcel, body_frames=None, correlation_id=b"", frames=None)
        """What all of them have in common."""
        self.ring = ring
        self._verified = None if ring is None else ring.verifier(message)
        self.signed = self._verified is not None
        self._is_new = None if replays is None else replays.is_new
        self._unique = ring is not None and ring.is_unique(message.domain, message.identity)
        self.sender = message.routing[-1].identity if message.routing else b""
        """The last routing entry's node, as replays are told apart by it (``framewire.security.replay.token``)."""
        self.peer = peer
        """The node that sent it here; empty where only the connection tells."""
        self.plain = not (parcel.receiver or parcel.receiver_node or parcel.distribution) and not (
            parcel.callback is not None and parcel.callback.receipt
        )
        """Whether it is for anyone here who handles it, and that is all."""
        self.answers = bool(parcel.receiver and parcel.callback is not None and not parcel.distribution)
        """Whether it is for somebody who waits for it."""
        self.following: dict[object, Stencil] = {}
        """What handlers send on such a message, by the payload's class."""

    def next(self, frames: list[bytes], now: float, source: bytes) -> Parcel | None:
        """What has come in and is of this kind, or None where it is not good: the long way says why."""
        opened = contents(frames)
        if opened is None or (self.signed and not self.is_genuine(opened, now, source)):
            return None
        return self.made(opened, frames, now, source)

    def is_genuine(self, opened: Contents, now: float, source: bytes) -> bool:
        """Whether what is in a signed message is what was signed, and has not been here before."""
        body, _, correlation_id, key, signature = opened
        if self._verified is None or not self._verified(body, signature):
            return False
        if self._is_new is None:
            return True
        if self._unique:
            return self._is_new(hash(signature), b"", now)
        return self._is_new(hash((signature, correlation_id, key, self.sender)), source, now)

    def made(self, opened: Contents, frames: list[bytes], now: float, source: bytes) -> Parcel:
        """The parcel of what was opened and found good."""
        body, ttl, correlation_id, key, _ = opened
        like = self.pattern
        callback = like.callback
        return Parcel(
            like.message_id,
            unread,
            (body,),
            correlation_id,
            callback and Callback(callback.receiver, callback.node, key, callback.points, callback.receipt),
            now + ttl / TICKS if ttl else math.inf,
            like.distribution,
            like.receiver,
            like.receiver_node,
            0,
            like.hops,
            like.routing,
            source,
            None,
            frames,
            None,
            self,
            None if like.caller is None else source,
        )

    def parcels(
        self,
        messages: list[list[bytes]],
        now: float,
        source: bytes,
        route: Route | None,
        otherwise: Callable[[bytes, list[bytes]], Parcel | None],
    ) -> list[Parcel]:
        """What has come in and is of this kind, on its way by a route if that is known.

        Those that are not good are given to ``otherwise``, and what it makes of them takes their place. It is
        ``next`` many times over, with what is the same for all of them looked up once (bench/cluster.py).
        """
        like = self.pattern
        message_id, distribution, hops, routing = like.message_id, like.distribution, like.hops, like.routing
        receiver, receiver_node, callback = like.receiver, like.receiver_node, like.callback
        asker, asking, _, points, receipt = _NOBODY if callback is None else msgspec.structs.astuple(callback)
        caller = None if like.caller is None else source
        unsigned, made = not self.signed, []
        for frames in messages:
            opened = contents(frames)
            if opened is None or not (unsigned or self.is_genuine(opened, now, source)):
                parcel = otherwise(source, frames)
                if parcel is not None:
                    parcel.sent_to = route
                    made.append(parcel)
                continue
            body, ttl, correlation_id, key, _ = opened
            made.append(
                Parcel(
                    message_id,
                    unread,
                    (body,),
                    correlation_id,
                    callback and Callback(asker, asking, key, points, receipt),
                    now + ttl / TICKS if ttl else math.inf,
                    distribution,
                    receiver,
                    receiver_node,
                    0,
                    hops,
                    routing,
                    source,
                    route,
                    frames,
                    None,
                    self,
                    caller,
                )
            )
        return made


class Familiar:
    """The kinds of messages that a node has had."""

    def __init__(self, identity: bytes, replays: Replays | None = None) -> None:
        self._identity = identity
        self._replays = replays
        self._known: dict[tuple[int, bytes, bytes, bytes, bytes], Likeness] = {}
        self._unknown = 0

    def recall(self, frames: list[bytes], ring: KeyRing | None) -> Likeness | None:
        """The kind that a message is most probably of."""
        try:
            if len(frames[3]) > _LONGEST:  # a large frame of a body of several: a hash of it takes long
                return None
            like = self._known[len(frames), frames[3], frames[-6], frames[-8], frames[-10]]
        except LookupError:
            return None
        return like if like.ring is ring else None

    def remember(self, frames: list[bytes], message: Message, parcel: Parcel, ring: KeyRing | None) -> None:
        """Know a message again that was found good."""
        key = (len(frames), frames[3], frames[-6], frames[-8], frames[-10])
        if len(self._known) >= _MOST and key not in self._known:
            self._unknown += 1
            if self._unknown < _MAX_UNKNOWN:
                return
            self._known.clear()
            self._unknown = 0
        mould = None if message.trace_options else Mould.of(message, frames)
        if mould is None:
            return
        sender = sole_sender(message.routing, self._identity)
        peer = b"" if sender is None else sender.identity
        self._known[key] = Likeness(mould, message, parcel, peer, ring, self._replays)
