"""How a lake is: what it was made with, how far it has come, and how much there is of each table. Without Spark."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framewire.errors import UsageError
from framewire.spark.stores import store_of
from framewire.spark.tables import TABLES

__all__ = ["Condition", "Extent", "condition", "dates_of"]


@dataclass(frozen=True, slots=True)
class Extent:
    """How much there is of one table."""

    table: str
    files: int
    bytes: int
    first: dt.date | None
    last: dt.date | None


@dataclass(frozen=True, slots=True)
class Condition:
    """What can be told of a lake without reading its rows."""

    layout: int
    format: str
    bucket_us: int
    horizon_us: int
    batches: int
    """How many batches it has taken in."""
    rows: int
    late: int
    newest: dt.datetime | None
    """The latest time that was recorded, as far as it can be believed."""
    tables: tuple[Extent, ...]


def condition(lake: str) -> Condition:
    """Look at a lake."""
    store, root = store_of(lake)
    from pyarrow import fs  # noqa: PLC0415 - store_of tells what is missing

    began = _read(store, f"{root}/_state/lake.json")
    if began is None:
        raise UsageError(
            f"{lake} is no lake; make one with: framewire pipeline run --captures captures/ --lake {lake}"
        )
    states = store.get_file_info(fs.FileSelector(f"{root}/_state"))
    last = max((info.path for info in states if info.base_name.startswith("batch-")), default=None)
    known = _read(store, last) or {} if last is not None else {}
    newest = known.get("newest_us")
    return Condition(
        **{name: began[name] for name in ("layout", "format", "bucket_us", "horizon_us")},
        batches=0 if last is None else int(last.rsplit("-", 1)[1].partition(".")[0]) + 1,
        rows=known.get("rows", 0),
        late=known.get("late", 0),
        newest=None
        if newest is None
        else dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=newest),
        tables=tuple(_extent(store, root, name) for name in TABLES),
    )


def _extent(store: Any, root: str, table: str) -> Extent:
    from pyarrow import fs  # noqa: PLC0415 - see condition

    infos = store.get_file_info(fs.FileSelector(f"{root}/{table}", allow_not_found=True, recursive=True))
    files = [info for info in infos if info.type == fs.FileType.File and not info.base_name.startswith((".", "_"))]
    dates = sorted(dates_of(store, root, table))
    total = sum(info.size for info in files)
    return Extent(table, len(files), total, dates[0] if dates else None, dates[-1] if dates else None)


def dates_of(store: Any, root: str, table: str) -> Mapping[dt.date, str]:
    """The days of which a table has rows, with their directories."""
    from pyarrow import fs  # noqa: PLC0415 - see condition

    infos = store.get_file_info(fs.FileSelector(f"{root}/{table}", allow_not_found=True))
    found = {
        info.base_name.removeprefix("date="): info.path for info in infos if info.base_name.startswith("date=")
    }
    return {dt.date.fromisoformat(name): path for name, path in found.items()}


def _read(store: Any, path: str) -> dict[str, Any] | None:
    from pyarrow import fs  # noqa: PLC0415 - see condition

    if store.get_file_info(path).type != fs.FileType.File:
        return None
    with store.open_input_stream(path) as stream:
        told: dict[str, Any] = json.loads(stream.read())
    return told
