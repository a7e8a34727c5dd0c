"""Frames to messages and back: tells the formats apart and calls the compiled functions of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from framewire.errors import UsageError, WireError
from framewire.wire.compiler import Codec, compile_layout
from framewire.wire.layout import LAYOUTS, Layout
from framewire.wire.message import Message, RouterAddress, Selectors

__all__ = ["TtlUnit", "decode", "encode", "forward", "layout_of", "peek"]

TtlUnit = Literal["ms", "ticks"]


def decode(frames: Sequence[bytes], *, ttl_unit: TtlUnit = "ms") -> Message:
    """The message that the frames hold, or ``WireError``. ``ttl_unit`` is how V1 counts its ttl."""
    codec = _identify(frames)
    return codec.decode(frames, codec.ticks if ttl_unit == "ms" else _ttl_scale(codec, ttl_unit))


def encode(message: Message, version: int = 5, *, ttl_unit: TtlUnit = "ms") -> list[bytes]:
    """The frames of a message in a wire format, or ``ValueError`` naming the field that cannot be written."""
    codec = _CODECS.get(version)
    if codec is None:
        raise UsageError(f"version: no wire format {version!r}; there are {', '.join(map(str, _CODECS))}")
    return codec.encode(message, codec.ticks if ttl_unit == "ms" else _ttl_scale(codec, ttl_unit))


def peek(frames: Sequence[bytes]) -> Selectors:
    """What a router needs to know, reading nothing but the frames that say it."""
    return _identify(frames).peek(frames)


def forward(
    frames: Sequence[bytes],
    router: RouterAddress,
    *,
    ttl_ticks: int | None = None,
    signature: bytes | None = None,
    ttl_unit: TtlUnit = "ms",
) -> list[bytes]:
    """The frames that a router sends on: one more hop, its address appended, and a new ttl or signature.

    The message is not taken apart: all other frames, those of a newer writer included, travel on as they are.
    """
    codec = _identify(frames)
    scale = _ttl_scale(codec, ttl_unit)
    sent = codec.forward(frames, router, ttl_ticks, scale, signature)
    if sent is not None:
        return sent
    # Sections laid across one another, or something that does not fit: taking it apart shows which.
    message = codec.decode(frames, scale)
    changes: dict[str, object] = {"hops": message.hops + 1, "routing": (*message.routing, router)}
    if ttl_ticks is not None:
        changes["ttl_ticks"] = ttl_ticks
    if signature is not None:
        changes["signature"] = signature
    return codec.encode(message.replace(**changes), scale)


def layout_of(frames: Sequence[bytes]) -> Layout:
    """The format that the frames are in, or ``WireError`` where they are in none."""
    return _identify(frames).layout


def _identify(frames: Sequence[bytes]) -> Codec:
    count = len(frames)
    codec = None
    if count >= 2:
        codec = _BY_TRAILER.get(frames[-1]) if frames[-2] else _UNVERSIONED
    if codec is not None and count >= codec.size:
        return codec
    if codec is None and count >= 2 and len(frames[-1]) in _TRAILER_SIZES:
        number = int.from_bytes(frames[-1], "little")
        raise WireError("unknown_version", "wire_version", 1, f"this is version {number}")
    least = (codec or _UNVERSIONED).layout.size
    if count < least:
        raise WireError("too_few_frames", "frames", None, f"{count} where at least {least} are needed")
    raise WireError("unknown_version", "wire_version", 1, "neither a version number nor a V1 message")


def _ttl_scale(codec: Codec, ttl_unit: TtlUnit) -> int:
    if ttl_unit == "ms":
        return codec.ticks
    if ttl_unit == "ticks":
        return 1
    raise UsageError(f"ttl_unit: {ttl_unit!r} is neither 'ms' nor 'ticks'")


_CODECS = {version: compile_layout(layout) for version, layout in LAYOUTS.items()}
_UNVERSIONED = next(codec for codec in _CODECS.values() if codec.layout.trailer is None)
_TRAILER_SIZES = (2, 4)
_BY_TRAILER = {
    version.to_bytes(size, "little"): codec
    for version, codec in _CODECS.items()
    if codec.layout.trailer is not None
    for size in _TRAILER_SIZES
}
