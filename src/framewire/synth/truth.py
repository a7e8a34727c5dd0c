"""The truth about made-up traffic, written beside the captures: what a reader of them should find."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from framewire.synth.block import TIME, Block
from framewire.synth.catalogue import KINDS
from framewire.synth.cluster import MadeUpCluster
from framewire.synth.counts import Counts
from framewire.synth.damage import WAYS
from framewire.synth.options import Options
from framewire.synth.outcomes import OUTCOMES, Tally, flow_table, message_columns, readable, tally
from framewire.synth.pool import Ints
from framewire.synth.rows import DIRECTIONS, Form
from framewire.synth.tables import TABLES
from framewire.synth.transfers import NEVER, REASONS, Fate, Transfers

__all__ = ["TruthWriter"]

_RECEIVED = DIRECTIONS.index("received")
_DEAD = DIRECTIONS.index("dead")
_DOMAINS = pa.array([kind.domain for kind in KINDS])
_UNMATCHED = {Fate.LOST: "lost", Fate.MALFORMED: "malformed", Fate.TAMPERED: "tampered"}
"""Why what was sent is not received: it never came, or it came as something else."""


class TruthWriter:
    """Writes the tables block by block; those that count are written at the end."""

    def __init__(self, directory: Path, cluster: MadeUpCluster, options: Options) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._cluster = directory, cluster
        self._nodes = pa.array(cluster.identities, pa.binary())
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._counts = Counts(cluster)
        self._giant: Tally | None = None
        self._giant_began: Block | None = None
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self.rows = dict.fromkeys(TABLES, 0)
        keys = directory / "keys.toml"
        keys.touch(mode=0o600)
        keys.chmod(0o600)  # a key file that others can read is refused, be it made up or not
        keys.write_text(cluster.key_file())
        told = {name: getattr(options, name) for name in options.__slots__}
        text = json.dumps(
            {**told, "versions": {str(v): part for v, part in options.versions.items()}}, default=str, indent=2
        )
        (directory / "options.json").write_text(text + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.close()

    def add(self, block: Block) -> None:
        """Take in what is known of a block."""
        self._flows(block)
        self._hops(block)
        self._losses(block)
        self._tampered(block)
        self._malformed(block)
        self._duplicates(block)
        self._dead(block)
        self._counts.add(block)

    def finish(self) -> None:
        """Write what only the end can tell."""
        if self._giant is not None and self._giant_began is not None:
            unit = np.array([0])
            self._write_flows(flow_table(self._cluster, self._giant_began, self._giant, unit, None))
        cluster = self._cluster
        columns = [
            self._nodes,
            pa.array(cluster.uris),
            pa.array(cluster.hubs, pa.binary()),
            pa.array(cluster.offsets),
        ]
        self._write("skew", columns)
        for name, table in self._counts.tables().items():
            self._write(name, table)
        for name in TABLES.keys() - self._writers.keys():
            self._write(name, TABLES[name].empty_table().columns)

    def _flows(self, block: Block) -> None:
        counted = tally(self._cluster, block)
        if block.giant != NEVER:
            if self._giant is None:
                self._giant = Tally(1, self._cluster.count)
                self._giant_began = _only(block, block.giant)
            self._giant.add(0, counted, block.giant)
        if len(block.flows):
            shapes = block.plan.shape[block.flows]
            self._write_flows(flow_table(self._cluster, block, counted, block.flows, shapes))

    def _write_flows(self, table: pa.Table) -> None:
        for outcome in table.column("outcome").value_counts().to_pylist():
            self.outcomes[outcome["values"]] += outcome["counts"]
        self._write("flows", table.columns)

    def _hops(self, block: Block) -> None:
        t = block.transfers
        t, ids = _part(block, t.remote & ~np.isin(t.fate, list(_UNMATCHED)))
        clocks = self._cluster.offsets
        self._write(
            "hops",
            [
                ids,
                *self._way(t),
                *message_columns(t),
                pa.array(t.sent_at + clocks[t.source], TIME),
                pa.array(t.received_at + clocks[t.target], TIME),
                pa.array(t.received_at - t.sent_at),
            ],
        )

    def _losses(self, block: Block) -> None:
        causes = np.array([_UNMATCHED.get(fate, "vanished") for fate in Fate])
        lost = [*_UNMATCHED, Fate.VANISHED]
        t, ids = _part(block, np.isin(block.transfers.fate, lost))
        vanished = t.fate == Fate.VANISHED
        clocks = self._cluster.offsets
        at = np.where(vanished, t.received_at + clocks[t.target], t.sent_at + clocks[t.source])
        kinds = np.where(vanished, "not_delivered", "not_received")
        columns = [ids, pa.array(kinds, pa.string()), pa.array(causes[t.fate], pa.string()), *self._way(t)]
        self._write("losses", [*columns, *message_columns(t), pa.array(at, TIME)])

    def _tampered(self, block: Block) -> None:
        t, ids = _part(block, block.transfers.fate == Fate.TAMPERED)
        at = pa.array(t.received_at + self._cluster.offsets[t.target], TIME)
        domains = _DOMAINS.take(pa.array(t.kind))
        self._write("tampered", [ids, self._named(t.target), at, *self._way(t), *message_columns(t), domains])

    def _malformed(self, block: Block) -> None:
        rows = block.rows
        rows = rows.select((block.transfers.fate[rows.transfer] == Fate.MALFORMED) & (rows.form != Form.AS_SENT))
        t = block.transfers.select(rows.transfer)
        self._write(
            "malformed",
            [
                self._named(rows.node),
                pa.array(rows.at, TIME),
                pa.array(list(DIRECTIONS)).take(pa.array(rows.direction)),
                *self._way(t),
                pa.array(t.version, pa.int32()),
                pa.array(list(WAYS)).take(pa.array(block.damage[rows.transfer])),
            ],
        )

    def _duplicates(self, block: Block) -> None:
        t, ids = _part(block, block.transfers.again_at != NEVER)
        clock = self._cluster.offsets[t.target]
        times = [pa.array(t.received_at + clock, TIME), pa.array(t.again_at + clock, TIME)]
        then = pa.array(np.where(t.to_hub, "duplicate_reply", "delivered"), pa.string())
        self._write("duplicates", [ids, *self._way(t), *message_columns(t), *times, then])

    def _dead(self, block: Block) -> None:
        rows = readable(block)
        rows = rows.select(rows.direction == _DEAD)
        t = block.transfers.select(rows.transfer)
        reasons = pa.array(REASONS).take(pa.array(rows.reason))
        ids = block.flow_ids.take(pa.array(t.unit))
        self._write("dead", [ids, self._named(rows.node), pa.array(rows.at, TIME), reasons, *message_columns(t)])

    def _way(self, t: Transfers) -> list[pa.Array]:
        return [self._named(t.source), self._named(t.target)]

    def _named(self, nodes: Ints) -> pa.Array:
        return self._nodes.take(pa.array(nodes))

    def _write(self, name: str, columns: list[pa.Array]) -> None:
        table = pa.Table.from_arrays(columns, schema=TABLES[name])
        if name not in self._writers:
            self._writers[name] = pq.ParquetWriter(
                self._directory / f"{name}.parquet", table.schema, compression="zstd"
            )
        self._writers[name].write_table(table)
        self.rows[name] += len(table)


def _part(block: Block, which: Ints) -> tuple[Transfers, pa.Array]:
    """Some of the messages, and the correlation id of each."""
    chosen = block.transfers.select(which)
    return chosen, block.flow_ids.take(pa.array(chosen.unit))


def _only(block: Block, unit: int) -> Block:
    """A block that holds nothing but the first message of one unit, under number 0: what its row is made from."""
    ours = np.flatnonzero(block.transfers.unit == unit)
    first = block.transfers.select(ours[np.argsort(block.transfers.sent_at[ours])[:1]])
    first.unit = np.array([0])
    none = np.empty(0, np.int64)
    return Block(
        plan=block.plan,
        transfers=first,
        rows=block.rows.select(none),
        table=block.table.slice(0, 0),
        flow_ids=block.flow_ids.slice(unit, 1),
        flows=none,
        giant=NEVER,
        damage=none,
    )
