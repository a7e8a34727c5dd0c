"""``framewire pipeline``: captures to tables."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from framewire._counts import counted
from framewire.cli.pipeline_compact import compact
from framewire.cli.pipeline_prune import prune
from framewire.cli.pipeline_status import status
from framewire.cli.traces import export_traces

if TYPE_CHECKING:
    from framewire.spark.pipeline import Batch, Summary

__all__ = ["pipeline"]

_FEW = 4 << 20
"""Bytes of captures: some 80,000 messages. With 300,000, plainly compiled code takes twice as long for each."""
_TITLES = {
    "quarantined": "In quarantine",
    "lost": "Lost",
    "invalid_signatures": "Signatures that do not match",
    "slowest_edges": "Slowest ways",
    "failing_handlers": "Failing handlers",
}


@click.group()
def pipeline() -> None:
    """Turn captures into tables: flows, hops, losses, edges and more.

    Example: framewire pipeline run --captures captures/ --lake lake/
    """


@pipeline.command("run", context_settings={"show_default": True})
@click.option(
    "--captures", required=True, metavar="DIR", help="What nodes have recorded: any path that Spark reads."
)
@click.option("--lake", required=True, metavar="DIR", help="Gets the tables: any path that Spark writes.")
@click.option("--once/--continuous", default=True, help="Take in what is there, or go on until Ctrl-C.")
@click.option("--master", metavar="URL", help="The Spark to use; one on this machine unless given.")
@click.option("--keys", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Keys to verify with.")
@click.option(
    "--late", default="1h", metavar="TIME", help="How old a row may be, against the newest, to be taken in."
)
@click.option("--lost-after", default="30s", metavar="TIME", help="What was not received by then is lost.")
@click.option("--bucket", metavar="TIME", help="What tables are worked out anew by; a new lake begins with 15m.")
@click.option("--horizon", metavar="TIME", help="How far beyond its bucket a flow is followed; begins with 3m.")
@click.option(
    "--files-per-batch", type=click.IntRange(min=1), metavar="N", help="At most; else all that are there."
)
@click.option("--keep-frames", is_flag=True, help="Keep the raw frames of messages, too.")
@click.option("--format", type=click.Choice(["parquet", "orc"]), help="How tables are written (parquet).")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def run(
    *,
    captures: str,
    lake: str,
    once: bool,
    master: str | None,
    keys: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Bring the lake up to date with the captures.

    It can be stopped, or killed, at any time, and goes on from there the next time.

    Example: framewire pipeline run --captures captures/ --lake lake/ --keys keys.toml
    """
    from framewire.security import KeyRing  # noqa: PLC0415 - Spark is only needed here
    from framewire.spark import Pipeline, session  # noqa: PLC0415 - same

    ring = None if keys is None else KeyRing.from_file(keys)
    spark = session(master, brief=once and _are_few(captures))
    try:
        with _progress(quiet=quiet) as show:
            made = Pipeline(captures, lake, keys=ring, spark=spark, **options).run(once=once, progress=show)
    finally:
        spark.stop()
    if as_json:
        click.echo(json.dumps(asdict(made), default=str, indent=2))
    else:
        _tell(made)


for command in (compact, export_traces, prune, status):
    pipeline.add_command(command)


def _are_few(captures: str) -> bool:
    """Whether captures on this machine are worked through before it pays to have the JVM at its best."""
    place = Path(captures)
    return place.is_dir() and sum(segment.stat().st_size for segment in place.rglob("*.parquet")) < _FEW


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[Batch], object]]:
    """What is told of each batch; it is shown where there is a terminal to show it on."""
    from rich.console import Console  # noqa: PLC0415 - only those who watch wait for it

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    segments = rows = 0

    def show(batch: Batch) -> None:
        nonlocal segments, rows
        segments, rows = segments + batch.segments, rows + batch.rows
        rate = batch.rows / batch.seconds if batch.seconds else 0.0
        behind = dt.datetime.now(dt.UTC) - batch.newest if batch.newest is not None else None
        lag = f", {str(behind).partition('.')[0]} behind" if behind is not None else ""
        waiting.update(f"{counted(segments, 'segment')}, {counted(rows, 'row')}, {rate:,.0f} rows/s{lag}")

    with console.status("reading captures") as waiting:
        yield show


def _tell(made: Summary) -> None:
    from rich.console import Console  # noqa: PLC0415 - see _progress
    from rich.markup import escape  # noqa: PLC0415 - same
    from rich.table import Table  # noqa: PLC0415 - same

    console = Console()
    late = f", {made.late:,} too late" if made.late else ""
    took = f"{counted(made.batches, 'batch', 'batches')} in {made.seconds:,.1f} s"
    taken = f"{counted(made.rows, 'row')} of {counted(made.segments, 'segment')}"
    console.print(f"{taken} in {took}; {made.quarantined:,} in quarantine{late}")
    if made.attention is None:
        return
    for name, rows in made.attention.as_dict().items():
        if rows:
            table = Table(title=_TITLES[name], title_justify="left", box=None, padding=(0, 2, 0, 0))
            for column in rows[0]:
                table.add_column(column)
            for row in rows:
                table.add_row(*[escape(_shown(value)) for value in row.values()])
            console.print(table)


def _shown(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)
