"""``framewire capture tail``: messages while they are recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from framewire.cli.capture_rows import Question, Row, filters, json_line, text_line

if TYPE_CHECKING:
    from framewire.capture.reading import Follower

__all__ = ["tail"]

_PAUSE = 0.1


@click.command()
@click.argument("path")
@click.option("-n", "--lines", type=click.IntRange(min=0), default=10, help="Begin with the last N messages (10).")
@click.option("--follow/--no-follow", default=True, help="Whether to wait for more; it does.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines, as `export` writes them.")
@filters
def tail(path: str, *, lines: int, follow: bool, as_json: bool, **asked: Any) -> None:
    """Show the last messages recorded at PATH, and those that are recorded from now on.

    What a node on this machine records is seen within half a second. Elsewhere it is seen when it is sealed.

    Example: framewire capture tail captures/ --message 'orders.*' --direction dead
    """
    from framewire.capture.reading import Follower  # noqa: PLC0415 - pyarrow comes with it

    question = Question(**asked)
    told = json_line if as_json else text_line
    with Follower(path, question.wanted()) as follower:
        for row in _last(follower, question, lines):
            click.echo(told(row))
        while follow:
            for row in question.rows(follower.poll()):
                click.echo(told(row))
            time.sleep(_PAUSE)


def _last(follower: Follower, question: Question, count: int) -> list[Row]:
    """The last messages that are asked for, reading no more of the past than they take.

    They are in the order of their time, and as they were recorded where that is the same.
    """
    newest: Iterator[Row] = (row for batch in follower.recent() for row in reversed([*question.rows([batch])]))
    last = [*islice(newest, count)]
    last.reverse()
    return sorted(last, key=lambda row: row.at)
