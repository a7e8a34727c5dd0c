"""``framewire inspect``: recorded messages as a person, or a program, wants to see them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import click

from framewire.cli.findings import Finding, Tally, Verifier, find
from framewire.cli.recordings import INPUTS, Input, Recording, Unreadable, read
from framewire.wire.codec import TtlUnit

__all__ = ["inspect"]

_JSON_PREVIEW = 256
"""Bytes of a frame that a JSON note makes readable; the whole frame is there in hex anyway."""


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--input",
    "kind",
    type=click.Choice(INPUTS),
    default="auto",
    help="What the files hold; told by itself if left out.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a message, for programs.")
@click.option("--brief", is_flag=True, help="One line a message.")
@click.option("--full", is_flag=True, help="Show all frames and whole values, however long.")
@click.option("--only", metavar="PATTERN", help="Only messages whose name or identity matches, such as 'orders.*'.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N messages.")
@click.option("--verify", "keys", metavar="KEYS.toml", help="Check signatures with the keys in this file.")
@click.option(
    "--ttl-unit",
    type=click.Choice(["ms", "ticks"]),
    default="ms",
    help="How V1 messages count their ttl; old .NET builds wrote ticks.",
)
def inspect(
    files: tuple[str, ...],
    *,
    kind: Input,
    as_json: bool,
    brief: bool,
    full: bool,
    only: str | None,
    limit: int | None,
    keys: str | None,
    ttl_unit: TtlUnit,
) -> None:
    """Show recorded messages, frame by frame, counted from the end.

    A FILE, or the standard input, holds JSON lines (an object with "frames" in hex, or a list of them), or
    hex (a frame a line, "-" for an empty one, an empty line between messages), or the raw bytes of a ZeroMQ
    connection (ZMTP 3).

    In the table → marks the frames that decide a message's route, and ✗ the one that makes it malformed.

    Exit status: 0 if all is well, 1 if anything is malformed, badly signed or unreadable, 2 if the command
    line or the key file is wrong.

    Example: framewire inspect recorded.jsonl --only 'orders.*' --verify keys.toml
    """
    if as_json and brief:
        raise click.UsageError("--json and --brief exclude each other.")
    if not files and sys.stdin.isatty():
        raise click.UsageError("Name a FILE, or pipe a recording in.")
    verifier = None if keys is None else _verifier(keys)
    show, longest = _display(as_json=as_json, brief=brief, full=full)
    tally = Tally()
    findings = (
        find(recording, ttl_unit=ttl_unit, longest=longest, verifier=verifier)
        for recording in _recordings(files or ("-",), kind, tally)
    )
    wanted = (finding for finding in findings if only is None or finding.matches(only))
    for finding in islice(wanted, limit):
        tally.count(finding)
        show(finding)
    if not as_json and tally.messages != 1:
        click.echo(tally, err=True)
    sys.exit(0 if tally.all_well else 1)


def _recordings(files: Iterable[str], kind: Input, tally: Tally) -> Iterator[Recording]:
    """The recordings of all files; what cannot be read is told at once, and does not stop the rest."""
    for file in files:
        for item in read(file, kind):
            if isinstance(item, Unreadable):
                tally.unreadable += 1
                click.echo(f"Error: {item}", err=True)
            else:
                yield item


def _verifier(path: str) -> Verifier:
    from framewire.security import KeyRing  # noqa: PLC0415 - only needed where there are keys

    return KeyRing.from_file(path)


def _display(*, as_json: bool, brief: bool, full: bool) -> tuple[Callable[[Finding], None], int | None]:
    """What shows a finding, and how many bytes of a frame it has a use for."""
    if as_json:
        from framewire.cli.machine import json_line  # noqa: PLC0415 - each display loads only what it needs

        return lambda finding: click.echo(json_line(finding)), None if full else _JSON_PREVIEW

    from framewire.cli import tables  # noqa: PLC0415 - same: programs need not wait for rich

    console = tables.output()
    if brief:
        whole = full or not console.is_terminal
        return lambda finding: console.print(
            tables.one_line(finding),
            soft_wrap=whole,
            no_wrap=True,
            overflow="ignore" if whole else "ellipsis",
        ), 0
    # Four bytes a column: no character takes more in UTF-8.
    longest = None if full else 4 * console.width
    return lambda finding: console.print(tables.frame_view(finding, width=console.width, full=full)), longest
