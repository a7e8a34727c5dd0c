"""The wire formats as data: what every frame of a message holds, counted from the end.

This is the only place that knows the formats. The codec, the inspector and the Spark decoder are built from
these tables, so a new format is a new table here and an entry in ``LAYOUTS``.

A *value* is what one frame, or one 16-bit lane of a descriptor frame, holds. Its name is the same in every
format, so a reader asks for values by name and does not care where they lie. What a format does not have is
listed in ``absent`` with the value that it reads as.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

__all__ = ["LAYOUTS", "SELECTORS", "SIGNED", "V1", "V4", "V5", "Field", "Kind", "Layout", "Section"]


class Kind(StrEnum):
    """How the bytes of a frame are read. Integers are little-endian."""

    BYTES = "bytes"
    TEXT = "text"
    EMPTY = "empty"
    FORMAT = "format"
    U16 = "u16"
    I32 = "i32"
    I64 = "i64"
    LANES = "lanes"

    @property
    def width(self) -> int | None:
        """The exact size of such a frame, or None where any size will do."""
        return _WIDTHS.get(self)


_WIDTHS = {Kind.U16: 2, Kind.I32: 4, Kind.I64: 8, Kind.LANES: 8}


@dataclass(frozen=True, slots=True)
class Field:
    """One frame of a format: ``frame`` 6 is n-6. Within an entry it is the height above the lowest frame."""

    frame: int
    name: str
    kind: Kind = Kind.BYTES
    lanes: tuple[str, ...] = ()
    """Names of the 16-bit lanes, the least significant first. Lanes not named are 0 and ignored."""
    selector: bool = False
    """Whether a router needs this frame to decide where the message goes."""
    optional: bool = False
    """Whether 0 is written as an empty frame, as V1 does with its counts and offsets."""

    @property
    def values(self) -> tuple[str, ...]:
        """The values that this frame holds."""
        return self.lanes or (self.name,)


@dataclass(frozen=True, slots=True)
class Section:
    """A run of entries above the fixed frames, placed by the values that are named here."""

    name: str
    offset: str
    count: str
    step: str
    entry: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """One wire format."""

    version: int
    fields: tuple[Field, ...]
    sections: tuple[Section, ...]
    trailer: bytes | None
    """What a writer puts into the format frame n-1; None for a format that has no such frame."""
    trace_routing: int
    """The bit of the trace options that asks for routing to be traced."""
    ticks_per_ttl: int = 1
    """How many ticks of 100 ns the unit of the ttl frame has."""
    absent: Mapping[str, int | bytes] = field(default_factory=lambda: MappingProxyType({}))
    """Values that this format has no frame for, and what they read as."""

    @property
    def size(self) -> int:
        """How many fixed frames there are; the first section starts above them."""
        return len(self.fields)

    @property
    def numbered(self) -> bool:
        """Whether message versions are numbers; in V1 they are opaque bytes."""
        return any(field.name == "version" and field.kind is Kind.U16 for field in self.fields)

    def holder(self, value: str) -> Field | None:
        """The field whose frame holds a value, or None where the format has none."""
        return next((field for field in self.fields if value in field.values), None)


SELECTORS = (
    "distribution",
    "identity",
    "version",
    "partition",
    "receiver_node_identity",
    "receiver_identity",
)
"""The values that decide where a message goes."""

SIGNED = ("identity", "version", "partition", "body", "callback_receiver_identity")
"""What a signature covers, concatenated in this order; the version as its two bytes."""


def _versioned(version: int, trailer: bytes) -> Layout:
    return Layout(
        version=version,
        trailer=trailer,
        trace_routing=1,
        fields=(
            Field(1, "wire_version", Kind.FORMAT),
            Field(2, "body_descriptor", Kind.LANES, lanes=("body_offset", "body_count")),
            Field(3, "ttl", Kind.I64),
            Field(4, "correlation_id"),
            Field(
                5,
                "trace_and_distribution",
                Kind.LANES,
                lanes=("trace_options", "distribution"),
                selector=True,
            ),
            Field(6, "identity", selector=True),
            Field(7, "version", Kind.U16, selector=True),
            Field(8, "partition", selector=True),
            Field(9, "receiver_node_identity", selector=True),
            Field(10, "callback_receiver_identity"),
            Field(11, "receiver_identity", selector=True),
            Field(
                12,
                "callback_descriptor",
                Kind.LANES,
                lanes=("callback_offset", "callback_count", "callback_step"),
            ),
            Field(
                13,
                "routing_descriptor",
                Kind.LANES,
                lanes=("routing_offset", "routing_count", "routing_step", "hops"),
            ),
            Field(14, "signature"),
            Field(15, "domain", Kind.TEXT),
            Field(16, "callback_key", Kind.I64),
            Field(17, "callback_receiver_node_identity"),
        ),
        sections=(
            Section(
                "callback_points",
                "callback_offset",
                "callback_count",
                "callback_step",
                entry=(Field(0, "identity"), Field(1, "version", Kind.U16), Field(2, "partition")),
            ),
            Section(
                "routing",
                "routing_offset",
                "routing_count",
                "routing_step",
                entry=(Field(0, "identity"), Field(1, "uri", Kind.TEXT)),
            ),
            Section("body", "body_offset", "body_count", "body_step", entry=(Field(0, "body"),)),
        ),
        absent=MappingProxyType({"body_step": 1}),
    )


V5 = _versioned(5, b"\x05\x00")
V4 = _versioned(4, b"\x04\x00\x00\x00")

V1 = Layout(
    version=1,
    trailer=None,
    trace_routing=2,
    ticks_per_ttl=10_000,
    fields=(
        Field(1, "body"),
        Field(2, "delimiter", Kind.EMPTY),
        Field(3, "ttl", Kind.I64),
        Field(4, "callback_receiver_identity"),
        Field(5, "callback_offset", Kind.I32, optional=True),
        Field(6, "callback_count", Kind.I32, optional=True),
        Field(7, "correlation_id"),
        Field(8, "distribution", Kind.I32, selector=True),
        Field(9, "receiver_identity", selector=True),
        Field(10, "identity", selector=True),
        Field(11, "version", selector=True),
        Field(12, "trace_options", Kind.I64),
        Field(13, "routing_offset", Kind.I32, optional=True),
        Field(14, "routing_count", Kind.I32, optional=True),
        Field(15, "hops", Kind.I32),
    ),
    sections=(
        Section(
            "callback_points",
            "callback_offset",
            "callback_count",
            "callback_step",
            entry=(Field(0, "identity"), Field(1, "version")),
        ),
        Section(
            "routing",
            "routing_offset",
            "routing_count",
            "routing_step",
            entry=(Field(0, "identity"), Field(1, "uri", Kind.TEXT)),
        ),
    ),
    absent=MappingProxyType(
        {
            "callback_step": 2,
            "routing_step": 2,
            # The body is the fixed frame n-1: a section of one frame that never moves.
            "body_offset": 1,
            "body_count": 1,
            "body_step": 1,
            "partition": b"",
            "receiver_node_identity": b"",
            "callback_receiver_node_identity": b"",
            "callback_key": 0,
            "domain": b"",
            "signature": b"",
        }
    ),
)

LAYOUTS: Mapping[int, Layout] = MappingProxyType({layout.version: layout for layout in (V1, V4, V5)})
"""Every format that framewire reads and writes, by its version."""
