"""A block: a run of flows that begin in the same stretch of time, from chance to Arrow.

Blocks bound the memory that making traffic takes. Each draws from a generator of its own, and their size depends
on nothing but the options, so the same options always give the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from framewire.capture.schema import COLUMNS
from framewire.synth.bodies import BodyMaker
from framewire.synth.chains import run_chains
from framewire.synth.cluster import MadeUpCluster, generator
from framewire.synth.crowds import GiantPart, run_fillers, run_gathers, run_giant, run_ticks
from framewire.synth.damage import changed_bodies, damage
from framewire.synth.frames import Sheet, frame_lists
from framewire.synth.network import Network
from framewire.synth.options import Options
from framewire.synth.pool import Ints, Pool, fixed_width
from framewire.synth.rows import DIRECTIONS, Form, Rows, recorded
from framewire.synth.shapes import GATHER, Plan, draw
from framewire.synth.signing import Signer
from framewire.synth.transfers import NEVER, REASONS, Fate, Transfers

__all__ = ["SCHEMA", "TIME", "Block", "BlockMaker"]

_TICK_GROUPS = 0.02
"""Groups of ticks for each flow."""
_MOST_ROWS = 5
"""Rows that a message can leave: sent, and received and delivered twice."""
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
TIME = pa.timestamp("us", tz="UTC")
_TYPES = {
    "timestamp": TIME,
    "binary": pa.binary(),
    "string": pa.string(),
    "array<binary>": pa.list_(pa.binary()),
}
SCHEMA = pa.schema([(name, _TYPES[kind]) for name, (kind, _) in COLUMNS.items()])
"""The columns of a capture."""


@dataclass(slots=True)
class Block:
    """What a block holds: its messages, what was recorded of them, and all that is known about both."""

    plan: Plan
    transfers: Transfers
    rows: Rows
    table: pa.Table
    """The rows as a capture has them, sorted by node and time."""
    flow_ids: pa.Array
    """The correlation id of every unit."""
    flows: Ints
    """The units that are flows, and wholly in this block."""
    giant: int
    """The unit of the giant flow; ``NEVER`` where it is not in this block."""
    damage: Ints
    """For every message which way it was damaged."""


class BlockMaker:
    """Makes the blocks of a run, one after the other."""

    def __init__(self, cluster: MadeUpCluster, options: Options) -> None:
        self._cluster, self._options = cluster, options
        self._bodies, self._signer = BodyMaker(cluster), Signer(cluster)
        self._used_bodies = 0
        self._asked = np.zeros(cluster.count, np.int64)
        self._begun = np.zeros(cluster.count, np.int64)
        self._giant_id = b"%08x-%04x%s" % (2**32 - 1, 2**16 - 1, cluster.flow_suffixes[0])

    def flows(self, number: int, begin: int, end: int, count: int, budget: int, giant: GiantPart | None) -> Block:
        """Flows that begin between two times, as many of them as leave no more rows than the budget.

        The part of the giant flow comes on top of that.
        """
        rng = generator(self._options.seed, "block", number)
        starts = np.sort(rng.integers(begin, end, count))
        plan = draw(self._cluster, self._options, rng, starts)
        network = Network(self._cluster, self._options, rng)
        gathers = plan.shape == GATHER
        run_chains(network, self._cluster, rng, plan, np.flatnonzero(~gathers))
        run_gathers(network, self._cluster, rng, plan, np.flatnonzero(gathers))
        groups = max(1, int(count * _TICK_GROUPS))
        ticks = rng.integers(begin, end, groups)
        run_ticks(network, self._cluster, rng, count + np.arange(groups), ticks)
        unit = count + groups
        if giant is not None:
            run_giant(network, self._cluster, rng, giant, unit)
        transfers = Transfers.joined(network.record)
        kept = self._within_budget(transfers, np.concatenate([starts, ticks]), budget, giant_unit=unit)
        whole = np.flatnonzero(kept[:count])
        transfers = transfers.select(kept[transfers.unit])
        giant_unit = NEVER if giant is None else unit
        return self._finished(rng, plan, transfers, whole, units=unit + 1, giant=giant_unit)

    def fillers(self, number: int, begin: int, end: int, count: int) -> Block:
        """Messages that leave one row each."""
        rng = generator(self._options.seed, "block", number)
        network = Network(self._cluster, self._options, rng)
        origin = rng.integers(0, self._cluster.count, count)
        run_fillers(network, np.arange(count), origin, np.sort(rng.integers(begin, end, count)))
        plan = draw(self._cluster, self._options, rng, np.empty(0, np.int64))
        return self._finished(
            rng, plan, Transfers.joined(network.record), np.empty(0, np.int64), units=count, giant=NEVER
        )

    def _within_budget(self, transfers: Transfers, begin: Ints, budget: int, giant_unit: int) -> Ints:
        """Which units are kept: the earliest, as long as there are rows left for them."""
        kept = np.ones(giant_unit + 1, bool)
        if len(transfers) * _MOST_ROWS <= budget:
            return kept
        rows = recorded(self._cluster, transfers)
        cost = np.bincount(transfers.unit[rows.transfer], minlength=giant_unit + 1)[:giant_unit]
        order = np.argsort(begin, kind="stable")
        kept[order] = np.cumsum(cost[order]) <= budget
        return kept

    def _finished(
        self, rng: np.random.Generator, plan: Plan, transfers: Transfers, flows: Ints, *, units: int, giant: int
    ) -> Block:
        pool = self._cluster.pool()
        ids, keys = self._identify(plan, flows, units)
        if giant != NEVER:
            ids[giant] = np.frombuffer(self._giant_id, np.uint8)
            keys[giant] = 2**31
        flow_ids = fixed_width(ids)
        ids_at = pool.add(flow_ids) + np.arange(units)
        nobody = np.setdiff1d(np.arange(units), np.append(flows, giant))
        ids_at[nobody] = np.where(nobody % 2 == 0, self._cluster.nobody_at, Pool.EMPTY)
        bodies, used = self._bodies.add(pool, transfers, self._used_bodies, rng)
        self._used_bodies += used
        signatures = self._signer.add(pool, transfers, bodies)
        rows = recorded(self._cluster, transfers)
        made = Sheet(self._cluster, pool, transfers, ids_at, keys, bodies, signatures)
        sheet = made.rows(rows)
        ways = self._damage(rng, pool, transfers, rows, sheet, made.body_column, bodies)
        return Block(
            plan=plan,
            transfers=transfers,
            rows=rows,
            table=self._table(pool, rows, sheet),
            flow_ids=pool.take(ids_at),
            flows=flows,
            giant=giant,
            damage=ways,
        )

    def _identify(self, plan: Plan, flows: Ints, units: int) -> tuple[Ints, Ints]:
        """Correlation ids and callback keys, counted by each hub as a hub does."""
        ids, keys = np.zeros((units, 36), np.uint8), np.zeros(units, np.int64)
        for node in range(self._cluster.count):
            ours = flows[plan.origin[flows] == node]
            count = self._cluster.first_flows[node] + self._begun[node] + np.arange(1, len(ours) + 1)
            self._begun[node] += len(ours)
            ids[ours, :8] = _hex(count & 0xFFFFFFFF, 8)
            ids[ours, 8] = ord("-")
            ids[ours, 9:13] = _hex(count >> 32 & 0xFFFF, 4)
            ids[ours, 13:] = np.frombuffer(self._cluster.flow_suffixes[node], np.uint8)
            asking = ours[plan.answer[ours] != NEVER]
            keys[asking] = self._asked[node] + np.arange(1, len(asking) + 1)
            self._asked[node] += len(asking)
        return ids, keys

    def _damage(
        self,
        rng: np.random.Generator,
        pool: Pool,
        t: Transfers,
        rows: Rows,
        sheet: Ints,
        columns: Ints,
        bodies: Ints,
    ) -> Ints:
        fate, on_arrival = t.fate[rows.transfer], rows.form != Form.AS_SENT
        changed = np.flatnonzero((fate == Fate.TAMPERED) & on_arrival)
        if len(changed):
            number = rows.transfer[changed]
            sheet[changed, columns[number]] = changed_bodies(pool, bodies[number])
        broken = np.flatnonzero((fate == Fate.MALFORMED) & on_arrival)
        chance = rng.random(len(t))
        number = rows.transfer[broken]
        ways = np.full(len(t), NEVER)
        ways[number] = damage(sheet, broken, t.version[number], chance[number], pool)
        return ways

    def _table(self, pool: Pool, rows: Rows, sheet: Ints) -> pa.Table:
        nodes = pa.array(self._cluster.identities, pa.binary())
        columns = [
            pa.array(rows.at, TIME),
            nodes.take(pa.array(rows.node)),
            pa.array([str(direction) for direction in DIRECTIONS]).take(pa.array(rows.direction)),
            pool.take(rows.peer),
            pa.array(REASONS).take(pa.array(rows.reason, mask=rows.reason == NEVER)),
            frame_lists(pool, sheet),
        ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)


def _hex(numbers: Ints, digits: int) -> Ints:
    shifts = 4 * np.arange(digits - 1, -1, -1)
    text: Ints = _DIGITS[numbers[:, None] >> shifts & 15]
    return text
