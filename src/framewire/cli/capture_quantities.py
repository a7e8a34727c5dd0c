"""Times and sizes as a person writes them on a command line: 90s, 7d, 10GB, 2026-03-01T12:00."""

from __future__ import annotations

import datetime as dt
import re

import click

__all__ = ["duration", "moment", "size"]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def duration(text: str) -> float:
    """A length of time, in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no time; write it like 90s, 15m, 12h, 7d or 2w")
    return float(found[1]) * _SECONDS[found[2]]


def size(text: str) -> int:
    """A number of bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    if found is None or found[2].upper() not in _BYTES:
        raise click.BadParameter(f"{text!r} is no size; write it like 500MB, 10GB or 2TiB")
    return int(float(found[1]) * _BYTES[found[2].upper()])


def moment(text: str) -> dt.datetime:
    """A point in time, in UTC unless it says otherwise, or so long ago."""
    try:
        if re.fullmatch(r"[\d.]+\s*[smhdw]", text):
            return dt.datetime.now(dt.UTC) - dt.timedelta(seconds=duration(text))
        told = dt.datetime.fromisoformat(text)
    except (ValueError, OverflowError, click.BadParameter):
        raise click.BadParameter(
            f"{text!r} is no moment; write it like 2026-03-01T12:00, or 15m for 15 minutes ago"
        ) from None
    return told if told.tzinfo is not None else told.replace(tzinfo=dt.UTC)
