"""Recording messages without what they say: bodies are cut, and their length and hash put in place of the rest.

A message stays a message: it has as many body frames as before and all its other frames, so it decodes, flows
can be followed and equal bodies can be told to be equal. Its signature cannot be checked any more.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from framewire.errors import WireError
from framewire.wire import decode, layout_of
from framewire.wire.layout import Layout

__all__ = ["Cut", "cut_body", "cut_of"]


@dataclass(frozen=True, slots=True)
class Cut:
    """What is known of a body frame that was cut."""

    kept: bytes
    length: int
    """How long it was."""
    sha256: str


def cut_body(frames: Sequence[bytes], limit: int) -> list[bytes]:
    """The same message with at most so many bytes of each body frame.

    Frames that are no message are all cut: any of them might be a body.
    """
    shorter = list(frames)
    for position in _body_positions(frames):
        if len(frames[position]) > limit:
            shorter[position] = _shortened(frames[position], limit)
    return shorter


def cut_of(frame: bytes) -> Cut | None:
    """What a body frame was before it was cut; None if it was not."""
    found = _CUT.fullmatch(frame)
    if found is None:
        return None
    kept, length, digest = found.groups()
    return Cut(kept, int(length), digest.decode())


_CUT = re.compile(rb"(.*)\[framewire cut: length=(\d+) sha256=([0-9a-f]{64})\]", re.DOTALL)


def _shortened(frame: bytes, limit: int) -> bytes:
    digest = hashlib.sha256(frame).hexdigest().encode()
    return b"%b[framewire cut: length=%d sha256=%b]" % (frame[:limit], len(frame), digest)


def _body_positions(frames: Sequence[bytes]) -> range:
    try:
        decode(frames)
        layout = layout_of(frames)
    except WireError:
        return range(len(frames))
    offset, count = (_number(layout, name, frames) for name in ("body_offset", "body_count"))
    lowest = len(frames) - offset
    return range(lowest - count + 1, lowest + 1)


def _number(layout: Layout, name: str, frames: Sequence[bytes]) -> int:
    """A value that says where the body is, as the format's table says."""
    if name in layout.absent:
        return int(layout.absent[name])
    holder = layout.holder(name)
    if holder is None:
        raise LookupError(f"wire format {layout.version} has no {name}")
    lane = holder.lanes.index(name)
    return int.from_bytes(frames[-holder.frame][2 * lane : 2 * lane + 2], "little")
