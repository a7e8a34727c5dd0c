"""Columns to V5 frames: what ``wire.encode`` writes, as expressions.

With ``decode`` before it this upgrades recordings of older formats, and it writes what a pipeline has changed.
A row that cannot be written gets an error, and no frames: nothing is cut to fit.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from framewire.errors import UsageError
from framewire.spark.columns import DECODED, adding, apart, own, quoted, reject_clashes, require, sealed
from framewire.spark.integers import as_bytes, pack_lanes
from framewire.spark.shapes import sql
from framewire.wire.layout import LAYOUTS, V5, Field, Kind, Section
from framewire.wire.message import Distribution

__all__ = ["encode"]

_MOST = 0xFFFF
_DERIVED = ("body", "version_raw", "error")
_NEEDED = tuple(name for name in DECODED if name not in _DERIVED)
_ENTRIES = {"callback_points": "callback_points", "routing": "routing", "body": "body_frames"}
_NULLABLE = ("socket_identity",)


def encode(df: DataFrame, frames: str = "frames", error: str = "encode_error") -> DataFrame:
    """The table with its messages as V5 in ``frames``, and in ``error`` why a row could not be written.

    A column ``frames`` that is already there is replaced. A row that is no message keeps the word of its ``error``.
    """
    if frames == error:
        raise UsageError(f"error: {error!r} is the name of the frames already")
    require(df, _NEEDED, "decode()")
    reject_clashes(df, [error])
    counted = adding(df, {"trace": _translated_trace(), **{s.count: _count(s) for s in V5.sections}})
    placed = adding(counted, {section.offset: _offset(section) for section in V5.sections})
    refusal = sealed(_refusal(has_error="error" in df.columns), "body_frames", "STRING")
    checked = adding(placed, {"refused": refusal})
    # The numbers that become frames are columns of their own: each is named once for every byte of it.
    numbered = adding(checked, {f"number{field.frame}": _number(field) for field in V5.fields if field.kind.width})
    written = f"CASE WHEN {own('refused')} IS NULL THEN {_written()} END AS {quoted(frames)}"
    kept = [quoted(name) for name in df.columns if name != frames]
    return numbered.selectExpr(
        *kept, written, f"{apart(own('refused'), 'body_frames', 'STRING')} AS {quoted(error)}"
    )


def _translated_trace() -> str:
    """The trace options in the bits of V5: the bit for routing moves, no bit is lost."""
    there, whens = V5.trace_routing, ""
    for layout in LAYOUTS.values():
        here = layout.trace_routing
        if here != there:
            differ = f"((trace_options & {here}) != 0) != ((trace_options & {there}) != 0)"
            whens += f"WHEN wire_version = {layout.version} AND {differ} THEN trace_options ^ {here | there} "
    return f"CASE {whens}ELSE trace_options END" if whens else "trace_options"


def _refusal(*, has_error: bool) -> str:
    """Why a row cannot be written; null where it can."""
    no_version = "is not a number from 0 to 65535; decode(versions=…) maps those of V1"
    formats, known = ", ".join(map(str, LAYOUTS)), ", ".join(str(int(member)) for member in Distribution)
    checks = [("error IS NOT NULL", "error")] if has_error else []
    reasons = [(f"NOT coalesce(wire_version IN ({formats}), false)", "wire_version: is no wire format")]
    reasons += [
        (f"{name} IS NULL", f"{name}: is null")
        for name in _NEEDED
        if name not in (*_NULLABLE, "version", "wire_version")
    ]
    reasons += [
        (_out_of_range("hops"), "hops: does not fit the 16 bits that V5 has for it"),
        (_out_of_range(own("trace")), "trace_options: does not fit the 16 bits that V5 has for it"),
        (_out_of_range("version"), f"version: {no_version}"),
        (f"distribution NOT IN ({known})", "distribution: is neither 0 nor 1"),
        (_any_null("callback_points", "identity", "partition"), "callback_points: holds a null"),
        (
            f"exists(callback_points, point -> {_out_of_range('point.version')})",
            f"callback_points: the version {no_version}",
        ),
        (_any_null("routing", "uri", "identity"), "routing: holds a null"),
        ("exists(body_frames, frame -> frame IS NULL)", "body_frames: holds a null"),
        (_too_many(), "body_frames: more frames than a 16-bit offset can reach"),
    ]
    checks += [(wrong, f"'{reason}'") for wrong, reason in reasons]
    whens = [f"WHEN {wrong} THEN {reason}" for wrong, reason in checks]
    return f"CASE {' '.join(whens)} END"


def _out_of_range(number: str) -> str:
    return f"({number} IS NULL OR {number} < 0 OR {number} > {_MOST})"


def _any_null(name: str, *parts: str) -> str:
    nulls = " OR ".join(f"entry.{part} IS NULL" for part in parts)
    return f"exists({name}, entry -> entry IS NULL OR {nulls})"


def _too_many() -> str:
    """Whether a section would begin above what 16 bits can say."""
    return " OR ".join(f"{own(s.offset)} > {_MOST} OR {own(s.count)} > {_MOST}" for s in V5.sections)


def _count(section: Section) -> str:
    return f"coalesce(array_size({_ENTRIES[section.name]}), 0)"


def _offset(section: Section) -> str:
    """Where a section begins when all of them lie directly on one another; 0 for one without entries."""
    lower = V5.sections[: V5.sections.index(section)]
    below = " + ".join([str(V5.size + 1), *(f"CAST({own(s.count)} AS BIGINT) * {len(s.entry)}" for s in lower)])
    return f"CASE WHEN {own(section.count)} > 0 THEN {below} ELSE 0 END"


def _number(field: Field) -> str:
    if field.lanes:
        return pack_lanes([_value(name) for name in field.lanes])
    return f"CAST({_value(field.name)} AS BIGINT)"


def _value(name: str) -> str:
    for section in V5.sections:
        if name in (section.offset, section.count):
            return own(name)
        if name == section.step:
            return str(len(section.entry))
    return {"ttl": "ttl_ticks", "trace_options": own("trace")}.get(name, name)


def _written() -> str:
    """All frames, made from the lowest up and then turned round."""
    upwards = [f"array({', '.join(_fixed(field) for field in V5.fields)})"]
    for section in V5.sections:
        entries = _ENTRIES[section.name]
        if len(section.entry) > 1:
            parts = ", ".join(_as_frame(field.kind, f"entry.{field.name}") for field in section.entry)
            entries = f"flatten(transform({entries}, entry -> array({parts})))"
        upwards.append(entries)
    envelope = f"array({sql(b'')}, socket_identity)"
    upwards.append(f"CASE WHEN socket_identity IS NULL THEN CAST(array() AS ARRAY<BINARY>) ELSE {envelope} END")
    return f"reverse(concat({', '.join(upwards)}))"


def _fixed(field: Field) -> str:
    if field.kind is Kind.FORMAT:
        return sql(V5.trailer)
    if field.kind.width:
        return as_bytes(own(f"number{field.frame}"), field.kind.width)
    return _as_frame(field.kind, field.name)


def _as_frame(kind: Kind, value: str) -> str:
    if kind is Kind.TEXT:
        return f"encode({value}, 'UTF-8')"
    return as_bytes(f"CAST({value} AS BIGINT)", kind.width) if kind.width else value
