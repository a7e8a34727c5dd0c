"""What the dashboard costs: how long each page takes to be on the screen, and how much memory it has.

    python -m bench.dashboard --lake lake/ [--rounds N] [--json FILE] [--check]
    python -m bench.dashboard --messages 1000000      # makes captures and a lake first, which takes its time

The real command is started on the lake and looked at with Chromium. The first round is apart: it reads what later
ones find in the cache of files. Later rounds ask for other times each, so that no answer comes from the dashboard's
own cache. A page is there when its table, its drawing or its state is.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from playwright.sync_api import sync_playwright
from tests.browser import chromium

from framewire.history import FlowSearch, History

HOURS = 4
GOALS = {"slowest page, s": 1.0, "memory, MB": 500.0}
THERE = "main :is(table, .fw-graph, .fw-chart, .fw-waterfall, .fw-state)"
LOADING = ".fw-loading"


def made(directory, messages):
    """A lake of made-up captures, by the product's own commands."""
    common = [sys.executable, "-m", "framewire"]
    synth = [
        *common,
        "synth",
        "-o",
        str(directory / "made"),
        "--messages",
        str(messages),
        "--duration",
        str(HOURS * 3600),
    ]
    subprocess.run(synth, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    captures, keys = directory / "made" / "captures", directory / "made" / "truth" / "keys.toml"
    run = [
        *common,
        "pipeline",
        "run",
        "--captures",
        str(captures),
        "--lake",
        str(directory / "lake"),
        "--keys",
        str(keys),
        "--once",
    ]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - same
    return directory / "lake"


@contextlib.contextmanager
def dashboard(lake):
    """The command on a lake; yields its address and its process."""
    command = [sys.executable, "-m", "framewire", "dashboard", "--lake", str(lake), "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own command
        try:
            yield re.search(r"http://[^/ ]+", process.stdout.readline())[0], process
        finally:
            process.terminate()


def pages(lake, number):
    """The addresses of one round: all pages, from another minute each time."""
    with History(str(lake)) as history:
        first = history.summary().first
        flows = history.flows(FlowSearch(), order="slowest", limit=40).flows
        edges = history.topology().edges
    since = f"since={(first + dt.timedelta(minutes=number)).isoformat(timespec='seconds')}"
    edge = edges[number % len(edges)]
    return {
        "flows": f"/flows?{since}",
        "flows, failed": f"/flows?outcome=failed&{since}",
        "flows, slowest of a message": f"/flows?order=slowest&message=order&{since}",
        "flow": f"/flow/{flows[number % len(flows)].flow}",
        "topology": f"/topology?{since}",
        "topology, a node": f"/topology?node={edge.sender}&{since}",
        "topology, an edge": f"/topology?sender={edge.sender}&receiver={edge.receiver}&{since}",
        "losses": f"/losses?{since}",
        "dead letters": f"/dead-letters?{since}",
        "quarantine": f"/quarantine?{since}",
        "audit": f"/audit?{since}",
        "adoption": f"/adoption?{since}",
        "wire": "/wire",
    }


def opened(page, address):
    """Seconds until a page is there, and nothing on it is still waited for."""
    began = time.perf_counter()
    page.goto(address)
    page.wait_for_selector("h1")
    if not address.endswith("/wire"):
        page.wait_for_selector(THERE)
    page.wait_for_function(f"document.querySelectorAll('{LOADING}').length === 0")
    return time.perf_counter() - began


def memory(process):
    """Megabytes that a process has had at most."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def measured(lake, rounds):
    times = {}
    with dashboard(lake) as (address, process), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        for number in range(rounds + 1):
            for name, path in pages(lake, number).items():
                times.setdefault(name, []).append(opened(page, address + path))
        peak = memory(process)
        browser.close()
    return times, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lake", type=Path)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    told = parser.parse_args()
    with contextlib.ExitStack() as stack:
        lake = told.lake or made(Path(stack.enter_context(tempfile.TemporaryDirectory())), told.messages)
        times, peak = measured(lake, told.rounds)
    print(f"{'page':<30}{'first, s':>10}{'later, s':>10}{'worst, s':>10}   ({os.cpu_count()} cores)")
    for name, (first, *later) in times.items():
        print(f"{name:<30}{first:>10.2f}{median(later):>10.2f}{max(later):>10.2f}")
    figures = {"slowest page, s": max(median(later) for _, *later in times.values()), "memory, MB": peak}
    for name, value in figures.items():
        print(f"{name}: {value:,.2f} (goal {GOALS[name]:,.0f})")
    if told.json:
        told.json.write_text(json.dumps({"pages": times, **figures}, indent=2))
    if told.check and any(value > GOALS[name] for name, value in figures.items()):
        sys.exit(1)


if __name__ == "__main__":
    main()
