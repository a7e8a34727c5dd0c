"""``framewire ping``: how long a node's event loop takes to answer."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from framewire.cli.live import Report, chosen, cluster_options, duration, row, table, view
from framewire.errors import MessageError
from framewire.operation.exits import Exit
from framewire.operation.observing import Observer, Seen

__all__ = ["ping"]


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=5, show_default=True, help="Questions to each.")
@cluster_options(watch=True)
def ping(nodes: tuple[str, ...], count: int, **told: Any) -> None:
    """Ask the event loops of nodes whether they come round, and how long that takes.

    NODE is a node's name, or how it begins. A node that gives signs of life and does not answer is stalled. A kino
    node is there, but does not know the question: it is not asked.

    Exit status: 0 if all that were asked answered, 6 if any did not, 5 if there is no such node, 7 if no node was
    found.

    Example: framewire ping --rendezvous tcp://host:7400
    """
    silent: list[str] = []

    async def look(observer: Observer, found: list[Seen]) -> Report:
        rows = await asyncio.gather(*(_asked(observer, node, count) for node in chosen(found, nodes)))
        silent[:] = [each["node"] for each in rows if each["problem"] is not None]
        return Report({"nodes": rows}, lambda: _table(rows))

    view(told, look)
    if silent:
        click.get_current_context().exit(Exit.NO_ANSWER)


async def _asked(observer: Observer, node: Seen, count: int) -> dict[str, Any]:
    times: list[float] = []
    problem = node.problem or None
    try:
        for _ in range(0 if problem or node.is_kino else count):
            times.append(await observer.ping(node))  # noqa: PERF401 - those that came before a failure count
    except MessageError as error:
        problem = f"{type(error).__name__}: {error.detail}"
    return {
        "node": node.name,
        "answers": len(times),
        "least": min(times, default=None),
        "mean": sum(times) / len(times) if times else None,
        "most": max(times, default=None),
        "problem": problem,
        "kind": "kino node" if node.is_kino else "framewire node",
    }


def _table(rows: list[dict[str, Any]]) -> Any:
    made = table("node", "answers>", "least>", "mean>", "most>", "")
    for each in rows:
        times = [duration(each[name]) if each[name] is not None else "" for name in ("least", "mean", "most")]
        row(
            made,
            each["node"],
            each["answers"],
            *times,
            each["problem"] or ("kino node" if each["kind"] == "kino node" else ""),
            style="red" if each["problem"] else None,
        )
    return made
