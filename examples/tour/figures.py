"""What the lake says of the day, held against what the customers counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from framewire.spark.asking import open_lake
from tour.customers import Account

__all__ = ["Figure", "Lake", "figures", "opened", "shown"]

# Of what was lost the lake may know that whoever asked was told so, or not: that is lost, not failed.
_FLOWS = """
select count(*) from flows where outcome = '{}' and message not like 'KINO.%' and message not like 'FRAMEWIRE.%'
and flow not in (select flow from losses where flow is not null)"""
_LOST = "select count(*) from losses"
_HANDLED = "select coalesce(sum(delivered), 0) from handlers where message = '{}'"
_REFUSED = "select coalesce(sum(rows), 0) from audit where signature_state = 'invalid'"
# What is no message is recorded when it comes, and once more when it dies.
_QUARANTINED = "select count(*) from quarantine where direction = 'received'"
_ARCHIVED = "select count(distinct wire_version) from messages where node_name = 'archive' and wire_version < 5"
_FEWEST = 100
"""Messages that an edge must have had to be called slow."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that two sides know of."""

    what: str
    lake: int
    counted: int
    by: str

    @property
    def agrees(self) -> bool:
        return self.lake == self.counted


@dataclass(frozen=True, slots=True)
class Edge:
    """A way between two nodes."""

    sender: str
    receiver: str
    message: str
    p95_us: float


class Lake:
    """Answers questions from the tables."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def _one(self, question: str) -> tuple[Any, ...]:
        row: tuple[Any, ...] = self._connection.execute(question).fetchone()
        return row

    def number(self, question: str) -> int:
        return int(self._one(question)[0])

    def slowest_edge(self) -> Edge:
        """The way on which messages took longest, of those that many took."""
        asked = f"from edges where received >= {_FEWEST} order by p95_us desc limit 1"
        return Edge(*self._one(f"select from_name, to_name, message, p95_us {asked}"))

    def slowest_flow(self) -> tuple[str, float]:
        """The flow that took longest of those that were completed and began with an order, and its seconds."""
        orders = "outcome = 'completed' and flow like 'order-%'"
        asked = f"select flow, duration_us / 1e6 from flows where {orders} order by 2 desc limit 1"  # noqa: S608
        flow, seconds = self._one(asked)
        return flow, seconds


@contextmanager
def opened(path: Path) -> Iterator[Lake]:
    """The lake, for as long as there are questions. DuckDB reads it; Spark is not needed any more."""
    with open_lake(str(path)) as connection:
        yield Lake(connection)


def figures(lake: Lake, account: Account, *, forged: int, damaged: int, archived: int) -> list[Figure]:
    """Everything that somebody besides the lake has counted."""
    outcomes, packed = account.outcomes, account.departments["shipping"]
    return [
        Figure(what, lake.number(question), counted, by)
        for what, question, counted, by in (
            ("flows completed", _FLOWS.format("completed"), outcomes["completed"], "customers"),
            ("flows failed", _FLOWS.format("failed"), outcomes["failed"], "customers"),
            ("messages lost", _LOST, account.unreachable, "customers"),
            ("parcels packed", _HANDLED.format("shipping.pack v1"), packed, "shipping"),
            ("mails and calls", _HANDLED.format("notify.send v1"), 2 * packed, "shipping"),
            ("signatures refused", _REFUSED, forged, "the forger"),
            ("quarantined", _QUARANTINED, damaged, "who threw them in"),
            ("recorded in V1, in V4", _ARCHIVED, archived, "the archive"),
        )
    ]


def shown(compared: list[Figure]) -> Table:
    """Figures as a table, those that disagree in red."""
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", show_edge=False)
    table.add_column("")
    table.add_column("the lake says", justify="right")
    table.add_column("counted", justify="right")
    table.add_column("by", style="dim")
    table.add_column("")
    for figure in compared:
        mark = "[green]✓[/]" if figure.agrees else "[bold red]✗[/]"
        table.add_row(figure.what, f"[bold]{figure.lake:,}[/]", f"{figure.counted:,}", figure.by, mark)
    return table
