"""Numbers straight from bytes, where Spark's JVM can be reached from here.

No SQL function reads a number from bytes; the way round by hexadecimal text (``framewire.spark.integers``) takes
0.4 µs for each, and a message has nine. Spark itself does it in a nanosecond wherever it sorts binary columns,
with a public function of its own. As an expression it can only be had through the driver's JVM: not with Spark
Connect, where the text has to do. Nothing but Spark's own classes is needed on the executors either way.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.spark.integers import word

__all__ = ["word_column"]

_READER = "org.apache.spark.unsafe.types.ByteArray"
_BITS = 64


def word_column(df: DataFrame, raw: str, width: str, empty: str | None = None) -> Column:
    """The frame ``raw`` as one number, the first byte the most significant; null unless it has ``width`` bytes.

    ``empty`` is the condition under which a frame without any bytes stands for 0.
    """
    read = _prefix(df, raw, width)
    number = F.when(F.expr(f"length({raw}) = {width}"), F.expr(word(raw)) if read is None else read)
    return (
        number if empty is None else number.when(F.expr(f"length({raw}) = 0 AND {empty}"), F.lit(0).cast("bigint"))
    )


def _prefix(df: DataFrame, raw: str, width: str) -> Column | None:
    """What Spark sorts binary values by: their first eight bytes, the first of them the most significant."""
    session: Any = df.sparkSession
    jvm = getattr(session, "_jvm", None) if hasattr(df, "_jdf") else None
    if jvm is None:
        return None
    expressions = jvm.org.apache.spark.sql.classic.ExpressionUtils
    catalyst = jvm.org.apache.spark.sql.catalyst.expressions.objects
    as_seq = jvm.PythonUtils.toSeq
    long = getattr(getattr(jvm.org.apache.spark.sql.types, "LongType$"), "MODULE$")
    none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    argument = as_seq([expressions.expression(F.expr(raw)._jc)])  # noqa: SLF001
    reader = jvm.java.lang.Class.forName(_READER)
    called = catalyst.StaticInvoke(reader, long, "getPrefix", argument, as_seq([]), True, True, True, none)
    prefix = Column(expressions.column(called))
    return F.call_function("shiftrightunsigned", prefix, F.expr(f"{_BITS} - 8 * {width}"))
