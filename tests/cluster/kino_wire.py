"""kino's frames, protobuf and BSON, put together and taken apart by hand.

This shares nothing with framewire, so that one cannot agree with the other's mistakes.
"""

import struct
from dataclasses import dataclass, field

NO_FLOW = b"00000000-0000-0000-0000-000000000000"
EXCEPTION, RECEIPT = b"KINO.EXCEPTION", b"KINO.RCPTCONFIRM"


@dataclass
class Letter:
    """A V5 message; callback points are identities, all of version 1 and without a partition."""

    identity: bytes
    body: bytes = b""
    correlation: bytes = NO_FLOW
    distribution: int = 0
    receiver: bytes = b""
    receiver_node: bytes = b""
    callback_receiver: bytes = b""
    callback_node: bytes = b""
    callback_key: int = 0
    points: list = field(default_factory=list)
    routes: list = field(default_factory=list)
    hops: int = 0
    ttl: int = 0
    trace: int = 0

    def frames(self, socket_id=b""):
        points, routes = len(self.points), len(self.routes)
        return [
            socket_id,
            b"",
            self.body,
            *(part for route in self.routes for part in route),
            *(part for point in self.points for part in (b"", b"\x01\x00", point)),
            self.callback_node,
            struct.pack("<q", self.callback_key),
            b"",
            b"",
            struct.pack("<4H", 18 + 3 * points if routes else 0, routes, 2, self.hops),
            struct.pack("<4H", 18 if points else 0, points, 3, 0),
            self.receiver,
            self.callback_receiver,
            self.receiver_node,
            b"",
            b"\x01\x00",
            self.identity,
            struct.pack("<4H", self.trace, self.distribution, 0, 0),
            self.correlation,
            struct.pack("<q", self.ttl),
            struct.pack("<4H", 18 + 3 * points + 2 * routes, 1, 0, 0),
            b"\x05\x00",
        ]

    @classmethod
    def read(cls, frames):
        def at(offset):
            return frames[len(frames) - offset]

        def lanes(offset):
            return struct.unpack("<4H", at(offset)[:8])

        first_route, routes, step, hops = lanes(13)
        first_point, points, point_step, _ = lanes(12)
        return cls(
            at(6),
            at(lanes(2)[0]),
            at(4),
            lanes(5)[1],
            at(11),
            at(9),
            at(10),
            at(17),
            struct.unpack("<q", at(16)[:8])[0],
            [at(first_point + number * point_step) for number in range(points)],
            [(at(first_route + number * step + 1), at(first_route + number * step)) for number in range(routes)],
            hops,
            struct.unpack("<q", at(3)[:8])[0],
            lanes(5)[0],
        )


# --- protobuf by hand


def number(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def chunk(tag, value):
    raw = value.encode() if isinstance(value, str) else value
    return number(tag << 3 | 2) + number(len(raw)) + raw


def fields(raw):
    """Every field as (tag, value), in order."""
    at, found = 0, []

    def take():
        nonlocal at
        value = shift = 0
        while True:
            byte = raw[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(raw):
        key = take()
        if key & 7 == 0:
            found.append((key >> 3, take()))
        else:
            size = take()
            found.append((key >> 3, raw[at : at + size]))
            at += size
    return found


def milliseconds(value):
    return number(1 << 3) + number(value << 1) + number(2 << 3) + number(4)


def seconds(span):
    """Read a TimeSpan of protobuf-net's."""
    said = dict(fields(span))
    value = said.get(1, 0)
    unit = {0: 86_400, 1: 3_600, 2: 60, 3: 1, 4: 1e-3, 5: 1e-7}[said.get(2, 0)]
    return ((value >> 1) ^ -(value & 1)) * unit


def repeated(tag, values):
    return b"".join(chunk(tag, value) for value in values)


def contract(identity):
    return number(1 << 3) + number(1) + chunk(2, identity) + chunk(3, b"")


# --- BSON by hand


def bson(**texts):
    inside = b"".join(
        b"\x02" + name.encode() + b"\0" + struct.pack("<i", len(text.encode()) + 1) + text.encode() + b"\0"
        for name, text in texts.items()
    )
    return struct.pack("<i", len(inside) + 5) + inside + b"\0"


def bson_texts(raw):
    """The text fields of a document; what else is in it must not be there."""
    end, at, found = struct.unpack_from("<i", raw)[0], 4, {}
    while raw[at] != 0:
        kind, stop = raw[at], raw.index(b"\0", at + 1)
        name = raw[at + 1 : stop].decode()
        if kind != 2:
            break
        size = struct.unpack_from("<i", raw, stop + 1)[0]
        found[name] = raw[stop + 5 : stop + 4 + size].decode()
        at = stop + 5 + size
    assert at < end
    return found
