"""The truth that is counted rather than listed: edges, handlers, signatures and formats."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from framewire.synth.block import TIME, Block
from framewire.synth.catalogue import FAILURES, KINDS, PARTITIONS
from framewire.synth.cluster import MadeUpCluster
from framewire.synth.outcomes import readable
from framewire.synth.pool import Ints
from framewire.synth.rows import DIRECTIONS, Form
from framewire.synth.transfers import NEVER, Fate, Transfers

__all__ = ["Counts"]

_HOUR, _DAY = 3_600_000_000, 86_400_000_000
_SENT, _RECEIVED, _LOST, _DIED, _FAILED = range(5)
_SIGNATURES = ("none", "signed", "tampered")
_DOMAINS = ("", *sorted({kind.domain for kind in KINDS if kind.domain}))
_DOMAIN_OF = np.array([_DOMAINS.index(kind.domain) for kind in KINDS])
_RAISED = [number for number, told in enumerate(FAILURES) if told.by_handler]
_DELIVERED = DIRECTIONS.index("delivered")
Key = tuple[int, ...]


class Counts:
    """Adds up what the blocks hold. Latencies are all kept, four bytes each, for exact percentiles."""

    def __init__(self, cluster: MadeUpCluster) -> None:
        self._cluster = cluster
        self._edges: dict[Key, Ints] = {}
        self._edge_numbers: dict[Key, int] = {}
        self._latencies: list[tuple[Ints, Ints]] = []
        self._handlers: dict[Key, Ints] = {}
        self._audit: Counter[Key] = Counter()
        self._adoption: Counter[Key] = Counter()

    def add(self, block: Block) -> None:
        """Count a block in."""
        failed = _failed(block.transfers)
        self._add_edges(block.transfers, failed)
        self._add_handlers(block, failed)
        self._add_rows(block)

    def _add_edges(self, transfers: Transfers, failed: Ints) -> None:
        t, failed = transfers.select(transfers.remote), failed[transfers.remote]
        hours = (t.sent_at + self._cluster.offsets[t.source]) // _HOUR
        keys, which = _distinct(t.source, t.target, t.kind, t.own_partition, hours)
        numbers = np.array([self._edge_numbers.setdefault(key, len(self._edge_numbers)) for key in keys], np.int32)
        received = ~np.isin(t.fate, (Fate.LOST, Fate.MALFORMED, Fate.TAMPERED))
        counted = np.stack(
            [
                np.bincount(which[mask], minlength=len(keys))
                for mask in (
                    np.ones(len(t), bool),
                    received,
                    ~received | (t.fate == Fate.VANISHED),
                    t.fate == Fate.DEAD,
                    failed,
                )
            ],
            axis=1,
        )
        _sum(self._edges, keys, counted)
        latency = (t.received_at - t.sent_at)[received].astype(np.int32)
        self._latencies.append((numbers[which[received]], latency))

    def _add_handlers(self, block: Block, failed: Ints) -> None:
        t = block.transfers
        rows = block.rows.select(block.rows.direction == _DELIVERED)
        number = rows.transfer[~t.to_hub[rows.transfer]]
        keys, which = _distinct(t.target[number], t.kind[number], t.own_partition[number])
        failures = np.bincount(which, weights=failed[number], minlength=len(keys)).astype(np.int64)
        _sum(self._handlers, keys, np.stack([np.bincount(which, minlength=len(keys)), failures], axis=1))

    def _add_rows(self, block: Block) -> None:
        rows = readable(block)
        t = block.transfers.select(rows.transfer)
        on_the_wire = (rows.form != Form.WRITTEN) & (t.version != 1)
        domain = np.where(on_the_wire, _DOMAIN_OF[t.kind], 0)
        signed = on_the_wire & (self._cluster.signs[t.kind] != NEVER)
        changed = (t.fate == Fate.TAMPERED) & (rows.form == Form.AS_RECEIVED)
        state = np.where(signed, np.where(changed, 2, 1), 0)
        keys, which = _distinct(rows.node, rows.at // _HOUR, domain, state)
        self._audit.update(dict(zip(keys, np.bincount(which, minlength=len(keys)).tolist(), strict=True)))
        version = np.where((rows.form == Form.WRITTEN) & (t.version != 1), 5, t.version)
        keys, which = _distinct(rows.node, rows.at // _DAY, version)
        self._adoption.update(dict(zip(keys, np.bincount(which, minlength=len(keys)).tolist(), strict=True)))

    def tables(self) -> dict[str, list[pa.Array]]:
        """The columns of each table, sorted by what is counted."""
        return {
            "edges": self._edge_columns(),
            "handlers": self._handler_columns(),
            "audit": self._audit_columns(),
            "adoption": self._adoption_columns(),
        }

    def _edge_columns(self) -> list[pa.Array]:
        keys = sorted(self._edges)
        source, target, kind, partition, hour = _columns(keys, 5)
        counted = np.stack([self._edges[key] for key in keys]) if keys else np.zeros((0, 5), np.int64)
        return [
            self._nodes(source),
            self._nodes(target),
            *_messages(kind, partition),
            pa.array(hour * _HOUR, TIME),
            *(pa.array(counted[:, column]) for column in (_SENT, _RECEIVED, _LOST, _DIED, _FAILED)),
            *self._percentiles(keys),
        ]

    def _percentiles(self, keys: list[Key]) -> list[pa.Array]:
        """Percentiles for every edge at once, between two latencies as much as lies between their places."""
        edges = np.concatenate([edge for edge, _ in self._latencies] or [np.empty(0, np.int32)])
        latencies = np.concatenate([latency for _, latency in self._latencies] or [np.empty(0, np.int32)])
        latencies = np.append(latencies[np.lexsort((latencies, edges))], 0)
        numbers = np.array([self._edge_numbers[key] for key in keys], np.int64)
        counts = np.bincount(edges, minlength=len(keys))
        begins = (np.cumsum(counts) - counts)[numbers]
        last = counts[numbers] - 1
        columns = []
        for part in (0.5, 0.95, 0.99):
            place = np.maximum(last, 0) * part
            below = place.astype(np.int64)
            lower, upper = latencies[begins + below], latencies[begins + np.minimum(below + 1, np.maximum(last, 0))]
            columns.append(pa.array(lower + (upper - lower) * (place - below), pa.float64(), mask=last < 0))
        return columns

    def _handler_columns(self) -> list[pa.Array]:
        keys = sorted(self._handlers)
        node, kind, partition = _columns(keys, 3)
        counted = np.stack([self._handlers[key] for key in keys]) if keys else np.zeros((0, 2), np.int64)
        return [self._nodes(node), *_messages(kind, partition), pa.array(counted[:, 0]), pa.array(counted[:, 1])]

    def _audit_columns(self) -> list[pa.Array]:
        keys = sorted(self._audit)
        node, hour, domain, state = _columns(keys, 4)
        return [
            self._nodes(node),
            pa.array(hour * _HOUR, TIME),
            pa.array(_DOMAINS).take(pa.array(domain)),
            pa.array(_SIGNATURES).take(pa.array(state)),
            pa.array([self._audit[key] for key in keys], pa.int64()),
        ]

    def _adoption_columns(self) -> list[pa.Array]:
        keys = sorted(self._adoption)
        node, day, version = _columns(keys, 3)
        rows = pa.array([self._adoption[key] for key in keys], pa.int64())
        return [self._nodes(node), pa.array(day * _DAY, TIME), pa.array(version, pa.int32()), rows]

    def _nodes(self, numbers: Ints) -> pa.Array:
        return pa.array(self._cluster.identities, pa.binary()).take(pa.array(numbers))


def _failed(t: Transfers) -> Ints:
    """Which messages' handlers raised: those that an exception of the same unit, from where they went, is about."""
    told = t.select(np.isin(t.failure, _RAISED))
    scale = len(KINDS)
    where = (t.unit.astype(np.int64) * 1000 + t.target) * scale + t.kind
    blamed = (told.unit.astype(np.int64) * 1000 + told.source) * scale + told.about
    failed: Ints = (t.fate == Fate.DELIVERED) & ~t.to_hub & np.isin(where, blamed)
    return failed


def _distinct(*columns: Ints) -> tuple[list[Key], Ints]:
    """The different rows of some columns, and which of them each row is."""
    if not len(columns[0]):
        return [], np.empty(0, np.int64)
    # One number a row sorts many times faster than rows of several.
    packed = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low = int(column.min())
        packed = packed * (int(column.max()) - low + 1) + (column - low)
    _, first, which = np.unique(packed, return_index=True, return_inverse=True)
    return [tuple(key) for key in np.stack([column[first] for column in columns], axis=1).tolist()], which


def _sum(totals: dict[Key, Ints], keys: list[Key], counted: Ints) -> None:
    for key, numbers in zip(keys, counted, strict=True):
        totals[key] = totals[key] + numbers if key in totals else numbers


def _columns(keys: list[Key], count: int) -> Ints:
    return np.array(keys, np.int64).reshape(-1, count).T


def _messages(kind: Ints, partition: Ints) -> list[pa.Array]:
    identities = pa.array([known.identity.encode() for known in KINDS], pa.binary())
    versions = pa.array([known.version for known in KINDS], pa.int32())
    partitions = pa.array(PARTITIONS, pa.binary())
    return [
        identities.take(pa.array(kind)),
        versions.take(pa.array(kind)),
        partitions.take(pa.array(partition)),
    ]
