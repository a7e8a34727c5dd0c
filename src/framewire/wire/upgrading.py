"""Bringing messages of older formats up to V5, and never by guessing."""

from __future__ import annotations

import re
from collections.abc import Mapping

from framewire.errors import UsageError
from framewire.wire.faults import translated_trace
from framewire.wire.layout import V5
from framewire.wire.message import Message, MessageId

__all__ = ["upgrade"]

_NUMBERED = re.compile(rb"(0|[1-9][0-9]{0,4})(?:\.0)?")


def upgrade(message: Message, versions: Mapping[bytes, int] | None = None) -> Message:
    """The same message as V5. ``versions`` maps those V1 versions that are neither N nor N.0 to a number."""
    if message.wire_version == V5.version:
        return message
    trace_options = translated_trace(message, V5)
    for name, value in (("hops", message.hops), ("trace_options", trace_options)):
        if not 0 <= value <= 0xFFFF:
            raise UsageError(f"{name}: {value} does not fit the 16 bits that V5 has for it")
    mapping = versions or {}
    return message.replace(
        version=_number(message.version, mapping, "version"),
        callback_points=tuple(
            MessageId(point.identity, _number(point.version, mapping, "callback_points"), point.partition)
            for point in message.callback_points
        ),
        trace_options=trace_options,
        wire_version=V5.version,
    )


def _number(version: int | bytes, mapping: Mapping[bytes, int], field: str) -> int:
    if isinstance(version, int):
        return version
    if version in mapping:
        number = mapping[version]
    elif match := _NUMBERED.fullmatch(version):
        number = int(match[1])
    else:
        raise UsageError(f"{field}: {version!r} is neither N nor N.0; map it with versions={{{version!r}: N}}")
    if not (isinstance(number, int) and 0 <= number <= 0xFFFF):
        raise UsageError(f"{field}: {number!r} does not fit the 16 bits that V5 has for it")
    return number
