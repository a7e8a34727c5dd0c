"""What every frame of a message is, in words for a person, whether or not the message can be decoded.

``decode`` says what a message means or the first thing that is wrong with it; this says what each frame was
taken for. The command line and the dashboard show it. It only reads the format's table, so it has to make no
sense of its own of a malformed message: a frame is named where the table places it, and is unknown otherwise.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from framewire.errors import WireError
from framewire.wire.codec import TtlUnit, decode, layout_of
from framewire.wire.layout import LAYOUTS, Field, Kind, Layout, Section
from framewire.wire.message import Distribution, Message

__all__ = ["Explanation", "FrameNote", "Part", "explain", "printable"]


class Part(StrEnum):
    """Which part of a message a frame belongs to."""

    FIXED = "fixed"
    ENTRY = "entry"
    EXTRA = "extra"
    """Put on top of an entry by a newer writer; readers skip it."""
    ENVELOPE = "envelope"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class FrameNote:
    """What is known about one frame."""

    position: int
    """Counted from the end, as the formats do: 6 is the frame n-6."""
    field: str | None
    """Such as ``identity`` or ``routing[1].uri``; None where nothing says what the frame is."""
    part: Part
    kind: Kind
    value: str
    """What the frame holds, always printable: numbers, names, text, or hex after ``0x``."""
    size: int
    selector: bool
    """Whether a router needs this frame to decide where the message goes."""
    offending: bool
    """Whether this frame is why the message is malformed."""
    also: tuple[str, ...] = ()
    """Further fields that a message with overlapping sections reads from the same frame."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that can be told about the frames: a message or an error, and a note per frame, from the end."""

    wire_version: int | None
    """The format that the last frames speak of, even where the rest is no message; None where it is none."""
    message: Message | None
    error: WireError | None
    notes: tuple[FrameNote, ...]


@dataclass(frozen=True, slots=True)
class _Claim:
    """A field that the format finds in some frame."""

    name: str
    field: Field
    part: Part


_UNKNOWN = Field(0, "unknown")
_SOCKET_IDENTITY = _Claim("socket_identity", Field(0, "socket_identity"), Part.ENVELOPE)
_DELIMITER = _Claim("delimiter", Field(0, "delimiter", Kind.EMPTY), Part.ENVELOPE)
_MOST_FIXED_FRAMES = max(layout.size for layout in LAYOUTS.values())


def explain(frames: Sequence[bytes], *, ttl_unit: TtlUnit = "ms", longest: int | None = None) -> Explanation:
    """Explain any frames, well-formed or not, in time and memory proportional to them.

    ``longest`` is how many bytes of a frame a note's value shows at most; it ends in an ellipsis when cut.
    """
    message, error = None, None
    try:
        message = decode(frames, ttl_unit=ttl_unit)
    except WireError as problem:
        error = problem.with_traceback(None)
    layout = _claimed_layout(frames) if message is None else LAYOUTS[message.wire_version]
    claims: list[list[_Claim]] = [[] for _ in frames]
    if layout is not None:
        for position, claim in _claims(layout, frames):
            claims[position - 1].append(claim)
    write = _ValueWriter(layout, ttl_unit, longest)
    notes = tuple(
        _note(position, frames[-position], found, error, write) for position, found in enumerate(claims, 1)
    )
    return Explanation(None if layout is None else layout.version, message, error, notes)


def _claimed_layout(frames: Sequence[bytes]) -> Layout | None:
    """The format that the last frames speak of, also where too few frames came to be a message."""
    if len(frames) < 2:
        return None
    missing = max(0, _MOST_FIXED_FRAMES - len(frames))
    try:
        return layout_of([*[b""] * missing, *frames[-_MOST_FIXED_FRAMES:]])
    except WireError:
        return None


def _claims(layout: Layout, frames: Sequence[bytes]) -> Iterator[tuple[int, _Claim]]:
    """Every position that the format has a name for, as far as its sections are where they can be."""
    numbers = {name: value for name, value in layout.absent.items() if isinstance(value, int)}
    for field in layout.fields[: len(frames)]:
        yield field.frame, _Claim(field.name, field, Part.FIXED)
        numbers.update(zip(field.values, _numbers(field, frames[-field.frame]), strict=False))
    top = layout.size
    for section in layout.sections:
        for position, claim in _section_claims(layout, section, numbers, len(frames)):
            top = max(top, position)
            yield position, claim
    # The rule of decode: the envelope lies above all that the message uses.
    if len(frames) >= top + 2 and not frames[1]:
        yield len(frames), _SOCKET_IDENTITY
        yield len(frames) - 1, _DELIMITER


def _section_claims(
    layout: Layout, section: Section, numbers: dict[str, int], frame_count: int
) -> Iterator[tuple[int, _Claim]]:
    if not numbers.keys() >= {section.offset, section.count, section.step}:
        return
    offset, count, step = numbers[section.offset], numbers[section.count], numbers[section.step]
    known = len(section.entry)
    if step < known or offset <= layout.size or offset + count * step > frame_count + 1:
        return
    for index in range(count):
        entry = f"{section.name}[{index}]"
        lowest = offset + index * step
        for field in section.entry:
            name = entry if field.name == section.name else f"{entry}.{field.name}"
            yield lowest + field.frame, _Claim(name, field, Part.ENTRY)
        for extra in range(step - known):
            yield lowest + known + extra, _Claim(f"{entry}.extra[{extra}]", _UNKNOWN, Part.EXTRA)


def _note(
    position: int, frame: bytes, claims: list[_Claim], error: WireError | None, write: _ValueWriter
) -> FrameNote:
    offending = error is not None and error.frame == position
    if claims:
        first, *others = claims
    else:
        # A frame that no format places may still be the one that was to tell the format.
        first, others = _Claim(error.field if error and offending else "", _UNKNOWN, Part.UNKNOWN), []
    return FrameNote(
        position=position,
        field=first.name or None,
        part=first.part,
        kind=first.field.kind,
        value=write.value(first.field, frame),
        size=len(frame),
        selector=first.field.selector,
        offending=offending,
        also=tuple(claim.name for claim in others),
    )


class _ValueWriter:
    """Writes what frames hold in the terms of one format."""

    def __init__(self, layout: Layout | None, ttl_unit: TtlUnit, longest: int | None) -> None:
        self._layout = layout
        self._ticks_per_ttl = layout.ticks_per_ttl if layout and ttl_unit == "ms" else 1
        self._longest = longest

    def value(self, field: Field, frame: bytes) -> str:
        if self._layout is not None and field.kind is Kind.FORMAT:
            return str(self._layout.version)
        numbers = _numbers(field, frame)
        if not numbers:
            return _text_or_hex(frame, self._longest)
        if field.kind is not Kind.LANES:
            return self._number(field.name, numbers[0])
        named = [f"{name}={self._number(name, number)}" for name, number in zip(field.lanes, numbers, strict=False)]
        ignored = range(len(field.lanes), len(numbers))
        return " ".join([*named, *(f"lane{lane + 1}={numbers[lane]}" for lane in ignored if numbers[lane])])

    def _number(self, name: str, number: int) -> str:
        if name == "ttl":
            return f"{number} ({_duration(number * self._ticks_per_ttl)})"
        if name == "distribution" and number in set(Distribution):
            return Distribution(number).name.lower()
        if name == "trace_options" and self._layout is not None:
            return _trace(number, self._layout.trace_routing)
        return str(number)


def _numbers(field: Field, frame: bytes) -> tuple[int, ...]:
    """The numbers in a frame, lane by lane; none where it is no number or has a wrong size."""
    width = field.kind.width
    if field.optional and width and not frame:
        return (0,)
    if len(frame) != width:
        return ()
    if field.kind is Kind.LANES:
        return tuple(int.from_bytes(frame[at : at + 2], "little") for at in range(0, width, 2))
    return (int.from_bytes(frame, "little", signed=field.kind in (Kind.I32, Kind.I64)),)


def _trace(bits: int, routing: int) -> str:
    if not bits:
        return "none"
    unknown = (bits & 0xFFFF_FFFF_FFFF_FFFF) & ~routing
    return "+".join([*["routing"] * bool(bits & routing), *[f"{unknown:#x}"] * bool(unknown)])


_SHORT = (("s", 10_000_000), ("ms", 10_000), ("µs", 10), ("ns", 1 / 100))
_LONG = (("d", 864_000_000_000), ("h", 36_000_000_000), ("min", 600_000_000), ("s", 10_000_000))


def _duration(ticks: int) -> str:
    """A time as a person says it: ``12.35 s``, ``2 h 5 min``."""
    if not ticks:
        return "no limit"
    sign, ticks = ("-", -ticks) if ticks < 0 else ("", ticks)
    for (unit, size), (smaller, smaller_size) in pairwise(_LONG):
        if ticks >= size:
            whole, rest = divmod(ticks, size)
            minor = rest // smaller_size
            return f"{sign}{whole} {unit}" + (f" {minor} {smaller}" if minor else "")
    unit, per_unit = next((unit, size) for unit, size in _SHORT if ticks >= size)
    return f"{sign}{ticks / per_unit:.4g} {unit}"


def _text_or_hex(raw: bytes, longest: int | None) -> str:
    """Text where it is text but for a few characters, which are escaped; hex otherwise.

    A few, because identities are often text after a tag byte, and bodies often have line ends.
    """
    cut = longest is not None and len(raw) > longest
    head = raw[:longest] if cut else raw
    ellipsis = "…" if cut else ""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head, final=not cut)
    except UnicodeDecodeError:
        return f"0x{head.hex()}{ellipsis}"
    if text.isprintable():
        return text + ellipsis
    if 8 * sum(not character.isprintable() for character in text) > len(text):
        return f"0x{head.hex()}{ellipsis}"
    return printable(text) + ellipsis


def printable(text: str) -> str:
    r"""Text that cannot do anything to a terminal: what is not printable is escaped, as in ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
