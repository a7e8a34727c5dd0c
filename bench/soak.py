"""A cluster at work for long: whether memory stays flat, descriptors come back, and no promise is left open.

    python -m bench.soak [--minutes M] [--rate R] [--output FOLDER]

A server and three nodes that ask each other all the time, in a signed domain, while a fourth comes and goes: what
leaks with messages shows, and so does what leaks with peers. Every few seconds memory, descriptors, open promises
and latency are written down: ``soak.csv``, and ``soak.svg`` with the curves. The exit code is 1 where memory has
grown by more than 5 % between the second quarter of the time and the last, where descriptors or promises are left,
or where an ask ended in something unknown. The first quarter is for caches to fill: to remember messages so that a
replay is noticed takes a minute to fill alone.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import signal
import time
from collections import Counter
from pathlib import Path
from statistics import median

from bench.curves import page
from tests.chaos.ledger import TYPED
from tests.chaos.members import Members, Server
from tests.cluster.clustering import in_a_row

STAYING, GUEST = ("a", "b", "c"), "guest"
EVERY = 2.0
"""Seconds between samples."""
VISIT = 10.0
"""Seconds that the fourth node stays, and stays away."""
FLAT = 0.05
MORE_FILES = 8
"""Descriptors that may differ at the end: the guest's connections are still closing."""


def state(pid):
    """The memory in MiB, and the descriptors, of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), len(list(Path(f"/proc/{pid}/fd").iterdir()))


class Guest:
    """The node that comes and goes, without anybody waiting for it."""

    def __init__(self, members):
        self._members = members
        self._due = time.monotonic() + VISIT
        self._leaving = False
        self.visits = 0

    def look(self):
        """Come or go, where it is time to."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + VISIT
        if GUEST not in self._members.processes:
            self._members.begin(GUEST, asks=False, rate=1)
            self._members.ready(GUEST)
            self.visits += 1
        elif not self._leaving:
            self._members.processes[GUEST].signal(signal.SIGTERM)
            self._leaving = True
        else:
            self._members.drained(GUEST)
            self._leaving = False

    def leave(self):
        """Be gone for good."""
        if GUEST in self._members.processes:
            if not self._leaving:
                self._members.processes[GUEST].signal(signal.SIGTERM)
            self._members.drained(GUEST)


def soak(seconds, rate, tell):
    """The samples, each a dict by the names of the columns, and the outcomes of all asks."""
    with contextlib.ExitStack() as closing:
        server = Server(in_a_row(3))
        closing.callback(server.close)
        server.start()
        members = Members(None, rendezvous=[server.uri])
        closing.callback(members.close)
        for name in STAYING:
            members.begin(name, rate=rate / len(STAYING), asks=False)
        members.ready(*STAYING)
        for name in STAYING:
            members.processes[name].tell("ask")
        began = time.monotonic()
        samples, guest = [], Guest(members)
        while (now := time.monotonic()) - began < seconds:
            samples.append(sampled(now - began, members, server))
            if len(samples) % 30 == 0:
                tell(told(samples[-1]))
            guest.look()
            time.sleep(max(0.0, now + EVERY - time.monotonic()))
        guest.leave()
        left = {name: members.processes[name].tell("quiet")["pending"] for name in STAYING}
        samples.append(sampled(time.monotonic() - began, members, server))
        outcomes = Counter()
        for name in STAYING:
            outcomes.update(members.processes[name].tell("pulse")["outcomes"])
        return samples, outcomes, left, guest.visits


def sampled(at, members, server):
    """How everyone is doing at a moment."""
    row = {"seconds": round(at, 1)}
    for name in STAYING:
        row[f"memory {name}"], row[f"files {name}"] = state(members.processes[name].pid)
        pulse = members.processes[name].tell("pulse")
        row[f"pending {name}"] = pulse["pending"]
        row[f"median {name}"], row[f"p99 {name}"] = 1000 * pulse["median"], 1000 * pulse["p99"]
    row["memory server"], row["files server"] = state(server.process.pid)
    return row


def told(row):
    memory = ", ".join(f"{row[f'memory {name}']:.1f}" for name in (*STAYING, "server"))
    pending = sum(row[f"pending {name}"] for name in STAYING)
    return f"{row['seconds']:7.0f} s  memory {memory} MiB  pending {pending}  median {row['median a']:.1f} ms"


def quarter(samples, number, column):
    """The median of a column over a quarter of the time, counted from 0; the last sample is of the peace after."""
    running = samples[:-1]
    size = len(running) / 4
    return median(row[column] for row in running[int(number * size) : max(int((number + 1) * size), 1)])


def problems(samples, outcomes, left):
    """All that is not as it should be."""
    found = [f"{count} promises are open at {name}" for name, count in left.items() if count]
    found += [
        f"{count} asks ended as {what}" for what, count in outcomes.items() if what not in {*TYPED, "replied"}
    ]
    for name in (*STAYING, "server"):
        before, after = (quarter(samples, number, f"memory {name}") for number in (1, 3))
        if after > before * (1 + FLAT):
            found.append(f"the memory of {name} has grown from {before:.1f} to {after:.1f} MiB")
        before, after = quarter(samples, 1, f"files {name}"), samples[-1][f"files {name}"]
        if after > before + MORE_FILES:
            found.append(f"{name} has {after} descriptors, and had {before:.0f}")
    return found


def charts(samples):
    def curves(kind, names):
        return {name: [(row["seconds"], row[f"{kind} {name}"]) for row in samples] for name in names}

    latency = {
        what: [(row["seconds"], median(row[f"{what} {name}"] for name in STAYING)) for row in samples[:-1]]
        for what in ("median", "p99")
    }
    return {
        "Memory, MiB": curves("memory", (*STAYING, "server")),
        "Descriptors": curves("files", (*STAYING, "server")),
        "Open promises": curves("pending", STAYING),
        "Latency of an ask, ms (the handler takes up to 50)": latency,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20, help="for how long (20)")
    parser.add_argument("--rate", type=float, default=300, help="asks a second of all nodes together (300)")
    parser.add_argument("--output", type=Path, default=Path("build/soak"), help="where the results go (build/soak)")
    options = parser.parse_args()
    samples, outcomes, left, visits = soak(60 * options.minutes, options.rate, print)
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "soak.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(samples[0]))
        table.writeheader()
        table.writerows(samples)
    (options.output / "soak.svg").write_text(page(charts(samples)), encoding="utf-8")
    ended = ", ".join(f"{count} {what}" for what, count in outcomes.most_common())
    print(f"{outcomes.total()} asks in {samples[-1]['seconds']:.0f} s: {ended}; {visits} visits of another node")
    for name in (*STAYING, "server"):
        before, after = (quarter(samples, number, f"memory {name}") for number in (1, 3))
        print(f"  memory of {name:6} {before:7.1f} MiB, then {after:7.1f} MiB ({after / before - 1:+.1%})")
    middle, late = quarter(samples, 3, "median a"), quarter(samples, 3, "p99 a")
    print(f"  latency of a: median {middle:.1f} ms, p99 {late:.1f} ms")
    print(f"  curves in {options.output / 'soak.svg'}")
    wrong = problems(samples, outcomes, left)
    for problem in wrong:
        print("BROKEN:", problem)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
