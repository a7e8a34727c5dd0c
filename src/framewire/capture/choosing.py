"""Which messages are recorded: by direction, by identity, and by flow.

A flow is recorded whole or not at all, and by all nodes alike, though none of them asks another: its
correlation id alone decides. The rule is simple enough to be told to any other program (Spark's ``crc32`` is
the same).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

from framewire.capture.settings import CaptureSettings
from framewire.errors import WireError
from framewire.wire import layout_of
from framewire.wire.layout import LAYOUTS

__all__ = ["Choice", "choice_of", "in_sample"]

Choice = Callable[[str, Sequence[bytes]], bool]
"""Whether a message that goes in a direction is recorded."""


def in_sample(correlation_id: bytes, share: float) -> bool:
    """Whether a flow is among those recorded; what belongs to no flow always is."""
    return not correlation_id or crc32(correlation_id) < share * 2**32


def choice_of(settings: CaptureSettings) -> Choice | None:
    """What decides about messages, or None where all are recorded."""
    directions = frozenset(map(str, settings.directions))
    names = [name.encode() for name in settings.identities]
    exact = frozenset(name for name in names if not name.endswith(b"*"))
    prefixes = tuple(name[:-1] for name in names if name.endswith(b"*"))
    share = settings.sample
    if not directions and not names and share == 1:
        return None

    def chosen(direction: str, frames: Sequence[bytes]) -> bool:
        if directions and direction not in directions:
            return False
        try:
            identity_at, flow_at = _POSITIONS[layout_of(frames).version]
        except WireError:
            # What is no message has neither identity nor flow. It is rare, and what one looks for in a recording,
            # so only a list of identities leaves it out.
            return not names
        if names:
            identity = frames[identity_at]
            if identity not in exact and not identity.startswith(prefixes):
                return False
        return share == 1 or in_sample(frames[flow_at], share)

    return chosen


def _position(version: int, value: str) -> int:
    holder = LAYOUTS[version].holder(value)
    if holder is None:
        raise LookupError(f"wire format {version} has no {value}")
    return -holder.frame


_POSITIONS = {
    version: (_position(version, "identity"), _position(version, "correlation_id")) for version in LAYOUTS
}
