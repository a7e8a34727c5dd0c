"""Numbers straight from bytes, where Spark's JVM can be reached from here.

No SQL function reads a number from bytes; the way round by hexadecimal text (``framewire.spark.integers``) takes
0.4 µs for each, and a message has nine. Spark itself does it in a nanosecond wherever it sorts binary columns,
with a public function of its own, and Java turns bytes round. As expressions they can only be had through the
driver's JVM: not with Spark Connect, where the text has to do. Nothing but Spark's and Java's own classes is needed
on the executors either way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["reads_numbers", "straight_number"]

_READER = "org.apache.spark.unsafe.types.ByteArray"
_TURNER = "java.lang.Long"


def reads_numbers(df: DataFrame) -> bool:
    """Whether ``straight_number`` can be had for a table."""
    return hasattr(df, "_jdf") and getattr(df.sparkSession, "_jvm", None) is not None


def straight_number(df: DataFrame, raw: str) -> Column:
    """The first eight bytes of a frame as a little-endian number; a shorter one counts as filled up with zeros."""
    calls = _calls(df.sparkSession._jvm)  # noqa: SLF001 - see above
    # What Spark sorts binary values by: their first eight bytes, the first of them the most significant.
    return calls.of(_TURNER, "reverseBytes", calls.of(_READER, "getPrefix", F.expr(raw)))


class _Calls:
    """Calls of static functions as columns. What they are made of is looked up once: each name is a round trip."""

    def __init__(self, jvm: Any) -> None:
        spark = jvm.org.apache.spark.sql
        self._expressions = spark.classic.ExpressionUtils
        self._call = spark.catalyst.expressions.objects.StaticInvoke
        self._as_seq = jvm.PythonUtils.toSeq
        self._long = getattr(getattr(spark.types, "LongType$"), "MODULE$")
        self._none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
        self._owners = {name: jvm.java.lang.Class.forName(name) for name in (_READER, _TURNER)}

    def of(self, owner: str, name: str, argument: Column) -> Column:
        """What a function that turns one value into a ``long`` makes of a column; null for null."""
        arguments = self._as_seq([self._expressions.expression(argument._jc)])  # noqa: SLF001
        called = self._call(
            self._owners[owner], self._long, name, arguments, self._as_seq([]), True, True, True, self._none
        )
        return Column(self._expressions.column(called))


@lru_cache(1)
def _calls(jvm: Any) -> _Calls:
    return _Calls(jvm)
