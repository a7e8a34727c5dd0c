"""What became of made-up flows, by the same rules by which captures are judged (``docs/synth.md``)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from framewire.synth.block import TIME, Block
from framewire.synth.catalogue import EXCEPTION, FAILURES, KINDS, PARTITIONS
from framewire.synth.cluster import MadeUpCluster
from framewire.synth.pool import Ints
from framewire.synth.rows import DIRECTIONS, Rows
from framewire.synth.shapes import SHAPES
from framewire.synth.tables import TABLES
from framewire.synth.transfers import NEVER, REASONS, Fate, Transfers, reason

__all__ = ["OUTCOMES", "Tally", "flow_table", "message_columns", "readable", "tally"]

OUTCOMES = ("completed", "expired", "failed", "dead", "open")
"""In the order in which they are tried: the first that applies is the outcome."""
_DELIVERED = DIRECTIONS.index("delivered")
_DEAD = DIRECTIONS.index("dead")
_IDENTITIES = pa.array([kind.identity.encode() for kind in KINDS], pa.binary())
_VERSIONS = pa.array([kind.version for kind in KINDS], pa.int32())
_PARTITIONS = pa.array(PARTITIONS, pa.binary())
_LATE = (reason("expired"), reason("late_reply"))


class Tally:
    """What is counted of every unit of a block; the parts of the giant flow are added up."""

    def __init__(self, units: int, nodes: int) -> None:
        self.marks = np.zeros((len(OUTCOMES), units), bool)
        self.failure: Ints = np.full(units, NEVER)
        self.started: Ints = np.full(units, np.iinfo(np.int64).max)
        self.ended: Ints = np.full(units, np.iinfo(np.int64).min)
        self.messages: Ints = np.zeros(units, np.int64)
        self.hops: Ints = np.zeros(units, np.int64)
        self.rows: Ints = np.zeros(units, np.int64)
        self.seen = np.zeros((units, nodes), bool)
        self.reasons = np.zeros((units, len(REASONS)), bool)

    def add(self, unit: int, other: Tally, there: int) -> None:
        """Add what another block knows of one unit."""
        for mine, theirs, together in (
            (self.started, other.started, np.minimum),
            (self.ended, other.ended, np.maximum),
            (self.messages, other.messages, np.add),
            (self.hops, other.hops, np.add),
            (self.rows, other.rows, np.add),
            (self.seen, other.seen, np.logical_or),
            (self.reasons, other.reasons, np.logical_or),
            (self.marks.T, other.marks.T, np.logical_or),
        ):
            mine[unit] = together(mine[unit], theirs[there])

    @property
    def outcome(self) -> Ints:
        """The number of each unit's outcome."""
        first: Ints = np.argmax(self.marks, axis=0)
        return first


def tally(cluster: MadeUpCluster, block: Block) -> Tally:
    """Count what became of every unit of a block."""
    t, rows = block.transfers, readable(block)
    counted = Tally(len(block.flow_ids), cluster.count)
    units = len(block.flow_ids)
    answered = t.to_hub & (t.fate == Fate.DELIVERED)
    died = np.isin(t.fate, (Fate.DEAD, Fate.DEAD_AT_SENDER, Fate.TAMPERED))
    for number, which in enumerate(
        (
            answered & (t.kind != EXCEPTION),
            died & np.isin(t.reason, _LATE),
            answered & (t.kind == EXCEPTION),
            died,
            np.ones(len(t), bool),
        )
    ):
        counted.marks[number, t.unit[which]] = True
    told = np.flatnonzero(answered & (t.kind == EXCEPTION))
    first_last = told[np.argsort(-t.ended_at[told], kind="stable")]
    counted.failure[t.unit[first_last]] = t.failure[first_last]
    unit = t.unit[rows.transfer]
    np.minimum.at(counted.started, unit, rows.true_at)
    np.maximum.at(counted.ended, unit, rows.true_at)
    counted.messages = np.bincount(t.unit[t.fate != Fate.PASSED_ON], minlength=units)
    counted.hops = np.bincount(t.unit[t.remote], minlength=units)
    counted.rows = np.bincount(unit, minlength=units)
    counted.seen[unit, rows.node] = True
    dead = (rows.direction == _DEAD) & (rows.reason != NEVER)
    counted.reasons[unit[dead], rows.reason[dead]] = True
    return counted


def readable(block: Block) -> Rows:
    """The rows that can be decoded."""
    fate = block.transfers.fate[block.rows.transfer]
    return block.rows.select((fate != Fate.MALFORMED) | (block.rows.form == 0))


def flow_table(cluster: MadeUpCluster, block: Block, counted: Tally, units: Ints, shapes: Ints | None) -> pa.Table:
    """The rows of ``flows`` for some units; without shapes it is the giant flow."""
    t = block.transfers
    first = _first_messages(t, units)
    outcome = counted.outcome[units]
    failed = outcome == OUTCOMES.index("failed")
    types = pa.array([told.exception_type for told in FAILURES])
    return pa.Table.from_arrays(
        [
            block.flow_ids.take(pa.array(units)),
            pa.array(list(SHAPES)).take(pa.array(shapes)) if shapes is not None else pa.array(["giant"]),
            pa.array(OUTCOMES).take(pa.array(outcome)),
            types.take(pa.array(counted.failure[units], mask=~failed)),
            pa.array(cluster.identities, pa.binary()).take(pa.array(t.origin[first])),
            *message_columns(t.select(first)),
            pa.array(t.version[first], pa.int32()),
            pa.array(counted.started[units], TIME),
            pa.array(counted.ended[units], TIME),
            pa.array(counted.messages[units], pa.int64()),
            pa.array(counted.hops[units], pa.int64()),
            pa.array(counted.rows[units], pa.int64()),
            pa.array(counted.seen[units].sum(axis=1), pa.int64()),
            _paths(cluster, block, units)
            if shapes is not None
            else pa.nulls(1, TABLES["flows"].field("path").type),
            _lists(counted.reasons[units], REASONS),
        ],
        schema=TABLES["flows"],
    )


def message_columns(t: Transfers) -> list[pa.Array]:
    """Identity, version and partition of messages."""
    return [column.take(pa.array(t.kind)) for column in (_IDENTITIES, _VERSIONS)] + [
        _PARTITIONS.take(pa.array(t.own_partition))
    ]


def _first_messages(t: Transfers, units: Ints) -> Ints:
    """The number of the message that each unit begins with."""
    order = np.lexsort((t.sent_at, t.unit))
    return order[np.searchsorted(t.unit[order], units)]


def _paths(cluster: MadeUpCluster, block: Block, units: Ints) -> pa.Array:
    """Where each flow's messages were delivered, in the order in which it happened."""
    t, rows = block.transfers, block.rows
    delivered = rows.select(rows.direction == _DELIVERED)
    unit = t.unit[delivered.transfer]
    wanted = np.isin(unit, units)
    delivered, unit = delivered.select(wanted), unit[wanted]
    order = np.lexsort((delivered.true_at, unit))
    offsets = np.searchsorted(unit[order], np.append(units, np.iinfo(np.int64).max)).astype(np.int32)
    steps = pa.StructArray.from_arrays(
        [
            pa.array(cluster.identities, pa.binary()).take(pa.array(delivered.node[order])),
            _IDENTITIES.take(pa.array(t.kind[delivered.transfer[order]])),
        ],
        fields=list(TABLES["flows"].field("path").type.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(offsets), steps, type=TABLES["flows"].field("path").type)


def _lists(marks: Ints, names: tuple[str, ...]) -> pa.Array:
    """For each row the names that are marked."""
    offsets = np.zeros(len(marks) + 1, np.int32)
    np.cumsum(marks.sum(axis=1), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(names).take(pa.array(np.nonzero(marks)[1])))
