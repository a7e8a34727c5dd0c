"""What the codec costs, as a ratio to the least that Python could do in the same run.

    python bench/wire.py [--rounds N] [--json FILE] [--check]

The yardstick builds the same list of frames from ready bytes with five ``struct.pack`` calls: about what a
writer does that knows every byte beforehand. Every round times the yardstick and all rows one after the other
and takes their ratios, and a row shows the median over the rounds, so that a busy machine disturbs both sides
alike. Garbage collection runs as it does in a program.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import struct
import sys
import timeit
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from framewire.wire import Message, MessageId, RouterAddress, decode, encode, forward, peek

try:
    from framewire.security import DomainKey, KeyRing
except ImportError:
    KeyRing = None

ROUTER = RouterAddress("tcp://10.0.0.2:7400", bytes(range(16, 32)))
SMALL = Message(
    b"orders.place",
    version=2,
    partition=b"eu",
    body_frames=(b"x" * 100,),
    correlation_id=b"5f3c9a1e-0000-4000-8000-000000000001",
    ttl_ticks=50_000_000,
    trace_options=1,
    receiver_node_identity=bytes(range(16)),
    callback_receiver_identity=b"\x00" + bytes(range(16)),
    callback_receiver_node_identity=bytes(range(16)),
    callback_key=42,
    routing=(RouterAddress("tcp://10.0.0.1:7400", bytes(range(16))),),
    hops=1,
    domain="shop",
    signature=bytes(32),
    socket_identity=bytes(range(16)),
)
TYPICAL = SMALL.replace(
    callback_points=(MessageId(b"orders.placed", 1, b"eu"), MessageId(b"orders.refused", 1)),
)
OLD = Message(
    b"orders.place",
    version=b"2.0",
    body_frames=TYPICAL.body_frames,
    correlation_id=TYPICAL.correlation_id,
    ttl_ticks=TYPICAL.ttl_ticks,
    trace_options=2,
    callback_receiver_identity=TYPICAL.callback_receiver_identity,
    callback_points=(MessageId(b"orders.placed", b"1.0"), MessageId(b"orders.refused", b"1.0")),
    routing=TYPICAL.routing,
    hops=1,
    socket_identity=TYPICAL.socket_identity,
    wire_version=1,
)

TYPICAL_FRAMES = encode(TYPICAL)
SMALL_FRAMES = encode(SMALL)
OLD_FRAMES = encode(OLD, 1)

NODE = bytes(range(16))
RECEIVER = b"\x00" + NODE
CORRELATION_ID = TYPICAL.correlation_id
BODY = b"x" * 100
SIGNATURE = bytes(32)


def yardstick():
    """The frames of ``TYPICAL``, from ready bytes and five numbers that have to be packed."""
    return [
        NODE,
        b"",
        BODY,
        b"tcp://10.0.0.1:7400",
        NODE,
        b"",
        b"\x01\x00",
        b"orders.refused",
        b"eu",
        b"\x01\x00",
        b"orders.placed",
        NODE,
        b"\x2a\x00\x00\x00\x00\x00\x00\x00",
        b"shop",
        SIGNATURE,
        struct.pack("<HHHH", 24, 1, 2, 1),
        struct.pack("<HHHH", 18, 2, 3, 0),
        b"",
        RECEIVER,
        NODE,
        b"eu",
        b"\x02\x00",
        b"orders.place",
        struct.pack("<HHHH", 1, 0, 0, 0),
        CORRELATION_ID,
        struct.pack("<q", 50_000_000),
        struct.pack("<HHHH", 26, 1, 0, 0),
        b"\x05\x00",
    ]


def small_yardstick():
    """The frames of ``SMALL``, in the same way."""
    return [
        NODE,
        b"",
        BODY,
        b"tcp://10.0.0.1:7400",
        NODE,
        NODE,
        b"\x2a\x00\x00\x00\x00\x00\x00\x00",
        b"shop",
        SIGNATURE,
        struct.pack("<HHHH", 18, 1, 2, 1),
        struct.pack("<HHHH", 0, 0, 3, 0),
        b"",
        RECEIVER,
        NODE,
        b"eu",
        b"\x02\x00",
        b"orders.place",
        struct.pack("<HHHH", 1, 0, 0, 0),
        CORRELATION_ID,
        struct.pack("<q", 50_000_000),
        struct.pack("<HHHH", 20, 1, 0, 0),
        b"\x05\x00",
    ]


def peek_and_forward(frames):
    peek(frames)
    return forward(frames, ROUTER)


@dataclass(frozen=True)
class Row:
    """One thing to measure: a call, what it is compared with, and how many times as slow it may be."""

    name: str
    call: Callable[[Any], object]
    argument: object
    yardstick: Callable[[], list[bytes]] = yardstick
    goal: float | None = None


@dataclass(frozen=True)
class Result:
    name: str
    microseconds: float
    ratio: float
    goal: float | None

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return ""
        return "ok" if self.ratio <= self.goal else "over"


def rows():
    typical = f"{len(TYPICAL_FRAMES)} frames"
    small = f"{len(SMALL_FRAMES)} frames"
    found = [
        Row(f"encode, {typical}", encode, TYPICAL, goal=10),
        Row(f"decode, {typical}", decode, TYPICAL_FRAMES, goal=14),
        Row(f"peek, {typical}", peek, TYPICAL_FRAMES, goal=3),
        Row(f"peek and forward, {typical}", peek_and_forward, TYPICAL_FRAMES, goal=8),
        Row(f"encode, {small}", encode, SMALL, small_yardstick),
        Row(f"decode, {small}", decode, SMALL_FRAMES, small_yardstick),
        Row(f"peek, {small}", peek, SMALL_FRAMES, small_yardstick),
        Row(f"peek and forward, {small}", peek_and_forward, SMALL_FRAMES, small_yardstick),
        Row(f"decode V1, {len(OLD_FRAMES)} frames", decode, OLD_FRAMES),
    ]
    if KeyRing is not None:
        ring = KeyRing([DomainKey("shop", bytes(range(32)))], identities={"shop": ["orders.*"]})
        signing = Row("sign and verify, HMAC-SHA256", lambda message: ring.verify(ring.sign(message)), TYPICAL)
        found.append(signing)
    return found


def timer(statement, **names):
    # timeit switches the garbage collector off; what a program pays for it belongs to the cost.
    return timeit.Timer(statement, setup="gc.enable()", globals={"gc": gc, **names})


def measure(wanted, rounds, loops):
    """The median time and ratio of every row over interleaved rounds."""
    yardsticks = {row.yardstick: timer("f()", f=row.yardstick) for row in wanted}
    timers = [timer("f(x)", f=row.call, x=row.argument) for row in wanted]
    ratios = [[] for _ in wanted]
    times = {row.name: [] for row in wanted} | {made.__name__: [] for made in yardsticks}
    for number in range(rounds + 1):
        least = {made: clock.timeit(loops) / loops for made, clock in yardsticks.items()}
        spent = [clock.timeit(loops) / loops for clock in timers]
        if number == 0:
            continue  # the first round warms up
        for made, seconds in least.items():
            times[made.__name__].append(seconds)
        for row, seconds, found in zip(wanted, spent, ratios, strict=True):
            times[row.name].append(seconds)
            found.append(seconds / least[row.yardstick])
    micros = {name: median(found) * 1e6 for name, found in times.items()}
    results = [
        Result(row.name, micros[row.name], median(found), row.goal)
        for row, found in zip(wanted, ratios, strict=True)
    ]
    return {made.__name__: micros[made.__name__] for made in yardsticks}, results


def table(yardsticks, results):
    lines = [f"{'':<34}{'µs':>8}{'ratio':>9}{'goal':>7}"]
    for name, micros in yardsticks.items():
        frames = len(yardstick() if name == "yardstick" else small_yardstick())
        lines.append(f"{f'yardstick, {frames} frames':<34}{micros:>8.2f}{1:>8.1f}x")
    for result in results:
        goal = "" if result.goal is None else f"{result.goal:g}x"
        figures = f"{result.microseconds:>8.2f}{result.ratio:>8.1f}x{goal:>7}"
        lines.append(f"{result.name:<34}{figures}  {result.verdict}".rstrip())
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25, help="how many rounds to take the median of (25)")
    parser.add_argument("--loops", type=int, default=2000, help="calls of every row in a round (2000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    options = parser.parse_args()

    if yardstick() != TYPICAL_FRAMES or small_yardstick() != SMALL_FRAMES:
        sys.exit("the yardstick does not build the frames that the codec is measured with")
    yardsticks, results = measure(rows(), options.rounds, options.loops)
    print(f"{platform.python_implementation()} {platform.python_version()}, {options.rounds} rounds")
    print(table(yardsticks, results))
    if options.json:
        found = {
            "python": platform.python_version(),
            "rounds": options.rounds,
            "yardsticks": yardsticks,
            "rows": [asdict(result) | {"verdict": result.verdict} for result in results],
        }
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    over = any(result.verdict == "over" for result in results)
    return 1 if over and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
