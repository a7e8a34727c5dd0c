"""Lengths of time, and the buckets that the lake files its rows under.

A bucket is a number: how many of them lie between 1970 and its beginning. All times are whole microseconds and none
is looked at through a time zone, so a session's settings cannot move a row into another bucket.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from framewire.errors import ConfigError

__all__ = ["DAY", "HOUR", "Periods", "duration"]

_SECOND = 1_000_000
_MINUTE, HOUR, DAY = 60 * _SECOND, 3600 * _SECOND, 86_400 * _SECOND
_UNITS = {"ms": 1000, "s": _SECOND, "m": _MINUTE, "h": HOUR, "d": DAY}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")


def duration(text: str) -> int | None:
    """The microseconds that a text like ``10m`` stands for; None where it stands for none."""
    told = _DURATION.fullmatch(text.strip())
    return round(float(told[1]) * _UNITS[told[2]]) if told else None


@dataclass(frozen=True, slots=True)
class Periods:
    """How long a bucket is, and how far around it one has to look to know all about it."""

    bucket: int = 15 * _MINUTE
    horizon: int = 3 * _MINUTE

    def __post_init__(self) -> None:
        problems = []
        if self.bucket < _MINUTE or HOUR % self.bucket:
            problems.append("bucket: must divide an hour into equal parts of whole minutes, like 10m or 1h")
        if not 0 < self.horizon <= self.bucket:
            problems.append("horizon: must be more than nothing, and at most as long as a bucket")
        if problems:
            raise ConfigError("lake", problems)

    def of(self, microseconds: int) -> int:
        """The bucket of a time."""
        return microseconds // self.bucket

    def around(self, buckets: set[int]) -> set[int]:
        """The buckets that hold all rows within the horizon of some."""
        return {bucket + step for bucket in buckets for step in (-1, 0, 1)}

    def reached(self, first_us: int, last_us: int) -> set[int]:
        """The buckets that rows between two times matter to."""
        return set(range(self.of(first_us - self.horizon), self.of(last_us + self.horizon) + 1))

    def edges(self, bucket: int, of: set[int]) -> Iterator[tuple[dt.datetime, dt.datetime]]:
        """The parts of a bucket that matter to those beside it, if they are among some."""
        horizon = dt.timedelta(microseconds=self.horizon)
        if bucket - 1 in of:
            yield self.begin(bucket), self.begin(bucket) + horizon
        if bucket + 1 in of:
            yield self.begin(bucket + 1) - horizon, self.begin(bucket + 1)

    def hours(self, buckets: set[int]) -> set[int]:
        """All buckets of the hours in which some buckets lie."""
        return self._whole(buckets, HOUR)

    def days(self, buckets: set[int]) -> set[int]:
        """All buckets of the days in which some buckets lie."""
        return self._whole(buckets, DAY)

    def firsts_of_hours(self, buckets: set[int]) -> set[int]:
        """The first bucket of each hour in which some buckets lie: what tables by the hour are filed under."""
        return {bucket * self.bucket // HOUR * HOUR // self.bucket for bucket in buckets}

    def _whole(self, buckets: set[int], period: int) -> set[int]:
        each = period // self.bucket
        return {first * each + place for first in {bucket // each for bucket in buckets} for place in range(each)}

    def directory(self, bucket: int) -> str:
        """Where the rows of a bucket lie below their table."""
        begin = self.begin(bucket)
        return f"date={begin:%Y-%m-%d}/bucket={begin:%Hh%M}"

    def begin(self, bucket: int) -> dt.datetime:
        """When a bucket begins."""
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=bucket * self.bucket)

    def number(self, date: str, bucket: str) -> int:
        """The bucket of a directory, by the values in its names."""
        begin = dt.datetime.strptime(f"{date} {bucket}", "%Y-%m-%d %Hh%M").replace(tzinfo=dt.UTC)
        return (begin - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=self.bucket)

    def bucket_of(self, at: Column) -> Column:
        """The bucket of a time, as a column."""
        return F.floor(F.unix_micros(at) / F.lit(self.bucket))

    def contexts_of(self, at: Column) -> Column:
        """The buckets that a row matters to."""
        micros = F.unix_micros(at)
        return F.sequence(
            F.floor((micros - self.horizon) / F.lit(self.bucket)),
            F.floor((micros + self.horizon) / F.lit(self.bucket)),
        )

    def filing(self, bucket: Column) -> dict[str, Column]:
        """The columns that a row is filed under."""
        minutes = F.pmod(bucket * (self.bucket // _MINUTE), F.lit(DAY // _MINUTE)).cast("int")
        hour, minute = F.floor(minutes / 60).cast("string"), F.pmod(minutes, F.lit(60)).cast("string")
        return {
            "date": F.date_from_unix_date(F.floor(bucket / F.lit(DAY // self.bucket)).cast("int")),
            "bucket": F.concat(F.lpad(hour, 2, "0"), F.lit("h"), F.lpad(minute, 2, "0")),
        }
