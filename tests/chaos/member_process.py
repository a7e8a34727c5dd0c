"""A node that answers, and asks the others without end: ``member_process.py OPTIONS``, as JSON.

It is told what to do by lines on its input, and answers each with a line of JSON: ``table`` (who handles what, as
far as it knows), ``quiet`` (ask no more; answered when every ask has ended), ``ask`` (go on), ``counts``, ``pulse``
(how it goes since the last), ``clock``, ``files N`` (open so many more at most). When its input ends, or on
SIGTERM, it drains.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import random
import resource
import sys
import time
from collections import Counter
from pathlib import Path

from tests.chaos.journal import REPLIED, WRONG, Journal
from tests.chaos.messages import DOMAIN, NUMBERED, Answered, Answering, Chained, Numbered

import framewire as fw
from framewire.security import DomainKey, KeyRing

UNTYPED = "untyped: "


class Asker:
    """Asks at a steady rate, whatever becomes of the asks; every one is numbered and written down."""

    def __init__(self, node, journal, options):
        self._node = node
        self._journal = journal
        self._rate = options["rate"]
        self._timeouts = options.get("timeouts", (0.5, 3.0))
        self._slowest = options.get("slowest", 0.05)
        self._plain = options.get("plain", False)
        self._random = random.Random(options["seed"])  # noqa: S311 - from a seed, to be had again
        self._numbers = (f"{options['identity']}#{count}" for count in itertools.count(1))
        self._asking = asyncio.Event()
        self._outcomes = Counter()
        self._times = []
        self._open = set()
        self._task = asyncio.create_task(self._run())

    def go(self):
        self._asking.set()

    async def quiet(self):
        """Ask no more, and wait for the end of what was asked."""
        self._asking.clear()
        while self._open:
            await asyncio.wait(self._open)

    def pulse(self):
        """What became of asks so far, how many wait, and the seconds that the answers since the last pulse took."""
        times, self._times = sorted(self._times), []
        middle, late = (times[int(len(times) * part)] for part in (0.5, 0.99)) if times else (0.0, 0.0)
        pending = sum(1 for _ in self._node.hub.pending)
        return {"outcomes": dict(self._outcomes), "pending": pending, "median": middle, "p99": late}

    async def close(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.quiet()

    async def _run(self):
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            if not self._asking.is_set():
                await self._asking.wait()
                due = loop.time()
            now = loop.time()
            due = max(due, now - 0.1)  # what a process missed while it stood still is not made up for
            while due <= now:
                due += 1 / self._rate
                asking = asyncio.create_task(self._ask(next(self._numbers)))
                self._open.add(asking)
                asking.add_done_callback(self._open.discard)
            await asyncio.sleep(due - now)

    async def _ask(self, number):
        chance = self._random
        timeout = chance.uniform(*self._timeouts)
        seconds = chance.uniform(0, self._slowest)
        kind = 1.0 if self._plain else chance.random()
        payload, to = Numbered(number, seconds), None
        if kind < 0.15:
            payload = Chained(number, seconds)
        elif kind < 0.3:
            others = sorted(self._node._router.table.nodes)
            to = chance.choice(others) if others else None
        elif kind < 0.35:
            payload = Numbered(number, seconds, fails=True)
        self._journal.asked(number, timeout)
        began = time.monotonic()
        try:
            answer = await self._node.hub.ask(payload, Answered, timeout=timeout, to_node=to)
        except fw.MessageError as problem:
            outcome = type(problem).__name__
        except Exception as problem:  # noqa: BLE001 - this is what must not be, so it is told
            outcome = f"{UNTYPED}{problem!r}"
        else:
            outcome = REPLIED if answer.number == number else WRONG
            self._times.append(time.monotonic() - began)
        self._outcomes[outcome] += 1
        self._journal.ended(number, outcome)


async def lines():
    """What comes in on the standard input, line by line."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode().strip()


def say(**told):
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


async def obey(node, asker):
    async for line in lines():
        if line == "table":
            routes = node._router.table.all(NUMBERED)
            say(table=sorted({(route.node or node.identity).decode() for route in routes}))
        elif line == "quiet":
            await asker.quiet()
            say(pending=sum(1 for _ in node.hub.pending))
        elif line == "ask":
            asker.go()
            say(asking=True)
        elif line == "pulse":
            say(**asker.pulse())
        elif line == "clock":
            say(time=time.time())
        elif line.startswith("files "):
            say(limit=leave(int(line.split()[1])))
        elif line == "counts":
            say(dead={str(reason): count for reason, count in node.dead_letters.counts.items()})


def leave(count):
    """Let the process open only so many files more; how many that are in all."""
    limit = len(list(Path("/proc/self/fd").iterdir())) - 1 + count  # one is for the look itself
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    return limit


def keys():
    """The key ring that the environment holds, if any; the key was made for this run alone."""
    secret = os.environ.get("CHAOS_KEY")
    if not secret:
        return None
    return KeyRing([DomainKey(DOMAIN, bytes.fromhex(secret))], {DOMAIN: ["chaos.*"]})


async def main(options):
    told = options["node"]
    told["rendezvous"] = [tuple(server) if isinstance(server, list) else server for server in told["rendezvous"]]
    journal = Journal(options["journal"])
    with contextlib.closing(journal):
        async with fw.Node(identity=options["identity"], keyring=keys(), **told) as node:
            if options.get("answers", True):
                await node.host(Answering(journal.handled))
            asker = Asker(node, journal, options)
            if options.get("asks", True):
                asker.go()
            say(identity=options["identity"])
            try:
                await obey(node, asker)
            finally:
                await asker.close()


if __name__ == "__main__":
    logging.basicConfig(level=os.environ.get("CHAOS_LOG", "CRITICAL"), stream=sys.stderr)
    fw.run(main(json.loads(sys.argv[1])))
