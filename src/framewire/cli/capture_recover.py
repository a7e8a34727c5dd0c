"""``framewire capture recover``: seal what a crash left open."""

from __future__ import annotations

import sys

import click

from framewire._counts import counted
from framewire.errors import UsageError

__all__ = ["recover"]


@click.command()
@click.argument("path")
@click.option("--spool", metavar="DIR", help="Where the open segments are, if the node was told.")
def recover(path: str, spool: str | None) -> None:
    """Seal the segments at PATH that a node left open when it was killed.

    What a running node is writing is left alone. A node that records at PATH does the same when it starts.

    Example: framewire capture recover captures/
    """
    from framewire.capture import Place  # noqa: PLC0415 - pyarrow comes with it
    from framewire.capture import recover as recovered  # noqa: PLC0415 - same

    place = Place(path, spool=spool)
    if not (place.exists() or place.spool.exists()):
        raise UsageError(f"{path}: there is no such directory of captures")
    failed = messages = segments = 0
    for found in recovered(place):
        if found.problem:
            failed += 1
            click.echo(f"Error: segment {found.ulid} stays open: {found.problem}", err=True)
        else:
            segments += 1
            messages += found.messages
    click.echo(f"sealed {counted(segments, 'segment')} with {counted(messages, 'message')}")
    sys.exit(1 if failed else 0)
