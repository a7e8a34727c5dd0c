"""Messages out of the bytes that ZeroMQ puts on a TCP connection (ZMTP 3.x), one direction of it.

A connection starts with a greeting of 64 bytes. Then come frames: a byte of flags, a size in 1 or 8 bytes,
and the content. Commands (handshake, heartbeats) are frames of their own between messages and are skipped. A
greeting can come again: recordings of several connections may have been put one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

__all__ = ["GREETING", "LARGEST_MESSAGE", "MOST_FRAMES", "NotZmtp", "is_flags", "messages"]

GREETING = 0xFF
"""The first byte of a greeting; flags never look like it."""

LARGEST_MESSAGE = 1 << 30
"""Bytes in one message. What claims to be larger is far more likely to be no ZMTP at all."""

MOST_FRAMES = 1 << 20
"""Frames in one message, for the same reason: empty frames have no size that could add up."""

_MORE, _LONG, _COMMAND = 1, 2, 4
_GREETING_SIZE = 64
_READABLE_MECHANISMS = (b"NULL", b"PLAIN")
_CHUNK = 1 << 20


class NotZmtp(Exception):  # noqa: N818 - names what the bytes are not
    """Bytes that are not ZMTP, and where. There is no way to find the next message after them."""

    def __init__(self, offset: int, problem: str) -> None:
        super().__init__(offset, problem)
        self.offset = offset
        self.problem = problem


def is_flags(byte: int) -> bool:
    """Whether a byte can start a frame. A command is always whole, so it never announces more."""
    return byte <= (_MORE | _LONG | _COMMAND) and not (byte & _COMMAND and byte & _MORE)


def messages(stream: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
    """The offset and the frames of each message, or ``NotZmtp`` where the stream stops being ZMTP."""
    tape = _Tape(stream)
    frames: list[bytes] = []
    start = room = 0
    while True:
        at = tape.offset
        if not frames:
            start, room = at, LARGEST_MESSAGE
        flags = tape.next_byte()
        if flags is None:
            break
        if flags == GREETING and not frames:
            _skip_greeting(tape)
            continue
        if not is_flags(flags):
            raise NotZmtp(at, f"0x{flags:02x} cannot start a ZMTP frame")
        size = int.from_bytes(tape.take(8 if flags & _LONG else 1, "a frame's size"), "big")
        if size > room or len(frames) >= MOST_FRAMES:
            limit = f"{LARGEST_MESSAGE} bytes and {MOST_FRAMES} frames"
            raise NotZmtp(at, f"a frame of {size} bytes makes this message larger than {limit}")
        content = tape.take(size, "a frame")
        if flags & _COMMAND:
            continue
        frames.append(content)
        room -= size
        if not flags & _MORE:
            yield start, frames
            frames = []
    if frames:
        raise NotZmtp(tape.offset, f"the input ends after {len(frames)} frames of a message that has more")


class _Tape:
    """A stream that knows how far it has been read, and takes no memory for bytes that never come."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.offset = 0

    def next_byte(self) -> int | None:
        """One byte, or None at the end."""
        byte = self._stream.read(1)
        self.offset += len(byte)
        return byte[0] if byte else None

    def take(self, size: int, what: str) -> bytes:
        """That many bytes; ``what`` they are to be is told where the stream ends before them."""
        taken = bytearray()
        while len(taken) < size:
            chunk = self._stream.read(min(size - len(taken), _CHUNK))
            if not chunk:
                raise NotZmtp(self.offset, f"the input ends inside {what}: {len(taken)} bytes of {size}")
            taken += chunk
        self.offset += size
        return bytes(taken)


def _skip_greeting(tape: _Tape) -> None:
    at = tape.offset - 1
    greeting = bytes([GREETING]) + tape.take(_GREETING_SIZE - 1, "a greeting")
    major, mechanism = greeting[10], greeting[12:32].rstrip(b"\0")
    if greeting[9] != 0x7F:
        raise NotZmtp(at, "0xff cannot start a ZMTP frame, and no greeting follows it")
    if major < 3:
        raise NotZmtp(at, f"the peer speaks ZMTP {major}; only 3.x can be read")
    if mechanism not in _READABLE_MECHANISMS:
        name = ascii(mechanism.decode("latin-1"))
        raise NotZmtp(at, f"the connection is secured with {name}: its messages cannot be read from outside")
