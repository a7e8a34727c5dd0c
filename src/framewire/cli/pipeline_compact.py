"""``framewire pipeline compact``: few large files instead of many small ones."""

from __future__ import annotations

import click

from framewire._counts import counted

__all__ = ["compact"]


@click.command()
@click.option("--lake", required=True, metavar="DIR", help="The lake: any path that Spark writes.")
@click.option("--master", metavar="URL", help="The Spark to use; one on this machine unless given.")
def compact(*, lake: str, master: str | None) -> None:
    """Put together what many batches have left in a lake. The pipeline does it by itself where there are many.

    Not while a pipeline writes to the same lake. It can be killed at any time; the next one finishes it.

    Example: framewire pipeline compact --lake lake/
    """
    from framewire.cli.lakes import lake_errors  # noqa: PLC0415 - Spark is only needed here

    with lake_errors():
        from framewire.spark import session  # noqa: PLC0415 - same
        from framewire.spark.compacting import compact as put_together  # noqa: PLC0415 - same
        from framewire.spark.lake import Lake  # noqa: PLC0415 - same

        spark = session(master)
        try:
            buckets = put_together(Lake.existing(spark, lake))
        finally:
            spark.stop()
    click.echo(f"put the batches of {counted(buckets, 'bucket')} together")
