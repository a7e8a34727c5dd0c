"""``framewire query``: SQL over a lake, for people who do not want to start Spark."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from framewire.spark.asking import Answer

__all__ = ["query"]


@click.command()
@click.argument("sql", required=False)
@click.option("--lake", metavar="DIR", help="Where the lake is: a directory, or a URI such as s3://bucket/lake.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a row, for programs.")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values with a line of names.")
@click.option("--tables", is_flag=True, help="List the tables with their columns and what they mean.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Rows that are shown: 200, or 20 where a row takes many lines."
)
def query(
    sql: str | None, *, lake: str | None, as_json: bool, as_csv: bool, tables: bool, limit: int | None
) -> None:
    """Ask a lake a question in SQL (DuckDB's), or, with "-", the question on the standard input.

    The tables of the lake can be read, and nothing else; nothing is ever written. Times are UTC. `at` is a word
    of SQL: write "at". Rows that are too wide for a table are shown one below the other. With --json and --csv
    all rows are written, however many.

    Example: framewire query "select outcome, count(*) from flows group by all" --lake lake/
    """
    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other.")
    if tables:
        _list_tables(sql, as_json=as_json)
        return
    if sql is None or lake is None:
        raise click.UsageError(
            "Give a question and --lake DIR; `framewire query --tables` shows what can be asked."
        )
    from framewire.cli.lakes import lake_errors  # noqa: PLC0415 - only those who ask wait for DuckDB
    from framewire.spark.asking import asked_of, open_lake, tables_in  # noqa: PLC0415 - same

    question = sys.stdin.read() if sql == "-" else sql
    with lake_errors(), open_lake(lake, tables_in(question)) as connection:
        answer = asked_of(connection, question)
        if as_json:
            _as_json(answer)
        elif as_csv:
            _as_csv(answer)
        else:
            from framewire.cli.answers import show  # noqa: PLC0415 - each display loads only what it needs

            show(answer, limit)


def _as_json(answer: Answer) -> None:
    from framewire.cli.lakes import json_text  # noqa: PLC0415 - same

    names = _apart(answer.names)
    for row in answer.rows:
        click.echo(json_text(dict(zip(names, row, strict=True))))


def _apart(names: Sequence[str]) -> list[str]:
    """Names of which no two are the same, as an object needs them."""
    apart: dict[str, None] = {}
    for name in names:
        free = (name if turn == 1 else f"{name}_{turn}" for turn in count(1))
        apart[next(other for other in free if other not in apart)] = None
    return list(apart)


def _as_csv(answer: Answer) -> None:
    from framewire.cli.lakes import cell_text, raw_text  # noqa: PLC0415 - same

    # A file gets what was recorded; a terminal must not obey it.
    told = cell_text if sys.stdout.isatty() else raw_text
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(told, answer.names))
    for row in answer.rows:
        writer.writerow(["" if value is None else told(value) for value in row])


def _list_tables(sql: str | None, *, as_json: bool) -> None:
    from framewire.cli.lakes import json_text, lake_errors  # noqa: PLC0415 - only those who ask wait for it

    with lake_errors():
        from framewire.spark.tables import TABLES, Table  # noqa: PLC0415 - same

    chosen: Sequence[Table] = [table for table in TABLES.values() if sql in (None, table.name)]
    if not chosen:
        raise click.UsageError(f"there is no table {sql}; the lake has {', '.join(TABLES)}")
    if as_json:
        for table in chosen:
            every = {**table.columns, **table.filed_under}
            columns = [{"name": name, "type": kind, "meaning": about} for name, (kind, about) in every.items()]
            click.echo(json_text({"table": table.name, "about": table.about, "columns": columns}))
        return
    from rich.padding import Padding  # noqa: PLC0415 - same
    from rich.table import Table as Grid  # noqa: PLC0415 - same
    from rich.text import Text  # noqa: PLC0415 - same

    from framewire.cli.tables import output  # noqa: PLC0415 - same

    console = output()
    for table in chosen:
        grid = Grid.grid(padding=(0, 2, 0, 0))
        for name, (kind, about) in {**table.columns, **table.filed_under}.items():
            grid.add_row(Text(name), Text(kind.partition("<")[0], style="dim"), Text(about))
        console.print(Text.assemble((table.name, "bold"), f"  {table.about}"))
        console.print(Padding(grid, (0, 0, 1, 2)))
