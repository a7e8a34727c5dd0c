"""``framewire pipeline export-traces``: flows for Jaeger, Tempo and whatever else reads OTLP."""

from __future__ import annotations

import datetime as dt
from typing import Any

import click

from framewire.cli.capture_quantities import moment

__all__ = ["export_traces"]


@click.command("export-traces")
@click.option("--lake", required=True, metavar="DIR", help="Where the lake is: a directory, or a URI.")
@click.option(
    "-o", "--output", type=click.File("w", lazy=True), default="-", help="A file; else the standard output."
)
@click.option(
    "--since", type=moment, metavar="WHEN", help="Flows that began then or later: 2026-03-01T12:00, or 1h."
)
@click.option("--until", type=moment, metavar="WHEN", help="Same; the first moment that is left out.")
@click.option("--where", metavar="SQL", help="Only flows that this holds for, such as \"outcome = 'failed'\".")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Of a longer flow only so much is written: hops, handlings, dead letters and losses.",
)
def export_traces(
    *,
    lake: str,
    output: Any,
    since: dt.datetime | None,
    until: dt.datetime | None,
    where: str | None,
    most: int,
) -> None:
    """Write flows as traces: OTLP JSON, one ExportTraceServiceRequest a line.

    A flow is a trace, a message on its way or in a handler is a span. The same flow always has the same trace id.

    Example: framewire pipeline export-traces --lake lake/ --where "outcome = 'failed'" -o traces.jsonl
    """
    from framewire.cli.lakes import lake_errors  # noqa: PLC0415 - only those who export wait for DuckDB
    from framewire.spark.asking import open_lake  # noqa: PLC0415 - same
    from framewire.spark.stories import stories, tables_of_stories  # noqa: PLC0415 - same
    from framewire.spark.traces import export_lines  # noqa: PLC0415 - same

    conditions, values = ["flow is not null"], []
    for condition, when in (("started_at >= ?", since), ("started_at < ?", until)):
        if when is not None:
            conditions.append(condition)
            values.append(when.astimezone(dt.UTC).replace(tzinfo=None))
    if where is not None:
        conditions.append(f"({where}\n)")
    lines = 0
    with lake_errors(), open_lake(lake, tables_of_stories) as connection:
        for line in export_lines(stories(connection, " and ".join(conditions), values, most=most)):
            output.write(line + "\n")
            lines += 1
    if not lines:
        click.echo(
            "No flow was asked for: the lake has none, or none for which --where and the times hold.", err=True
        )
