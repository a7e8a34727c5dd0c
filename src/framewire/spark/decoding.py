"""Frames to columns, at the speed of the JVM and without Python on any executor.

Each step below adds what the next one needs, in columns of its own that are dropped at the end. The steps are
projections and not one large expression, because Spark computes a column that is named twice only once, while
an expression that is written twice may be computed twice.

Nothing here can fail a job: a place that is not there reads as null (``try_element_at``), numbers are read only
from frames of the right size, and sums are made with 64 bits from numbers that have 32.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.errors import UsageError
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
)
from framewire.spark.entries import addresses, bodies, points, section_values
from framewire.spark.integers import lane_of, number_of
from framewire.spark.shapes import SHAPES, Shape, Slot, choose, format_frame, slots, sql, trailers, unversioned
from framewire.spark.versions import checked_versions, version_number
from framewire.spark.words import word_column
from framewire.wire.layout import Kind

__all__ = ["decode"]

_IN_NO_MESSAGE = bytes(range(33))


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
    numbers = checked_versions(versions)
    source = checked_frames(df, frames)
    reject_clashes(df, DECODED)
    read = _read_values(_read_words(df, source), source, ttl_unit)
    checked = _find_faults(read, source)
    fields = [f"{_field(name, numbers)} AS {name}" for name in DECODED]
    return checked.selectExpr(*map(quoted, df.columns), *fields)


def _read_words(df: DataFrame, frames: str) -> DataFrame:
    """How many frames there are, which format they are in, and the words in them.

    ``told`` is null where it is none of ours; ``word0``, …, the numeric frames, where one has not its size.
    """
    told = _format(frames)
    found = {
        "n": f"coalesce(array_size({frames}), 0)",
        "told": apart(told, frames, "INT"),
        "format_size": f"length({from_end(frames, format_frame().frame)})",
        "lacking": _lacking(frames),
    }
    texts = [F.expr(text).alias(own(name)) for name, text in found.items()]
    words = [_word(df, slot, told, frames).alias(own(f"word{number}")) for number, slot in enumerate(slots())]
    return df.select("*", *texts, *words)


def _lacking(frames: str) -> str:
    """Whether a null is among the frames, or instead of them: that is a frame that is missing.

    Looking for what is in no message tells it, for with a null nobody knows; that is compiled, ``exists`` is not.
    """
    slowly = f"coalesce(exists({frames}, frame -> frame IS NULL), false)"
    return f"CASE WHEN array_contains({frames}, {sql(_IN_NO_MESSAGE)}) = false THEN false ELSE {slowly} END"


def _format(frames: str) -> str:
    oldest, delimiter = unversioned()
    second = f"length({from_end(frames, delimiter.frame)})"
    last = from_end(frames, format_frame().frame)
    whens = [f"WHEN {second} = 0 THEN {oldest.version}"]
    for version, forms in trailers().items():
        listed = ", ".join(map(sql, forms))
        whens.append(f"WHEN {second} > 0 AND {last} IN ({listed}) THEN {version}")
    return f"CASE {' '.join(whens)} END"


def _word(df: DataFrame, slot: Slot, told: str, frames: str) -> Column:
    fields = dict(zip(SHAPES, slot, strict=True))
    place = choose(told, lambda shape: field.frame if (field := fields[shape]) else None)
    width = choose(told, lambda shape: field.kind.width if (field := fields[shape]) else None)
    optional = None
    if any(field is not None and field.optional for field in slot):
        optional = choose(told, lambda shape: "true" if (field := fields[shape]) and field.optional else "false")
    return word_column(df, from_end(frames, place), width, optional)


def _read_values(df: DataFrame, frames: str, ttl_unit: str) -> DataFrame:
    """Every number that a table names, as 64 bits, in whatever frame and lane the row's format has it."""
    told = own("told")
    names = {name for shape in SHAPES for field in shape.numeric() for name in field.values}
    names |= {section.step for shape in SHAPES for section in shape.layout.sections}
    values = {name: f"CAST({choose(told, partial(_value, name))} AS BIGINT)" for name in sorted(names)}
    scale = choose(told, lambda shape: f"{shape.layout.ticks_per_ttl if ttl_unit == 'ms' else 1}L")
    ticks = f"try_multiply({values['ttl']}, {scale})"
    return adding(df, values | {"ttl": apart(ticks, frames, "BIGINT")})


def _value(name: str, shape: Shape) -> str | int | bytes | None:
    if name in shape.layout.absent:
        return shape.layout.absent[name]
    at = SHAPES.index(shape)
    for number, slot in enumerate(slots()):
        field = slot[at]
        if field is not None and name in field.values:
            read = own(f"word{number}")
            if field.lanes:
                return lane_of(read, field.lanes.index(name))
            return number_of(read, field.kind.width or 0, signed=field.kind is not Kind.U16)
    return None


def _find_faults(df: DataFrame, frames: str) -> DataFrame:
    """``error``, and ``good``: the frames of rows that are messages, so that nothing can be read from others."""
    found = adding(df, {"fault": apart(first_fault(frames), frames, "STRING"), "highest": top_of(own("told"))})
    good = f"CASE WHEN {own('fault')} IS NULL THEN {frames} END"
    places = {name: f"CAST({own(name)} AS INT)" for name in section_values()}
    kept = {"error": own("fault"), "good": good, "top": own("highest")}
    return sealed(found, kept | {f"int_{name}": text for name, text in places.items()})


def _field(name: str, versions: Mapping[bytes, int]) -> str:
    """One field by its name; null where there is an error."""
    told, good = own("told"), own("good")
    if name == "error":
        return apart(own("error"), good, "STRING")
    if name == "version_raw":
        return _fixed("version")
    if name == "socket_identity":
        enveloped = f"{own('n')} >= {own('top')} + 2 AND length(get({good}, 1)) = 0"
        return f"CASE WHEN {enveloped} THEN get({good}, 0) END"
    held = "ttl" if name == "ttl_ticks" else name
    if name == "wire_version":
        value = told
    elif name == "version":
        opaque = version_number(_fixed("version"), versions)
        number = choose(told, lambda shape: own("version") if shape.layout.numbered else opaque)
        value = f"CAST({number} AS INT)"
    elif name == "body_frames":
        value = bodies(good)
    elif name == "body":
        several = f"CAST(concat_ws('', CAST({bodies(good)} AS ARRAY<STRING>)) AS BINARY)"
        one = from_end(good, own("int_body_offset"))
        value = f"CASE WHEN {own('body_count')} = 1 THEN {one} ELSE {several} END"
    elif name == "callback_points":
        value = points(good, versions)
    elif name == "routing":
        value = addresses(good)
    elif any(held in field.values for shape in SHAPES for field in shape.numeric()):
        value = f"CAST({own(held)} AS {DECODED[name]})"
    else:
        return f"CAST({_fixed(name)} AS {DECODED[name]})"
    return f"CASE WHEN {good} IS NOT NULL THEN {value} END"


def _fixed(name: str) -> str:
    """The frame that holds a field, or what a format without it has instead; null in rows that are no message."""
    told, good = own("told"), own("good")
    places = {shape: shape.layout.holder(name) for shape in SHAPES}
    if all(places.values()):
        return from_end(good, choose(told, lambda shape: getattr(places[shape], "frame", None)))

    def read(shape: Shape) -> str | int | bytes:
        place = places[shape]
        return shape.layout.absent[name] if place is None else from_end(good, place.frame)

    return f"CASE WHEN {good} IS NOT NULL THEN {choose(told, read)} END"
