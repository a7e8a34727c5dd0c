"""What a message within a node costs, beside Pykka and beside the least that asyncio could do, in one run.

    python bench/node.py [--rounds N] [--json FILE] [--check]

The yardstick is a bare ``asyncio.Queue`` with a worker that resolves a future: an ask with no routing, no
payload type, no deadline and no error handling. Rounds are interleaved, and a row shows medians over them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import time
from pathlib import Path
from statistics import median

import msgspec
import pykka

import framewire as fw

OUTSTANDING = 100


@fw.message("bench.question")
class Question(msgspec.Struct):
    number: int


@fw.message("bench.answer")
class Answer(msgspec.Struct):
    number: int


@fw.message("bench.note")
class Note(msgspec.Struct):
    number: int


class Answerer(fw.Actor):
    @fw.handles(Question)
    async def answer(self, question: Question) -> Answer:
        return Answer(question.number)


class Listener(fw.Actor):
    def __init__(self, expected):
        self.left = expected
        self.done = asyncio.Event()

    @fw.handles(Note)
    async def note(self, _: Note) -> None:
        self.left -= 1
        if not self.left:
            self.done.set()


class PykkaAnswerer(pykka.ThreadingActor):
    def on_receive(self, message):
        return Answer(message.number)


async def one_by_one(ask, count):
    started = time.perf_counter()
    for _ in range(count):
        await ask()
    return count / (time.perf_counter() - started)


async def outstanding(ask, count):
    async def asker():
        for _ in range(count // OUTSTANDING):
            await ask()

    started = time.perf_counter()
    await asyncio.gather(*(asker() for _ in range(OUTSTANDING)))
    return count // OUTSTANDING * OUTSTANDING / (time.perf_counter() - started)


async def framewire_asks(measure, count):
    async with fw.Node() as node:
        await node.host(Answerer())
        question = Question(1)
        return await measure(lambda: node.hub.ask(question, Answer), count)


async def bare_asks(measure, count):
    queue = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def worker():
        while True:
            question, future = await queue.get()
            future.set_result(Answer(question.number))

    async def ask():
        future = loop.create_future()
        await queue.put((question, future))
        return await future

    question = Question(1)
    task = asyncio.create_task(worker())
    try:
        return await measure(ask, count)
    finally:
        task.cancel()


async def framewire_tells(count):
    async with fw.Node() as node:
        listener = Listener(count)
        await node.host(listener)
        note = Note(1)
        tell = node.hub.tell
        started = time.perf_counter()
        for _ in range(count):
            await tell(note)
        await listener.done.wait()
        return count / (time.perf_counter() - started)


def pykka_asks(count):
    actor = PykkaAnswerer.start()
    question = Question(1)
    try:
        started = time.perf_counter()
        for _ in range(count):
            actor.ask(question)
        return count / (time.perf_counter() - started)
    finally:
        actor.stop()


def one_round(count):
    return {
        "bare asks, one by one": asyncio.run(bare_asks(one_by_one, count)),
        "framewire asks, one by one": asyncio.run(framewire_asks(one_by_one, count)),
        "Pykka asks, one by one": pykka_asks(count // 4),
        "bare asks, 100 outstanding": asyncio.run(bare_asks(outstanding, count)),
        "framewire asks, 100 outstanding": asyncio.run(framewire_asks(outstanding, count)),
        "framewire tells": asyncio.run(framewire_tells(count * 4)),
    }


GOALS = (
    ("framewire asks, one by one", "bare asks, one by one", 0.5),
    ("framewire asks, one by one", "Pykka asks, one by one", 3.0),
    ("framewire asks, 100 outstanding", "bare asks, 100 outstanding", None),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="how many rounds to take the median of (9)")
    parser.add_argument("--count", type=int, default=20_000, help="asks in a round (20000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    options = parser.parse_args()
    one_round(options.count // 10)
    rounds = [one_round(options.count) for _ in range(options.rounds)]
    print(f"{platform.python_implementation()} {platform.python_version()}, {options.rounds} rounds")
    rates = {name: median(found[name] for found in rounds) for name in rounds[0]}
    for name, rate in rates.items():
        print(f"{name:<34}{rate:>10,.0f} a second")
    ratios = []
    for row, yardstick, goal in GOALS:
        ratio = median(found[row] / found[yardstick] for found in rounds)
        ratios.append({"row": row, "yardstick": yardstick, "ratio": ratio, "goal": goal})
        verdict = "" if goal is None else f" (goal {goal:g})  {'ok' if ratio >= goal else 'under'}"
        print(f"{row} / {yardstick}: {ratio:.2f}{verdict}")
    if options.json:
        found = {"python": platform.python_version(), "rates": rates, "ratios": ratios}
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    missed = any(ratio["goal"] is not None and ratio["ratio"] < ratio["goal"] for ratio in ratios)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    raise SystemExit(main())
