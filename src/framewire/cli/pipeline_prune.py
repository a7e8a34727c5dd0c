"""``framewire pipeline prune``: let a lake forget what is old."""

from __future__ import annotations

import datetime as dt

import click

from framewire._counts import counted
from framewire.cli.capture_quantities import duration

__all__ = ["prune"]


def _kept(text: str) -> tuple[str, dt.timedelta]:
    table, equals, time = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} names no time; write it like messages=30d")
    return table, dt.timedelta(seconds=duration(time))


@click.command()
@click.option(
    "--lake", required=True, metavar="DIR", help="The lake: a directory, or a URI such as s3://bucket/lake."
)
@click.option(
    "--keep", type=_kept, multiple=True, required=True, metavar="TABLE=TIME", help="How long; can be given again."
)
@click.option("--dry-run", is_flag=True, help="Only tell what would be removed.")
def prune(*, lake: str, keep: tuple[tuple[str, dt.timedelta], ...], dry_run: bool) -> None:
    """Remove whole days of tables that are older than they are to be kept. Tables that are not named keep all.

    Example: framewire pipeline prune --lake lake/ --keep messages=30d --keep hops=90d --dry-run
    """
    from framewire.cli.lakes import lake_errors  # noqa: PLC0415 - pyarrow comes with it

    with lake_errors():
        from framewire.spark.retention import prune as pruned  # noqa: PLC0415 - same

        removed = pruned(lake, dict(keep), dry_run=dry_run)
    for each in removed:
        click.echo(f"{each.table} {each.day}")
    click.echo(f"{'would remove' if dry_run else 'removed'} {counted(len(removed), 'day')} of tables", err=True)
