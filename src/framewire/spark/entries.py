"""The entries of a message: runs of frames whose place, number and size the message itself tells.

Only called for rows whose sections are known to lie inside the message, so every place is there. One or two entries
are written out and compiled; more are gone through one by one, which Spark does without compiling it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from framewire.spark.columns import own
from framewire.spark.integers import small
from framewire.spark.shapes import SHAPES, Shape, choose
from framewire.spark.versions import version_number
from framewire.wire.layout import Field, Kind, Section

__all__ = ["addresses", "any_entry", "bodies", "points"]

_WRITTEN_OUT = 2


def points(frames: str, n: str, versions: Mapping[bytes, int]) -> str:
    """The callback points, the lowest first."""

    def point(lowest: str) -> str:
        raw = _frame("callback_points", "version", frames, lowest)
        number = choose(own("told"), lambda shape: _number(shape, raw, versions))
        identity = _frame("callback_points", "identity", frames, lowest)
        partition = _frame("callback_points", "partition", frames, lowest)
        return f"named_struct('identity', {identity}, 'version', {number}, 'partition', {partition})"

    return _each("callback_points", n, point)


def addresses(frames: str, n: str) -> str:
    """The routers that a message passed, the first of them first."""

    def address(lowest: str) -> str:
        uri, identity = (_frame("routing", name, frames, lowest) for name in ("uri", "identity"))
        return f"named_struct('uri', CAST({uri} AS STRING), 'identity', {identity})"

    return _each("routing", n, address)


def bodies(frames: str, n: str) -> str:
    """The body frames, the lowest first."""
    offset, count, _ = _place(_section("body"))
    several = f"reverse(slice({frames}, {n} - {offset} - {count} + 2, {count}))"
    one = f"array(get({frames}, {n} - {offset}))"
    return f"CASE WHEN {count} = 1 THEN {one} WHEN {count} > 1 THEN {several} ELSE array() END"


def any_entry(section: Section, field: Field, frames: str, n: str, wrong: Callable[[str], str]) -> str:
    """Whether one frame of an entry is wrong anywhere in a section."""
    offset, count, step = _place(section)
    lowest = f"{n} - {offset} - {field.frame}"
    cases = [
        f"({count} >= {number + 1} AND {wrong(f'get({frames}, {_up(lowest, number, step)})')})"
        for number in range(_WRITTEN_OUT)
    ]
    each = wrong(f"get({frames}, {lowest} - i * {step})")
    cases.append(f"({count} > {_WRITTEN_OUT} AND exists(sequence({_WRITTEN_OUT}, {count} - 1), i -> {each}))")
    return f"({' OR '.join(cases)})"


def _each(name: str, n: str, entry: Callable[[str], str]) -> str:
    offset, count, step = _place(_section(name))
    lowest = f"{n} - {offset}"
    whens = [f"WHEN {count} = 0 THEN array()"]
    for most in range(1, _WRITTEN_OUT + 1):
        made = ", ".join(entry(_up(lowest, number, step)) for number in range(most))
        whens.append(f"WHEN {count} = {most} THEN array({made})")
    each = entry(f"{lowest} - i * {step}")
    return f"CASE {' '.join(whens)} ELSE transform(sequence(0, {count} - 1), i -> {each}) END"


def _up(lowest: str, number: int, step: str) -> str:
    return lowest if number == 0 else f"{lowest} - {number} * {step}"


def _place(section: Section) -> tuple[str, str, str]:
    offset, count, step = (f"CAST({own(name)} AS INT)" for name in (section.offset, section.count, section.step))
    return offset, count, step


def _section(name: str) -> Section:
    return next(section for shape in SHAPES if (section := shape.section(name)))


def _part(shape: Shape, section: str, name: str) -> Field | None:
    found = shape.section(section)
    return next((field for field in found.entry if field.name == name), None) if found else None


def _frame(section: str, name: str, frames: str, lowest: str) -> str:
    """One frame of an entry; empty where the format of the row has none for it."""
    heights = {shape: field.frame if (field := _part(shape, section, name)) else None for shape in SHAPES}
    if None not in heights.values():
        return f"get({frames}, {lowest} - {choose(own('told'), heights.__getitem__)})"

    def read(shape: Shape) -> str | bytes:
        height = heights[shape]
        return b"" if height is None else f"get({frames}, {lowest} - {height})"

    return choose(own("told"), read)


def _number(shape: Shape, raw: str, versions: Mapping[bytes, int]) -> str:
    field = _part(shape, "callback_points", "version")
    if field is not None and field.kind is Kind.U16:
        return small(raw)
    return version_number(raw, versions)
