"""``framewire config``: what a node or server here would be told, and by whom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from framewire._counts import counted

if TYPE_CHECKING:
    from framewire.config import Configuration, Option

__all__ = ["config"]


@click.group()
def config() -> None:
    """Check framewire.toml and FRAMEWIRE_… variables, or show what they amount to.

    The file is --config, or what FRAMEWIRE_CONFIG names, or framewire.toml in this directory. A flag beats a
    variable, a variable beats the file, the file beats the default.

    Example: framewire config check
    """


@config.command()
@click.option("--config", "file", metavar="FILE", help="The file to read; framewire.toml unless given.")
@click.option("--set", "told", multiple=True, metavar="KEY=VALUE", help="An option, such as cluster.misses=5.")
def check(file: str | None, told: tuple[str, ...]) -> None:
    """Say whether everything is right; if not, all that is wrong.

    The files with keys are read as well, those of domains and those of CURVE: what is in them, and who else could
    read or replace them. Exit status: 0 if all is right, 2 if anything is not.

    Example: framewire config check --config production.toml
    """
    from framewire.cli.settings import configuration, one_paragraph  # noqa: PLC0415 - not needed for the help

    with one_paragraph():
        found = configuration(file, told)
        ring = found.check_keys()
    where = "no file" if found.file is None else str(found.file)
    count = sum(found.is_told(option.key) for option, _, _ in found)
    keys = "" if ring is None else f"; keys of {counted(len(ring.domains), 'domain')}"
    click.echo(f"All is right: {where}, {counted(count, 'option')} told{keys}.")


@config.command()
@click.option("--config", "file", metavar="FILE", help="The file to read; framewire.toml unless given.")
@click.option("--set", "told", multiple=True, metavar="KEY=VALUE", help="An option, such as cluster.misses=5.")
@click.option("--told", "only", is_flag=True, help="Only what somebody has told, without the defaults.")
@click.option("--json", "as_json", is_flag=True, help="JSON for programs.")
def show(file: str | None, told: tuple[str, ...], *, only: bool, as_json: bool) -> None:
    """Show every option, its value, and where that comes from. Keys are never shown.

    Example: framewire config show --told
    """
    from framewire.cli.settings import configuration, one_paragraph  # noqa: PLC0415 - not needed for the help

    with one_paragraph():
        found = configuration(file, told)
    rows = [
        _row(found, *each) for each in found if not only or found.is_told(each[0].key) or _hidden(found, each[0])
    ]
    if as_json:
        click.echo(
            json.dumps(
                {key: {"value": value, "from": origin} for key, value, origin in rows}, indent=2, default=str
            )
        )
        return
    from rich.table import Table  # noqa: PLC0415 - programs need not wait for rich
    from rich.text import Text  # noqa: PLC0415 - same

    from framewire.cli.tables import output  # noqa: PLC0415 - same
    from framewire.config import DEFAULT, as_told  # noqa: PLC0415 - same
    from framewire.wire.explaining import printable  # noqa: PLC0415 - same

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("option", "value", "from"):
        table.add_column(name, overflow="fold")
    last = ""
    for key, value, origin in rows:
        if last and key.partition(".")[0] != last:
            table.add_row()
        last = key.partition(".")[0]
        told_by = Text(printable(origin), style="dim" if origin == DEFAULT else "cyan")
        table.add_row(Text(key), Text(printable(as_told(value)) or "—"), told_by)
    output().print(table)


@config.command()
def reference() -> None:
    """Write the reference of all options as Markdown: the tables of docs/configuration.md.

    Example: framewire config reference > options.md
    """
    from framewire.config import reference as written  # noqa: PLC0415 - not needed for the help

    click.echo(written(), nl=False)


def _hidden(found: Configuration, option: Option) -> bool:
    return option.key == "security.keys" and found.has_keys_in_environment


def _row(found: Configuration, option: Option, value: Any, origin: str) -> tuple[str, Any, str]:
    if _hidden(found, option):
        return option.key, "(not shown)", "$FRAMEWIRE_KEYS"
    return option.key, _plain(value), origin


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {name.decode(errors="backslashreplace"): number for name, number in value.items()}
    if isinstance(value, tuple):
        return [list(one) if isinstance(one, tuple) else one for one in value]
    return value
