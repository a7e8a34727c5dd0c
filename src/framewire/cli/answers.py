"""Answers to a question for people: a table, or rows one below the other where a table would be too narrow to read.

Everything that comes from a lake is put into ``Text``, never into markup, and has been made printable before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from framewire._counts import counted
from framewire.cli.lakes import cell_text
from framewire.cli.tables import output

if TYPE_CHECKING:
    from framewire.spark.asking import Answer

__all__ = ["show"]

_MOST_LINES, _MOST_ROWS = 200, 20
"""What is shown without a limit: lines of a table, or rows one below the other, with a line for each column."""
_LONGEST_CELL = 400
_READABLE = 20
"""Characters that a column has at least, where its cells are that long, for its lines to be read."""
_GAP = 3
"""Characters between two columns."""
_NUMBERS = {"INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "DOUBLE", "FLOAT", "SMALLINT", "TINYINT"}


def show(answer: Answer, limit: int | None) -> None:
    """Write the first rows of an answer to the standard output, and how many there are."""
    console = output()
    names = [Text(cell_text(name)) for name in answer.names]
    most = limit or _MOST_LINES
    rows = [[_cell(value) for value in row] for row in islice(answer.rows, most + 1)]
    fits = _fits(console.width, [names, *rows[:most]])
    if fits:
        console.print(_table(names, answer.kinds, rows[:most]))
    else:
        most = limit or _MOST_ROWS
        _list_rows(console, names, rows[:most])
    told = [counted(len(rows), "row")]
    if len(rows) > most:
        told = [f"… and more: these are the first {counted(most, 'row')}", "--limit, --json or --csv"]
    if rows and not fits:
        told.append("name fewer columns for a table")
    console.print(Text("; ".join(told), style="dim"))


def _cell(value: object) -> Text:
    if value is None:
        return Text("null", style="dim")
    text = cell_text(value)
    return Text(text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…")


def _fits(width: int, lines: Sequence[Sequence[Text]]) -> bool:
    """Whether all columns of some lines can be read side by side."""
    widths = [max(cell.cell_len for cell in column) for column in zip(*lines, strict=True)]
    least: int = sum(min(each, _READABLE) for each in widths) + _GAP * (len(widths) - 1)
    return least <= width


def _table(names: Sequence[Text], kinds: Sequence[str], rows: Sequence[Sequence[Text]]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name, kind in zip(names, kinds, strict=True):
        table.add_column(name, justify="right" if kind in _NUMBERS else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _list_rows(console: Console, names: Sequence[Text], rows: Sequence[Sequence[Text]]) -> None:
    for number, row in enumerate(rows, 1):
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, cell in zip(names, row, strict=True):
            grid.add_row(name, cell)
        console.print(Text(f"row {number:,}", style="bold"))
        console.print(Padding(grid, (0, 0, 1, 2), expand=False))
