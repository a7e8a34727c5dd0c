"""What is wrong with frames that are not a message: one expression, in the order that docs/wire.md prescribes.

It is a chain of conditions, and Spark looks at no condition below the first that holds. So each may rely on all
that stand above it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from framewire.spark.columns import from_end, own
from framewire.spark.entries import any_entry
from framewire.spark.shapes import Shape, choose, trailers, unversioned
from framewire.wire.layout import Kind, Section
from framewire.wire.message import Distribution

__all__ = ["first_fault", "top_of"]


def first_fault(frames: str) -> str:
    """WIRE.md's word for the first check that fails; null for a message."""
    told, n = own("told"), own("n")
    oldest, delimiter = unversioned()
    sizes = sorted({len(form) for forms in trailers().values() for form in forms})
    numbered = f"{n} >= {delimiter.frame} AND {own('format_size')} IN ({', '.join(map(str, sizes))})"
    least = f"CASE WHEN {told} IS NULL THEN {oldest.size} ELSE {choose(told, lambda s: s.layout.size)} END"
    known = ", ".join(str(int(member)) for member in Distribution)
    checks = [
        (own("lacking"), "too_few_frames"),
        (f"{told} IS NULL AND {numbered}", "unknown_version"),
        (f"{n} < {least}", "too_few_frames"),
        (f"{told} IS NULL", "unknown_version"),
        (choose(told, _wrong_integer), "bad_integer"),
        (choose(told, _wrong_divisor), "bad_divisor"),
        (choose(told, lambda shape: _wrong_place(shape, n)), "bad_offset"),
        (choose(told, lambda shape: _wrong_entry_integer(shape, frames)), "bad_integer"),
        (f"{own('distribution')} NOT IN ({known})", "bad_distribution"),
        (choose(told, lambda shape: _wrong_text(shape, frames)), "bad_text"),
    ]
    whens = [f"WHEN {wrong} THEN '{reason}'" for wrong, reason in checks]
    return f"CASE {' '.join(whens)} END"


def top_of(told: str) -> str:
    """The highest frame that a message uses; the envelope lies above it."""
    return choose(told, lambda shape: f"greatest({shape.layout.size}L, {', '.join(_tops(shape))})")


def _wrong_integer(shape: Shape) -> str:
    return _any(f"{own(field.values[0])} IS NULL" for field in shape.numeric())


def _wrong_divisor(shape: Shape) -> str:
    return _any(
        f"({own(section.count)} != 0 AND {own(section.step)} < {len(section.entry)})"
        for section in shape.layout.sections
        if section.step not in shape.layout.absent
    )


def _wrong_place(shape: Shape, n: str) -> str:
    return _any(
        f"({own(section.count)} < 0 OR ({own(section.count)} != 0 AND "
        f"({own(section.offset)} <= {shape.layout.size} OR {_top(section)} > {n})))"
        for section in shape.layout.sections
    )


def _wrong_entry_integer(shape: Shape, frames: str) -> str:
    return _any(
        any_entry(section, field, frames, partial(_not_wide, field.kind.width))
        for section in shape.layout.sections
        for field in section.entry
        if field.kind.width
    )


def _not_wide(width: int, raw: str) -> str:
    return f"length({raw}) != {width}"


def _wrong_text(shape: Shape, frames: str) -> str:
    fixed = [field for field in shape.layout.fields if field.kind is Kind.TEXT]
    wrong = [_not_text(from_end(frames, field.frame)) for field in fixed]
    wrong += [
        any_entry(section, field, frames, _not_text)
        for section in shape.layout.sections
        for field in section.entry
        if field.kind is Kind.TEXT
    ]
    return _any(wrong)


def _not_text(raw: str) -> str:
    return f"NOT is_valid_utf8(CAST({raw} AS STRING))"


def _any(conditions: Iterable[str]) -> str:
    return f"({' OR '.join(conditions) or 'false'})"


def _top(section: Section) -> str:
    return f"({own(section.offset)} + {own(section.count)} * {own(section.step)} - 1)"


def _tops(shape: Shape) -> list[str]:
    return [f"CASE WHEN {own(section.count)} != 0 THEN {_top(section)} END" for section in shape.layout.sections]
