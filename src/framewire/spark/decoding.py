"""Frames to columns, at the speed of the JVM and without Python on any executor.

Each step below adds what the next one needs, in columns of its own that are dropped at the end. The steps are
projections and not one large expression, because Spark computes a column that is named twice only once, while
an expression that is written twice may be computed twice.

Nothing here can fail a job: a place that is not there reads as null (``try_element_at``), numbers are read only
from frames of the right size, and sums are made with 64 bits from numbers that have 32.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.errors import UsageError
from framewire.spark.calls import any_null, can_call
from framewire.spark.checks import first_fault, top_of
from framewire.spark.columns import (
    DECODED,
    adding,
    apart,
    checked_frames,
    from_end,
    own,
    quoted,
    reject_clashes,
    sealed,
    unreached,
)
from framewire.spark.entries import addresses, bodies, points, section_values
from framewire.spark.numbers import number_names, numbers
from framewire.spark.shapes import SHAPES, Shape, choose, format_frame, sql, trailers, unversioned
from framewire.spark.versions import checked_versions, version_number

__all__ = ["checked", "decode", "domain_text", "field_texts", "told_formats"]


def decode(
    df: DataFrame,
    frames: str = "frames",
    ttl_unit: str = "ms",
    *,
    versions: Mapping[bytes, int] | None = None,
) -> DataFrame:
    """The table with a column for each field of a message, and ``error`` where the frames are not one.

    ``ttl_unit`` is how V1 counts its ttl. ``versions`` gives numbers to V1 versions that are neither N nor N.0.
    """
    if ttl_unit not in ("ms", "ticks"):
        raise UsageError(f"ttl_unit: {ttl_unit!r} is neither 'ms' nor 'ticks'")
    known = checked_versions(versions)
    source = checked_frames(df, frames)
    reject_clashes(df, DECODED)
    ready = checked(told_formats(df, source), source, ttl_unit)
    fields = [f"{text} AS {name}" for name, text in field_texts(source, known).items()]
    return ready.selectExpr(*map(quoted, df.columns), *fields)


def checked(told: DataFrame, frames: str, ttl_unit: str = "ms") -> DataFrame:
    """A table of known formats with all that fields are read by: the numbers, and what is wrong with a row."""
    return _find_faults(_read_numbers(told, frames, ttl_unit), frames)


def field_texts(frames: str, versions: Mapping[bytes, int] | None = None) -> dict[str, str]:
    """Each field as SQL, for a table that was checked; null where there is an error."""
    return {name: _field(name, frames, versions or {}) for name in DECODED}


def domain_text(frames: str) -> str:
    """The domain as SQL, for a table that may hold anything but knows the formats of its rows."""
    return f"CAST({_fixed('domain', frames)} AS STRING)"


def told_formats(df: DataFrame, frames: str) -> DataFrame:
    """How many frames there are, and which format they are in: ``told`` is null where it is none of ours."""
    found = {
        "n": f"coalesce(array_size({frames}), 0)",
        "told": _format(frames),
        "format_size": f"length({from_end(frames, format_frame().frame)})",
    }
    return adding(df, found).select("*", _lacking(df, frames).alias(own("lacking")))


def _lacking(df: DataFrame, frames: str) -> Column:
    """Whether a null is among the frames: that is a frame that is missing."""
    if can_call(df):
        return any_null(df, frames)
    return F.expr(f"coalesce(exists({frames}, frame -> frame IS NULL), false)")


def _format(frames: str) -> str:
    oldest, delimiter = unversioned()
    second = f"length({from_end(frames, delimiter.frame)})"
    last = from_end(frames, format_frame().frame)
    whens = [f"WHEN {second} = 0 THEN {oldest.version}"]
    for version, forms in trailers().items():
        listed = ", ".join(map(sql, forms))
        whens.append(f"WHEN {second} > 0 AND {last} IN ({listed}) THEN {version}")
    return f"CASE {' '.join(whens)} END"


def _read_numbers(df: DataFrame, frames: str, ttl_unit: str) -> DataFrame:
    """Every number that a table names."""
    df, found = numbers(df, frames)
    scale = choose(own("told"), lambda shape: f"{shape.layout.ticks_per_ttl if ttl_unit == 'ms' else 1}L")
    ticks = F.try_multiply(found["ttl"], F.expr(scale))
    found["ttl"] = F.coalesce(ticks, F.expr(unreached(frames, "BIGINT")))
    return df.select("*", *(value.alias(own(name)) for name, value in found.items()))


def _find_faults(df: DataFrame, frames: str) -> DataFrame:
    """``fault``, which every field and so every filter needs, and where the sections are that a message has."""
    places = {f"int_{name}": f"CAST({own(name)} AS INT)" for name in section_values()}
    fault = sealed(first_fault(frames), frames, "STRING")
    return adding(df, {"fault": fault, "top": top_of(own("told")), **places})


def _field(name: str, frames: str, versions: Mapping[bytes, int]) -> str:
    """One field by its name; null where there is an error."""
    fault = own("fault")
    if name == "error":
        return apart(fault, frames, "STRING")
    return f"CASE WHEN {fault} IS NULL THEN {_read(name, frames, versions)} END"


def _read(name: str, frames: str, versions: Mapping[bytes, int]) -> str:
    """One field of what is known to be a message."""
    told = own("told")
    if name == "version_raw":
        return _fixed("version", frames)
    if name == "socket_identity":
        enveloped = f"{own('n')} >= {own('top')} + 2 AND length(get({frames}, 1)) = 0"
        return f"CASE WHEN {enveloped} THEN get({frames}, 0) END"
    if name == "wire_version":
        return told
    if name == "version":
        opaque = version_number(_fixed("version", frames), versions)
        number = choose(told, lambda shape: own("version") if shape.layout.numbered else opaque)
        return f"CAST({number} AS INT)"
    if name == "body_frames":
        return bodies(frames)
    if name == "body":
        several = f"CAST(concat_ws('', CAST({bodies(frames)} AS ARRAY<STRING>)) AS BINARY)"
        one = from_end(frames, own("int_body_offset"))
        return f"CASE WHEN {own('body_count')} = 1 THEN {one} ELSE {several} END"
    if name == "callback_points":
        return points(frames, versions)
    if name == "routing":
        return addresses(frames)
    held = "ttl" if name == "ttl_ticks" else name
    value = own(held) if held in number_names() else _fixed(name, frames)
    return f"CAST({value} AS {DECODED[name]})"


def _fixed(name: str, frames: str) -> str:
    """The frame that holds a field, or what a format without it has instead."""
    places = {shape: shape.layout.holder(name) for shape in SHAPES}
    if all(places.values()):
        return from_end(frames, choose(own("told"), lambda shape: getattr(places[shape], "frame", None)))

    def read(shape: Shape) -> str | int | bytes:
        place = places[shape]
        return shape.layout.absent[name] if place is None else from_end(frames, place.frame)

    return choose(own("told"), read)
