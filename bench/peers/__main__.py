"""framewire beside what people would use instead, in one run: ``python -m bench.peers``.

Each peer gets an environment of its own, and what does not install is told and left out. A round measures every
peer once, a server and a client as two processes on loopback; rounds are interleaved, so that a busy minute of the
machine hits all alike; and what is told are medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from bench.peers.environments import PEERS, Peer, Unavailable, prepared
from bench.peers.running import Failed, once

_GOALS = (
    ("pipelined asks, of NATS's", "asks_per_s", "NATS", 1.5, "framewire"),
    ("tells, of NATS's", "tells_per_s", "NATS", 1.0, "framewire"),
    ("signed asks, of NATS's", "asks_per_s", "NATS", 1.0, "framewire, signed"),
    ("local asks, of Pykka's", "local_asks_per_s", "Pykka", 10.0, "framewire"),
    ("1 MB bodies, of raw pyzmq's", "asks_per_s, 1 MB", "raw pyzmq", 0.7, "framewire"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="how many rounds to take the median of (3)")
    parser.add_argument("--only", help="names of peers, with commas between them")
    parser.add_argument("--output", type=Path, default=Path("bench/results/peers.json"), metavar="FILE")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    options = parser.parse_args()
    chosen = _chosen(options.only)
    left_out = _prepared(chosen)
    rounds: dict[str, list[dict[str, float]]] = {peer.name: [] for peer in chosen if peer.name not in left_out}
    for number in range(options.rounds):
        for peer in chosen[number % len(chosen) :] + chosen[: number % len(chosen)]:
            if peer.name in left_out:
                continue
            try:
                rounds[peer.name].append(once(peer))
            except Failed as problem:
                left_out[peer.name] = str(problem)
                print(f"{peer.name}: {problem}", file=sys.stderr)
            else:
                print(f"round {number + 1}: {peer.name}", file=sys.stderr)
    found = {name: _medians(each) for name, each in rounds.items() if each}
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    told = {
        "machine": machine,
        "rounds": options.rounds,
        "peers": found,
        "left_out": left_out,
        "goals": _goals(found),
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    _show(found)
    for goal in told["goals"]:
        print(
            f"{goal['what']:<28} {goal['ratio']:8.2f}  (goal {goal['goal']:g})  {'ok' if goal['met'] else 'missed'}"
        )
    return 1 if options.check and not all(goal["met"] for goal in told["goals"]) else 0


def _chosen(names: str | None) -> list[Peer]:
    if names is None:
        return list(PEERS)
    wanted = [name.strip() for name in names.split(";" if ";" in names else ",")]
    known = {peer.name.lower(): peer for peer in PEERS}
    if unknown := [name for name in wanted if name.lower() not in known]:
        raise SystemExit(f"no such peer: {', '.join(unknown)}. There are: {'; '.join(peer.name for peer in PEERS)}")
    return [known[name.lower()] for name in wanted]


def _prepared(peers: Iterable[Peer]) -> dict[str, str]:
    left_out = {}
    for peer in peers:
        try:
            prepared(peer)
        except Unavailable as reason:
            left_out[peer.name] = str(reason)
            print(f"left out: {peer.name}: {reason}", file=sys.stderr)
    return left_out


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: median(each[name] for each in rounds) for name in rounds[0]}


def _goals(found: dict[str, dict[str, float]]) -> list[dict[str, object]]:
    goals: list[dict[str, object]] = []
    for what, measure, other, goal, ours in _GOALS:
        if measure in found.get(ours, {}) and measure in found.get(other, {}):
            ratio = found[ours][measure] / found[other][measure]
            goals.append({"what": what, "ratio": ratio, "goal": goal, "met": ratio >= goal})
    if "framewire" in found and "Pyro5" in found:
        ratio = found["framewire"]["p50_us"] / found["Pyro5"]["p50_us"]
        goals.append({"what": "sequential p50, of Pyro5's", "ratio": ratio, "goal": 1.0, "met": ratio <= 1.0})
    if "framewire" in found:
        idle = found["framewire"]["idle_mb"]
        goals.append({"what": "idle node, MB", "ratio": idle, "goal": 40.0, "met": idle < 40})
    return goals


def _show(found: dict[str, dict[str, float]]) -> None:
    columns = {
        "p50 µs": "p50_us",
        "p99 µs": "p99_us",
        "asks/s": "asks_per_s",
        "tells/s": "tells_per_s",
        "1 kB": "asks_per_s, 1 kB",
        "10 kB": "asks_per_s, 10 kB",
        "1 MB": "asks_per_s, 1 MB",
        "local/s": "local_asks_per_s",
        "start s": "start_s",
        "idle MB": "idle_mb",
    }
    print(" " * 18 + "".join(f"{title:>10}" for title in columns))
    for name, each in sorted(found.items(), key=lambda item: -item[1].get("asks_per_s", 0)):
        cells = (_cell(each.get(key)) for key in columns.values())
        print(f"{name:<18}" + "".join(cells))


def _cell(value: float | None) -> str:
    return f"{'-':>10}" if value is None else f"{value:10,.2f}" if value < 10 else f"{value:10,.0f}"


if __name__ == "__main__":
    raise SystemExit(main())
