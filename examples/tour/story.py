"""The whole of the demo, from the first process to the last word, and all that has to be tidied up on the way."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

import framewire as fw
from framewire.spark.tables import TABLES
from tour.chapters import FORGED, Day, recorded
from tour.customers import Account, Customers
from tour.figures import figures, opened, shown
from tour.frames import the_wire
from tour.premises import NODES, Premises
from tour.processes import Processes, Program, last_words
from tour.stage import Stage
from tour.strangers import put_into_archive, recordings

__all__ = ["Options", "tell"]

EXAMPLES = Path(__file__).parents[1]
KEPT = Path("build", "demo", "lake")
REPORT = "demo-report.html"
_SPARK_STARTS = 180.0
_SPARK_WORKS = 300.0
_TOLERANCE = 0.5
"""Seconds between what the lake and a stopwatch say: a busy machine wakes up who waits when it has time."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the demo is to be."""

    seed: int = 8
    """Decides whose bank says no."""
    spark: bool = True
    directory: Path = Path()
    """Gets the report, and below build/demo the lake."""


async def tell(stage: Stage, options: Options) -> None:
    """Tell it all; ``BrokenPromiseError`` where something is not as it must be."""
    stage.title(
        "framewire: a small shop, on four nodes",
        "Everything below happens now, on this machine, and every figure is checked.",
    )
    with _workshop(options.directory / KEPT.parent) as folder:
        async with Processes(folder) as processes:
            premises = Premises(processes, folder, options.seed)
            lake = folder / KEPT.name
            spark = _spark(processes, premises, lake) if options.spark else None
            account = await _the_day(stage, processes, premises)
            if spark is not None:
                spark.tell("the captures are complete")
            await the_wire(stage, processes, folder)
            if spark is not None:
                await _the_lake(stage, processes, spark, lake, account)
                await _the_report(stage, processes, lake, folder, options.directory)
        if spark is not None:
            _keep(lake, options.directory / KEPT, folder)
            _what_next(stage)


@contextmanager
def _workshop(root: Path) -> Iterator[Path]:
    """A folder of this run alone, gone at the end: beside what is kept, so that that can be moved into place."""
    root.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=root)).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _spark(processes: Processes, premises: Premises, lake: Path) -> Program:
    """Spark takes seconds to start: it does so while the shop is open."""
    told = [str(premises.captures), str(lake), str(premises.keys)]
    return processes.start("spark", "-m", "tour.spark_worker", *told, cwd=EXAMPLES, listens=True)


async def _the_day(stage: Stage, processes: Processes, premises: Premises) -> Account:
    stage.chapter("The shop opens")
    with stage.step("a rendezvous server and four nodes start") as step:
        await premises.open()
        step.told = f"a rendezvous server and four node processes: {', '.join(NODES)}"
    async with _customers(premises) as node:
        customers = Customers(node)
        with stage.step("customers look for the shop") as step:
            await customers.find_the_shop()
            step.told = "customers, on a node of their own, have found every department"
        day = Day(stage, processes, premises, customers, node)
        await day.an_ordinary_day()
        await day.a_look_inside()
        await day.trouble()
        await day.closing_time()
    with stage.step("every node finishes what it does") as step:
        await premises.close()
        put_into_archive(premises.captures)
        rows = recorded(premises.captures)
        step.told = f"every node has stopped, with nothing undone; {rows:,} rows are recorded"
    return customers.account


def _customers(premises: Premises) -> fw.Node:
    return fw.Node(
        identity="web",
        rendezvous=[premises.rendezvous],
        heartbeat=0.5,
        misses=8,
        capture=str(premises.captures),
        timeout=30,
        route_grace=20,
        stop_timeout=2,
        signals=False,
    )


async def _the_lake(stage: Stage, processes: Processes, spark: Program, lake: Path, account: Account) -> None:
    stage.chapter("What Spark makes of the recordings")
    with stage.step("Spark starts", slow=True) as step:
        started = await spark.said(r'\{"started": ([\d.]+)\}', _SPARK_STARTS)
        step.told = f"Spark was started in the morning, which took {started[1]} s"
    with stage.step("the pipeline decodes, verifies and follows every message", slow=True) as step:
        made = json.loads((await spark.said(r'\{"rows".*\}', _SPARK_WORKS))[0])
        step.told = f"the pipeline made {len(TABLES)} tables of {made['rows']:,} rows, in {made['seconds']} s"
    with opened(lake) as answers:
        damaged, archived = len(recordings().damaged), len(recordings().archived)
        compared = figures(answers, account, forged=FORGED, damaged=damaged, archived=archived)
        edge, (slowest, seconds) = answers.slowest_edge(), answers.slowest_flow()
    stage.show(shown(compared))
    for each in compared:
        told = f"{each.what}: the lake says {each.lake}, and {each.by} counted {each.counted}"
        stage.check(told, holds=each.agrees)
    measured = account.took.get(slowest, 0.0)
    told = f"{slowest} took {seconds:.2f} s, and whoever ordered it waited for {measured:.2f} s"
    stage.check(told, holds=abs(seconds - measured) < _TOLERANCE)
    stage.say("")
    way = f"{edge.message} from {edge.sender} to {edge.receiver}"
    stage.say(f"Slowest edge: {way}, 95 % within {edge.p95_us / 1000:.1f} ms.")
    what = ", a piano" if slowest in account.pianos else ""
    stage.say(f"Slowest flow: {slowest}{what}, {seconds:.2f} s; whoever ordered it waited for {measured:.2f} s.")
    status, said = await processes.command(
        "flow", slowest, "--lake", str(lake), width=stage.width, colour=stage.coloured, cwd=EXAMPLES
    )
    stage.command(f"framewire flow {slowest} --lake {KEPT}", said)
    stage.check(f"framewire flow ends well, not with {status}: {last_words(said)}", holds=status == 0)


async def _the_report(stage: Stage, processes: Processes, lake: Path, folder: Path, directory: Path) -> None:
    """Written elsewhere first: whoever looks at the one of the last demo sees it whole until there is another."""
    with stage.step("a report") as step:
        made = folder / REPORT
        command = ("report", "--lake", str(lake), "-o", str(made), "--title", "A day in the shop")
        status, said = await processes.command(*command, width=stage.width, colour=False, cwd=EXAMPLES)
        stage.check(f"framewire report ends well, not with {status}: {last_words(said)}", holds=status == 0)
        size = made.stat().st_size
        made.replace(directory / REPORT)
        step.told = f"{REPORT} tells all of it with pictures, in one file of {size / 1000:,.0f} kB"


def _keep(lake: Path, kept: Path, folder: Path) -> None:
    """Put the lake in the place of the last one."""
    with suppress(FileNotFoundError):
        kept.rename(folder / "lake of the last demo")
    lake.rename(kept)


def _what_next(stage: Stage) -> None:
    stage.chapter("What to try next")
    table = Table.grid(padding=(0, 3))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(style="dim")
    for what, why in (
        (f"open {REPORT}", "the day as a report, in any browser"),
        ("make dashboard", "the same, to click through"),
        (f'framewire query "from flows" --lake {KEPT}', "any question, in SQL"),
        ("examples/shop/README.md", "the shop, to run and change yourself"),
        ("framewire new my-shop", "a project of your own"),
    ):
        table.add_row(what, why)
    stage.show(table)
