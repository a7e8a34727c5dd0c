"""The wire formats as Spark needs them: which frame holds a value, whatever format a row is in.

Every row of a table may be in another format. Writing the whole decoder once for each format and choosing by
row would double the generated code, and code that grows too large is never compiled. So the tables are laid
side by side instead, and only *where* a value lies is chosen by row: one read, at a place that differs.

Expressions are SQL text here and in all modules that decode and encode: a decoder has thousands of them, and each
that is made as a ``Column`` is a call into the JVM of its own. As text, a step is one call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as all the world calls it

from framewire.wire.layout import LAYOUTS, Field, Kind, Layout, Section

__all__ = [
    "SHAPES",
    "Shape",
    "choose",
    "format_frame",
    "literal",
    "sql",
    "trailers",
    "unversioned",
]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The formats whose tables differ in nothing but their number, as V4 and V5 do."""

    layout: Layout
    versions: tuple[int, ...]

    def numeric(self) -> list[Field]:
        """The fixed frames that hold numbers."""
        return [field for field in self.layout.fields if field.kind.width]

    def section(self, name: str) -> Section | None:
        """A section by name; None where the format has a fixed frame for it, or nothing."""
        return next((section for section in self.layout.sections if section.name == name), None)


def _alike(layout: Layout) -> str:
    return repr((layout.fields, layout.sections, layout.ticks_per_ttl, sorted(layout.absent.items())))


def _shapes() -> tuple[Shape, ...]:
    groups: dict[str, list[Layout]] = {}
    for layout in LAYOUTS.values():
        groups.setdefault(_alike(layout), []).append(layout)
    return tuple(Shape(alike[0], tuple(layout.version for layout in alike)) for alike in groups.values())


SHAPES = _shapes()
"""One shape for each table that is different, the oldest first."""


def choose(told: str, pick: Callable[[Shape], str | int | bytes | None]) -> str:
    """What ``pick`` says for the shape of a row; for a row that is in no format, any of it.

    The last shape needs no condition, and so the result can be null only where something picked is: that keeps
    the generated code small. Rows in no format have an error, which is looked at first.
    """
    picked = [sql(pick(shape)) for shape in SHAPES]
    if len(set(picked)) == 1:
        return picked[0]
    whens = [
        f"WHEN {told} IN ({', '.join(map(str, shape.versions))}) THEN {text}"
        for shape, text in zip(SHAPES[:-1], picked[:-1], strict=True)
    ]
    return f"CASE {' '.join(whens)} ELSE {picked[-1]} END"


def literal(value: bytes) -> Column:
    """Bytes as a column, which need help to become binary."""
    return F.lit(bytearray(value))


def sql(value: int | bytes | str | None) -> str:
    """A value as SQL; text is SQL already."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return "NULL" if value is None else str(value)


def trailers() -> dict[int, list[bytes]]:
    """For every numbered format the forms that its number may have in the format frame."""
    written = [layout.trailer for layout in LAYOUTS.values() if layout.trailer is not None]
    sizes = sorted({len(trailer) for trailer in written})
    return {
        version: [version.to_bytes(size, "little") for size in sizes]
        for version, layout in LAYOUTS.items()
        if layout.trailer is not None
    }


def unversioned() -> tuple[Layout, Field]:
    """The format without a number, and its frame that is empty and so tells it apart."""
    for layout in LAYOUTS.values():
        for field in layout.fields:
            if field.kind is Kind.EMPTY:
                return layout, field
    raise LookupError("no format has an empty frame to tell it by")


def format_frame() -> Field:
    """The frame that holds the number of a numbered format."""
    for layout in LAYOUTS.values():
        for field in layout.fields:
            if field.kind is Kind.FORMAT:
                return field
    raise LookupError("no format has a frame for its number")
