"""What the commands share that ask a live cluster: joining it, looking again and again, tables, JSON."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from framewire.cli.settings import configuration
from framewire.errors import NoRoute
from framewire.operation.observing import Observer, Seen
from framewire.wire.explaining import printable

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "Report",
    "chosen",
    "cluster_options",
    "duration",
    "join",
    "row",
    "table",
    "view",
]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_TIMES = ((86_400, "d"), (3_600, "h"), (60, "m"))


def join(told: dict[str, Any], main: Callable[[Observer], Awaitable[T]]) -> T:
    """Do something as a node of the cluster that the command line, variables or the file name.

    ``told`` are the command's parameters; those of ``cluster_options`` are taken out of them.
    """
    from framewire.node import run  # noqa: PLC0415 - whoever joins waits for sockets anyway

    file, sets = told.pop("file"), told.pop("told")
    timeout, wait = told.pop("timeout"), told.pop("wait")
    named = {
        "cluster.rendezvous": told.pop("rendezvous"),
        "cluster.peers": told.pop("peers"),
        "cluster.bind": told.pop("bind"),
        "security.keys": told.pop("keys"),
    }

    async def joined() -> T:
        async with Observer(configuration(file, sets, named), wait=wait, timeout=timeout) as observer:
            return await main(observer)

    # What goes wrong is told by the command itself; the log of a node that only looks would say it once more.
    if not logging.getLogger("framewire").handlers:
        logging.getLogger("framewire").addHandler(logging.NullHandler())
    return run(joined())


@dataclass(frozen=True, slots=True)
class Report:
    """What a look at the cluster found: for programs, and for people when it comes to that."""

    data: Any
    table: Callable[[], Table]


def view(told: dict[str, Any], look: Callable[[Observer, list[Seen]], Awaitable[Report]]) -> None:
    """Show what a look finds: once, or again and again with ``--watch``."""
    as_json, watch, every = told.pop("as_json"), told.pop("watch"), told.pop("every")

    async def main(observer: Observer) -> None:
        report = await look(observer, await observer.find())
        if as_json:
            click.echo(json.dumps(report.data))
            while watch:
                await asyncio.sleep(every)
                report = await look(observer, await observer.everyone())
                click.echo(json.dumps(report.data))
        else:
            await _show(observer, report, every if watch else None)

    async def _show(observer: Observer, report: Report, interval: float | None) -> None:
        from framewire.cli.tables import output  # noqa: PLC0415 - programs need not wait for rich

        console = output()
        if interval is None or not console.is_terminal:
            console.print(report.table())
            while interval is not None:
                await asyncio.sleep(interval)
                console.print((await look(observer, await observer.everyone())).table())
            return
        from rich.live import Live  # noqa: PLC0415 - same

        with Live(report.table(), console=console, screen=True, auto_refresh=False) as live:
            while True:
                await asyncio.sleep(interval)
                live.update((await look(observer, await observer.everyone())).table(), refresh=True)

    join(told, main)


def cluster_options(*, watch: bool = False) -> Callable[[F], F]:
    """The options of every command that asks a live cluster."""
    options = [
        click.option("--rendezvous", multiple=True, metavar="ADDRESS", help="A rendezvous server of the cluster."),
        click.option(
            "--peer", "peers", multiple=True, metavar="ADDRESS", help="A node of it, without a rendezvous."
        ),
        click.option(
            "--bind", metavar="ADDRESS", help="Where to listen: any port of the way to the cluster unless given."
        ),
        click.option("--keys", metavar="KEYS.toml", help="The keys of the domains to look into."),
        click.option("--config", "file", metavar="FILE", help="The file to read; framewire.toml unless given."),
        click.option("--set", "told", multiple=True, metavar="KEY=VALUE", help="Any option of the file."),
        click.option("--timeout", type=_POSITIVE, default=5.0, show_default=True, help="Seconds for an answer."),
        click.option(
            "--wait", type=_POSITIVE, default=5.0, show_default=True, help="Seconds to find the cluster in."
        ),
        click.option("--json", "as_json", is_flag=True, help="JSON for programs."),
    ]
    if watch:
        options += [
            click.option("--watch", is_flag=True, help="Look again and again, until interrupted."),
            click.option("--every", type=_POSITIVE, default=2.0, show_default=True, help="Seconds between looks."),
        ]

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_POSITIVE = click.FloatRange(min=0, min_open=True)


def chosen(nodes: Iterable[Seen], names: Sequence[str]) -> list[Seen]:
    """The nodes whose names begin like these; all of them where none is named."""
    listed = list(nodes)
    found = [node for node in listed if not names or any(node.name.startswith(name) for name in names)]
    for name in names:
        if not any(node.name.startswith(name) for node in listed):
            there = ", ".join(node.name for node in listed)
            raise NoRoute(f"there is no node {name!r}; there are {there}")
    return found


def table(*columns: str, title: str = "") -> Table:
    """A table whose columns are to the right if their names end in ``>``."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - programs need not wait for rich
    from rich.table import Table as RichTable  # noqa: PLC0415 - same

    made = RichTable(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="dim",
        title=title or None,
        title_justify="left",
    )
    for column in columns:
        made.add_column(
            column.removesuffix(">"), justify="right" if column.endswith(">") else "left", overflow="fold"
        )
    return made


def row(made: Table, *cells: object, style: str | None = None) -> None:
    """Add a row of what others have sent: as text, on which nothing can play tricks."""
    from rich.text import Text  # noqa: PLC0415 - as above

    made.add_row(*(Text(printable(str(cell))) for cell in cells), style=style)


def duration(seconds: float) -> str:
    """A length of time in as few characters as tell it."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    for size, unit in _TIMES:
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
