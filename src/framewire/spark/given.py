"""Comparisons with values that differ from batch to batch, without new code for each of them.

Spark writes numbers and times into the Java that it generates, so that another number is another class: the JVM
would compile it anew, and until it has, rows pass slowly. Values that have parts it hands over instead.

The same goes for the names of what lambdas are called with, which are in comments of that code. Those that PySpark
makes up are never the same twice; so lambdas are written as SQL, with names of their own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["is_before", "is_one_of"]


def is_before(at: Column, moment: dt.datetime) -> Column:
    """Whether a time is earlier than another."""
    return F.struct(at.alias("at")) < F.struct(F.lit(moment).alias("at"))


def is_one_of(number: Column, numbers: Iterable[int]) -> Column:
    """Whether a number is one of a few."""
    return F.array_contains(F.array(*[F.lit(each).cast("bigint") for each in sorted(numbers)]), number)
