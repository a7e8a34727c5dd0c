"""``framewire report``: a lake told in one HTML file."""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framewire.errors import UsageError

if TYPE_CHECKING:
    from framewire.history import History, Window
    from framewire.report import Facts

__all__ = ["report"]

_LOOKED_AT = 50
_TIMES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S")


@click.command()
@click.option("--lake", required=True, metavar="DIR", help="Where the lake is: a directory, or a URI.")
@click.option("-o", "--output", metavar="FILE", help="Gets the report; - for the standard output.")
@click.option("--title", metavar="TEXT", help="What stands at the top; the name of the lake unless given.")
@click.option(
    "--from", "since", type=click.DateTime(_TIMES), metavar="TIME", help="Only what began then or later (UTC)."
)
@click.option("--until", type=click.DateTime(_TIMES), metavar="TIME", help="Only what began before then (UTC).")
@click.option(
    "--flows",
    type=click.IntRange(1, 50),
    default=6,
    show_default=True,
    help="How many of the slowest flows, and of those that went wrong, are shown.",
)
@click.option("--pictures", metavar="DIR", help="Gets the topology and the flow with most to see as SVG files.")
def report(
    *,
    lake: str,
    output: str | None,
    title: str | None,
    since: dt.datetime | None,
    until: dt.datetime | None,
    flows: int,
    pictures: str | None,
) -> None:
    """Write a report on a lake: topology, latency, flows with their waterfalls, losses, signatures and more.

    It is one file that needs no network and holds no script: open it in any browser, print it, send it to somebody.
    Figures by the hour are those of all hours that --from and --until touch.

    Example: framewire report --lake lake/ -o report.html
    """
    if output is None and pictures is None:
        raise click.UsageError("Give -o FILE for the report, --pictures DIR for pictures, or both.")
    if output is not None and output != "-":
        _must_be_writable(Path(output))
    from framewire.cli.lakes import lake_errors  # noqa: PLC0415 - only those who ask wait for DuckDB

    with lake_errors():
        from framewire.history import History, Window  # noqa: PLC0415 - same
        from framewire.report import gathered, report_page  # noqa: PLC0415 - same

        window = Window(since, until)
        with History(lake) as history:
            facts = gathered(history, window, flows=flows)
            _must_tell(facts, lake, history.period())
            if pictures is not None:
                _write_pictures(Path(pictures), facts, history)
        if output is not None:
            named = title or f"Report on {Path(lake.rstrip('/')).name or 'a lake'}"
            _write(output, report_page(facts, title=named))


def _must_be_writable(output: Path) -> None:
    """Better told at once than after a long lake was read."""
    if output.is_dir():
        raise UsageError(f"{output} is a directory; give the name of a file: -o {output / 'report.html'}")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output} cannot be written: there is no directory {output.parent}; make it first")


def _must_tell(facts: Facts, lake: str, known: Window | None) -> None:
    """A report on nothing helps nobody: most often a time is mistyped, or the pipeline has not run."""
    if facts.summary.rows or facts.summary.flows.all or facts.summary.quarantined:
        return
    if known is not None:
        raise UsageError(
            f"{lake} knows nothing of the time that --from and --until leave. It knows of {known.since} until "
            f"{known.until} (UTC)."
        )
    raise UsageError(
        f"{lake} is empty. Take in what nodes have recorded: "
        f"framewire pipeline run --captures captures/ --lake {lake}"
    )


def _write(output: str, text: str) -> None:
    if output == "-":
        click.echo(text, nl=False)
        return
    place = Path(output)
    _replace(place, text)
    click.echo(f"{output}: {len(text.encode()) / 1000:,.0f} kB", err=True)


def _write_pictures(directory: Path, facts: Facts, history: History) -> None:
    from framewire.history import FlowSearch  # noqa: PLC0415 - as above
    from framewire.report import most_to_see, topology_svg, waterfall_svg  # noqa: PLC0415 - same

    largest = history.flows(FlowSearch(window=facts.window), order="largest", limit=_LOOKED_AT).flows
    told = most_to_see([*facts.stories.values(), *history.stories(largest).values()])
    made = {"topology.svg": topology_svg(facts.topology)}
    if told is not None:
        made["waterfall.svg"] = waterfall_svg(told)
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        _replace(directory / name, text)
        click.echo(f"{directory / name}: {len(text.encode()) / 1000:,.0f} kB", err=True)


def _replace(place: Path, text: str) -> None:
    """Write a file as a whole or not at all: a report that is half a report would be believed."""
    place = place.resolve()
    if place.exists() and not place.is_file():
        place.write_text(text, encoding="utf-8")  # a device or a pipe, which must stay what it is
        return
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mode = place.stat().st_mode & 0o777 if place.exists() else 0o666 & ~_umask()
        Path(name).chmod(mode)
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    before = os.umask(0o022)
    os.umask(before)
    return before
