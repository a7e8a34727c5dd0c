"""How numbers of the lake are put together: sums, percentiles, and how many rows are shown."""

from __future__ import annotations

from collections.abc import Sequence

from framewire.errors import UsageError

__all__ = ["EXACT_UP_TO", "MOST", "Percentiles", "bounded", "percentiles", "told_apart", "total"]

Percentiles = tuple[float | None, float | None, float | None]

PARTS = (0.5, 0.95, 0.99)
"""The percentiles that are told everywhere."""
MOST = 100_000
"""The most rows that one answer has."""
EXACT_UP_TO = 2_000_000
"""With more values than these, percentiles are estimated: sorting them all is what an answer would wait for."""


def total(column: str) -> str:
    """A sum that is 0 where there are no rows."""
    return f"coalesce(sum({column}), 0)::bigint"


def percentiles(column: str, *, exact: bool) -> str:
    """The percentiles of a column, together in one: its values are sorted once. See ``told_apart``."""
    how = "quantile_cont" if exact else "approx_quantile"
    return f"{how}({column}::double, {list(PARTS)})"


def told_apart(told: Sequence[float | None] | None) -> Percentiles:
    """What ``percentiles`` gave; nothing is known of no values."""
    return (None, None, None) if told is None else (told[0], told[1], told[2])


def bounded(limit: int) -> int:
    """A limit that can be kept, or an error that says which can."""
    if not 1 <= limit <= MOST:
        raise UsageError(f"limit: {limit:,} is not from 1 to {MOST:,}")
    return limit
