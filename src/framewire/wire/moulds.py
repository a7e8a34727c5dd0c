"""Messages that are like one before them: the same frames, but for what is new in every message.

The messages of a service are alike. A hub that asks the same question a thousand times writes twenty frames a
thousand times over, of which five are new: body, ttl, correlation id, callback key and signature. A mould keeps the
others, so that writing is filling in and reading is taking out, without a look at the rest.
"""

from __future__ import annotations

import struct
from typing import Any

from framewire.wire import layout
from framewire.wire.codec import encode
from framewire.wire.message import Message

__all__ = ["HOLES", "Mould", "are_alike", "contents"]

_PLACES = {field.name: -field.frame for field in layout.V5.fields}
_TTL, _FLOW, _KEY = _PLACES["ttl"], _PLACES["correlation_id"], _PLACES["callback_key"]
_SIGNATURE = _PLACES["signature"]
_SENDER, _BODY = 0, 2
"""The envelope is the name of a connection and an empty frame; a single body frame is written right after it."""
_MOST_FRAMES, _MOST_BYTES = 64, 1024
"""What a mould may hold: a peer must not fill the memory with them."""
HOLES = (_BODY, _TTL, _FLOW, _KEY, _SIGNATURE)
"""Which frames are new in every message: places from the front, or from the end where they are negative."""
_FEWEST_FRAMES = _BODY + 1 - min(HOLES)
_number = struct.Struct("<q")
_pack, _unpack = _number.pack, _number.unpack
_ZERO = _pack(0)


class Mould:
    """What messages of one kind have in common, frame by frame: V5, in an envelope, with one body frame."""

    __slots__ = ("_frames", "_holed")

    def __init__(self, frames: list[bytes]) -> None:
        self._frames = frames.copy()
        self._frames[_BODY] = b""
        self._holed = _with_holes(frames)

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

    def filled(
        self, body: bytes, ttl_ticks: int, correlation_id: bytes, callback_key: int, signature: bytes = b""
    ) -> list[bytes]:
        """The frames of a message of this kind."""
        frames = self._frames.copy()
        frames[_BODY] = body
        frames[_TTL] = _pack(ttl_ticks) if ttl_ticks else _ZERO
        frames[_FLOW] = correlation_id
        frames[_KEY] = _pack(callback_key) if callback_key else _ZERO
        frames[_SIGNATURE] = signature
        return frames

    def fits(self, frames: list[bytes]) -> bool:
        """Whether a message is of this kind, as far as its constant frames tell."""
        if len(frames) != len(self._holed) or (holed := _with_holes(frames)) != self._holed:
            return False
        # The next one's frames are more probably the same objects as these than as the first one's.
        self._holed = holed
        return True


def contents(frames: list[bytes]) -> tuple[bytes, int, bytes, int, bytes] | None:
    """Body, ttl, correlation id, callback key and signature of what fits a mould; None where a number is none."""
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


def are_alike(one: list[bytes], other: list[bytes]) -> bool:
    """Whether two messages of one sender differ in nothing but what is new in every message."""
    if len(one) != len(other) or len(one) < _FEWEST_FRAMES or one[_SENDER] != other[_SENDER]:
        return False
    return _with_holes(one) == _with_holes(other)


def _with_holes(frames: list[bytes]) -> list[Any]:
    holed: list[Any] = frames.copy()
    holed[_SENDER] = holed[_BODY] = holed[_TTL] = holed[_FLOW] = holed[_KEY] = holed[_SIGNATURE] = None
    return holed
