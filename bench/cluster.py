"""What a message between two processes costs, beside raw pyzmq with the same frames, in one run.

    python bench/cluster.py [--rounds N] [--json FILE] [--check]

Two processes on loopback, a body of 100 bytes, V5. The yardstick sends and receives the same number of frames with
pyzmq's ``send_multipart`` and ``recv_multipart`` and does nothing else: no codec, no routing, no promises.
Rounds are interleaved, and a row shows medians over them. ``FRAMEWIRE_PURE=1`` measures without the extension.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import platform
import time
from pathlib import Path
from statistics import median, quantiles

import msgspec
import zmq

import framewire as fw
from framewire.cluster.channel import COMPILED
from framewire.wire import Message, MessageId, RouterAddress, encode

OUTSTANDING = 1000
BODY = b"x" * 100


@fw.message("bench.question")
class Question(bytes):
    """A body of raw bytes, so that the bench is of the way and not of msgpack."""


@fw.message("bench.answer")
class Answer(bytes):
    pass


@fw.message("bench.note")
class Note(bytes):
    pass


@fw.message("bench.count")
class Count(msgspec.Struct):
    pass


@fw.message("bench.counted")
class Counted(msgspec.Struct):
    notes: int


class Echo(fw.Actor):
    mailbox = 100_000

    def __init__(self):
        self.notes = 0

    @fw.handles(Question)
    async def answer(self, question: Question) -> Answer:
        return Answer(question)

    @fw.handles(Note)
    async def note(self, _: Note) -> None:
        self.notes += 1

    @fw.handles(Count)
    async def count(self, _: Count) -> Counted:
        counted, self.notes = self.notes, 0
        return Counted(counted)


def run(coroutine):
    try:
        import uvloop  # noqa: PLC0415 - faster where it is installed
    except ImportError:
        return asyncio.run(coroutine)
    return uvloop.run(coroutine)


def serve_framewire(address, ready):
    async def serve():
        async with fw.Node(bind=address, identity="server", signals=False) as node:
            await node.host(Echo())
            ready.send(True)
            await asyncio.to_thread(ready.recv)

    run(serve())


async def framewire_client(address, measure, count):
    async with fw.Node(peers=[address], signals=False) as node:
        await node.hub.ask(Question(BODY), Answer, timeout=10)
        return await measure(node.hub, count)


async def one_by_one(hub, count):
    question, times = Question(BODY), []
    for _ in range(count // 10):
        started = time.perf_counter()
        await hub.ask(question, Answer)
        times.append(time.perf_counter() - started)
    return times


async def outstanding(hub, count):
    question = Question(BODY)

    async def asker():
        for _ in range(count // OUTSTANDING):
            await hub.ask(question, Answer)

    started = time.perf_counter()
    await asyncio.gather(*(asker() for _ in range(OUTSTANDING)))
    return count / (time.perf_counter() - started)


async def tells(hub, count):
    note = Note(BODY)
    await hub.ask(Count(), Counted)
    started = time.perf_counter()
    for _ in range(count):
        await hub.tell(note)
    notes = 0
    while notes < count:
        notes += (await hub.ask(Count(), Counted)).notes
    return count / (time.perf_counter() - started)


def serve_raw(address, ready):
    context = zmq.Context()
    server = context.socket(zmq.ROUTER)
    server.set_hwm(100_000)
    server.bind(address)
    ready.send(True)
    notes = 0
    while True:
        frames = server.recv_multipart()
        if frames[3][:1] == b"q":
            server.send_multipart(frames)
        elif frames[3][:1] == b"n":
            notes += 1
        elif frames[3][:1] == b"c":
            server.send_multipart([*frames[:3], b"%d" % notes])
            notes = 0
        else:
            break
    server.close(0)
    context.term()


def raw_frames(kind):
    """The frames of an ask as they are on the wire, the body beginning with what it is for."""
    node, hub = b"0" * 36, b"\0" + b"h" * 16
    return encode(
        Message(
            b"bench.question",
            body_frames=(kind.ljust(100),),
            correlation_id=b"c" * 36,
            ttl_ticks=300_000_000,
            callback_receiver_identity=hub,
            callback_receiver_node_identity=node,
            callback_key=1,
            callback_points=(MessageId(b"bench.answer"), MessageId(b"KINO.EXCEPTION")),
            routing=(RouterAddress("tcp://127.0.0.1:17700", node),),
            hops=1,
        )
    )


def raw_client(address, kind, count):
    context = zmq.Context()
    client = context.socket(zmq.DEALER)
    client.set_hwm(100_000)
    client.connect(address)
    question, note = raw_frames(b"q"), raw_frames(b"n")
    try:
        client.send_multipart(question)
        client.recv_multipart()
        if kind == "one by one":
            times = []
            for _ in range(count // 10):
                started = time.perf_counter()
                client.send_multipart(question)
                client.recv_multipart()
                times.append(time.perf_counter() - started)
            return times
        started = time.perf_counter()
        if kind == "outstanding":
            for _ in range(OUTSTANDING):
                client.send_multipart(question)
            for _ in range(count - OUTSTANDING):
                client.recv_multipart()
                client.send_multipart(question)
            for _ in range(OUTSTANDING):
                client.recv_multipart()
            return count / (time.perf_counter() - started)
        for _ in range(count):
            client.send_multipart(note)
        client.send_multipart(raw_frames(b"c"))
        if client.recv_multipart()[-1] != b"%d" % count:
            raise AssertionError("notes were lost")
        return count / (time.perf_counter() - started)
    finally:
        client.send_multipart(raw_frames(b"end"))
        time.sleep(0.05)
        client.close(0)
        context.term()


class Server:
    def __init__(self, target, port):
        self.address = f"tcp://127.0.0.1:{port}"
        here, there = multiprocessing.get_context("spawn").Pipe()
        self.pipe = here
        self.process = multiprocessing.get_context("spawn").Process(target=target, args=(self.address, there))

    def __enter__(self):
        self.process.start()
        self.pipe.recv()
        return self.address

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):  # the raw server ends when its client says so
            self.pipe.send(True)
        self.process.join(20)


def one_round(count, port):
    found = {}
    for kind, measure in (("one by one", one_by_one), ("outstanding", outstanding), ("tells", tells)):
        with Server(serve_raw, port) as address:
            found["raw", kind] = raw_client(address, kind, count)
        with Server(serve_framewire, port + 1) as address:
            found["framewire", kind] = run(framewire_client(address, measure, count))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds to take the median of (5)")
    parser.add_argument("--count", type=int, default=50_000, help="messages in a round (50000)")
    parser.add_argument("--port", type=int, default=17_700, help="two ports from here on are used (17700)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    options = parser.parse_args()
    rounds = [one_round(options.count, options.port) for _ in range(options.rounds)]
    print(f"{platform.python_implementation()} {platform.python_version()}, ", end="")
    print(f"{'compiled' if COMPILED else 'pure'}, {options.rounds} rounds")
    rows = []
    for kind, better, goal, pure_goal in (
        ("one by one", "less", 0.7, None),
        ("outstanding", "more", 5.0, 1.3),
        ("tells", "more", 8.0, None),
    ):
        goal = goal if COMPILED else pure_goal  # noqa: PLW2901 - the goal that counts here
        if kind == "one by one":
            raw, ours = (median(median(r[who, kind]) for r in rounds) * 1e6 for who in ("raw", "framewire"))
            worst = median(quantiles(r["framewire", kind], n=100)[98] for r in rounds) * 1e6
            ratio = median(median(r["framewire", kind]) / median(r["raw", kind]) for r in rounds)
            print(f"{kind:<14} raw {raw:10,.0f} µs   framewire {ours:10,.0f} µs   p99 {worst:,.0f} µs", end="")
        else:
            raw, ours = (median(r[who, kind] for r in rounds) for who in ("raw", "framewire"))
            ratio = median(r["framewire", kind] / r["raw", kind] for r in rounds)
            print(f"{kind:<14} raw {raw:10,.0f} /s   framewire {ours:10,.0f} /s", end="")
        met = goal is None or (ratio <= goal if better == "less" else ratio >= goal)
        print(f"   {ratio:.2f}x" + (f" (goal {goal:g})  {'ok' if met else 'missed'}" if goal else ""))
        rows.append({"kind": kind, "raw": raw, "framewire": ours, "ratio": ratio, "goal": goal, "met": met})
    if options.json:
        found = {"python": platform.python_version(), "compiled": COMPILED, "rows": rows}
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 1 if options.check and not all(row["met"] for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
