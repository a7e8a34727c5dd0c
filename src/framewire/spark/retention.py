"""How long a lake keeps its tables: whole days are removed, the oldest first, each table by a time of its own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from framewire.errors import ConfigError
from framewire.spark.condition import condition, dates_of
from framewire.spark.stores import store_of
from framewire.spark.tables import TABLES

__all__ = ["LEAST", "Removed", "prune"]

LEAST = dt.timedelta(days=2)
"""Rows may still come for younger days, whose tables would then be made anew from what is left."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A day of a table that is gone, or would be."""

    table: str
    day: dt.date


def prune(
    lake: str, keep: Mapping[str, dt.timedelta], *, now: dt.datetime | None = None, dry_run: bool = False
) -> list[Removed]:
    """Remove the days of some tables that are older than they are to be kept; all of a day, or nothing of it."""
    problems = [
        f"{name}: there is no such table; there are {', '.join(TABLES)}" for name in keep if name not in TABLES
    ]
    problems += [
        f"{name}: {time} is too short, rows may still come for younger days; keep at least {LEAST.days}d"
        for name, time in keep.items()
        if time < LEAST
    ]
    if problems:
        raise ConfigError("keep", problems)
    condition(lake)
    store, root = store_of(lake)
    today = (now or dt.datetime.now(dt.UTC)).date()
    old = [
        (Removed(table, day), place)
        for table, time in keep.items()
        for day, place in sorted(dates_of(store, root, table).items())
        if today - day > time
    ]
    for _, place in old if not dry_run else ():
        store.delete_dir(place)
    return [removed for removed, _ in old]
