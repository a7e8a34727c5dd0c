"""Messages that were damaged on the way: beyond decoding, each in a way whose name is known, or only a little.

Works on sheets of frames (see ``framewire.synth.frames``), so every way is a change of a few columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from framewire.synth.frames import NOTHING, column
from framewire.synth.pool import Ints, Pool, ragged
from framewire.wire.layout import LAYOUTS, Layout

__all__ = ["WAYS", "changed_bodies", "damage"]

_FRAMES_LEFT = 10
_Change = Callable[[Ints, Layout, Pool], None]


def _too_few_frames(sheet: Ints, _: Layout, __: Pool) -> None:
    sheet[:, _FRAMES_LEFT:-2] = NOTHING


def _unknown_version(sheet: Ints, layout: Layout, pool: Pool) -> None:
    if layout.trailer is None:
        sheet[:, column(layout, "delimiter")] = pool.add_all([b"?"])[0]
    else:
        sheet[:, column(layout, "wire_version")] = pool.add_all([b"\x09\x00"])[0]


def _bad_integer(sheet: Ints, layout: Layout, pool: Pool) -> None:
    sheet[:, column(layout, "ttl")] = pool.add_all([bytes(7)])[0]


def _bad_divisor(sheet: Ints, layout: Layout, pool: Pool) -> None:
    sheet[:, column(layout, "routing_step")] = pool.add_all([_lanes(18, 1, 1, 1)])[0]


def _bad_offset(sheet: Ints, layout: Layout, pool: Pool) -> None:
    if layout.trailer is None:
        sheet[:, column(layout, "routing_count")] = pool.add_all([(1000).to_bytes(4, "little")])[0]
    else:
        sheet[:, column(layout, "body_offset")] = pool.add_all([_lanes(5, 1, 0, 0)])[0]


def _bad_distribution(sheet: Ints, layout: Layout, pool: Pool) -> None:
    raw = (7).to_bytes(4, "little") if layout.trailer is None else _lanes(0, 7, 0, 0)
    sheet[:, column(layout, "distribution")] = pool.add_all([raw])[0]


def _bad_text(sheet: Ints, layout: Layout, pool: Pool) -> None:
    sheet[:, column(layout, "domain")] = pool.add_all([b"\xff\xfe"])[0]


WAYS: dict[str, _Change] = {
    "too_few_frames": _too_few_frames,
    "unknown_version": _unknown_version,
    "bad_integer": _bad_integer,
    "bad_offset": _bad_offset,
    "bad_distribution": _bad_distribution,
    "bad_divisor": _bad_divisor,
    "bad_text": _bad_text,
}
"""The reasons for which decoding can fail, and what makes it fail so. V1 has no frames for the last two."""
_NOT_IN_V1 = 2


def damage(sheet: Ints, rows: Ints, versions: Ints, chance: Ints, pool: Pool) -> Ints:
    """Damage some rows of a sheet, each by its own chance from 0 to 1; returns which way each was damaged."""
    ways = tuple(WAYS.values())
    choices = np.where(versions == 1, len(ways) - _NOT_IN_V1, len(ways))
    taken = (chance * choices).astype(np.int64)
    for version, layout in LAYOUTS.items():
        for number, change in enumerate(ways):
            ours = rows[(versions == version) & (taken == number)]
            if len(ours):
                part = sheet[ours]
                change(part, layout, pool)
                sheet[ours] = part
    return taken


def changed_bodies(pool: Pool, bodies: Ints) -> Ints:
    """Bodies with one bit changed in their last byte, so that they still read as what they were."""
    array = pool.take(bodies)
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1).copy()
    data = np.frombuffer(array.buffers()[2], np.uint8, offsets[-1]).copy()
    data[offsets[1:] - 1] ^= 1
    return pool.add(ragged(data, offsets)) + np.arange(len(bodies), dtype=np.int32)


def _lanes(*lanes: int) -> bytes:
    return np.array(lanes, "<u2").tobytes()
