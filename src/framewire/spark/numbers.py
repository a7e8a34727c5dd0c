"""The numbers of a message by their names, in whatever frame and lane the format of a row has them.

Each is read where it is needed, straight from its frame: that is next to nothing where Spark's JVM can be reached
(``framewire.spark.calls``), while another step would copy every row once more. With Spark Connect, where it is not
next to nothing, there is a step that reads each frame once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.spark.calls import can_call, straight_number
from framewire.spark.columns import adding, from_end, own
from framewire.spark.integers import turned, word
from framewire.spark.shapes import SHAPES, Shape
from framewire.wire.layout import Field, Kind

__all__ = ["number_names", "numbers"]

Held = Mapping[tuple[Shape, Field], Column]
"""What the numeric frames of each format hold."""

_BYTES = 8
_LANE = 16


def number_names() -> list[str]:
    """The names of all numbers, those among them that a format has no frame for."""
    names = {name for shape in SHAPES for field in shape.numeric() for name in field.values}
    return sorted(names | {section.step for shape in SHAPES for section in shape.layout.sections})


def numbers(df: DataFrame, frames: str) -> tuple[DataFrame, dict[str, Column]]:
    """Every number with 64 bits, null where its frame has not its size; and the table to read them from.

    The table has ``told``, the format of a row.
    """
    if not can_call(df):
        df = adding(df, {_word(shape, field): _read(shape, field, frames) for shape, field in _held()})
    held = {(shape, field): _number(df, shape, field, frames) for shape, field in _held()}
    return df, {name: _chosen(held, name) for name in number_names()}


def _held() -> Iterable[tuple[Shape, Field]]:
    return ((shape, field) for shape in SHAPES for field in shape.numeric())


def _word(shape: Shape, field: Field) -> str:
    return f"word_{shape.versions[0]}_{field.frame}"


def _read(shape: Shape, field: Field, frames: str) -> str:
    """What a frame holds, its first byte the most significant of eight."""
    raw, width = from_end(frames, field.frame), field.kind.width or 0
    filled = f"shiftleft({word(raw)}, {8 * (_BYTES - width)})"
    empty = f"WHEN {_is(shape)} AND length({raw}) = 0 THEN 0L" if field.optional else ""
    return f"CASE WHEN {_is(shape)} AND length({raw}) = {width} THEN {filled} {empty} END"


def _is(shape: Shape) -> str:
    return f"{own('told')} IN ({', '.join(map(str, shape.versions))})"


def _chosen(held: Held, name: str) -> Column:
    """A number, wherever the format of a row has it; null for a row that is in no format.

    All formats but the row's own have null, so the greatest is the one that is there. Choosing by conditions would
    have each frame read anew for every number in it: Spark works out once only what is worked out for every row.
    """
    absent = [shape.layout.absent.get(name) for shape in SHAPES]
    if len(set(absent)) == 1 and isinstance(absent[0], int):
        return F.lit(absent[0]).cast("bigint")
    return F.greatest(*(_of_shape(held, shape, name) for shape in SHAPES))


def _of_shape(held: Held, shape: Shape, name: str) -> Column:
    field = next((field for field in shape.numeric() if name in field.values), None)
    if field is None:
        return F.when(F.expr(_is(shape)), F.lit(shape.layout.absent.get(name)).cast("bigint"))
    number = held[shape, field]
    if field.lanes:
        shifted = F.shiftrightunsigned(number, _LANE * field.lanes.index(name))
        return shifted.bitwiseAND(F.lit(0xFFFF).cast("bigint"))
    unused = 8 * (_BYTES - (field.kind.width or 0))
    if field.kind is Kind.U16 or not unused:
        return number
    return F.shiftright(F.shiftleft(number, unused), unused)


def _number(df: DataFrame, shape: Shape, field: Field, frames: str) -> Column:
    """A frame as a little-endian number without a sign; null where it has not its size, or is of another format.

    Nothing here is behind a condition but where the frame is, so that Spark reads it once for number and size.
    """
    if not can_call(df):
        return F.expr(turned(own(_word(shape, field)), _BYTES))
    raw = from_end(frames, f"CASE WHEN {_is(shape)} THEN {field.frame} END")
    sizes = f"{field.kind.width}, 0" if field.optional else f"{field.kind.width}"
    return straight_number(df, raw).bitwiseOR(F.expr(f"CASE WHEN length({raw}) IN ({sizes}) THEN 0L END"))
