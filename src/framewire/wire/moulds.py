"""Messages that are like one before them: the same frames, but for what is new in every message.

The messages of a service are alike. A hub that asks the same question a thousand times writes twenty frames a
thousand times over, of which five are new: body, ttl, correlation id, callback key and signature. A mould keeps the
others, so that writing is filling in and reading is taking out, without a look at the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from framewire.wire import layout
from framewire.wire.codec import encode
from framewire.wire.message import Message

__all__ = [
    "COMPILED",
    "DESCRIPTORS",
    "FIXED",
    "HOLES",
    "Contents",
    "Holes",
    "Mould",
    "PureHoles",
    "are_alike",
    "contents",
]

_EDITION = 1
"""That of ``_moulds.c`` which goes with this module."""

_PLACES = {field.name: -field.frame for field in layout.V5.fields}
_TTL, _FLOW, _KEY = _PLACES["ttl"], _PLACES["correlation_id"], _PLACES["callback_key"]
_SIGNATURE = _PLACES["signature"]
_SENDER, _BODY = 0, 2
"""The envelope is the name of a connection and an empty frame; a single body frame is written right after it."""
_MOST_FRAMES, _MOST_BYTES = 64, 1024
"""What a mould may hold: a peer must not fill the memory with them."""
HOLES = (_BODY, _TTL, _FLOW, _KEY, _SIGNATURE)
"""Which frames are new in every message: places from the front, or from the end where they are negative."""
DESCRIPTORS = tuple(
    _PLACES[holder.name] for part in layout.V5.sections if (holder := layout.V5.holder(part.offset))
)
"""Which frames say where callbacks, routing and body are, from the end; in lanes: offset, count, frames of each."""
FIXED = layout.V5.size
"""Frames at the end of a message that none of these reach into."""
_FEWEST_FRAMES = _BODY + 1 - min(HOLES)
_number = struct.Struct("<q")
_pack, _unpack = _number.pack, _number.unpack
_ZERO = _pack(0)
Contents = tuple[bytes, int, bytes, int, bytes]
"""What is new in a message: body, ttl, correlation id, callback key and signature."""


class Holes(Protocol):
    """Puts in and takes out what is new in every message, of which there are two makes that do the same."""

    def filled(
        self,
        frames: list[bytes],
        body: bytes,
        ttl: int,
        correlation_id: bytes,
        callback_key: int,
        signature: bytes,
        /,
    ) -> list[bytes]:
        """A copy of some frames with what is new put in."""

    def contents(self, frames: list[bytes], /) -> Contents | None:
        """What is new in a message that fits a mould; None where a number is none."""

    def fits(self, holed: list[Any], frames: list[bytes], /) -> bool:
        """Whether frames are like others, which have None where it does not matter."""


class PureHoles:
    """The make for where there was no compiler, or ``FRAMEWIRE_PURE=1`` is set."""

    @staticmethod
    def filled(
        frames: list[bytes], body: bytes, ttl: int, correlation_id: bytes, callback_key: int, signature: bytes, /
    ) -> list[bytes]:
        filled = frames.copy()
        filled[_BODY] = body
        filled[_TTL] = _pack(ttl) if ttl else _ZERO
        filled[_FLOW] = correlation_id
        filled[_KEY] = _pack(callback_key) if callback_key else _ZERO
        filled[_SIGNATURE] = signature
        return filled

    @staticmethod
    def contents(frames: list[bytes], /) -> Contents | None:
        ttl, key = frames[_TTL], frames[_KEY]
        try:
            return (
                frames[_BODY],
                0 if ttl == _ZERO else _unpack(ttl)[0],
                frames[_FLOW],
                0 if key == _ZERO else _unpack(key)[0],
                frames[_SIGNATURE],
            )
        except struct.error:
            return None

    @staticmethod
    def fits(holed: list[Any], frames: list[bytes], /) -> bool:
        if len(frames) != len(holed) or (found := _with_holes(frames)) != holed:
            return False
        holed[:] = found  # the next one's frames are more probably the same objects as these
        return True


def _compiled() -> Holes | None:
    try:
        from framewire.wire import _moulds  # type: ignore[attr-defined] # noqa: PLC0415 - may not be built
    except ImportError:  # also where FRAMEWIRE_PURE is set: it looks for that itself
        return None
    return _moulds.Holes(*HOLES) if _moulds.EDITION == _EDITION else None


_compiled_holes = _compiled()
COMPILED = _compiled_holes is not None
"""Whether the compiled make is in use."""
_holes: Holes = _compiled_holes or PureHoles()
contents = _holes.contents
"""What is new in a message that fits a mould; None where a number is none."""


class Mould:
    """What messages of one kind have in common, frame by frame: V5, in an envelope, with one body frame."""

    __slots__ = ("_holed", "filled", "fits")

    def __init__(self, frames: list[bytes]) -> None:
        kept = frames.copy()
        kept[_BODY] = b""
        self.filled: Callable[[bytes, int, bytes, int, bytes], list[bytes]] = partial(_holes.filled, kept)
        """The frames of a message of this kind: see ``Contents`` for what it is given."""
        self._holed = _with_holes(frames)
        self.fits: Callable[[list[bytes]], bool] = partial(_holes.fits, self._holed)
        """Whether a message is of this kind, as far as its constant frames tell."""

    @classmethod
    def of(cls, message: Message, frames: list[bytes]) -> Mould | None:
        """The mould of a message and its frames; None where it would be too large, or all is not where we write it.

        Others may leave gaps between the parts of a message, or let them overlap: that is read anew each time.
        """
        if message.wire_version != layout.V5.version or len(message.body_frames) != 1:
            return None
        constant = sum(map(len, frames)) - len(message.body_frames[0])
        if len(frames) > _MOST_FRAMES or constant > _MOST_BYTES:
            return None
        return cls(frames) if message.socket_identity is not None and encode(message) == frames else None


def are_alike(one: list[bytes], other: list[bytes]) -> bool:
    """Whether two messages of one sender differ in nothing but what is new in every message."""
    if len(one) != len(other) or len(one) < _FEWEST_FRAMES or one[_SENDER] != other[_SENDER]:
        return False
    return _with_holes(one) == _with_holes(other)


def _with_holes(frames: list[bytes]) -> list[Any]:
    holed: list[Any] = frames.copy()
    holed[_SENDER] = holed[_BODY] = holed[_TTL] = holed[_FLOW] = holed[_KEY] = holed[_SIGNATURE] = None
    return holed
