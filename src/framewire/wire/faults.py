"""What exactly is wrong with frames that cannot be read, or with a message that cannot be written.

The slow half of the codec: it runs only after a compiled function has stumbled, walks the format's table, and
names the first problem in the order that docs/wire.md prescribes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from framewire.errors import UsageError, WireError
from framewire.wire.layout import LAYOUTS, Field, Kind, Layout, Section
from framewire.wire.message import Message, MessageId, RouterAddress, is_flat

__all__ = ["decoding_fault", "encoding_fault", "translated_trace"]

_CODES = {Kind.U16: "<H", Kind.I32: "<i", Kind.I64: "<q", Kind.LANES: "<4H"}
_I64 = range(-(2**63), 2**63)
_ENTRIES = {"callback_points": MessageId, "routing": RouterAddress}


def decoding_fault(
    layout: Layout, frames: Sequence[bytes], ttl_scale: int, *, only_selectors: bool = False
) -> WireError:
    """The first thing that is wrong with frames that could not be decoded (or peeked at)."""
    fields = [field for field in layout.fields if field.selector or not only_selectors]
    for problem in _decoding_problems(layout, fields, frames, ttl_scale, only_selectors=only_selectors):
        return problem
    raise AssertionError(f"a fault in V{layout.version} frames that no rule explains")


def _decoding_problems(
    layout: Layout, fields: Sequence[Field], frames: Sequence[bytes], ttl_scale: int, *, only_selectors: bool
) -> Iterator[WireError]:
    values: dict[str, int] = {name: value for name, value in layout.absent.items() if isinstance(value, int)}
    for field in fields:
        if field.kind.width:
            frame = frames[-field.frame]
            if field.optional and not frame:
                frame = bytes(field.kind.width)
            if len(frame) != field.kind.width:
                yield _wrong_size(field.name, field.frame, frame, field.kind.width)
            else:
                values.update(zip(field.values, struct.unpack(_CODES[field.kind], frame), strict=False))
    if not only_selectors:
        if values["ttl"] * ttl_scale not in _I64:
            yield _fault(layout, "bad_integer", "ttl", f"{values['ttl']} ms do not fit 64 bits as ticks")
        yield from _misplaced_sections(layout, values, len(frames))
        yield from _bad_entry_versions(layout, values, frames)
    if values["distribution"] not in (0, 1):
        detail = f"{values['distribution']} is neither unicast (0) nor broadcast (1)"
        yield _fault(layout, "bad_distribution", "distribution", detail)
    if not only_selectors:
        for field in fields:
            if field.kind is Kind.TEXT and not _is_text(frames[-field.frame]):
                yield _fault(layout, "bad_text", field.name, "is not UTF-8")
        for section, field, at in _entry_frames(layout, values):
            if field.kind is Kind.TEXT and not _is_text(frames[-at]):
                yield WireError("bad_text", section.name, at, f"the {field.name} is not UTF-8")


def _misplaced_sections(layout: Layout, values: dict[str, int], frame_count: int) -> Iterator[WireError]:
    for section in layout.sections:
        step, least = values[section.step], len(section.entry)
        if values[section.count] and step < least:
            detail = f"{step} frames per entry where at least {least} are needed"
            yield _fault(layout, "bad_divisor", section.step, detail)
    for section in layout.sections:
        offset, count, step = values[section.offset], values[section.count], values[section.step]
        top = offset + count * step - 1
        if count < 0:
            yield _fault(layout, "bad_offset", section.count, f"{count} entries")
        elif count and (offset <= layout.size or top > frame_count):
            span = f"n-{offset} to n-{top}"
            room = f"above n-{layout.size} in {frame_count} frames"
            yield _fault(layout, "bad_offset", section.offset, f"{span} does not lie {room}")


def _bad_entry_versions(layout: Layout, values: dict[str, int], frames: Sequence[bytes]) -> Iterator[WireError]:
    for section, field, at in _entry_frames(layout, values):
        if field.kind.width and len(frames[-at]) != field.kind.width:
            yield _wrong_size(section.name, at, frames[-at], field.kind.width)


def _entry_frames(layout: Layout, values: dict[str, int]) -> Iterator[tuple[Section, Field, int]]:
    for section in layout.sections:
        offset, count, step = values[section.offset], values[section.count], values[section.step]
        for lowest in range(offset, offset + count * step, step or 1):
            for field in section.entry:
                yield section, field, lowest + field.frame


def _wrong_size(field: str, frame: int, raw: bytes, width: int) -> WireError:
    return WireError("bad_integer", field, frame, f"{len(raw)} bytes where {width} are needed")


def _fault(layout: Layout, reason: str, value: str, detail: str) -> WireError:
    holder = layout.holder(value)
    if holder is None:
        raise LookupError(f"V{layout.version} has no frame for {value}")
    return WireError(reason, holder.name, holder.frame, f"{value} {detail}" if holder.lanes else detail)


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def encoding_fault(layout: Layout, message: Message, ttl_scale: int, problem: Exception) -> Exception:
    """The first field of a message that a format cannot hold; the original problem where none is to blame."""
    return next(_encoding_problems(layout, message, ttl_scale), problem)


def _encoding_problems(layout: Layout, message: Message, ttl_scale: int) -> Iterator[UsageError]:
    format_name = f"V{layout.version}"
    for name, value in layout.absent.items():
        held = getattr(message, name, None)
        if held and held != value:
            yield UsageError(f"{name}: {format_name} cannot hold {held!r}")
    if message.distribution not in (0, 1):
        yield UsageError(f"distribution: {message.distribution!r} is neither unicast (0) nor broadcast (1)")
    if message.wire_version not in LAYOUTS:
        yield _unknown_format(message.wire_version)
    yield from _version_problems(layout, "version", message.version)
    yield from _fixed_problems(layout, message, ttl_scale)
    yield from _section_problems(layout, message)
    if not isinstance(message.socket_identity, bytes | None):
        yield UsageError(f"socket_identity: {message.socket_identity!r} is neither bytes nor None")


def _fixed_problems(layout: Layout, message: Message, ttl_scale: int) -> Iterator[UsageError]:
    for field in layout.fields:
        for held in field.values:
            name = "ttl_ticks" if held == "ttl" else held
            if name in ("version", "body") or not hasattr(message, name):
                continue
            value = getattr(message, name)
            if name == "trace_options" and message.wire_version in LAYOUTS and isinstance(value, int):
                value = translated_trace(message, layout)
            if field.kind is Kind.TEXT:
                yield from _text_problems(name, value)
            elif field.kind.width:
                yield from _number_problems(name, field, value, ttl_scale if name == "ttl_ticks" else 1)
            elif field.kind is Kind.BYTES and not isinstance(value, bytes):
                yield UsageError(f"{name}: {value!r} is not bytes")


def _section_problems(layout: Layout, message: Message) -> Iterator[UsageError]:
    for name, kind in _ENTRIES.items():
        entries = getattr(message, name)
        if not isinstance(entries, tuple | list):
            yield UsageError(f"{name}: {entries!r} is not a tuple")
        for entry in entries:
            if not isinstance(entry, kind):
                yield UsageError(f"{name}: {entry!r} is not {kind.__name__}")
    if not isinstance(message.body_frames, tuple | list):
        yield UsageError(f"body_frames: {message.body_frames!r} is not a tuple")
    for frame in message.body_frames:
        if not isinstance(frame, bytes) and not is_flat(frame):
            yield UsageError(f"body_frames: {frame!r} is neither bytes nor a flat memoryview of single bytes")
    for point in message.callback_points:
        yield from _version_problems(layout, "callback_points", point.version)
        if not (isinstance(point.identity, bytes) and isinstance(point.partition, bytes)):
            yield UsageError(f"callback_points: {point!r} holds something that is not bytes")
        elif point.partition and "partition" in layout.absent:
            yield UsageError(f"callback_points: V{layout.version} cannot hold the partition of {point}")
    for address in message.routing:
        yield from _text_problems("routing", address.uri)
        if not isinstance(address.identity, bytes):
            yield UsageError(f"routing: the identity {address.identity!r} is not bytes")
    if layout.holder("body") and len(message.body_frames) != 1:
        yield UsageError(f"body_frames: V{layout.version} holds one frame, not {len(message.body_frames)}")
    frames = [len(message.callback_points) * 3, len(message.routing) * 2, len(message.body_frames)]
    if layout.size + sum(frames) > 0xFFFF:
        largest = ("callback_points", "routing", "body_frames")[frames.index(max(frames))]
        yield UsageError(f"{largest}: more frames than a 16-bit offset can reach")


def _version_problems(layout: Layout, name: str, version: object) -> Iterator[UsageError]:
    if isinstance(version, bytes):
        if layout.numbered:
            detail = "is not a number; upgrade() turns a V1 message into V5"
            yield UsageError(f"{name}: the version {version!r} {detail}")
    elif not isinstance(version, int):
        yield UsageError(f"{name}: the version {version!r} is neither bytes nor a number")
    elif not 0 <= version <= 0xFFFF:
        yield UsageError(f"{name}: the version {version!r} does not fit u16")


def _number_problems(name: str, field: Field, value: object, scale: int) -> Iterator[UsageError]:
    code = _CODES[Kind.U16 if field.lanes else field.kind]
    if not isinstance(value, int):
        yield UsageError(f"{name}: {value!r} is not a whole number")
    elif value % scale:
        yield UsageError(f"{name}: {value} ticks are not whole milliseconds, which is all that V1 holds")
    else:
        try:
            struct.pack(code, value // scale)
        except struct.error:
            kind = "a 16-bit lane" if field.lanes else str(field.kind)
            yield UsageError(f"{name}: {value} does not fit {kind}")


def _text_problems(name: str, value: object) -> Iterator[UsageError]:
    if not isinstance(value, str):
        yield UsageError(f"{name}: {value!r} is not text")
        return
    try:
        value.encode()
    except UnicodeEncodeError:
        yield UsageError(f"{name}: {value!r} cannot be written as UTF-8")


def translated_trace(message: Message, layout: Layout) -> int:
    """A message's trace options in the bits of another format: the routing bit moves, no bit is lost."""
    own = LAYOUTS.get(message.wire_version)
    if own is None:
        raise _unknown_format(message.wire_version)
    bits, here, there = message.trace_options, own.trace_routing, layout.trace_routing
    if here != there and bool(bits & here) != bool(bits & there):
        bits ^= here | there
    return bits


def _unknown_format(version: object) -> UsageError:
    return UsageError(f"wire_version: no wire format {version!r}; there are {', '.join(map(str, LAYOUTS))}")
