"""``framewire capture prune``: remove what is old, or too much."""

from __future__ import annotations

import click

from framewire._counts import counted
from framewire.cli.capture_quantities import duration, size

__all__ = ["prune"]


@click.command()
@click.argument("path")
@click.option("--older-than", type=duration, metavar="TIME", help="Remove segments that are older, such as 7d.")
@click.option(
    "--max-size", type=size, metavar="SIZE", help="Remove the oldest until no more is left, such as 10GB."
)
@click.option("--dry-run", is_flag=True, help="Only tell what would be removed.")
def prune(path: str, *, older_than: float | None, max_size: int | None, dry_run: bool) -> None:
    """Remove sealed segments at PATH, the oldest first.

    Example: framewire capture prune captures/ --older-than 7d --max-size 10GB --dry-run
    """
    from framewire.capture import prune as pruned  # noqa: PLC0415 - pyarrow comes with it
    from framewire.capture.reading import existing  # noqa: PLC0415 - same

    if older_than is None and max_size is None:
        raise click.UsageError("Say what to remove: --older-than, --max-size, or both.")
    removed = pruned(existing(path), keep_seconds=older_than, keep_bytes=max_size, dry_run=dry_run)
    for segment in removed:
        click.echo(segment.path)
    total = sum(segment.size for segment in removed)
    done = "would remove" if dry_run else "removed"
    click.echo(f"{done} {counted(len(removed), 'segment')}, {counted(total, 'byte')}", err=True)
