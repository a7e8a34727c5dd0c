"""``framewire pipeline status``: how far a lake has come, and how large it is."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from framewire._counts import counted

__all__ = ["status"]


@click.command()
@click.option(
    "--lake", required=True, metavar="DIR", help="The lake: a directory, or a URI such as s3://bucket/lake."
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(*, lake: str, as_json: bool) -> None:
    """Tell what a lake has taken in, until when, and how much there is of each table. It does not start Spark.

    Example: framewire pipeline status --lake lake/
    """
    from framewire.cli.lakes import lake_errors  # noqa: PLC0415 - pyarrow comes with it

    with lake_errors():
        from framewire.spark.condition import condition  # noqa: PLC0415 - same

        found = condition(lake)
    if as_json:
        click.echo(json.dumps(asdict(found), default=str, indent=2))
        return
    from rich.console import Console  # noqa: PLC0415 - only those who look at it wait for it
    from rich.table import Table  # noqa: PLC0415 - same

    console = Console()
    newest = "nothing yet" if found.newest is None else f"up to {found.newest:%Y-%m-%d %H:%M:%S} UTC"
    late = f", {found.late:,} too late" if found.late else ""
    console.print(f"{counted(found.rows, 'row')} in {counted(found.batches, 'batch', 'batches')}, {newest}{late}")
    console.print(
        f"layout {found.layout}, {found.format}, buckets of {counted(found.bucket_us // 60_000_000, 'minute')}"
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("table", "files", "bytes", "from", "to"):
        table.add_column(name, justify="right" if name in ("files", "bytes") else "left")
    for each in found.tables:
        table.add_row(each.table, f"{each.files:,}", f"{each.bytes:,}", str(each.first or ""), str(each.last or ""))
    console.print(table)
