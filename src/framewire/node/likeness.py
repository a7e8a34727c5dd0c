"""Messages that are like others this node has had: read and written without going the whole way.

What is constant in a message (``framewire.wire.moulds``) also decides most of what a node does with it: what it
is, who waits for it, which way its answer goes. So a message that fits the mould of one that was read, checked and
found good is a parcel at once, and what comes of the same question as something before is frames at once.
"""

from __future__ import annotations

import math

import msgspec

from framewire.node.parcel import TICKS, Callback, Parcel, Stencil, unread
from framewire.security import KeyRing, Replays
from framewire.wire import Message
from framewire.wire.moulds import Mould, contents

__all__ = ["Familiar", "Likeness"]

_MOST = 4096
"""Kinds of messages that are remembered."""


class Likeness:
    """One kind of message that has come in before."""

    __slots__ = ("_is_new", "_mould", "_unique", "_verified", "following", "pattern", "plain", "ring", "sender")

    def __init__(
        self, mould: Mould, message: Message, parcel: Parcel, ring: KeyRing | None, replays: Replays | None
    ) -> None:
        self._mould = mould
        self.pattern = msgspec.structs.replace(parcel, body_frames=None, correlation_id=b"", frames=None)
        """What all of them have in common."""
        self.ring = ring
        self._verified = None if ring is None else ring.verifier(message)
        self._is_new = None if replays is None else replays.is_new
        self._unique = ring is not None and ring.is_unique(message.domain, message.identity)
        self.sender = message.routing[-1].identity if message.routing else b""
        """The node that sent it here; empty where it does not say."""
        self.plain = not (parcel.receiver or parcel.receiver_node or parcel.distribution) and not (
            parcel.callback is not None and parcel.callback.receipt
        )
        """Whether it is for anyone here who handles it, and that is all."""
        self.following: dict[type, Stencil] = {}
        """What handlers send on such a message, by the payload's class."""

    def parcel(self, frames: list[bytes], now: float, source: bytes) -> Parcel | None:
        """What has come in, or None where it is not of this kind, or not good: then the long way says why."""
        return self.next(frames, now, source) if self._mould.fits(frames) else None

    def fits(self, frames: list[bytes]) -> bool:
        """Whether something is of this kind; then so is all that is alike, and may be had from ``next``."""
        return self._mould.fits(frames)

    def next(self, frames: list[bytes], now: float, source: bytes) -> Parcel | None:
        """What has come in and is of this kind, or None where it is not good."""
        opened = contents(frames)
        if opened is None:
            return None
        body, ttl, correlation_id, key, signature = opened
        like = self.pattern
        if self._verified is not None:
            if not self._verified(body, signature):
                return None
            if self._is_new is not None and not (
                self._is_new(hash(signature), b"", now)
                if self._unique
                else self._is_new(hash((signature, correlation_id, key, self.sender)), source, now)
            ):
                return None
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
        )


class Familiar:
    """The kinds of messages that a node has had."""

    def __init__(self, replays: Replays | None = None) -> None:
        self._replays = replays
        self._known: dict[tuple[int, bytes, bytes, bytes], Likeness] = {}

    def recall(self, frames: list[bytes], ring: KeyRing | None) -> Likeness | None:
        """The kind that a message is most probably of."""
        try:
            like = self._known[len(frames), frames[3], frames[-6], frames[-10]]
        except LookupError:
            return None
        return like if like.ring is ring else None

    def remember(self, frames: list[bytes], message: Message, parcel: Parcel, ring: KeyRing | None) -> None:
        """Know a message again that was found good."""
        mould = None if message.trace_options else Mould.of(message, frames)
        if mould is None:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        like = Likeness(mould, message, parcel, ring, self._replays)
        self._known[len(frames), frames[3], frames[-6], frames[-10]] = like
