"""A message as a value: what the frames say, with no trace of how they say it.

Structs without garbage-collector tracking: a message holds only bytes, numbers and tuples of those, so it
cannot be part of a cycle, and a node makes a great many of them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import msgspec

from framewire.wire.layout import LAYOUTS

__all__ = ["BodyFrame", "Distribution", "Message", "MessageId", "RouterAddress", "Selectors", "TraceOptions"]

BodyFrame = bytes | memoryview
"""A frame of a body. A view is flat (``is_flat``), and what it shows must not change once the message is sent."""


class Distribution(IntEnum):
    """Whether one handler gets a message or all of them do."""

    UNICAST = 0
    BROADCAST = 1


class TraceOptions(IntEnum):
    """Named bits of ``Message.trace_options``; unknown bits are kept, so that field is a plain int."""

    NONE = 0
    ROUTING = 1


class MessageId(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """What selects a handler. ``version`` is a number, or the opaque bytes of V1."""

    identity: bytes
    version: int | bytes = 1
    partition: bytes = b""

    def __str__(self) -> str:
        version = self.version if isinstance(self.version, int) else readable(self.version)
        partition = f" [{readable(self.partition)}]" if self.partition else ""
        return f"{readable(self.identity)} v{version}{partition}"


class RouterAddress(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A router that a message passed: where it listens, and the identity of its node."""

    uri: str
    identity: bytes


class Selectors(msgspec.Struct, frozen=True, gc=False):
    """The part of a message that a router decides with."""

    distribution: Distribution
    identity: bytes
    version: int | bytes
    partition: bytes
    receiver_node_identity: bytes
    receiver_identity: bytes

    @property
    def message_id(self) -> MessageId:
        return MessageId(self.identity, self.version, self.partition)


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message. Immutable: ``replace`` makes a changed copy that shares the rest.

    ``trace_options`` are the bits of the message's own format; ask ``traced`` what they mean.
    """

    identity: bytes
    version: int | bytes = 1
    partition: bytes = b""
    body_frames: tuple[BodyFrame, ...] = (b"",)
    """The first is the lowest on the wire, which is the only one that kino reads."""
    correlation_id: bytes = b""
    ttl_ticks: int = 0
    distribution: Distribution = Distribution.UNICAST
    trace_options: int = 0
    receiver_identity: bytes = b""
    receiver_node_identity: bytes = b""
    callback_receiver_identity: bytes = b""
    callback_receiver_node_identity: bytes = b""
    callback_key: int = 0
    callback_points: tuple[MessageId, ...] = ()
    routing: tuple[RouterAddress, ...] = ()
    hops: int = 0
    domain: str = ""
    signature: bytes = b""
    socket_identity: bytes | None = b""
    """Frame 0 of the envelope; None where the envelope was stripped, and then none is written."""
    wire_version: int = 5

    @property
    def body(self) -> bytes:
        """All body frames, joined."""
        frames = self.body_frames
        return frames[0] if len(frames) == 1 and isinstance(frames[0], bytes) else b"".join(frames)

    @property
    def message_id(self) -> MessageId:
        return MessageId(self.identity, self.version, self.partition)

    @property
    def traced(self) -> bool:
        """Whether the sender asked for the routing of this message to be traced."""
        return bool(self.trace_options & LAYOUTS[self.wire_version].trace_routing)

    def replace(self, **changes: Any) -> Message:
        """A copy with some fields changed; ``body=`` stands for a single body frame."""
        if "body" in changes:
            changes["body_frames"] = (changes.pop("body"),)
        return msgspec.structs.replace(self, **changes)


def is_flat(frame: object) -> bool:
    """Return whether an object is a view that can be a frame of a body: single bytes, one after another."""
    return isinstance(frame, memoryview) and frame.ndim == 1 and frame.itemsize == 1 and frame.c_contiguous


def readable(raw: bytes) -> str:
    """Bytes as a person would want to see them: text where it is printable, hex otherwise."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return "0x" + raw.hex()
    return text if text.isprintable() else "0x" + raw.hex()
