"""Frames made by hand: layouts that a newer writer, or none, would write, and frames that notice being read.

The writers here follow docs/wire.md and use nothing of the codec, so that they can contradict it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

CANONICAL = ("callback_points", "routing", "body")


def lanes(*values):
    """A descriptor: up to four 16-bit lanes, the least significant first."""
    return struct.pack("<4H", *values, *[0] * (4 - len(values)))


def setting(frames, **raws):
    """A copy with some frames replaced: ``setting(frames, n7=b"x")`` changes the frame n-7."""
    out = list(frames)
    for place, raw in raws.items():
        out[-int(place.removeprefix("n"))] = raw
    return out


def laid_out(message, *, order=CANONICAL, gap=0, point_extras=0, route_extras=0, trailer=None, wasted=()):
    """A V4 or V5 message with its sections in any order, ``gap`` frames below each, and larger entries.

    ``wasted`` are frames between the topmost section and the envelope.
    """
    points = [
        [
            point.identity,
            struct.pack("<H", point.version),
            point.partition,
            *unknown("point", i, point_extras),
        ]
        for i, point in enumerate(message.callback_points)
    ]
    routes = [
        [address.identity, address.uri.encode(), *unknown("route", i, route_extras)]
        for i, address in enumerate(message.routing)
    ]
    entries = {
        "callback_points": points,
        "routing": routes,
        "body": [[frame] for frame in message.body_frames],
    }
    above, offsets = stacked(entries, order, gap, first=18)
    trailers = {4: b"\x04\x00\x00\x00", 5: b"\x05\x00"}
    upwards = [
        trailers[message.wire_version] if trailer is None else trailer,
        lanes(offsets["body"], len(message.body_frames)),
        struct.pack("<q", message.ttl_ticks),
        message.correlation_id,
        lanes(message.trace_options, message.distribution),
        message.identity,
        struct.pack("<H", message.version),
        message.partition,
        message.receiver_node_identity,
        message.callback_receiver_identity,
        message.receiver_identity,
        lanes(offsets["callback_points"], len(points), 3 + point_extras),
        lanes(offsets["routing"], len(routes), 2 + route_extras, message.hops),
        message.signature,
        message.domain.encode(),
        struct.pack("<q", message.callback_key),
        message.callback_receiver_node_identity,
        *above,
        *wasted,
    ]
    return enveloped(message, upwards)


def laid_out_v1(message, *, order=CANONICAL[:2], gap=0, ttl_scale=10_000, wasted=()):
    """A V1 message with its sections in any order, and ``gap`` frames below each."""
    entries = {
        "callback_points": [[point.identity, point.version] for point in message.callback_points],
        "routing": [[address.identity, address.uri.encode()] for address in message.routing],
    }
    above, offsets = stacked(entries, order, gap, first=16)
    upwards = [
        message.body_frames[0],
        b"",
        struct.pack("<q", message.ttl_ticks // ttl_scale),
        message.callback_receiver_identity,
        optional(offsets["callback_points"]),
        optional(len(message.callback_points)),
        message.correlation_id,
        struct.pack("<i", message.distribution),
        message.receiver_identity,
        message.identity,
        message.version,
        struct.pack("<q", message.trace_options),
        optional(offsets["routing"]),
        optional(len(message.routing)),
        struct.pack("<i", message.hops),
        *above,
        *wasted,
    ]
    return enveloped(message, upwards)


def stacked(entries, order, gap, first):
    """The frames of all sections from the lowest up, and the offset of each; 0 for one without entries."""
    above, offsets = [], {}
    for name in order:
        if entries[name]:
            above += [b"gap"] * gap
            offsets[name] = first + len(above)
            above += [frame for entry in entries[name] for frame in entry]
        else:
            offsets[name] = 0
    return above, offsets


def enveloped(message, upwards):
    envelope = [] if message.socket_identity is None else [message.socket_identity, b""]
    return envelope + upwards[::-1]


def optional(number):
    return struct.pack("<i", number) if number else b""


def unknown(kind, index, count):
    """Frames of a newer writer on top of an entry, every one with bytes of its own."""
    return [f"new {kind} {index}.{height}".encode() for height in range(count)]


class Watched(Sequence):
    """Frames that remember which of them were read, counted from the end as the formats do."""

    def __init__(self, frames):
        self._frames = list(frames)
        self.reads = []

    def __len__(self):
        return len(self._frames)

    def __getitem__(self, index):
        if isinstance(index, slice):
            self.reads += [len(self) - at for at in range(*index.indices(len(self)))]
        else:
            self.reads.append(-index if index < 0 else len(self) - index)
        return self._frames[index]
