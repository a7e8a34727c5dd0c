"""Captures on disk: rows of each node in order of time, in files that are named and cut as a recorder's would be.

Flows of one block go on while those of the next begin. So what may still be preceded by something is kept back.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from framewire.capture.schema import segment_path
from framewire.synth.block import SCHEMA
from framewire.synth.cluster import MadeUpCluster
from framewire.synth.pool import Ints

__all__ = ["SegmentWriter"]

_DAY = 86_400_000_000
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_WAITING = 4
"""Files that may wait to be written: compressing goes on beside the making, but not ever further behind it."""
_ROW_GROUP = 65_536


class SegmentWriter:
    """Writes the segments of all nodes below a directory."""

    def __init__(self, directory: Path, cluster: MadeUpCluster, segment_rows: int) -> None:
        self._directory = directory
        self._cluster = cluster
        self._limit = segment_rows
        self._kept_back = [SCHEMA.empty_table() for _ in range(cluster.count)]
        self._ready = [SCHEMA.empty_table() for _ in range(cluster.count)]
        self._numbers = [0] * cluster.count
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="framewire-synth")
        self._writing: list[Future[None]] = []
        self.files = 0
        self.rows = 0
        self.bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown(wait=True, cancel_futures=error is not None)

    def add(self, table: pa.Table, nodes: Ints, until: int) -> None:
        """Take in rows that are sorted by node and time; none before ``until``, in microseconds, will follow."""
        edges = np.searchsorted(nodes, np.arange(self._cluster.count + 1))
        for node in range(self._cluster.count):
            rows = table.slice(edges[node], edges[node + 1] - edges[node])
            rows = _merged(self._kept_back[node], rows)
            settled = int(np.searchsorted(_times(rows), until))
            self._kept_back[node] = _compact(rows.slice(settled))
            self._queue(node, rows.slice(0, settled))

    def finish(self) -> None:
        """Write everything that is left."""
        for node in range(self._cluster.count):
            self._queue(node, self._kept_back[node])
            self._cut(node, 1)
        for done in self._writing:
            done.result()

    def _queue(self, node: int, rows: pa.Table) -> None:
        self._ready[node] = pa.concat_tables([self._ready[node], rows])
        self._cut(node, self._limit)

    def _cut(self, node: int, least: int) -> None:
        ready = self._ready[node]
        while len(ready) >= least:
            times = _times(ready)
            midnight = (times[0] // _DAY + 1) * _DAY
            size = min(self._limit, int(np.searchsorted(times, midnight)))
            self._seal(node, ready.slice(0, size), int(times[0]))
            ready = ready.slice(size)
        self._ready[node] = ready

    def _seal(self, node: int, rows: pa.Table, first: int) -> None:
        when = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=first)
        ulid = _ulid(first // 1000, self._cluster.seed, node, self._numbers[node])
        self._numbers[node] += 1
        path = self._directory / segment_path(self._cluster.identities[node], when, ulid)
        self.files += 1
        self.rows += len(rows)
        while len(self._writing) >= _WAITING:
            self._writing.pop(0).result()
        self._writing.append(self._thread.submit(self._write, path, rows))

    def _write(self, path: Path, rows: pa.Table) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            rows.combine_chunks(),
            path,
            compression="zstd",
            row_group_size=_ROW_GROUP,
            use_dictionary=["node", "direction", "peer", "reason"],
            sorting_columns=[pq.SortingColumn(0)],
        )
        self.bytes += path.stat().st_size


def _times(rows: pa.Table) -> Ints:
    times: Ints = rows.column("at").cast(pa.int64()).to_numpy()
    return times


def _merged(before: pa.Table, rows: pa.Table) -> pa.Table:
    """Both in order of time; of what happened at the same time, the earlier made first."""
    if not len(before):
        return rows
    # Flows that begin later are mostly later all along: only where the two overlap must anything move.
    overlap = int(np.searchsorted(_times(rows), _times(before)[-1]))
    mixed = pa.concat_tables([before, rows.slice(0, overlap)]).combine_chunks()
    order = np.argsort(_times(mixed), kind="stable")
    return pa.concat_tables([mixed.take(pa.array(order)), rows.slice(overlap)])


def _compact(rows: pa.Table) -> pa.Table:
    """The same rows without the buffers of all others."""
    return rows.take(pa.array(np.arange(len(rows)))) if len(rows) else SCHEMA.empty_table()


def _ulid(milliseconds: int, seed: int, node: int, number: int) -> str:
    """A ULID whose random part is derived from the seed."""
    chance = hashlib.sha256(f"{seed}/{node}/{number}".encode()).digest()[:10]
    value = milliseconds << 80 | int.from_bytes(chance, "big")
    return "".join(_CROCKFORD[value >> 5 * place & 31] for place in range(25, -1, -1))
