"""``framewire capture export``: recorded messages as JSON lines."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click

from framewire.cli.capture_rows import Question, filters, json_line

__all__ = ["export"]


@click.command()
@click.argument("path")
@click.option(
    "-o", "--output", type=click.File("w", lazy=False), default="-", help="A file; else the standard output."
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N messages.")
@click.option("--open", "with_open", is_flag=True, help="Also what is not sealed yet.")
@filters
def export(path: str, *, output: Any, limit: int | None, with_open: bool, **asked: Any) -> None:
    """Write what was recorded at PATH as JSON lines, with frames in hex, as `framewire inspect` reads them.

    Segments come in the order of their time, and messages within a segment too.

    Example: framewire capture export captures/ --since 1h --direction dead | framewire inspect --brief
    """
    from framewire.capture.reading import batches  # noqa: PLC0415 - pyarrow comes with it

    question = Question(**asked)
    found = question.rows(batches(path, question.wanted(), open_segments=with_open))
    for row in islice(found, limit):
        output.write(json_line(row) + "\n")
