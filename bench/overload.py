"""What a node still answers when more is asked of it than it can do, up to 50 times as much.

    python -m bench.overload [--quick] [--points 0.5,2,10] [--seconds S] [--json FILE] [--check] [--plot FOLDER]

Each scene is a handler that takes 1, 20 or 200 ms, alone or as one of three stages, asked from its own node
(``local``) or from another process over loopback (``remote``). The capacity is measured in the same processes by
a closed loop that keeps the handlers busy, with 60 s for each answer. Then each point offers a multiple of it in
an open loop: asks are sent when they are due, however late the answers are, each with a timeout of 2 s. If the
generator cannot keep up, ``offered`` shows the rate that it reached. From 4,000 asks a second on, the capacity is
also measured beside a generator of as many asks that are answered at once (pings): that much the processes could
do at best, since sending, refusing and handling share cores, and in a local scene one event loop.

What ends within the window is counted. The window begins one timeout after the moment at which a first-in,
first-out queue would be one timeout long, so what was admitted at the start does not count. Goodput is the rate
of answers in time. Goals (``--check``), for each point: goodput at least 0.9 of what was offered or of capacity,
whichever is less; the 99th percentile of all that was not refused (answered or expired) within its timeout; of
refusals within 50 ms; memory of the handling process flat. ``drop_oldest`` refuses what has waited, so that its
refusals have no such goal. Further parts: the other overflow policies, asks of mixed timeouts (0.25, 1 and 5 s),
and a client with 10 asks a second beside one that offers 10 times the capacity, from another node (``remote``) or
hub (``local``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import math
import multiprocessing
import os
import platform
import random
import subprocess
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median

from bench.curves import page

import framewire as fw
from framewire.cluster.channel import COMPILED

LOADS = (0.5, 1.0, 1.5, 2.0, 5.0, 10.0, 50.0)
CONCURRENCY = {1: 1, 20: 1, 200: 4}
"""Messages handled at a time, by milliseconds that each takes: 5 answers a second would be too few to count."""
PARTS = ("sweep", "policies", "mixed", "fairness")
PART_LOADS = (2.0, 10.0)
"""Loads of the parts that are not the sweep."""
MIXED = (0.25, 1.0, 5.0)
QUIET_RATE, GREEDY_LOAD = 10.0, 10.0
GOODPUT, FAIR, REFUSAL, FLAT, SPARE_MIB = 0.9, 0.95, 0.05, 0.05, 1.0
WINDOW_TIMEOUTS = 4
PATIENCE = 60.0
"""Seconds: the timeout of asks that measure capacity, so that no deadline matters."""
SLICE = 0.0002
"""Seconds that the generator sends without a break: in a local scene the handlers run on the same event loop."""
EVERY = 0.25
"""Seconds between samples of memory."""
BUSY_RATE = 4_000
"""Asks a second from which the work of sending and refusing them is told apart: it takes time from the handlers."""
LATE = 0.01
"""Seconds after its timeout in which an answer still counts: the event loop may be that late to notice."""
BODY = b"x" * 100


@fw.message("overload.first")
class First(bytes):
    """What begins a flow, a body of raw bytes."""


@fw.message("overload.second")
class Second(bytes):
    """What the first of three stages returns."""


@fw.message("overload.third")
class Third(bytes):
    """What the second of three stages returns."""


@fw.message("overload.done")
class Done(bytes):
    """What the last stage returns."""


@fw.message("overload.ping")
class Ping(bytes):
    """What is answered at once."""


@fw.message("overload.pong")
class Pong(bytes):
    """The answer to a ping."""


class Pinged(fw.Actor):
    """The least work that an ask can be: it shows what the generator alone takes of the processes."""

    @fw.handles(Ping, inline=True)
    def pong(self, ping: Ping) -> Pong:
        return Pong(ping)


def stage(handled, returned, seconds, *, threaded):
    """Return an actor that takes so long for each message of a type, and returns one of another."""
    if threaded:

        def handle(_, work):
            time.sleep(seconds)
            return returned(work)
    else:

        async def handle(_, work):
            await asyncio.sleep(seconds)
            return returned(work)

    return type("Stage", (fw.Actor,), {"handle": fw.handles(handled)(handle)})()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Handlers and how they are asked."""

    ms: int = 20
    where: str = "local"
    stages: int = 1
    overflow: str = "wait"
    timeouts: tuple[float, ...] = (2.0,)
    threaded: bool = False
    concurrency: int = 1
    part: str = "sweep"

    @property
    def name(self):
        kind = "def " if self.threaded else ""
        stages = f"{self.stages} stage{'s' * (self.stages > 1)}"
        more = {"policies": f", {self.overflow}", "mixed": ", mixed timeouts", "fairness": ", two callers"}
        return f"{kind}{self.ms} ms {self.where}, {stages}{more.get(self.part, '')}"

    @property
    def longest(self):
        return max(self.timeouts)

    def warm_up(self, load):
        """Return seconds until a first-in, first-out queue is a timeout long, and one timeout more; 3 at most."""
        filled = 1 / (load - 1) if load > 1 else 0.0
        return self.longest * min(3.0, 1 + filled)

    async def host(self, node):
        chain = (First, Second, Third)[: self.stages]
        for handled, returned in pairwise((*chain, Done)):
            actor = stage(handled, returned, self.ms / 1000, threaded=self.threaded)
            await node.host(actor, concurrency=self.concurrency, overflow=self.overflow)
        await node.host(Pinged())


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one caller sends during a point."""

    rate: float
    timeouts: tuple[float, ...]
    warm_up: float
    seconds: float
    arrivals: str
    seed: int
    pid: int
    """The process whose memory is sampled."""
    asked: type = First
    awaited: type = Done


class Times:
    """A histogram of times with bins of 1 %: memory that does not grow while memory is measured."""

    FIRST, RATIO, BINS = 1e-5, math.log(1.01), 1700

    def __init__(self):
        self._counts = array("q", bytes(8 * self.BINS))
        self.count = 0

    def add(self, seconds):
        number = int(math.log(max(seconds, self.FIRST) / self.FIRST) / self.RATIO)
        self._counts[min(number, self.BINS - 1)] += 1
        self.count += 1

    def quantile(self, share):
        """Return the time that so large a share does not exceed, or None if there are no times."""
        if not self.count:
            return None
        wanted = math.ceil(share * self.count)
        number = next(at for at, seen in enumerate(accumulate(self._counts)) if seen >= wanted)
        return self.FIRST * math.exp((number + 0.5) * self.RATIO)


def rss(pid):
    """Return the resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@dataclass
class Tally:
    """How the asks of one caller ended within its window."""

    begin: float
    end: float
    sent: int = 0
    open: int = 0
    counts: Counter = field(default_factory=Counter)
    answered: Times = field(default_factory=Times)
    admitted: Times = field(default_factory=Times)
    """As shares of the timeout, of all that was not refused."""
    refused: Times = field(default_factory=Times)
    retry_after: Times = field(default_factory=Times)
    by_timeout: Counter = field(default_factory=Counter)
    drained: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self, hub, offer, limit, now):
        if now >= self.begin:
            self.sent += 1
        self.open += 1
        try:
            promise = hub.start(offer.asked(BODY), offer.awaited, timeout=limit)
        except fw.MessageError as error:
            self._ended(limit, now, error)
        else:
            if promise.done:
                self._promise_ended(promise, limit, now)
            else:
                promise.ended().add_done_callback(partial(self._promise_ended, promise, limit, now))

    def _promise_ended(self, promise, limit, began, _=None):
        try:
            promise.result()
        except fw.MessageError as error:
            self._ended(limit, began, error)
        else:
            self._ended(limit, began, None)

    def _ended(self, limit, began, error):
        now = time.perf_counter()
        self.open -= 1
        if not self.open and now >= self.end:
            self.drained.set()
        if not self.begin <= now < self.end:
            return
        took = now - began
        if isinstance(error, fw.Overloaded):
            kind = "overloaded"
            self.refused.add(took)
            if (stay_away := getattr(error, "retry_after", None)) is not None:
                self.retry_after.add(stay_away)
        elif error is None:
            kind = "answered" if took <= limit + LATE else "late"
            self.answered.add(took)
            self.admitted.add(took / limit if kind == "late" else min(took / limit, 1.0))
        else:
            kind = "expired" if isinstance(error, fw.Expired) else type(error).__name__
            self.admitted.add(max(took / limit, 1.02))
        self.counts[kind] += 1
        self.by_timeout[f"{limit:g} s, {kind}"] += 1


async def offered(hub, offer):
    """Send asks when they are due, and return how those ended that did so within the window."""
    chosen = random.Random(offer.seed)  # noqa: S311 - the same arrivals in every run
    gap = partial(chosen.expovariate, offer.rate) if offer.arrivals == "poisson" else lambda: 1 / offer.rate
    now = due = time.perf_counter()
    tally = Tally(now + offer.warm_up, now + offer.warm_up + offer.seconds)
    sampled, memory = tally.begin, []
    while (now := time.perf_counter()) < tally.end:
        if now >= sampled:
            memory.append((round(now - tally.begin, 2), rss(offer.pid)))
            sampled += EVERY
        rest = now + SLICE
        while due <= now < rest:
            tally.ask(hub, offer, chosen.choice(offer.timeouts), now)
            due += gap()
            now = time.perf_counter()
        await asyncio.sleep(0 if due <= now else min(due, sampled, tally.end) - now)
    memory.append((offer.seconds, rss(offer.pid)))
    behind = max(0.0, tally.end - due)
    if tally.open:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(tally.drained.wait(), max(offer.timeouts) + 5)
    return results(tally, offer, memory, behind)


def results(tally, offer, memory, behind):
    counts = dict(tally.counts)
    answered, overloaded, expired, late = (
        counts.pop(kind, 0) for kind in ("answered", "overloaded", "expired", "late")
    )

    def ms(times, share):
        found = times.quantile(share)
        return None if found is None else round(1000 * found, 2)

    share = tally.admitted.quantile(0.99)
    return {
        "offered": tally.sent / offer.seconds,
        "goodput": answered / offer.seconds,
        "answered": answered,
        "overloaded": overloaded,
        "expired": expired,
        "late": late,
        "others": counts,
        "p50_ms": ms(tally.answered, 0.5),
        "p99_ms": ms(tally.answered, 0.99),
        "p99_of_timeout": None if share is None else round(share, 3),
        "refusal_p50_ms": ms(tally.refused, 0.5),
        "refusal_p99_ms": ms(tally.refused, 0.99),
        "retry_after_p50_ms": ms(tally.retry_after, 0.5),
        "by_timeout": dict(sorted(tally.by_timeout.items())) if len(offer.timeouts) > 1 else {},
        "rss_start_mib": round(memory[0][1], 1),
        "rss_end_mib": round(memory[-1][1], 1),
        "rss_mib": [(at, round(size, 1)) for at, size in memory],
        "behind_s": round(behind, 3),
        "left_open": tally.open,
    }


async def capacity(hub, scene, seconds):
    """Return answers a second while a few asks are always waiting, without any deadline that matters."""
    times, end = [], time.perf_counter() + seconds

    async def asker():
        while time.perf_counter() < end:
            try:
                await hub.ask(First(BODY), Done, timeout=PATIENCE)
            except fw.Overloaded:
                await asyncio.sleep(0.001)
            else:
                times.append(time.perf_counter())

    width = scene.concurrency * scene.stages
    await asyncio.gather(*(asker() for _ in range(max(8, 4 * width))))
    # Handlers that began together end together: a whole such burst is left out at the start.
    first = min(scene.concurrency, len(times) - 1)
    return (len(times) - first) / (times[-1] - times[first - 1])


async def capacity_beside(hub, scene, offer):
    """Return the capacity that is left while a generator sends as many asks as an offer, each answered at once."""
    pings = replace(offer, asked=Ping, awaited=Pong, timeouts=(PATIENCE,), warm_up=0.0)
    generating = asyncio.create_task(offered(hub, pings))
    left = await capacity(hub, scene, offer.seconds)
    await generating
    return left


async def settled(hub):
    """Wait until what a point has left in the queues is gone, so that the next begins with empty ones."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await hub.ask(First(BODY), Done, timeout=15)
            except fw.Overloaded:
                await asyncio.sleep(0.05)


async def obey(node, scene, pipe):
    """Do what the bench's own process says until it says that this is the end."""
    hubs = [node.hub]
    while (order := await asyncio.to_thread(pipe.recv)) is not None:
        what, *details = order
        if what == "capacity":
            pipe.send(await capacity(node.hub, scene, *details))
        elif what == "beside":
            pipe.send(await capacity_beside(node.hub, scene, *details))
        elif what == "settle":
            await settled(node.hub)
            pipe.send("settled")
        else:
            offers = details[0]
            while len(hubs) < len(offers):
                hubs.append(await node.new_hub())
            pipe.send(await asyncio.gather(*map(offered, hubs, offers)))


def local(scene, pipe):
    """Run handlers and callers on one node."""

    async def run():
        async with fw.Node(signals=False) as node:
            await scene.host(node)
            pipe.send(os.getpid())
            await obey(node, scene, pipe)

    logging.disable()
    fw.run(run())


def handling(scene, pipe):
    """Run handlers, which other processes ask."""

    async def run():
        async with fw.Node(bind="tcp://127.0.0.1:*", signals=False) as node:
            await scene.host(node)
            pipe.send((os.getpid(), node.uri))
            await asyncio.to_thread(pipe.recv)

    logging.disable()
    fw.run(run())


def calling(scene, address, pipe):
    """Run a caller of handlers in another process."""

    async def run():
        async with fw.Node(peers=[address], signals=False) as node:
            await node.hub.ask(First(BODY), Done, timeout=20)
            pipe.send(os.getpid())
            await obey(node, scene, pipe)

    logging.disable()
    fw.run(run())


class Process:
    """A process of this bench, with a pipe to it."""

    def __init__(self, target, *arguments):
        spawning = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawning.Pipe()
        self._process = spawning.Process(target=target, args=(*arguments, theirs), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self.ready = self.answer(30)
        except BaseException:
            self.end()
            raise

    def answer(self, seconds):
        """Return what the process sends, or raise TimeoutError (EOFError if it has ended)."""
        if not self.pipe.poll(seconds):
            raise TimeoutError(f"a process of the bench has not answered within {seconds:.0f} s")
        return self.pipe.recv()

    def order(self, seconds, *what):
        self.pipe.send(what)
        return self.answer(seconds)

    def end(self):
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self._process.join(15)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(5)
        self.pipe.close()


class Running:
    """The processes of a scene: the one that handles, and those that call it, which may be the same."""

    def __init__(self, scene, callers=1):
        self.scene = scene
        self._processes = []
        try:
            if scene.where == "local":
                self._processes.append(Process(local, scene))
                self.handling_pid, self.callers = self._processes[0].ready, self._processes
            else:
                self._processes.append(Process(handling, scene))
                self.handling_pid, address = self._processes[0].ready
                self._processes += [Process(calling, scene, address) for _ in range(callers)]
                self.callers = self._processes[1:]
        except BaseException:
            self.close()
            raise

    def capacity(self, seconds):
        return self.callers[0].order(seconds + PATIENCE + 5, "capacity", seconds)

    def capacity_beside(self, offer):
        return self.callers[0].order(2 * offer.seconds + PATIENCE + 5, "beside", offer)

    def settle(self):
        self.callers[0].order(25, "settle")

    def offer(self, offers):
        """Run offers at the same time: one caller process for each, or one hub for each if the scene is local."""
        wait = max(offer.warm_up + offer.seconds + max(offer.timeouts) for offer in offers) + 60
        if len(self.callers) == 1:
            return self.callers[0].order(wait, "offer", offers)
        for caller, offer in zip(self.callers, offers, strict=True):
            caller.pipe.send(("offer", [offer]))
        return [caller.answer(wait)[0] for caller in self.callers]

    def close(self):
        for process in reversed(self._processes):
            process.end()


@contextlib.contextmanager
def running(scene, callers=1) -> Iterator[Running]:
    processes = Running(scene, callers)
    try:
        yield processes
    finally:
        processes.close()


BROKEN = (TimeoutError, EOFError, OSError)
"""How it shows that a process of the bench hangs or has ended."""


def measured(scene, loads, options, tell):
    """Return a row for each load of a scene; capacity is measured before the first and after the last.

    Where a process hangs or ends, the rows so far are kept, and the last says so.
    """
    seconds = window(scene, options)
    calibration = options.calibration * (2 if scene.ms >= 100 else 1)
    rows = []
    with running(scene) as processes:
        before = after = processes.capacity(calibration)
        try:
            for load in loads:
                offer = Offer(
                    rate=load * before,
                    timeouts=scene.timeouts,
                    warm_up=scene.warm_up(load),
                    seconds=seconds,
                    arrivals=options.arrivals,
                    seed=round(1000 * load),
                    pid=processes.handling_pid,
                )
                (found,) = processes.offer([offer])
                found |= {"capacity_beside": None, "broken": ""}
                rows.append({"scene": scene.name, **asdict(scene), "load": load, "seconds": seconds, **found})
                processes.settle()
                if offer.rate >= BUSY_RATE:
                    left = processes.capacity_beside(replace(offer, seconds=calibration))
                    rows[-1]["capacity_beside"] = left
            after = processes.capacity(calibration)
        except BROKEN as error:
            if not rows:
                raise
            rows[-1]["broken"] = f"{type(error).__name__} after it: {error}"
    for row in rows:
        finish(row, before, after)
        tell(told(row))
    return rows


def window(scene, options):
    return options.seconds or WINDOW_TIMEOUTS * min(scene.longest, 4.0)


def finish(row, before, after):
    """Add to a row what follows from the capacity, and the goals that it misses."""
    row["capacity"] = (before + after) / 2
    row["capacities"] = [round(before, 1), round(after, 1)]
    row["of_capacity"] = row["goodput"] / row["capacity"]
    possible = min(row["offered"], row["capacity"])
    row["of_possible"] = row["goodput"] / possible if possible else 0.0
    row["missed"] = missed(row)


def missed(row):
    """Return the goals that a point misses, in words."""
    found = []
    if row["of_possible"] < GOODPUT:
        found.append(f"goodput is {row['of_possible']:.2f} of what is possible")
    if (row["p99_of_timeout"] or 0.0) > 1.0:
        late = row["expired"] + row["late"]
        found.append(f"{late:,} of {late + row['answered']:,} asks that were not refused had no answer in time")
    refusal = row["refusal_p99_ms"]
    if row["overflow"] != "drop_oldest" and refusal is not None and refusal > 1000 * REFUSAL:
        found.append(f"p99 of refusals is {refusal:,.0f} ms")
    if grown(row["rss_mib"]):
        found.append(f"memory has grown from {row['rss_start_mib']} to {row['rss_end_mib']} MiB")
    if row["broken"]:
        found.append(row["broken"])
    if row["others"] or row["left_open"]:
        found.append(f"asks ended otherwise: {row['others']}, or not at all: {row['left_open']}")
    return found


def grown(samples):
    """Whether memory is higher in the last quarter of the samples than in the first, by medians."""
    quarter = max(1, len(samples) // 4)
    start, end = (median(size for _, size in part) for part in (samples[:quarter], samples[-quarter:]))
    return end > start * (1 + FLAT) + SPARE_MIB


HEAD = (
    f"{'':<36}{'load':>6}{'offered/s':>11}{'goodput/s':>11}{'of cap.':>8}{'p50 ms':>8}{'p99 ms':>8}{'refused':>9}"
    f"{'p99 ms':>8}{'answered':>10}{'expired':>9}{'others':>8}{'MiB':>5}{'then':>5}"
)


def told(row):
    """Return a row in one line, below HEAD."""

    def ms(key):
        return f"{'-':>8}" if row[key] is None else f"{row[key]:8,.1f}" if row[key] < 10 else f"{row[key]:8,.0f}"

    others = sum(row["others"].values()) + row["late"]
    behind = f" (generator {row['behind_s']:.1f} s behind)" if row["behind_s"] > 0.1 else ""
    if row["capacity_beside"] is not None:
        behind += f" (capacity beside as many pings: {row['capacity_beside'] / row['capacity']:.2f})"
    return (
        f"{row['scene']:<36}{row['load']:5g}x{row['offered']:11,.1f}{row['goodput']:11,.1f}{row['of_capacity']:8.2f}"
        f"{ms('p50_ms')}{ms('p99_ms')}{row['overloaded']:9,}{ms('refusal_p99_ms')}{row['answered']:10,}"
        f"{row['expired']:9,}{others:8,}{row['rss_start_mib']:5.0f}{row['rss_end_mib']:5.0f}  "
        f"{'ok' if not row['missed'] else 'MISSED: ' + '; '.join(row['missed'])}{behind}"
    )


def fairness(scene, options, tell):
    """Return one row: a client with few asks beside one that offers many times the capacity."""
    seconds = window(scene, options)
    with running(scene, callers=2) as processes:
        able = processes.capacity(options.calibration)
        rates = {"greedy": GREEDY_LOAD * able, "quiet": QUIET_RATE}
        offers = [
            Offer(
                rate=rate,
                timeouts=scene.timeouts,
                warm_up=scene.warm_up(GREEDY_LOAD),
                seconds=seconds,
                arrivals=options.arrivals,
                seed=number,
                pid=processes.handling_pid,
            )
            for number, rate in enumerate(rates.values())
        ]
        callers = dict(zip(rates, processes.offer(offers), strict=True))
    row = {"scene": scene.name, **asdict(scene), "seconds": seconds, "capacity": able, **callers}
    row["quiet_share"], row["of_capacity"] = fair(row)
    row["missed"] = unfair(row)
    told_fairness(row, tell)
    return row


def fair(row):
    """Return the share of its asks that the quiet client had answered, and the goodput of both of capacity."""
    quiet = row["quiet"]
    ended = sum(quiet[kind] for kind in ("answered", "overloaded", "expired", "late")) + sum(
        quiet["others"].values()
    )
    return quiet["answered"] / max(ended, 1), (quiet["goodput"] + row["greedy"]["goodput"]) / row["capacity"]


def unfair(row):
    found = []
    if row["quiet_share"] < FAIR:
        found.append(f"only {row['quiet_share']:.2f} of the quiet client's asks are answered")
    if row["of_capacity"] < GOODPUT:
        found.append(f"goodput of both is {row['of_capacity']:.2f} of capacity")
    return found


def told_fairness(row, tell):
    for name in ("quiet", "greedy"):
        each = row[name]
        p99 = "-" if each["p99_ms"] is None else f"{each['p99_ms']:,.0f}"
        tell(
            f"{row['scene']:<36}{name:>6}  offered {each['offered']:,.1f}/s, goodput {each['goodput']:,.1f}/s, p99 "
            f"{p99} ms; {each['answered']} answered, {each['overloaded']} overloaded, {each['expired']} expired"
        )
    verdict = "ok" if not row["missed"] else "MISSED: " + "; ".join(row["missed"])
    tell(f"{'':<36}{'both':>6}  {row['of_capacity']:.2f} of capacity  {verdict}")


def plan(options):
    """Return the scenes with their loads, in the order in which they run, and those of the fairness part."""
    base = Scene(timeouts=(options.timeout,), threaded=options.threads)

    def scene(ms, **more):
        return replace(base, ms=ms, concurrency=options.concurrency or CONCURRENCY.get(ms, 1), **more)

    if options.quick:
        swept = [
            (scene(20), (1.0, 2.0, 10.0)),
            (scene(20, where="remote"), (2.0, 10.0)),
            (scene(20, stages=3), (2.0,)),
            (scene(1, where="remote"), (10.0,)),
        ]
        extra = [(scene(20, overflow="reject", part="policies"), (10.0,))]
        callers = [scene(20, where="remote", part="fairness")]
    else:
        swept = [
            (scene(ms, where=where, stages=stages), options.points or LOADS)
            for ms in options.handlers
            for where in options.where
            for stages in options.stages
        ]
        loads = options.points or PART_LOADS
        extra = [
            (scene(20, where=where, overflow=overflow, part="policies"), loads)
            for overflow in ("reject", "drop_oldest")
            for where in options.where
        ] + [(scene(20, where=where, timeouts=MIXED, part="mixed"), loads) for where in options.where]
        callers = [scene(20, where=where, part="fairness") for where in options.where]
    chosen = [(each, loads) for each, loads in (*swept, *extra) if each.part in options.parts]
    return chosen, callers if "fairness" in options.parts else []


def charts(rows):
    """Return the pictures by name: charts with their curves, one chart for each time that a handler takes."""
    swept = [row for row in rows if row["part"] == "sweep"]
    times = sorted({row["ms"] for row in swept})

    def curves(ms, key):
        found = {}
        for row in swept:
            if row["ms"] == ms and row[key] is not None:
                name = f"{row['where']}, {row['stages']} stage{'s' * (row['stages'] > 1)}"
                found.setdefault(name, []).append((row["load"], row[key]))
        return found

    loads = sorted({row["load"] for row in swept})
    ideal = {"possible": [(load, min(load, 1.0)) for load in sorted({*loads, 1.0}) if loads]}
    deadline, refusal = ({name: [(load, at) for load in loads]} for name, at in (("timeout", 1), ("goal", 50)))
    return {
        "goodput": {
            f"Answers in time / capacity, handlers of {ms} ms": {**curves(ms, "of_capacity"), **ideal}
            for ms in times
        },
        "latency": {
            f"p99 of what was not refused / timeout, handlers of {ms} ms": {
                **curves(ms, "p99_of_timeout"),
                **deadline,
            }
            for ms in times
        },
        "refusals": {
            f"p99 until a refusal, ms, handlers of {ms} ms": {**curves(ms, "refusal_p99_ms"), **refusal}
            for ms in times
        },
        "memory": {
            f"Memory of the handling process, MiB, handlers of {ms} ms, {most:g} times the capacity": {
                f"{row['where']}, {row['stages']} stage{'s' * (row['stages'] > 1)}": row["rss_mib"]
                for row in swept
                if row["ms"] == ms and row["load"] == most
            }
            for ms in times
            for most in [max(row["load"] for row in swept if row["ms"] == ms)]
        },
    }


def pictures(rows):
    """Return the plots as SVG, by name."""
    loads = sorted({row["load"] for row in rows if row["part"] == "sweep"})
    drawn = {}
    for name, found in charts(rows).items():
        if not found:
            continue
        if name == "memory":
            last = math.floor(max(row["seconds"] for row in rows))
            labels = {float(at): f"{at} s" for at in range(0, last + 1, max(1, last // 8))}
            drawn[name] = page(found, labels=labels)
        else:
            dashed = {"possible", "timeout", "goal"}
            drawn[name] = page(
                found, labels={load: f"{load:g}x" for load in loads}, logarithmic=True, dashed=dashed
            )
    return drawn


def arguments():
    def numbers(kind):
        return lambda given: tuple(kind(each) for each in given.split(","))

    def names(*known):
        def read(given):
            chosen = tuple(given.split(","))
            if not set(chosen) <= set(known):
                raise argparse.ArgumentTypeError(f"{given!r}; there are {', '.join(known)}")
            return chosen

        return read

    parser = argparse.ArgumentParser(prog="python -m bench.overload", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few points with short windows, about two minutes")
    parser.add_argument("--points", type=numbers(float), metavar="LOADS", help="multiples of capacity (0.5 to 50)")
    parser.add_argument("--handlers", type=numbers(int), default=(1, 20, 200), metavar="MS", help="(1,20,200)")
    parser.add_argument("--where", type=names("local", "remote"), default=("local", "remote"), metavar="WHERE")
    parser.add_argument("--stages", type=numbers(int), default=(1, 3), metavar="STAGES", help="1, 3 or both (1,3)")
    parser.add_argument("--parts", type=names(*PARTS), default=PARTS, help=f"({','.join(PARTS)})")
    parser.add_argument("--seconds", type=float, help="the measured window (4 timeouts; 2 with --quick)")
    parser.add_argument("--timeout", type=float, default=2.0, help="seconds that an answer may take (2)")
    parser.add_argument("--calibration", type=float, default=2.0, help="seconds to measure capacity (2)")
    parser.add_argument("--concurrency", type=int, help="messages handled at a time (1; 4 by handlers of 200 ms)")
    parser.add_argument("--arrivals", choices=("poisson", "even"), default="poisson", help="(poisson)")
    parser.add_argument("--threads", action="store_true", help="plain def handlers, which run in threads")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw the plots there, as overload-*.svg")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    options = parser.parse_args()
    if not set(options.stages) <= {1, 2, 3}:
        parser.error("--stages: there are at most 3 stages")
    if options.quick:
        options.seconds = options.seconds or 2 * options.timeout
        options.calibration = min(options.calibration, 1.0)
    return options


def main():
    options = arguments()
    began = time.monotonic()
    print(f"{platform.python_implementation()} {platform.python_version()}, {'compiled' if COMPILED else 'pure'}")
    scenes, callers = plan(options)
    tell = partial(print, flush=True)
    tell(HEAD)
    rows, beside, broken = [], [], []
    for scene, loads in (*scenes, *((scene, None) for scene in callers)):
        try:
            if loads is None:
                beside.append(fairness(scene, options, tell))
            else:
                rows += measured(scene, loads, options, tell)
        except BROKEN as error:
            broken.append(f"{scene.name}: {type(error).__name__} {error}")
            tell(f"BROKEN: {broken[-1]}")
    wrong = [f"{row['scene']}: {what}" for row in (*rows, *beside) for what in row["missed"]] + broken
    bad = sum(bool(row["missed"]) for row in (*rows, *beside))
    total = len(rows) + len(beside)
    print(f"{total - bad} of {total} points meet all goals; {time.monotonic() - began:,.0f} s")
    if options.json:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        found = {"machine": machine, "compiled": COMPILED, "quick": options.quick, "revision": revision()}
        found |= {"broken": broken, "rows": rows, "fairness": beside}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(lines(found), encoding="utf-8")
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        for name, picture in pictures(rows).items():
            (options.plot / f"overload-{name}.svg").write_text(picture, encoding="utf-8")
    return 1 if options.check and wrong else 0


def lines(found):
    """Return JSON with a line for each point."""
    parts = []
    for name, value in found.items():
        points = [json.dumps(each) for each in value] if name in {"rows", "fairness"} else None
        text = json.dumps(value) if points is None else "[\n" + ",\n".join(points) + "\n]"
        parts.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def revision():
    """Return the commit that was measured, or nothing outside a repository."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    with contextlib.suppress(OSError):
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    return ""


if __name__ == "__main__":
    raise SystemExit(main())
