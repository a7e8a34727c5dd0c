"""The entries of a message: runs of frames whose place, number and size the message itself tells.

Only called for rows whose sections are known to lie inside the message, so every place is there. Spark compiles
``transform`` and ``exists`` since 4.3. Entries that are written out one by one are no faster then, and three times
the code, which the JVM has to compile before it is fast at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from framewire.spark.columns import from_end, own
from framewire.spark.integers import small
from framewire.spark.shapes import SHAPES, Shape, choose
from framewire.spark.versions import version_number
from framewire.wire.layout import Field, Kind, Section

__all__ = ["addresses", "any_entry", "bodies", "points", "section_values"]


def section_values() -> list[str]:
    """The names of the numbers that tell where sections are; as ``int_…`` they are known to be small."""
    return sorted({name for shape in SHAPES for s in shape.layout.sections for name in (s.offset, s.count, s.step)})


def points(good: str, versions: Mapping[bytes, int]) -> str:
    """The callback points, the lowest first."""

    def point(lowest: str) -> str:
        raw = _frame("callback_points", "version", good, lowest)
        number = choose(own("told"), lambda shape: _number(shape, raw, versions))
        identity = _frame("callback_points", "identity", good, lowest)
        partition = _frame("callback_points", "partition", good, lowest)
        return f"named_struct('identity', {identity}, 'version', {number}, 'partition', {partition})"

    return _each("callback_points", point)


def addresses(good: str) -> str:
    """The routers that a message passed, the first of them first."""

    def address(lowest: str) -> str:
        uri, identity = (_frame("routing", name, good, lowest) for name in ("uri", "identity"))
        return f"named_struct('uri', CAST({uri} AS STRING), 'identity', {identity})"

    return _each("routing", address)


def bodies(good: str) -> str:
    """The body frames, the lowest first."""
    offset, count, _ = (own(f"int_{name}") for name in _place(_section("body")))
    several = f"reverse(slice({good}, array_size({good}) - {offset} - {count} + 2, {count}))"
    one = f"array({from_end(good, offset)})"
    return f"CASE WHEN {count} = 1 THEN {one} WHEN {count} > 1 THEN {several} ELSE array() END"


def any_entry(section: Section, field: Field, frames: str, wrong: Callable[[str], str]) -> str:
    """Whether one frame of an entry is wrong anywhere in a section."""
    offset, count, step = (f"CAST({own(name)} AS INT)" for name in _place(section))
    each = wrong(from_end(frames, f"({offset} + {field.frame} + i * {step})"))
    return f"({count} > 0 AND exists(sequence(0, {count} - 1), i -> {each}))"


def _each(name: str, entry: Callable[[str], str]) -> str:
    """All entries of a section."""
    offset, count, step = (own(f"int_{name}") for name in _place(_section(name)))
    each = f"transform(sequence(0, {count} - 1), i -> {entry(f'{offset} + i * {step}')})"
    return f"CASE WHEN {count} = 0 THEN array() ELSE {each} END"


def _place(section: Section) -> tuple[str, str, str]:
    return section.offset, section.count, section.step


def _section(name: str) -> Section:
    return next(section for shape in SHAPES if (section := shape.section(name)))


def _part(shape: Shape, section: str, name: str) -> Field | None:
    found = shape.section(section)
    return next((field for field in found.entry if field.name == name), None) if found else None


def _frame(section: str, name: str, good: str, lowest: str) -> str:
    """One frame of an entry; empty where the format of the row has none for it."""
    heights = {shape: field.frame if (field := _part(shape, section, name)) else None for shape in SHAPES}
    if None not in heights.values():
        return from_end(good, f"({lowest} + {choose(own('told'), heights.__getitem__)})")

    def read(shape: Shape) -> str | bytes:
        height = heights[shape]
        return b"" if height is None else from_end(good, f"({lowest} + {height})")

    return choose(own("told"), read)


def _number(shape: Shape, raw: str, versions: Mapping[bytes, int]) -> str:
    field = _part(shape, "callback_points", "version")
    if field is not None and field.kind is Kind.U16:
        return small(raw)
    return version_number(raw, versions)
