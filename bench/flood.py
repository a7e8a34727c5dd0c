"""What good traffic keeps of its rate while somebody floods the node with rubbish, in one run.

    python bench/flood.py [--rounds N] [--flood N] [--json FILE] [--check]

A server and a client with a signed domain, and a flooder without its key, each a process of its own, on loopback.
The client asks as fast as it can. A round measures it without a flood, with each kind of flood against the server,
and, to tell what the flooder itself takes of the machine, with the same flood against a bare socket that drops it.
The flooder sends so many messages a second, if it can, over a connection of its own. The server takes messages of
up to 64 frames; the oversized ones have 100.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import platform
import time
from pathlib import Path
from statistics import median

import zmq
from cluster import Process, bench_keys, serve_framewire, signed_client

import framewire as fw
from framewire.cluster.channel import COMPILED
from framewire.wire import Message, MessageId, RouterAddress, encode

GOAL = 0.7
_SLICE = 0.005


def question(body=b"x" * 100):
    return Message(
        b"bench.question",
        body_frames=(body,),
        correlation_id=b"c" * 36,
        callback_receiver_identity=b"\0" + b"h" * 16,
        callback_receiver_node_identity=b"n" * 36,
        callback_key=1,
        callback_points=(MessageId(b"bench.answer"), MessageId(b"KINO.EXCEPTION")),
        routing=(RouterAddress("tcp://127.0.0.1:9", b"n" * 36),),
        hops=1,
    )


def floods():
    stranger = fw.KeyRing([fw.DomainKey("bench", b"k" * 32)], {"bench": ["bench.*"]})
    return {
        "malformed": [b"", b"", *[b"junk"] * 18],
        "oversized": [b"", b"", *[b"x" * 100] * 98],
        "wrongly signed": encode(stranger.sign(question())),
    }


def serve(address, pipe):
    logging.disable()
    serve_framewire(address, pipe, keyring=bench_keys(), max_frames=64)


def flood(address, kind, rate, pipe):
    """Send rubbish, so much in every few milliseconds, until told to end; how many went out in how long."""
    context = zmq.Context()
    flooder = context.socket(zmq.DEALER)
    flooder.connect(address)
    frames = floods()[kind]
    pipe.send("ready")
    pipe.recv()
    sent, began = 0, time.perf_counter()
    while not pipe.poll(0):
        due = (time.perf_counter() - began) * rate
        with contextlib.suppress(zmq.Again):
            while sent < due:
                flooder.send_multipart(frames, zmq.NOBLOCK, copy=True)
                sent += 1
        time.sleep(_SLICE)
    pipe.recv()
    pipe.send((sent, time.perf_counter() - began))
    context.destroy(0)


def sink(address, pipe):
    context = zmq.Context()
    bound = context.socket(zmq.ROUTER)
    bound.bind(address)
    pipe.send("ready")
    poller = zmq.Poller()
    poller.register(bound, zmq.POLLIN)
    poller.register(pipe.fileno(), zmq.POLLIN)
    while pipe.fileno() not in dict(poller.poll()):
        with contextlib.suppress(zmq.Again):
            while True:
                bound.recv_multipart(zmq.NOBLOCK)
    context.destroy(0)


def asks(port, count, kind=None, rate=0, *, elsewhere=False):
    """Asks a second, and the messages a second of a flood meanwhile."""
    address, other = f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{port + 1}"
    processes = [Process(serve, address)]
    try:
        client = Process(signed_client, address, "asks", count)
        processes.append(client)
        flooder = None
        if kind is not None:
            if elsewhere:
                processes.append(Process(sink, other))
            flooder = Process(flood, other if elsewhere else address, kind, rate)
            processes.append(flooder)
            flooder.pipe.send("go")
            time.sleep(0.2)
        client.pipe.send("go")
        began, ended = client.pipe.recv()
        flooded = 0.0
        if flooder is not None:
            flooder.pipe.send("end")
            sent, seconds = flooder.pipe.recv()
            flooded = sent / seconds
    finally:
        for process in reversed(processes):
            process.end()
    return count / (ended - began), flooded


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds to take the median of (5)")
    parser.add_argument("--count", type=int, default=40_000, help="asks in a measurement (40000)")
    parser.add_argument("--flood", type=int, default=5_000, help="messages of the flood in a second (5000)")
    parser.add_argument("--port", type=int, default=17_800, help="ports from here on are used (17800)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where the goal is missed")
    options = parser.parse_args()
    kinds, port = list(floods()), options.port
    found = {(kind, where): [] for kind in kinds for where in ("quiet", "flood", "sink", "rate")}
    for _ in range(options.rounds):
        for kind in kinds:
            for where, more in (("quiet", {}), ("flood", {}), ("sink", {"elsewhere": True})):
                of = (None, 0) if where == "quiet" else (kind, options.flood)
                each, flooded = asks(port, options.count, *of, **more)
                found[kind, where].append(each)
                if where == "flood":
                    found[kind, "rate"].append(flooded)
                port += 2
    print(f"{platform.python_implementation()} {platform.python_version()}, ", end="")
    print(f"{'compiled' if COMPILED else 'pure'}, {options.rounds} rounds")
    rows = [row(kind, found) for kind in kinds]
    if options.json:
        options.json.write_text(json.dumps({"compiled": COMPILED, "rows": rows}, indent=2) + "\n", encoding="utf-8")
    return 1 if options.check and not all(each["met"] for each in rows) else 0


def row(kind, found):
    quiet, flooded, sunk = (found[kind, where] for where in ("quiet", "flood", "sink"))
    kept = median(one / other for one, other in zip(flooded, quiet, strict=True))
    of_machine = median(one / other for one, other in zip(sunk, quiet, strict=True))
    rate = median(found[kind, "rate"])
    print(
        f"{kind:<15} quiet {median(quiet):8,.0f} /s  flooded {median(flooded):8,.0f} /s with {rate:8,.0f} bad /s   "
        f"keeps {kept:.2f} (goal {GOAL:g})  {'ok' if kept >= GOAL else 'missed'}; flood elsewhere {of_machine:.2f}"
    )
    return {"kind": kind, "quiet": median(quiet), "flooded": median(flooded), "bad": rate, "kept": kept} | {
        "elsewhere": of_machine,
        "goal": GOAL,
        "met": kept >= GOAL,
    }


if __name__ == "__main__":
    raise SystemExit(main())
