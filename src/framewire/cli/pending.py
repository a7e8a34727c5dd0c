"""``framewire pending``: what a cluster waits for."""

from __future__ import annotations

from typing import Any

import click

from framewire._counts import counted
from framewire.cli.live import Report, chosen, cluster_options, duration, row, table, view
from framewire.node.reports import PendingStats
from framewire.operation.observing import Observer, Seen

__all__ = ["pending"]


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Of each node, the oldest N."
)
@cluster_options(watch=True)
def pending(nodes: tuple[str, ...], limit: int, **told: Any) -> None:
    """Show the asks that are still open in a live cluster: for how long, for whom, the oldest first.

    NODE is the name of a node that waits, or how it begins.

    Exit status: 0, or 5 if there is no such node, 7 if no node was found, 2 if the command line is wrong.

    Example: framewire pending --rendezvous tcp://host:7400 --watch
    """

    async def look(observer: Observer, found: list[Seen]) -> Report:
        seen = await observer.look(chosen(found, nodes), pending=limit)
        waiting = [(node.name, each) for node in seen if node.stats is not None for each in node.stats.pending]
        waiting.sort(key=lambda pair: -pair[1].age)
        total = sum(node.stats.totals.get("pending", 0) for node in seen if node.stats is not None)
        silent = [node.name for node in seen if node.stats is None]
        data = {"total": total, "pending": [_data(*pair) for pair in waiting], "silent": silent}
        return Report(data, lambda: _table(total, waiting, silent))

    view(told, look)


def _data(node: str, each: PendingStats) -> dict[str, Any]:
    return {
        "node": node,
        "message": each.message,
        "target": each.target,
        "sent_to": each.sent_to,
        "age": each.age,
        "flow": each.flow,
        "domain": each.domain,
    }


def _table(total: int, waiting: list[tuple[str, PendingStats]], silent: list[str]) -> Any:
    unheard = f"; {counted(len(silent), 'node does', 'nodes do')} not tell" if silent else ""
    made = table("age>", "message", "asked by", "of", "now at", "flow", title=f"{total:,} open{unheard}")
    for node, each in waiting:
        row(made, duration(each.age), each.message, node, each.target, each.sent_to or "itself", each.flow)
    return made
