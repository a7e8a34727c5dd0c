"""What Spark can do and SQL has no function for, where Spark's JVM can be reached from here.

- No SQL function reads a number from bytes; the way round by hexadecimal text (``framewire.spark.integers``) takes
  0.4 µs for each, and a message has nine. Spark itself does it in a nanosecond wherever it sorts binary columns,
  with a public function of its own, and Java turns bytes round.
- No SQL function tells whether a frame is there without copying it, and a message has about 30.

As expressions these can only be had through the driver's JVM: not with Spark Connect, where SQL has to do. Nothing
but Spark's and Java's own classes is needed on the executors either way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["any_null", "can_call", "straight_number"]

_READER = "org.apache.spark.unsafe.types.ByteArray"
_TURNER = "java.lang.Long"


def can_call(df: DataFrame) -> bool:
    """Whether the functions of this module are to be had for a table."""
    return hasattr(df, "_jdf") and getattr(df.sparkSession, "_jvm", None) is not None


def straight_number(df: DataFrame, raw: str) -> Column:
    """The first eight bytes of a frame as a little-endian number; a shorter one counts as filled up with zeros."""
    calls = _calls(df.sparkSession._jvm)  # noqa: SLF001 - see above
    # What Spark sorts binary values by: their first eight bytes, the first of them the most significant.
    return calls.static(_TURNER, "reverseBytes", calls.static(_READER, "getPrefix", F.expr(raw)))


def any_null(df: DataFrame, array: str) -> Column:
    """Whether a null is among the elements of an array; not where there is no array."""
    calls = _calls(df.sparkSession._jvm)  # noqa: SLF001 - see above
    places, elements = F.expr(f"sequence(0, array_size({array}) - 1)"), F.expr(array)
    found = F.exists(places, lambda place: calls.is_null_at(elements, place))
    return F.coalesce(F.when(F.expr(f"array_size({array}) > 0"), found), F.lit(False))


class _Calls:
    """Calls of functions as columns. What they are made of is looked up once: each name is a round trip."""

    def __init__(self, jvm: Any) -> None:
        spark = jvm.org.apache.spark.sql
        self._expressions = spark.classic.ExpressionUtils
        self._static = spark.catalyst.expressions.objects.StaticInvoke
        self._call = spark.catalyst.expressions.objects.Invoke
        self._as_seq = jvm.PythonUtils.toSeq
        self._long = getattr(getattr(spark.types, "LongType$"), "MODULE$")
        self._boolean = getattr(getattr(spark.types, "BooleanType$"), "MODULE$")
        self._none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
        self._owners = {name: jvm.java.lang.Class.forName(name) for name in (_READER, _TURNER)}

    def static(self, owner: str, name: str, argument: Column) -> Column:
        """What a function that turns one value into a ``long`` makes of a column; null for null."""
        arguments, types = self._as_seq([self._expression(argument)]), self._as_seq([])
        called = self._static(self._owners[owner], self._long, name, arguments, types, True, True, True, self._none)
        return Column(self._expressions.column(called))

    def is_null_at(self, array: Column, place: Column) -> Column:
        """Whether an array has a null at a place that it has."""
        arguments, types = self._as_seq([self._expression(place)]), self._as_seq([])
        called = self._call(self._expression(array), "isNullAt", self._boolean, arguments, types, True, False, True)
        return Column(self._expressions.column(called))

    def _expression(self, column: Column) -> Any:
        return self._expressions.expression(column._jc)  # noqa: SLF001 - see above


@lru_cache(1)
def _calls(jvm: Any) -> _Calls:
    return _Calls(jvm)
