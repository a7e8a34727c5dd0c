"""Numbers straight from bytes, where Spark's JVM can be reached from here.

No SQL function reads a number from bytes; the way round by hexadecimal text (``framewire.spark.integers``) takes
0.4 µs for each, and a message has nine. Spark itself does it in a nanosecond wherever it sorts binary columns,
with a public function of its own, and Java turns bytes round. As expressions they can only be had through the
driver's JVM: not with Spark Connect, where the text has to do. Nothing but Spark's and Java's own classes is needed
on the executors either way.
"""

from __future__ import annotations

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
    jvm: Any = df.sparkSession._jvm  # noqa: SLF001 - see above
    # What Spark sorts binary values by: their first eight bytes, the first of them the most significant.
    return _called(jvm, _TURNER, "reverseBytes", _called(jvm, _READER, "getPrefix", F.expr(raw)))


def _called(jvm: Any, owner: str, name: str, argument: Column) -> Column:
    """What a static function that turns one value into a ``long`` makes of a column; null for null."""
    expressions = jvm.org.apache.spark.sql.classic.ExpressionUtils
    catalyst = jvm.org.apache.spark.sql.catalyst.expressions.objects
    as_seq = jvm.PythonUtils.toSeq
    long = getattr(getattr(jvm.org.apache.spark.sql.types, "LongType$"), "MODULE$")
    none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    arguments = as_seq([expressions.expression(argument._jc)])  # noqa: SLF001
    reader = jvm.java.lang.Class.forName(owner)
    called = catalyst.StaticInvoke(reader, long, name, arguments, as_seq([]), True, True, True, none)
    return Column(expressions.column(called))
