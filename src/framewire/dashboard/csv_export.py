"""Tables as CSV, for programs and for spreadsheets, in which text from captures stays text.

A spreadsheet takes a cell that begins like a formula for one, and a formula can send what is beside it anywhere;
such a cell gets an apostrophe in front, which spreadsheets take for "this is text".
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterable, Iterator, Sequence

from framewire.wire.explaining import printable

__all__ = ["csv_lines"]

_LONGEST = 32_000
"""Characters of a cell that every spreadsheet takes."""
_AT_ONCE = 500
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")


def csv_lines(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The lines of a file, some at a time."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(heading)
    for number, row in enumerate(rows, 1):
        writer.writerow(map(_cell, row))
        if number % _AT_ONCE == 0:
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="microseconds") + "Z"
    if isinstance(value, dt.date):
        return value.isoformat()
    told = value.hex() if isinstance(value, bytes) else printable(str(value)[:_LONGEST])
    return f"'{told}" if told.startswith(_FORMULA) else told
