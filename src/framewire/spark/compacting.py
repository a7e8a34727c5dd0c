"""Many small files made few: each batch leaves files of its own in ``messages`` and ``quarantine``.

A bucket is written anew beside the tables, and takes the place of what was there in one step, of which a note is
left first. So whoever is killed in between, the next one finishes it, and no row is missing then, or there twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from framewire.spark.columns import quoted
from framewire.spark.lake import COMPACTED, Lake
from framewire.spark.tables import TABLES

__all__ = ["BATCHES", "compact", "finish_compaction"]

BATCHES = 16
"""With so many batches in a bucket, the pipeline puts them together by itself."""
_TABLES = ("messages", "traces", "quarantine")
_ROWS_OF_A_FILE = 2_000_000


def compact(lake: Lake, buckets: Iterable[int] | None = None, at_least: int = 2) -> int:
    """Put the batches of some buckets, or of all, together where there are so many; tells in how many buckets."""
    finish_compaction(lake)
    done = 0
    for table in _TABLES:
        for bucket in sorted(lake.every(table) if buckets is None else set(buckets)):
            place = lake.place(table, bucket)
            batches = [name for name in lake.files.names(place) if name.startswith("batch=")]
            if len(batches) >= at_least:
                _put_together(lake, table, place)
                done += 1
    return done


def _put_together(lake: Lake, table: str, place: str) -> None:
    stage = lake.staging(f"compact-{table}")
    rows = lake.read_places(table, [place]).select(*map(quoted, TABLES[table].columns))
    writer = rows.coalesce(1).write.format(lake.format).mode("overwrite").option("compression", "zstd")
    writer.option("maxRecordsPerFile", _ROWS_OF_A_FILE).save(f"{stage}/batch={COMPACTED}")
    lake.files.write(_note(lake), json.dumps({"from": stage, "to": place}))
    finish_compaction(lake)


def finish_compaction(lake: Lake) -> None:
    """Let what was put together take its place, if that was begun."""
    told = lake.files.read(_note(lake))
    if told is None:
        return
    moving = json.loads(told)
    if lake.files.exists(moving["from"]):
        lake.files.move(moving["from"], moving["to"])
    lake.files.remove(_note(lake))


def _note(lake: Lake) -> str:
    return f"{lake.root}/_state/compacting.json"
