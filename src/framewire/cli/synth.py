"""``framewire synth``: made-up traffic whose truth is known."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from framewire.cli.settings import Wrong
from framewire.errors import ConfigError, UsageError
from framewire.operation.exits import Exit

if TYPE_CHECKING:
    from framewire.synth import Summary

__all__ = ["synth"]


def _versions(ctx: click.Context, param: click.Parameter, value: str) -> dict[int, float]:
    try:
        pairs = [part.split(":") for part in value.split(",")]
        return {int(version.strip().removeprefix("V")): float(part) for version, part in pairs}
    except ValueError:
        accepted = "5:0.8,4:0.12,1:0.08 (format:part of the flows)"
        raise click.BadParameter(f"{value!r} is not like {accepted}", ctx, param) from None


def _time(ctx: click.Context, param: click.Parameter, value: str) -> dt.datetime:
    try:
        told = dt.datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a time like 2025-01-01T08:00:00Z", ctx, param) from None
    return told if told.tzinfo is not None else told.replace(tzinfo=dt.UTC)


@click.command(context_settings={"show_default": True})
@click.option("--messages", type=int, default=1_000_000, metavar="N", help="Rows of the captures, exactly.")
@click.option("--nodes", type=int, default=8, metavar="N", help="Nodes of the cluster.")
@click.option("--loss", type=float, default=0.001, metavar="PART", help="Of the messages between nodes, lost.")
@click.option("--duplicates", type=float, default=0.001, metavar="PART", help="Of answers and tells, coming twice.")
@click.option("--malformed", type=float, default=0.001, metavar="PART", help="Damaged beyond decoding.")
@click.option("--tampered", type=float, default=0.001, metavar="PART", help="Of the signed messages, changed.")
@click.option("--skew-ms", type=float, default=5.0, metavar="MS", help="How far clocks are off, either way.")
@click.option("--seed", type=int, default=1, metavar="N", help="The same seed and options give the same bytes.")
@click.option("--rate", type=float, metavar="N", help="Rows a second, roughly.  [default: 20000]")
@click.option("--duration", type=float, metavar="SECONDS", help="How long it lasts, roughly, in place of a rate.")
@click.option("--start", callback=_time, default="2025-01-01T08:00:00Z", metavar="TIME", help="When it begins.")
@click.option(
    "--versions",
    callback=_versions,
    default="5:0.8,4:0.12,1:0.08",
    metavar="V:PART,...",
    help="Wire formats, and the part of the flows in each.",
)
@click.option("--giant-flow", type=int, default=0, metavar="N", help="One flow with so many messages; 0 for none.")
@click.option("--hot-partition", type=float, default=0.0, metavar="PART", help="Of the flows, in one partition.")
@click.option("--segment-rows", type=int, default=50_000, metavar="N", help="Rows of a file at most.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Gets the directories captures and truth.",
)
@click.option("--quiet", is_flag=True, help="Show neither progress nor summary.")
def synth(*, output: Path, quiet: bool, **wishes: Any) -> None:
    """Write the captures of a made-up cluster, and tables that tell what really happened in it.

    A row of a capture is a message as one node saw it: one that goes from a node to another is recorded when it
    is sent, received and delivered. The keys in DIR/truth/keys.toml come from the seed: they protect nothing.

    Example: framewire synth --messages 1000000 --nodes 8 --loss 0.001 --skew-ms 5 --seed 1 -o made-up
    """
    from framewire.synth import Options, synthesise  # noqa: PLC0415 - numpy and Arrow, which no help needs

    try:
        options = Options(**wishes)
        with _progress(options.messages, quiet=quiet) as advance:
            summary = synthesise(options, output, advance)
    except ConfigError as problem:
        raise click.UsageError("\n".join(_as_option(line) for line in problem.problems)) from None
    except UsageError as problem:
        raise click.UsageError(str(problem)) from None
    except OSError as problem:
        where = problem.filename or output
        raise Wrong(f"{where}: cannot be written: {problem.strerror or problem}", Exit.FILES) from None
    if not quiet:
        _show(summary)


def _as_option(problem: str) -> str:
    names, _, detail = problem.partition(":")
    return f"{', '.join('--' + name.replace('_', '-') for name in names.split(', '))}:{detail}"


@contextmanager
def _progress(total: int, *, quiet: bool) -> Iterator[Callable[[int], object]]:
    """What is told of rows as they are made; it draws a bar where there is a terminal to draw on."""
    from rich.console import Console  # noqa: PLC0415 - see synth
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("messages", total=total)
        yield lambda rows: bar.advance(task, rows)


def _show(summary: Summary) -> None:
    from rich.console import Console  # noqa: PLC0415 - see synth
    from rich.table import Table  # noqa: PLC0415 - same

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(justify="right")
    table.add_row("rows", f"{summary.rows:,}")
    table.add_row("flows", f"{summary.flows:,}")
    for outcome, count in summary.outcomes.items():
        table.add_row(f"  {outcome}", f"{count:,}")
    for name in ("losses", "duplicates", "tampered"):
        table.add_row(name, f"{summary.truths[name]:,}")
    table.add_row("malformed rows", f"{summary.truths['malformed']:,}")
    table.add_row("files", f"{summary.files:,}")
    table.add_row("megabytes", f"{summary.bytes / 1e6:,.1f}")
    console = Console()
    console.print(table)
    console.print(f"captures: {summary.captures}", soft_wrap=True, highlight=False)
    console.print(f"truth:    {summary.truth}", soft_wrap=True, highlight=False)
