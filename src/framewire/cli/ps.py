"""``framewire ps``: the nodes of a cluster, and how they are."""

from __future__ import annotations

from typing import Any

import click

from framewire.cli.live import Report, chosen, cluster_options, duration, row, table, view
from framewire.operation.observing import Observer, Seen

__all__ = ["ps"]


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@cluster_options(watch=True)
def ps(nodes: tuple[str, ...], **told: Any) -> None:
    """Show the nodes of a live cluster: what they do, what waits, what died.

    NODE is a node's name, or how it begins. Rates are per second, over the last ten. A node that does not answer is
    shown all the same: it gives signs of life, but its event loop stands still.

    Exit status: 0, or 5 if there is no such node, 7 if no node was found, 2 if the command line is wrong.

    Example: framewire ps --rendezvous tcp://host:7400 --watch
    """

    async def look(observer: Observer, found: list[Seen]) -> Report:
        seen = await observer.look(chosen(found, nodes))
        return Report({"nodes": [_data(node) for node in seen]}, lambda: _table(seen))

    view(told, look)


def _data(node: Seen) -> dict[str, Any]:
    stats = node.stats
    data: dict[str, Any] = {"node": node.name, "uri": node.uri, "problem": node.problem or None}
    if stats is None:
        return data
    return data | {
        "host": stats.host,
        "pid": stats.pid,
        "version": stats.version,
        "uptime": stats.uptime,
        "state": stats.state or None,
        "totals": stats.totals,
        "rates": stats.rates,
        "queued": sum(actor.queued for actor in stats.actors),
        "busy": sum(actor.busy for actor in stats.actors),
        "pending": stats.totals.get("pending", 0),
        "dead_letters": stats.dead_letters,
        "stalls": stats.stalls,
        "stalled": stats.stalled,
        "peers": stats.peers,
        "captured": stats.captured,
        "capture_dropped": stats.capture_dropped,
    }


def _table(seen: list[Seen]) -> Any:
    stalls = any(node.stats is not None and node.stats.stalls for node in seen)
    made = table(
        "node",
        "address",
        "pid>",
        "up>",
        "state",
        "sent/s>",
        "handled/s>",
        "failed/s>",
        "queued>",
        "busy>",
        "pending>",
        "dead>",
        *(["stalls>"] if stalls else []),
    )
    for node in seen:
        stats = node.stats
        if stats is None:
            row(made, node.name, node.problem, style="red")
            continue
        rates = [f"{stats.rates.get(name, 0.0):,.1f}" for name in ("sent", "handled", "failed")]
        row(
            made,
            node.name,
            node.uri.removeprefix("tcp://"),
            stats.pid,
            duration(stats.uptime),
            stats.state,
            *rates,
            sum(actor.queued for actor in stats.actors),
            sum(actor.busy for actor in stats.actors),
            stats.totals.get("pending", 0),
            sum(stats.dead_letters.values()),
            *([stats.stalls] if stalls else []),
        )
    return made
