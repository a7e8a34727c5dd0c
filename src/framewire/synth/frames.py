"""The frames of made-up messages: a sheet of numbers into the pool, one row a message, one column a frame.

Columns count from the end, as the formats do: column 0 is the frame n-1. So the fixed frames of a format have fixed
columns, and only the sections above them move. Which frame holds what is read off ``wire.layout``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from framewire.synth.catalogue import EXCEPTION, RECEIPT
from framewire.synth.cluster import MadeUpCluster
from framewire.synth.pool import Ints, Pool
from framewire.synth.rows import Form, Rows
from framewire.synth.transfers import MOST_ROUTERS, NEVER, Fate, Transfers
from framewire.wire.layout import LAYOUTS, V5, Kind, Layout, Section

__all__ = ["NOTHING", "Sheet", "column", "frame_lists"]

NOTHING = -1
"""In a sheet: no frame here."""
_POINTS = 2
"""Callback points of a message that somebody waits for the answer of: the answer and the exception."""
_HEIGHT = max(layout.size for layout in LAYOUTS.values()) + 3 * _POINTS + 2 * MOST_ROUTERS + 1
_TOP, _DELIMITER = _HEIGHT + 1, _HEIGHT
"""The columns of the envelope."""
_TRACED_FLOWS = 97
"""One flow in so many asks for its routing to be traced."""
_WORDS = {Kind.I32: "<i4", Kind.I64: "<i8", Kind.LANES: "<u8"}


def column(layout: Layout, value: str) -> int:
    """The column of the frame that holds a value."""
    holder = layout.holder(value)
    if holder is None:
        raise LookupError(f"V{layout.version} has no frame for {value}")
    return holder.frame - 1


class Sheet:
    """The frames of a block's messages as they are sent, without the envelope."""

    def __init__(
        self,
        cluster: MadeUpCluster,
        pool: Pool,
        transfers: Transfers,
        flow_ids: Ints,
        keys: Ints,
        bodies: Ints,
        signatures: Ints,
    ) -> None:
        self._cluster, self._pool, self._transfers = cluster, pool, transfers
        self._flow_ids, self._keys, self._bodies, self._signatures = flow_ids, keys, bodies, signatures
        self._trailers = {v: pool.add_all([lay.trailer or b""])[0] for v, lay in LAYOUTS.items()}
        self.numbers: Ints = np.full((len(transfers), _TOP + 1), NOTHING, np.int32)
        self.body_column: Ints = np.zeros(len(transfers), np.int64)
        for version, layout in LAYOUTS.items():
            rows = np.flatnonzero(transfers.version == version)
            if len(rows):
                self._fill(layout, rows)

    def _fill(self, layout: Layout, rows: Ints) -> None:
        t = self._transfers.select(rows)
        places = _places(layout, t)
        strings = self._strings(layout, t, rows)
        numbers = {**self._figures(layout, t), **places}
        sheet = np.full((len(rows), _TOP + 1), NOTHING, np.int32)
        for field in layout.fields:
            if field.name in strings:
                frame = strings[field.name]
            elif field.kind is Kind.LANES:
                words = sum(
                    numbers[lane].astype(np.uint64) << np.uint64(16 * n) for n, lane in enumerate(field.lanes)
                )
                frame = self._pool.add_numbers(np.asarray(words), _WORDS[field.kind])
            else:
                value = numbers[field.name]
                frame = self._pool.add_numbers(value, _WORDS[field.kind])
                if field.optional:
                    frame = np.where(value == 0, Pool.EMPTY, frame)
            sheet[:, field.frame - 1] = frame
        for section in layout.sections:
            self._fill_section(sheet, layout, section, t, rows, places)
        self.numbers[rows] = sheet
        holder = layout.holder("body")
        self.body_column[rows] = places["body_offset"] - 1 if holder is None else holder.frame - 1

    def _strings(self, layout: Layout, t: Transfers, rows: Ints) -> dict[str, Ints]:
        """The frames that are known as strings."""
        c = self._cluster
        waits = _callbacks(t)
        signed = t.remote
        return {
            "wire_version": np.where(signed, self._trailers[layout.version], self._trailers[V5.version]),
            "delimiter": np.full(len(t), Pool.EMPTY),
            "correlation_id": self._flow_ids[t.unit],
            "identity": c.identity_at[t.kind],
            "version": (c.version_at if layout.numbered else c.version_text_at)[t.kind],
            "partition": c.partition_at[t.own_partition],
            "receiver_node_identity": np.where(t.to_hub, c.node_at[t.origin], Pool.EMPTY),
            "receiver_identity": np.where(t.to_hub, c.hub_at[t.origin], Pool.EMPTY),
            "callback_receiver_identity": np.where(waits, c.hub_at[t.origin], Pool.EMPTY),
            "callback_receiver_node_identity": np.where(waits, c.node_at[t.origin], Pool.EMPTY),
            "domain": np.where(signed, c.domain_at[t.kind], Pool.EMPTY),
            "signature": self._signatures[rows],
            "body": self._bodies[rows],
        }

    def _figures(self, layout: Layout, t: Transfers) -> dict[str, Ints]:
        """The values that are known as numbers."""
        count = len(t)
        return {
            "ttl": _ttl(layout, t.ttl),
            "trace_options": np.where(t.unit % _TRACED_FLOWS == 1, layout.trace_routing, 0),
            "distribution": t.broadcast.astype(np.int64),
            "callback_key": np.where(_callbacks(t), self._keys[t.unit], 0),
            "hops": t.hops.astype(np.int64),
            "callback_step": np.full(count, 3),
            "routing_step": np.full(count, 2),
        }

    def _fill_section(
        self, sheet: Ints, layout: Layout, section: Section, t: Transfers, rows: Ints, places: dict[str, Ints]
    ) -> None:
        c, step = self._cluster, len(section.entry)
        for entry in range(int(places[section.count].max(initial=0))):
            ours = np.flatnonzero(places[section.count] > entry)
            lowest = places[section.offset][ours] - 1 + entry * step
            if section.name == "body":
                strings = {"body": self._bodies[rows[ours]]}
            elif section.name == "routing":
                routers = t.routers[ours, entry]
                strings = {"identity": c.node_at[routers], "uri": c.uri_at[routers]}
            else:
                kind = t.answer[ours] if entry == 0 else np.full(len(ours), EXCEPTION)
                point = t.select(ours)
                point.kind = kind
                strings = {
                    "identity": c.identity_at[kind],
                    "version": (c.version_at if layout.numbered else c.version_text_at)[kind],
                    "partition": c.partition_at[point.own_partition],
                }
            for field in section.entry:
                sheet[ours, lowest + field.frame] = strings[field.name]

    def rows(self, rows: Rows) -> Ints:
        """The sheet of what was recorded, with its envelopes; damage is not done here."""
        c, t = self._cluster, self._transfers
        sheet = self.numbers[rows.transfer]
        source, target = t.source[rows.transfer], t.target[rows.transfer]
        sheet[:, _TOP] = np.select(
            [rows.form == Form.AS_SENT, rows.form == Form.AS_RECEIVED],
            [c.node_at[target], c.socket_at[source, target]],
            Pool.EMPTY,
        )
        sheet[:, _DELIMITER] = Pool.EMPTY
        self._write_anew(sheet, rows)
        return sheet

    def _write_anew(self, sheet: Ints, rows: Rows) -> None:
        """Let nodes write what died: with what is left of its time, in V5, and without a signature."""
        t = self._transfers
        for version, layout in LAYOUTS.items():
            ours = np.flatnonzero((rows.form == Form.WRITTEN) & (t.version[rows.transfer] == version))
            number = rows.transfer[ours]
            began = np.where(t.received_at[number] == NEVER, t.sent_at[number], t.received_at[number])
            left = np.maximum(t.ttl[number] - 10 * (rows.true_at[ours] - began), 1)
            left = np.where(t.ttl[number] == 0, 0, left)
            sheet[ours, column(layout, "ttl")] = self._pool.add_numbers(_ttl(layout, left), "<i8")
            if layout.trailer is not None:
                sheet[ours, column(layout, "wire_version")] = self._trailers[V5.version]
                sheet[ours, column(layout, "domain")] = Pool.EMPTY
                sheet[ours, column(layout, "signature")] = Pool.EMPTY


def _callbacks(t: Transfers) -> Ints:
    """Which messages say who waits for an answer.

    Where only a receipt is waited for, a node gives it when the message is there, and takes the callback off: that
    shows where the message is written anew, on the node that it never leaves.
    """
    confirmed = (t.answer == RECEIPT) & ~t.to_hub & ~t.remote & (t.fate == Fate.DELIVERED)
    waits: Ints = (t.answer != NEVER) & ~confirmed
    return waits


def _ttl(layout: Layout, ticks: Ints) -> Ints:
    return np.where(ticks == 0, 0, np.maximum(ticks // layout.ticks_per_ttl, 1))


def _places(layout: Layout, t: Transfers) -> dict[str, Ints]:
    """Where the sections lie, and how many entries each has."""
    counts = {
        "callback_points": np.where(_callbacks(t), _POINTS, 0),
        "routing": t.router_count.astype(np.int64),
        "body": np.ones(len(t), np.int64),
    }
    places: dict[str, Ints] = {}
    above: Ints = np.full(len(t), layout.size + 1)
    for section in layout.sections:
        count = counts[section.name]
        places[section.count] = count
        places[section.offset] = np.where(count > 0, above, 0)
        above = above + count * len(section.entry)
    return places


def frame_lists(pool: Pool, sheet: Ints) -> pa.Array:
    """A sheet as what is recorded: for each row the list of its frames, the envelope first."""
    downwards = sheet[:, ::-1]
    there = downwards != NOTHING
    offsets = np.zeros(len(sheet) + 1, np.int32)
    np.cumsum(there.sum(axis=1), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pool.take(downwards[there]))
