"""How the cost of a message grows with everything that can grow: ``python -m bench.scaling``.

Servers are processes of their own, on loopback; the client is this one. Each row is asks a second, the median of
rounds that go through all rows in turn. What is looked for are cliffs: a row that falls far below the one before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import multiprocessing.connection
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from bench.cluster import BODY, Answer, Echo, Question

import framewire as fw
from framewire.wire import Message, RouterAddress, decode, encode

SECONDS = 1.0
OUTSTANDING = (1, 10, 100, 1_000, 10_000, 100_000)
NODES = (1, 2, 4, 8, 15)
"""Servers: with the client, clusters of 2 to 16 nodes."""
TYPES = (10, 100, 1_000, 10_000)
PARTITIONS = (1, 100, 1_000, 10_000)
ENTRIES = (0, 1, 10, 100, 255)


@fw.message("bench.partitioned")
class Partitioned(bytes):
    pass


class Partitions(fw.Actor):
    """Handles one message in many partitions, with one method."""

    mailbox = 100_000

    def __init__(self, count: int) -> None:
        self.names = names(count)

    @fw.handles(Partitioned, partitions="names")
    async def answer(self, question: Partitioned) -> Answer:
        return Answer(question)


def names(count: int) -> list[bytes]:
    return [b"tenant-%d" % number for number in range(count)]


def many(count: int) -> tuple[list[type], type[fw.Actor]]:
    """So many message types, and an actor that handles all of them."""
    types = [fw.message(f"bench.kind{number}")(type(f"Kind{number}", (bytes,), {})) for number in range(count)]

    def handler(kind: type) -> Callable[..., object]:
        async def answer(self: fw.Actor, question: bytes) -> Answer:  # noqa: ARG001 - an actor's method
            return Answer(question)

        answer.__annotations__ = {"question": kind, "return": Answer}
        return fw.handles(kind)(answer)

    handlers = {f"answer{number}": handler(kind) for number, kind in enumerate(types)}
    return types, type("Many", (fw.Actor,), {"mailbox": 100_000, **handlers})


def serve(
    address: str, types: int, partitions: int, capture: str | None, pipe: multiprocessing.connection.Connection
) -> None:
    async def run() -> None:
        async with fw.Node(bind=address, signals=False, capture=capture) as node:
            if partitions:
                await node.host(Partitions(partitions))
            await node.host(many(types)[1]() if types else Echo())
            pipe.send(node.uri)
            await asyncio.to_thread(pipe.recv)

    fw.run(run())


@contextmanager
def servers(count: int = 1, types: int = 0, capture: str | None = None, partitions: int = 0) -> Iterator[list[str]]:
    spawning = multiprocessing.get_context("spawn")
    with ExitStack() as ending:
        addresses = []
        for _ in range(count):
            mine, theirs = spawning.Pipe()
            process = spawning.Process(
                target=serve, args=("tcp://127.0.0.1:*", types, partitions, capture, theirs), daemon=True
            )
            process.start()
            ending.callback(process.join, 20)
            ending.callback(mine.send, "end")
            addresses.append(mine.recv())
        yield addresses


async def rate(
    hub: fw.MessageHub, questions: list[bytes], outstanding: int, partitions: list[bytes] | None = None
) -> float:
    """Asks a second, with so many of them open, for about a second."""
    asked = [(question, partition) for question in questions for partition in partitions or [None]]
    end = time.perf_counter() + SECONDS
    done = 0

    async def asker(first: int) -> None:
        nonlocal done
        for question, partition in islice(cycle(asked), first % len(asked), None):
            await hub.ask(question, Answer, timeout=60, partition=partition)
            done += 1
            if time.perf_counter() > end:
                return

    began = time.perf_counter()
    await asyncio.gather(*(asker(number) for number in range(outstanding)))
    return done / (time.perf_counter() - began)


def asked(
    addresses: list[str],
    questions: list[bytes],
    outstanding: int = 1_000,
    capture: str | None = None,
    partitions: list[bytes] | None = None,
) -> float:
    async def run() -> float:
        node = fw.Node(peers=addresses, signals=False, promises=200_000, send_queue=200_000, capture=capture)
        async with node:
            last = None if partitions is None else partitions[-1]
            await node.hub.ask(questions[-1], Answer, timeout=60, partition=last)
            return await rate(node.hub, questions, outstanding, partitions)

    return fw.run(run())


def by_outstanding() -> dict[str, float]:
    with servers() as addresses:
        return {f"{count:,}": asked(addresses, [Question(BODY)], count) for count in OUTSTANDING}


def by_nodes() -> dict[str, float]:
    found = {}
    for count in NODES:
        with servers(count) as addresses:
            found[f"{count + 1}"] = asked(addresses, [Question(BODY)])
    return found


def by_types() -> dict[str, float]:
    found = {}
    for count in TYPES:
        with servers(types=count) as addresses:
            found[f"{count:,}"] = asked(addresses, [kind(BODY) for kind in _types(count)])
    return found


def by_partitions() -> dict[str, float]:
    found = {}
    for count in PARTITIONS:
        with servers(partitions=count) as addresses:
            found[f"{count:,}"] = asked(addresses, [Partitioned(BODY)], partitions=names(count))
    return found


def beside_partitions() -> dict[str, float]:
    """Asks for another message, of a node that also handles many partitions and announces them again and again."""
    found = {}
    for count in PARTITIONS:
        with servers(partitions=count) as addresses:
            found[f"{count:,}"] = asked(addresses, [Question(BODY)])
    return found


def registering_partitions() -> dict[str, float]:
    async def run(count: int) -> tuple[float, float]:
        async with (
            fw.Node(bind="tcp://127.0.0.1:*", signals=False) as one,
            fw.Node(peers=[one.uri], signals=False) as two,
        ):
            await one.host(Echo())
            await two.hub.ask(Question(BODY), Answer)
            began = time.perf_counter()
            await one.host(Partitions(count))
            hosted = time.perf_counter()
            await asyncio.gather(
                *(two.hub.ask(Partitioned(BODY), Answer, partition=name) for name in names(count)[-100:])
            )
            return hosted - began, time.perf_counter() - began

    found = {}
    for count in PARTITIONS:
        hosted, known = fw.run(run(count))
        found[f"{count:,} hosted"] = 1000 * hosted
        found[f"{count:,} known elsewhere"] = 1000 * known
    return found


def _types(count: int) -> list[type]:
    known = _types.__dict__.setdefault("known", [])
    if len(known) < count:
        known.extend(
            fw.message(f"bench.kind{number}")(type(f"Kind{number}", (bytes,), {}))
            for number in range(len(known), count)
        )
    return known[:count]


def by_capture() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory, servers() as plain, servers(capture=f"{directory}/s") as taped:
        return {
            "not captured": asked(plain, [Question(BODY)]),
            "captured on both nodes": asked(taped, [Question(BODY)], capture=f"{directory}/c"),
        }


def by_entries() -> dict[str, float]:
    """Reading and writing again of one message, a second."""
    found = {}
    for count in ENTRIES:
        passed = tuple(RouterAddress("tcp://127.0.0.1:1", b"node") for _ in range(count))
        frames = encode(Message(b"bench.question", body_frames=(BODY,), routing=passed, hops=count))
        done, end = 0, time.perf_counter() + SECONDS / 4
        while time.perf_counter() < end:
            encode(decode(frames))
            done += 1
        found[f"{count}"] = done * 4 / SECONDS
    return found


CURVES = {
    "asks a second, by asks outstanding": by_outstanding,
    "asks a second, by nodes in the cluster": by_nodes,
    "asks a second, by message types": by_types,
    "asks a second, captured or not": by_capture,
    "messages decoded and encoded a second, by routing entries": by_entries,
    "asks a second, by partitions of a message": by_partitions,
    "asks a second for another message, by partitions of its node": beside_partitions,
    "milliseconds until partitions are hosted, and answer another node": registering_partitions,
}


def main() -> None:
    logging.disable(logging.WARNING)  # a hundred thousand tasks are not begun in a second, and a node says so
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="how many rounds to take the median of (3)")
    parser.add_argument("--only", help="curves whose names contain this")
    parser.add_argument("--output", type=Path, default=Path("bench/results/scaling.json"), metavar="FILE")
    options = parser.parse_args()
    chosen = {name: measure for name, measure in CURVES.items() if not options.only or options.only in name}
    rounds = [{name: measure() for name, measure in chosen.items()} for _ in range(options.rounds)]
    found = {name: {row: median(each[name][row] for each in rounds) for row in rounds[0][name]} for name in chosen}
    for name, rows in found.items():
        print(name)
        for row, value in rows.items():
            print(f"  {row:>24} {value:12,.0f}")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    options.output.parent.mkdir(parents=True, exist_ok=True)
    told = {"machine": machine, "rounds": options.rounds, "curves": found}
    options.output.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
