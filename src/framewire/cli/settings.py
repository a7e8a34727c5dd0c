"""What the commands share that need a configuration: finding it, and telling what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from framewire.errors import FramewireError
from framewire.wire.explaining import printable

if TYPE_CHECKING:
    from framewire.config import Configuration, Flag

__all__ = ["Wrong", "configuration", "flags", "one_paragraph"]


class Wrong(click.ClickException):
    """An error that is told in one paragraph, and ends the command with a status of its own."""

    def __init__(self, detail: str, status: int) -> None:
        super().__init__("\n".join(map(printable, detail.splitlines())))
        vars(self)["exit_code"] = status  # click knows one for each class, and reads it from the object


@contextmanager
def one_paragraph() -> Iterator[None]:
    """Tell what is wrong with a configuration in one paragraph; the status is that of a wrong command line."""
    try:
        yield
    except FramewireError as problem:
        raise Wrong(str(problem), 2) from None


def flags(told: Iterable[str], named: Mapping[str, object] | None = None) -> list[Flag]:
    """Flags of the command line: ``--set KEY=VALUE``, and others by key, as far as they were given."""
    from framewire.config import Flag  # noqa: PLC0415 - not needed for the help

    found: list[Flag] = []
    for each in told:
        key, equals, value = each.partition("=")
        if not equals:
            raise click.UsageError(f"--set {each}: write it as KEY=VALUE, such as cluster.misses=5")
        found.append(Flag(key.strip(), "--set", value))
    for key, told_value in (named or {}).items():
        given = ",".join(told_value) if isinstance(told_value, tuple) else told_value
        if given is not None and given != "":
            found.append(Flag(key, _flag(key), str(given)))
    return found


def _flag(key: str) -> str:
    return _NAMES.get(key) or f"--{key.rpartition('.')[2].replace('_', '-')}"


_NAMES = {
    "capture.path": "--capture",
    "cluster.peers": "--peer",
    "log.format": "--log-format",
    "log.level": "--log-level",
    "rendezvous.address": "ADDRESS",
    "rendezvous.partners": "--partner",
}


def configuration(
    file: str | None, told: Iterable[str] = (), named: Mapping[str, object] | None = None
) -> Configuration:
    """The configuration that this process has; ``ConfigError`` with all that is wrong with it."""
    from framewire.config import load  # noqa: PLC0415 - not needed for the help

    return load(file=file, flags=flags(told, named))
