"""What recording costs a node, as its message rate with a recorder beside its rate without, in one run.

    python bench/capture.py [--rounds N] [--count N] [--json FILE] [--check]

Two ways of using a node: asks within it, and asks between two processes on loopback that are both recorded. On two
cores the latter leave nothing for the threads that write, so they are also measured with a core more:
both processes on one, what recorders do beside the event loops on the other. Rounds with and without a recorder are
interleaved, and a row shows medians over them. ``encoded`` records into nothing: a message that never leaves its
node has no frames until someone wants them, and that is what having them made costs.

The time of the processor for each message says the same on a machine that is busy with other things, where rates do
not. ``loop`` is that of the event loop's thread, ``all`` that of all threads of the asking process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import platform
import shutil
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from statistics import median

import framewire as fw
from framewire.capture.ledger import COMPILED
from framewire.capture.settings import CaptureSettings
from framewire.capture.waiting import Waiting
from framewire.wire import Message, MessageId, RouterAddress, encode

OUTSTANDING = 100
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
BODY = b"x" * 100
GOAL = 0.85


@fw.message("bench.question")
class Question(bytes):
    """A body of raw bytes, so that the bench is of recording and not of msgpack."""


@fw.message("bench.answer")
class Answer(bytes):
    pass


class Echo(fw.Actor):
    mailbox = 100_000

    @fw.handles(Question)
    async def answer(self, question: Question) -> Answer:
        return Answer(question)


class Nowhere:
    """A recorder that keeps nothing."""

    def open(self, node):
        pass

    def record(self, direction, peer, frames, reason=None, at=0):
        pass

    def close(self):
        pass


class Directory:
    """A directory of captures for one round."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="framewire-bench-")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


def run(coroutine):
    try:
        import uvloop  # noqa: PLC0415 - faster where it is installed
    except ImportError:
        return asyncio.run(coroutine)
    return uvloop.run(coroutine)


def recorder(kind, path, made):
    """A recorder of a kind; recorders that write are also put on a list."""
    if kind == "recorded":
        made.append(fw.Capture(path))
        return made[-1]
    return Nowhere() if kind == "encoded" else None


async def asks(hub, count):
    question = Question(BODY)

    async def asker():
        for _ in range(count // OUTSTANDING):
            await hub.ask(question, Answer)

    loop, everything, started = time.thread_time(), time.process_time(), time.perf_counter()
    await asyncio.gather(*(asker() for _ in range(OUTSTANDING)))
    return {
        "rate": count / (time.perf_counter() - started),
        "loop": (time.thread_time() - loop) / count * 1e6,
        "all": (time.process_time() - everything) / count * 1e6,
    }


async def within(kind, path, count):
    made = []
    async with fw.Node(capture=recorder(kind, path, made), signals=False) as node:
        await node.host(Echo())
        await asks(node.hub, OUTSTANDING * 10)
        found = await asks(node.hub, count)
    return found | {"dropped": sum(capture.dropped for capture in made)}


@contextlib.contextmanager
def on_one_core(wanted):
    """This thread, and all that it starts meanwhile."""
    if not wanted:
        yield
        return
    os.sched_setaffinity(0, CORES[:1])
    try:
        yield
    finally:
        os.sched_setaffinity(0, CORES)


def write_on_another(wanted):
    """The threads of recorders."""
    for thread in threading.enumerate():
        if wanted and thread.name.startswith("framewire capture"):
            os.sched_setaffinity(thread.native_id, CORES[1:])


def serve(kind, path, pipe, spare):
    async def serving():
        made = []
        capture = recorder(kind, path, made)
        async with fw.Node(bind="tcp://127.0.0.1:*", capture=capture, signals=False) as node:
            write_on_another(spare)
            await node.host(Echo())
            pipe.send(node.uri)
            await asyncio.to_thread(pipe.recv)
        pipe.send(sum(capture.dropped for capture in made))

    with on_one_core(spare):
        run(serving())


async def between(kind, path, count, *, spare=False):
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(kind, path, there, spare))
    process.start()
    address = here.recv()
    made = []
    with on_one_core(spare):
        async with fw.Node(peers=[address], capture=recorder(kind, path, made), signals=False) as node:
            write_on_another(spare)
            await node.hub.ask(Question(BODY), Answer, timeout=10)
            await asks(node.hub, OUTSTANDING * 10)
            found = await asks(node.hub, count)
    here.send("end")
    dropped = here.recv()
    process.join()
    return found | {"dropped": dropped + sum(capture.dropped for capture in made)}


WAYS = {
    "within a node": (within, ("off", "encoded", "recorded")),
    "between processes": (between, ("off", "recorded")),
}
if len(CORES) > 1:
    WAYS["with a core more"] = partial(between, spare=True), ("off", "recorded")


def record_calls(count):
    """The part of recording that the event loop waits for, in microseconds a message, in a process at rest."""
    node, hub = b"0" * 36, b"\0" + b"h" * 16
    frames = encode(
        Message(
            b"bench.question",
            body_frames=(BODY,),
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
    # By itself, and taken out now and then as a writer would, so that no other thread gets in the way.
    waiting = Waiting(CaptureSettings(queue_records=10 * count, queue_bytes=1 << 40))
    record, spent = waiting.taker(), 0.0
    for _ in range(0, count, 1000):
        started = time.thread_time()
        for _ in range(1000):
            record("sent", node, frames)
        spent += time.thread_time() - started
        waiting.take()
        waiting.written()
    return spent / count * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds to take the median of (5)")
    parser.add_argument("--count", type=int, default=200_000, help="asks in a round (200000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    options = parser.parse_args()
    rounds = {(way, kind): [] for way, (_, kinds) in WAYS.items() for kind in kinds}
    calls = []
    for _ in range(options.rounds):
        calls.append(record_calls(20_000))
        for way, (measure, kinds) in WAYS.items():
            for kind in kinds:
                with Directory() as path:
                    rounds[way, kind].append(run(measure(kind, path, options.count)))
    print(f"{platform.python_implementation()} {platform.python_version()}, ", end="")
    print(
        f"{'compiled' if COMPILED else 'pure'}, {options.rounds} rounds; a call of record: {median(calls):.2f} µs"
    )
    rows = []
    for (way, kind), found in rounds.items():
        rate, loop, everything = (median(one[name] for one in found) for name in ("rate", "loop", "all"))
        ratio = median(one["rate"] / off["rate"] for one, off in zip(found, rounds[way, "off"], strict=True))
        work = median(one["all"] / off["all"] for one, off in zip(found, rounds[way, "off"], strict=True))
        dropped = sum(one["dropped"] for one in found)
        goal = GOAL if kind == "recorded" else None
        met = goal is None or ratio >= goal
        print(f"{way:<18} {kind:<9} {rate:9,.0f} asks/s   loop {loop:5.1f} µs   all {everything:5.1f} µs", end="")
        print(f"   {ratio:.2f} of the rate, {work:.2f} of the work", end="")
        print(f"  (goal {goal:g})  {'ok' if met else 'missed'}; {dropped:,} dropped" if goal else "")
        rows.append(
            {
                "way": way,
                "kind": kind,
                "rate": rate,
                "loop_us": loop,
                "all_us": everything,
                "ratio": ratio,
                "work": work,
                "dropped": dropped,
                "goal": goal,
                "met": met,
            }
        )
    if options.json:
        found = {
            "python": platform.python_version(),
            "compiled": COMPILED,
            "record_us": median(calls),
            "rows": rows,
        }
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 1 if options.check and not all(row["met"] for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
