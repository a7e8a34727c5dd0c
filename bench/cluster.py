"""What a message between two processes costs, beside raw pyzmq with the same frames, in one run.

    python bench/cluster.py [--rounds N] [--json FILE] [--check] [--signed]

A server and 1, 2 or 4 clients, each a process of its own, on loopback; a body of 100 bytes, V5. The yardstick sends
and receives the same frames with pyzmq's ``send_multipart`` and ``recv_multipart`` and does nothing else: no codec,
no routing, no promises. Rounds are interleaved, and a row shows medians over them; the goals are for one client.
``FRAMEWIRE_PURE=1`` measures without the extension. ``--signed`` measures something else: asks of one client with
HMAC-SHA256 on question and answer, replays looked for, beside the same asks without; each goes first in turn.
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
QUICKER = 5
"""How many times as many messages framewire has in a measurement: a third of a second is mostly its beginning."""


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


def serve_framewire(address, pipe, **options):
    async def serve():
        async with fw.Node(bind=address, identity="server", signals=False, **options) as node:
            await node.host(Echo())
            pipe.send("ready")
            await asyncio.to_thread(pipe.recv)

    run(serve())


def framewire_client(address, kind, count, pipe, keyring=None):
    measure = {"one by one": one_by_one, "asks": outstanding, "tells": tells}[kind]

    async def client():
        async with fw.Node(peers=[address], signals=False, keyring=keyring) as node:
            await node.hub.ask(Question(BODY), Answer, timeout=10)
            pipe.send("ready")
            await asyncio.to_thread(pipe.recv)
            pipe.send(await measure(node.hub, count))

    run(client())


def bench_keys():
    return fw.KeyRing([fw.DomainKey("bench", bytes(range(32)))], {"bench": ["bench.*"]})


def serve_signed(address, pipe):
    serve_framewire(address, pipe, keyring=bench_keys())


def signed_client(address, kind, count, pipe):
    framewire_client(address, kind, count, pipe, bench_keys())


async def one_by_one(hub, count):
    question, times = Question(BODY), []
    for _ in range(count // 10):
        started = time.perf_counter()
        await hub.ask(question, Answer)
        times.append(time.perf_counter() - started)
    return times


async def outstanding(hub, count):
    question, askers = Question(BODY), OUTSTANDING

    async def asker():
        for _ in range(count // askers):
            await hub.ask(question, Answer)

    started = time.perf_counter()
    await asyncio.gather(*(asker() for _ in range(askers)))
    return started, time.perf_counter()


async def tells(hub, count):
    note = Note(BODY)
    started = time.perf_counter()
    for _ in range(count):
        await hub.tell(note)
    await hub.ask(Count(), Counted)  # comes after them, for order is kept
    return started, time.perf_counter()


def serve_raw(address, pipe):
    context = zmq.Context()
    server = context.socket(zmq.ROUTER)
    server.set_hwm(100_000)
    server.bind(address)
    pipe.send("ready")
    poller = zmq.Poller()
    poller.register(server, zmq.POLLIN)
    poller.register(pipe.fileno(), zmq.POLLIN)
    ended = False
    while not ended:
        ended = pipe.fileno() in dict(poller.poll())
        with contextlib.suppress(zmq.Again):
            while True:
                frames = server.recv_multipart(zmq.NOBLOCK)
                if frames[3][:1] != b"n":
                    server.send_multipart(frames)
    server.close(0)
    context.term()


def raw_frames(kind):
    """The frames of an ask or a tell as they are on the wire, the body beginning with what it is for."""
    node, hub = b"0" * 36, b"\0" + b"h" * 16
    told = Message(
        b"bench.question",
        body_frames=(kind.ljust(100),),
        correlation_id=b"c" * 36,
        ttl_ticks=300_000_000,
        routing=(RouterAddress("tcp://127.0.0.1:17700", node),),
        hops=1,
    )
    if kind == b"n":
        return encode(told)
    return encode(
        told.replace(
            callback_receiver_identity=hub,
            callback_receiver_node_identity=node,
            callback_key=1,
            callback_points=(MessageId(b"bench.answer"), MessageId(b"KINO.EXCEPTION")),
        )
    )


def raw_client(address, kind, count, pipe):
    context = zmq.Context()
    client = context.socket(zmq.DEALER)
    client.set_hwm(100_000)
    client.connect(address)
    question, note = raw_frames(b"q"), raw_frames(b"n")

    def ask():
        client.send_multipart(question)
        client.recv_multipart()

    ask()
    pipe.send("ready")
    pipe.recv()
    times = []
    started = time.perf_counter()
    if kind == "one by one":
        for _ in range(count // 10):
            before = time.perf_counter()
            ask()
            times.append(time.perf_counter() - before)
    elif kind == "asks":
        for _ in range(OUTSTANDING):
            client.send_multipart(question)
        for _ in range(count - OUTSTANDING):
            client.recv_multipart()
            client.send_multipart(question)
        for _ in range(OUTSTANDING):
            client.recv_multipart()
    else:
        for _ in range(count):
            client.send_multipart(note)
        ask()
    pipe.send(times or (started, time.perf_counter()))
    client.close(0)
    context.term()


class Process:
    """A process of this bench, with a pipe to it."""

    def __init__(self, target, *arguments):
        spawning = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawning.Pipe()
        self.process = spawning.Process(target=target, args=(*arguments, theirs))
        self.process.start()
        theirs.close()
        self.pipe.recv()

    def end(self):
        with contextlib.suppress(BrokenPipeError):  # a client ends by itself
            self.pipe.send("end")
        self.process.join(20)


def measured(serve, client, address, kind, count, clients):
    """Messages a second of all clients together, or the times of single asks."""
    server = Process(serve, address)
    processes = []
    try:
        processes += [Process(client, address, kind, count // clients) for _ in range(clients)]
        for process in processes:
            process.pipe.send("go")
        found = [process.pipe.recv() for process in processes]
    finally:
        for process in (*processes, server):
            process.end()
    if kind == "one by one":
        return found[0]
    return count / (max(end for _, end in found) - min(start for start, _ in found))


def one_round(count, port, most_clients):
    """Each case once. The rates of both are taken over a like time: what is quicker has as many more messages."""
    found = {}
    cases = [("one by one", 1), *((kind, n) for kind in ("asks", "tells") for n in (1, 2, 4) if n <= most_clients)]
    for kind, clients in cases:
        for who, serve, client in (
            ("raw", serve_raw, raw_client),
            ("framewire", serve_framewire, framewire_client),
        ):
            address = f"tcp://127.0.0.1:{port}"
            port += 1
            more = QUICKER if who == "framewire" and COMPILED and kind != "one by one" else 1
            found[who, kind, clients] = measured(serve, client, address, kind, count * more, clients)
    return found


def signed_row(rounds, count, port):
    """Signed asks beside unsigned ones, the order changing from round to round."""
    cases = {"signed": (serve_signed, signed_client), "unsigned": (serve_framewire, framewire_client)}
    found = {who: [] for who in cases}
    for number in range(rounds):
        for who in sorted(cases, reverse=bool(number % 2)):
            serve, client = cases[who]
            found[who].append(measured(serve, client, f"tcp://127.0.0.1:{port}", "asks", count, 1))
            port += 1
    signed, unsigned = (median(found[who]) for who in ("signed", "unsigned"))
    ratio = median(one / other for one, other in zip(found["signed"], found["unsigned"], strict=True))
    best = max(found["signed"]) / max(found["unsigned"])
    print(
        f"asks, HMAC-SHA256   signed {signed:8,.0f} /s  unsigned {unsigned:8,.0f} /s   {ratio:.2f}x of unsigned, "
        f"best of each {best:.2f}x (goal {_SIGNED_GOAL:g})  {'ok' if ratio >= _SIGNED_GOAL else 'missed'}"
    )
    row = {"signed": signed, "unsigned": unsigned, "ratio": ratio, "best": best, "goal": _SIGNED_GOAL}
    return {"kind": "asks, signed", "clients": 1, **row, "met": ratio >= _SIGNED_GOAL}


_SIGNED_GOAL = 0.6


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds to take the median of (5)")
    parser.add_argument("--count", type=int, default=40_000, help="messages in a measurement (40000)")
    parser.add_argument("--clients", type=int, default=4, help="measure with up to so many clients (4)")
    parser.add_argument("--port", type=int, default=17_700, help="14 ports from here on are used (17700)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    parser.add_argument("--signed", action="store_true", help="measure what signatures cost, and nothing else")
    options = parser.parse_args()
    if options.signed:
        return signed(options)
    rounds = [one_round(options.count, options.port, options.clients) for _ in range(options.rounds)]
    print(f"{platform.python_implementation()} {platform.python_version()}, ", end="")
    print(f"{'compiled' if COMPILED else 'pure'}, {options.rounds} rounds")
    goals = {("asks", 1): 5.0, ("tells", 1): 8.0, ("one by one", 1): 0.7} if COMPILED else {("asks", 1): 1.3}
    rows = []
    for _, kind, clients in (case for case in rounds[0] if case[0] == "raw"):
        goal = goals.get((kind, clients))
        if kind == "one by one":
            row = latency_row(rounds)
            met = goal is None or row["ratio"] <= goal
        else:
            row = rate_row(rounds, kind, clients)
            met = goal is None or row["ratio"] >= goal
        print(f"   {row['ratio']:.2f}x" + (f" (goal {goal:g})  {'ok' if met else 'missed'}" if goal else ""))
        rows.append({"kind": kind, "clients": clients, **row, "goal": goal, "met": met})
    return finished(options, rows)


def signed(options):
    print(f"{platform.python_implementation()} {platform.python_version()}, ", end="")
    print(f"{'compiled' if COMPILED else 'pure'}, {options.rounds} rounds")
    return finished(options, [signed_row(options.rounds, options.count, options.port)])


def finished(options, rows):
    if options.json:
        found = {"python": platform.python_version(), "compiled": COMPILED, "rows": rows}
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 1 if options.check and not all(row["met"] for row in rows) else 0


def latency_row(rounds):
    def of(who, summary):
        return median(summary(found[who, "one by one", 1]) for found in rounds) * 1e6

    raw, ours = of("raw", median), of("framewire", median)
    raw_worst, worst = of("raw", p99), of("framewire", p99)
    ratios = [median(r["framewire", "one by one", 1]) / median(r["raw", "one by one", 1]) for r in rounds]
    print(
        f"one by one          raw {raw:8,.0f} µs  framewire {ours:8,.0f} µs (p99 {raw_worst:,.0f}, {worst:,.0f})",
        end="",
    )
    return {"raw": raw, "framewire": ours, "raw_p99": raw_worst, "p99": worst, "ratio": median(ratios)}


def p99(times):
    return quantiles(times, n=100)[98]


def rate_row(rounds, kind, clients):
    raw, ours = (median(r[who, kind, clients] for r in rounds) for who in ("raw", "framewire"))
    ratio = median(r["framewire", kind, clients] / r["raw", kind, clients] for r in rounds)
    print(
        f"{kind + f', {clients} client' + 's' * (clients > 1):<18}  raw {raw:8,.0f} /s  framewire {ours:8,.0f} /s",
        end="",
    )
    return {"raw": raw, "framewire": ours, "ratio": ratio}


if __name__ == "__main__":
    raise SystemExit(main())
