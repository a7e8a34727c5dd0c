"""How fast large arrays go from process to process, beside raw pyzmq with the same frames, in one run.

    python bench/bodies.py [--rounds N] [--megabytes N] [--json FILE] [--check]

A struct with one numpy array (codec "msgpack+buffers") is asked of another process, which answers with a few bytes;
two questions are under way at a time. The yardstick sends the same frames with ``send_multipart(copy=False)``,
receives them with ``recv_multipart(copy=False)``, makes an array of the frame as well, and does nothing else.
Rounds are interleaved, and the figures are medians over them. ``FRAMEWIRE_PURE=1`` measures without the extension,
which copies what it receives: the goal is not for that.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import platform
import time
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
import numpy.typing as npt
import zmq
from cluster import Process

import framewire as fw
from framewire.cluster.channel import COMPILED
from framewire.node.payloads import type_of
from framewire.wire import Message, MessageId, RouterAddress, encode

UNDER_WAY = 2
GOAL = 0.7


@fw.message("bench.picture", codec="msgpack+buffers")
class Picture(msgspec.Struct):
    name: str
    pixels: npt.NDArray[np.float64]


@fw.message("bench.seen")
class Seen(msgspec.Struct):
    pixels: int


class Viewer(fw.Actor):
    @fw.handles(Picture)
    async def view(self, picture: Picture) -> Seen:
        return Seen(len(picture.pixels))


def picture(megabytes):
    return Picture("large", np.arange(megabytes * 125_000, dtype=np.float64))


def check(pixels, asked):
    if pixels != len(asked.pixels):
        raise SystemExit(f"{pixels} of {len(asked.pixels)} pixels were seen")


def serve_framewire(address, pipe):
    async def serve():
        async with fw.Node(bind=address, identity="viewer", signals=False) as node:
            await node.host(Viewer())
            pipe.send("ready")
            await asyncio.to_thread(pipe.recv)

    asyncio.run(serve())


def framewire_client(address, megabytes, count, pipe):
    async def client():
        asked = picture(megabytes)

        async def asker():
            for _ in range(count // UNDER_WAY):
                seen = await node.hub.ask(asked, Seen, timeout=60)
                check(seen.pixels, asked)

        async with fw.Node(peers=[address], signals=False) as node:
            await node.hub.ask(asked, Seen, timeout=60)
            pipe.send("ready")
            await asyncio.to_thread(pipe.recv)
            started = time.perf_counter()
            await asyncio.gather(*(asker() for _ in range(UNDER_WAY)))
            pipe.send(time.perf_counter() - started)

    asyncio.run(client())


def serve_raw(address, pipe):
    context = zmq.Context()
    server = context.socket(zmq.ROUTER)
    server.bind(address)
    pipe.send("ready")
    poller = zmq.Poller()
    poller.register(server, zmq.POLLIN)
    poller.register(pipe.fileno(), zmq.POLLIN)
    while pipe.fileno() not in dict(poller.poll()):
        with contextlib.suppress(zmq.Again):
            while True:
                frames = server.recv_multipart(zmq.NOBLOCK, copy=False)
                pixels = np.frombuffer(frames[2].buffer, np.float64)
                server.send_multipart([frames[0].bytes, b"", b"%d" % len(pixels)])
    server.close(0)
    context.term()


def raw_frames(asked):
    """The frames of the same question as it is on the wire; the first is written by the socket."""
    node, hub = b"0" * 36, b"\0" + b"h" * 16
    message = Message(
        b"bench.picture",
        body_frames=type_of(Picture).frames(asked),
        correlation_id=b"c" * 36,
        ttl_ticks=300_000_000,
        routing=(RouterAddress("tcp://127.0.0.1:17700", node),),
        hops=1,
        callback_receiver_identity=hub,
        callback_receiver_node_identity=node,
        callback_key=1,
        callback_points=(MessageId(b"bench.seen"), MessageId(b"KINO.EXCEPTION")),
    )
    return encode(message)[1:]


def raw_client(address, megabytes, count, pipe):
    context = zmq.Context()
    client = context.socket(zmq.DEALER)
    client.connect(address)
    asked = picture(megabytes)
    frames = raw_frames(asked)

    def answered():
        check(int(client.recv_multipart()[-1]), asked)

    client.send_multipart(frames, copy=False)
    answered()
    pipe.send("ready")
    pipe.recv()
    started = time.perf_counter()
    for _ in range(UNDER_WAY):
        client.send_multipart(frames, copy=False)
    for _ in range(count - UNDER_WAY):
        answered()
        client.send_multipart(frames, copy=False)
    for _ in range(UNDER_WAY):
        answered()
    pipe.send(time.perf_counter() - started)
    client.close(0)
    context.term()


def measured(serve, client, address, megabytes, count):
    """Return megabytes a second."""
    server = Process(serve, address)
    try:
        process = Process(client, address, megabytes, count)
        process.pipe.send("go")
        took = process.pipe.recv()
        process.end()
    finally:
        server.end()
    return megabytes * count / took


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds to take the median of (5)")
    parser.add_argument("--megabytes", type=int, default=100, help="size of the array (100)")
    parser.add_argument("--count", type=int, default=20, help="arrays in a measurement (20)")
    parser.add_argument("--port", type=int, default=17_760, help="two ports from here on are used (17760)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where the goal is missed")
    options = parser.parse_args()
    cases = {"raw": (serve_raw, raw_client), "framewire": (serve_framewire, framewire_client)}
    found = {who: [] for who in cases}
    for number in range(options.rounds):
        for place, who in enumerate(sorted(cases, reverse=bool(number % 2))):
            address = f"tcp://127.0.0.1:{options.port + place}"
            found[who].append(measured(*cases[who], address, options.megabytes, options.count))
    ratio = median(one / other for one, other in zip(found["framewire"], found["raw"], strict=True))
    met = ratio >= GOAL if COMPILED else None
    judged = "" if met is None else f" (goal {GOAL:g})  {'ok' if met else 'missed'}"
    print(f"{platform.python_implementation()} {platform.python_version()}, ", end="")
    print(f"{'compiled' if COMPILED else 'pure'}, {options.rounds} rounds")
    print(
        f"arrays of {options.megabytes} MB   raw pyzmq {median(found['raw']):7,.0f} MB/s   framewire "
        f"{median(found['framewire']):7,.0f} MB/s   {ratio:.2f}x{judged}"
    )
    if options.json:
        rows = {"megabytes": options.megabytes, "ratio": ratio, "goal": GOAL, "met": met, **found}
        options.json.write_text(json.dumps({"compiled": COMPILED, "rows": [rows]}, indent=2) + "\n")
    return int(options.check and met is False)


if __name__ == "__main__":
    raise SystemExit(main())
