"""Lets hostile peers loose on a node and a rendezvous server, and checks that both live on as if there were none.

    python -m fuzz.cluster --seconds 60 [--seed N]

Meanwhile another node asks the attacked one, and must be answered. In the end nothing has crashed, memory and
descriptors are where they were, and every bad message is counted. What does not hold is told, and is exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.hostile import ATTACKS, Bad, Targets
from tests.chaos.members import Members, Told, free_ports
from tests.chaos.messages import Answered, Numbered
from tests.cluster.clustering import in_a_row

import framewire as fw

_MOST_GROWTH = 64 << 20
"""Bytes that a process may grow by: what it keeps of dead letters, peers and connections, all of it bounded."""
_MORE_FILES = 40
_BAD = ("malformed", "throttled", "dropped by the server")
"""What a message may be counted as that is none: a connection that sends nothing else is not even listened to."""
_PATIENT = 30.0


@dataclass
class State:
    """What a process has."""

    memory: int
    files: int

    @classmethod
    def of(cls, pid: int) -> State:
        """As of now."""
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        return cls(pages * os.sysconf("SC_PAGE_SIZE"), len(list(Path(f"/proc/{pid}/fd").iterdir())))


@dataclass
class Outcome:
    """What a run has shown; ``problems`` is empty where everything held."""

    sent: dict[str, Bad] = field(default_factory=dict)
    asked: int = 0
    counted: dict[str, int] = field(default_factory=dict)
    growth: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class Attacked:
    """A node and a server as processes."""

    def __init__(self, folder: str) -> None:
        inbox = in_a_row(3)
        self.uri = f"tcp://127.0.0.1:{inbox}"
        front, health = free_ports(2)
        listening = {"bind": f"tcp://127.0.0.1:{front}", "health": f"tcp://127.0.0.1:{health}"}
        self.members = Members(folder, signed=False, rendezvous=[self.uri], max_message_bytes=1 << 20, **listening)
        speaking, relaying = (f"tcp://127.0.0.1:{inbox + offset}" for offset in (1, 2))
        self.targets = Targets(listening["bind"], listening["health"], self.uri, speaking, relaying)

    def open(self) -> None:
        """Start both."""
        self.server = Told("tests.chaos.server_process", self.uri)
        self.server.answer()
        self.members.begin("node", asks=False, rate=1)
        self.members.ready("node")

    @property
    def states(self) -> dict[str, State]:
        """What each has now; an error where one is gone."""
        pids = {"node": self.members.processes["node"].pid, "server": self.server.pid}
        return {name: State.of(pid) for name, pid in pids.items()}

    @property
    def counted(self) -> dict[str, int]:
        """The node's dead letters by reason, and what the server has dropped."""
        return {**self.members.counts()["node"], "dropped by the server": self.server.tell("")["dropped"]}

    def close(self) -> None:
        """End both."""
        self.members.close()
        self.server.kill()


async def _asking(uri: str, until: float, outcome: Outcome) -> None:
    """Ask the attacked node all the time; each ask must be answered."""
    async with fw.Node(rendezvous=[uri], signals=False) as node:
        while time.monotonic() < until:
            try:
                await node.hub.ask(Numbered(f"friend#{outcome.asked}"), Answered, timeout=10)
            except fw.MessageError as problem:
                outcome.problems.append(f"a good ask failed: {type(problem).__name__}: {problem}")
            outcome.asked += 1
            await asyncio.sleep(0.05)


def fuzz(seed: int, seconds: float) -> Outcome:
    """Attack for so many seconds."""
    outcome = Outcome()
    with (
        tempfile.TemporaryDirectory(prefix="framewire-fuzz-") as folder,
        contextlib.closing(Attacked(folder)) as attacked,
    ):
        attacked.open()
        warm = time.monotonic() + min(1.0, seconds / 4)
        asyncio.run(_asking(attacked.uri, warm, outcome))
        before = attacked.states
        until = time.monotonic() + seconds
        with ThreadPoolExecutor(len(ATTACKS)) as threads:
            running = {
                attack.__name__: threads.submit(
                    attack, random.Random(f"{seed}/{attack.__name__}"), attacked.targets, until
                )
                for attack in ATTACKS
            }
            asyncio.run(_asking(attacked.uri, until, outcome))
            outcome.sent = {name: attack.result() for name, attack in running.items()}
        _judge(attacked, before, outcome)
    return outcome


def _judge(attacked: Attacked, before: dict[str, State], outcome: Outcome) -> None:
    asyncio.run(_asking(attacked.uri, time.monotonic() + 1, outcome))
    least = sum(bad.malformed for bad in outcome.sent.values())
    most = least + sum(bad.doubtful for bad in outcome.sent.values())
    oversized = sum(bad.oversized for bad in outcome.sent.values())
    deadline = time.monotonic() + _PATIENT
    while True:
        counted = outcome.counted = attacked.counted
        bad, large = sum(counted.get(reason, 0) for reason in _BAD), counted.get("oversized", 0)
        if (bad >= least and large >= oversized) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    if not least <= bad <= most:
        outcome.problems.append(f"{bad} bad messages are counted, not {least} to {most}")
    if large != oversized:
        outcome.problems.append(f"{large} are counted as oversized, not {oversized}")
    for name, state in attacked.states.items():
        outcome.growth[name] = state.memory - before[name].memory
        if outcome.growth[name] > _MOST_GROWTH:
            outcome.problems.append(f"the {name} has grown by {outcome.growth[name] >> 20} MiB")
        if state.files > before[name].files + _MORE_FILES:
            outcome.problems.append(f"the {name} has {state.files} files open; before, {before[name].files}")


def main(argv: Sequence[str] | None = None) -> int:
    """Attack, and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long to attack (default: 60)")
    parser.add_argument("--seed", type=int, default=None, help="what is sent (default: another each time)")
    options = parser.parse_args(argv)
    logging.disable()  # what the asking node makes of all this is not of interest
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    outcome = fuzz(seed, options.seconds)
    print(f"seed {seed}, {options.seconds:g} s; {outcome.asked} good asks meanwhile")
    for name, bad in outcome.sent.items():
        print(f"  {name:25} {bad.sent:6} messages, {bad.malformed} malformed, {bad.oversized} too large")
    print("  counted:", ", ".join(f"{count} {reason}" for reason, count in sorted(outcome.counted.items())))
    print("  memory: ", ", ".join(f"{name} {grown / (1 << 20):+.1f} MiB" for name, grown in outcome.growth.items()))
    for problem in outcome.problems:
        print("BROKEN:", problem)
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
