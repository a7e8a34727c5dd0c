"""``framewire capture stats``: how much was recorded, when, by whom, and of what."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from framewire._counts import counted
from framewire.wire.explaining import printable
from framewire.wire.message import readable

if TYPE_CHECKING:
    from framewire.capture.contents import Contents

__all__ = ["stats"]

_MOST = 20
"""Rows of a table that are shown to a person."""


@click.command()
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
@click.option("--sealed", is_flag=True, help="Leave out what is not sealed yet.")
def stats(path: str, *, as_json: bool, sealed: bool) -> None:
    """Count what was recorded at PATH: segments, bytes, messages, their time, nodes, directions and names.

    Example: framewire capture stats captures/
    """
    from framewire.capture.contents import Contents  # noqa: PLC0415 - pyarrow comes with it
    from framewire.capture.reading import batches, existing  # noqa: PLC0415 - same
    from framewire.capture.spool import open_segments  # noqa: PLC0415 - same

    place = existing(path)
    segments = place.segments()
    still_open = 0 if sealed else len(open_segments(place.spool))
    contents = Contents()
    contents.add(batches(path, open_segments=not sealed))
    size = sum(segment.size for segment in segments)
    plain = {"segments": len(segments), "open_segments": still_open, "bytes": size} | _plain(contents)
    if as_json:
        click.echo(json.dumps(plain))
    else:
        _show(contents, plain)


def _plain(contents: Contents) -> dict[str, Any]:
    return {
        "messages": contents.messages,
        "first": contents.first and contents.first.isoformat(timespec="microseconds"),
        "last": contents.last and contents.last.isoformat(timespec="microseconds"),
        "nodes": _named(contents.nodes, readable),
        "directions": _named(contents.directions, str),
        "reasons": _named(contents.reasons, str),
        "message_ids": _named(contents.message_ids, lambda found: "malformed" if found is None else str(found)),
    }


def _named(counter: Counter[Any], name: Callable[[Any], str]) -> dict[str, int]:
    """Counts by name, the largest first; V4 and V5 messages of one id are one."""
    named: Counter[str] = Counter()
    for value, count in counter.items():
        named[name(value)] += count
    return dict(named.most_common())


def _show(contents: Contents, plain: dict[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - programs need not wait for rich
    from rich.table import Table  # noqa: PLC0415 - same
    from rich.text import Text  # noqa: PLC0415 - same

    from framewire.cli.tables import output  # noqa: PLC0415 - same

    console = output()
    sealed = f"{counted(plain['segments'], 'sealed segment')} of {counted(plain['bytes'], 'byte')}"
    still_open = f" and {plain['open_segments']:,} open" if plain["open_segments"] else ""
    console.print(f"{counted(plain['messages'], 'message')} in {sealed}{still_open}")
    if contents.first is not None and contents.last is not None:
        seconds = (contents.last - contents.first).total_seconds()
        console.print(f"from {plain['first']} to {plain['last']} ({seconds:,.1f} s)")
    for title in ("nodes", "directions", "reasons", "message_ids"):
        counts: dict[str, int] = plain[title]
        if not counts:
            continue
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
        table.add_column(title.replace("_", " "), overflow="fold")
        table.add_column("messages", justify="right")
        for name, count in list(counts.items())[:_MOST]:
            table.add_row(Text(printable(name)), f"{count:,}")
        console.print()
        console.print(table)
        if len(counts) > _MOST:
            console.print(f"… and {len(counts) - _MOST:,} more; --json tells them all")
