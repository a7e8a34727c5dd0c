"""The columns that decoding adds, and whether a table has room for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BinaryType

from framewire.errors import UsageError

__all__ = [
    "DECODED",
    "adding",
    "apart",
    "checked_frames",
    "from_end",
    "own",
    "quoted",
    "reject_clashes",
    "require",
    "sealed",
    "unreached",
]

DECODED: Mapping[str, str] = {
    "identity": "binary",
    "version": "int",
    "version_raw": "binary",
    "partition": "binary",
    "body": "binary",
    "body_frames": "array<binary>",
    "correlation_id": "binary",
    "ttl_ticks": "bigint",
    "distribution": "int",
    "trace_options": "bigint",
    "receiver_identity": "binary",
    "receiver_node_identity": "binary",
    "callback_receiver_identity": "binary",
    "callback_receiver_node_identity": "binary",
    "callback_key": "bigint",
    "callback_points": "array<struct<identity:binary,version:int,partition:binary>>",
    "routing": "array<struct<uri:string,identity:binary>>",
    "hops": "int",
    "domain": "string",
    "signature": "binary",
    "socket_identity": "binary",
    "wire_version": "int",
    "error": "string",
}
"""What ``decode`` adds, in this order: the fields of ``Message`` by their names, and three of Spark's own."""


_OWN = "__framewire_"


def own(name: str) -> str:
    """A column that only a step after this one needs, and that is gone in the end."""
    return _OWN + name


def adding(df: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """The table with more columns of our own, each given as SQL."""
    return df.selectExpr("*", *(f"{text} AS {own(name)}" for name, text in columns.items()))


def apart(value: str, frames: str, kind: str) -> str:
    """The same value, in a step for which Spark generates small methods.

    Where it can, Spark puts a step into one method with those around it, and the JVM compiles no method above 8 KB:
    decoding took 20 times as long as a scan. A step with an expression for which Spark generates no code, as
    ``zip_with`` is, gets a class of its own. No table has fewer than no frames, so that one is never computed.
    """
    return f"coalesce({value}, {unreached(frames, kind)})"


def sealed(value: str, frames: str, kind: str) -> str:
    """The same, in a step through which Spark moves no filter on this value, but those on other columns.

    A filter on any field would otherwise be moved down through all steps, each time with every column replaced by
    what it is made of: ten times the plan, and all that is worked out twice. Spark leaves a filter where it is if
    what it would move is held to be dear (``spark.sql.optimizer.avoidDoubleFilterEval``), as all with a regular
    expression is.
    """
    dear = unreached(frames, kind, "CAST(one AS STRING) RLIKE 'x'")
    return f"coalesce({value}, {dear})"


def unreached(frames: str, kind: str, each: str = "one") -> str:
    """What is added to a value, for Spark to see: it is never worked out, or else null."""
    never = f"CAST(array_size(zip_with({frames}, {frames}, (one, _) -> {each})) AS {kind})"
    return f"CASE WHEN array_size({frames}) < 0 THEN {never} END"


def from_end(frames: str, place: str | int) -> str:
    """The frame at a place counted from the end, where the last is 1; null where there is none."""
    return f"try_element_at({frames}, -{place})"


def quoted(name: str) -> str:
    """A column by its exact name, whatever characters are in it."""
    return f"`{name.replace('`', '``')}`"


def checked_frames(df: DataFrame, frames: str) -> str:
    """The column of frames, if there is one and it holds frames."""
    kinds = {field.name: field.dataType for field in df.schema.fields}
    if frames not in kinds:
        raise UsageError(f"frames: there is no column {frames!r}; there are {', '.join(kinds)}")
    kind = kinds[frames]
    if not (isinstance(kind, ArrayType) and isinstance(kind.elementType, BinaryType)):
        raise UsageError(f"frames: the column {frames!r} is {kind.simpleString()}; frames are array<binary>")
    return quoted(frames)


def reject_clashes(df: DataFrame, added: Iterable[str]) -> None:
    """Refuse a table that already has a column of a name that is to be added."""
    taken = {name.lower() for name in df.columns}
    clashes = [name for name in added if name in taken]
    if clashes:
        names = ", ".join(clashes)
        raise UsageError(f"columns: the table already has {names}; rename or drop them first")


def require(df: DataFrame, needed: Iterable[str], maker: str) -> None:
    """Refuse a table that lacks a column."""
    missing = [name for name in needed if name not in df.columns]
    if missing:
        raise UsageError(f"columns: the table has no {', '.join(missing)}; {maker} adds them")
