"""``framewire routes``: who handles what in a cluster."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import click

from framewire.cli.live import Report, cluster_options, duration, row, table, view
from framewire.operation.observing import Observer, Seen

__all__ = ["routes"]

_SERVICE = ("KINO.", "FRAMEWIRE.")


@click.command()
@click.argument("pattern", required=False, metavar="[MESSAGE]")
@click.option("--all", "everything", is_flag=True, help="Also the messages by which nodes run the cluster.")
@cluster_options(watch=True)
def routes(pattern: str | None, *, everything: bool, **told: Any) -> None:
    """Show who handles what in a live cluster, how often, and how long it takes.

    MESSAGE is a name, or a pattern such as 'orders.*'.

    Exit status: 0, or 7 if no node was found, 2 if the command line is wrong.

    Example: framewire routes 'orders.*' --rendezvous tcp://host:7400
    """

    def wanted(message: str) -> bool:
        if pattern is None:
            return everything or not message.startswith(_SERVICE)
        return fnmatchcase(message, pattern) or fnmatchcase(message.partition(" v")[0], pattern)

    async def look(observer: Observer, found: list[Seen]) -> Report:
        seen = await observer.look(found)
        rows = sorted((each for node in seen for each in _routes(node) if wanted(each["message"])), key=_order)
        return Report({"routes": rows}, lambda: _table(rows))

    view(told, look)


def _order(route: dict[str, Any]) -> tuple[str, str, str]:
    return route["message"], route["node"], route["handler"] or ""


def _routes(node: Seen) -> list[dict[str, Any]]:
    """A node's handlers, and what else it has announced without telling who handles it."""
    found = [
        {
            "message": handler.message,
            "node": node.name,
            "handler": handler.name,
            "actor": actor.identity,
            "domain": handler.domain,
            "handled": handler.handled,
            "failed": handler.failed,
            "mean": handler.seconds / handler.handled if handler.handled else None,
            "longest": handler.longest,
            "queued": actor.queued,
        }
        for actor in (node.stats.actors if node.stats is not None else ())
        for handler in actor.handlers
    ]
    told = [
        handler for actor in (node.stats.actors if node.stats is not None else ()) for handler in actor.handlers
    ]
    names = {handler.message for handler in told}
    several = [handler for handler in told if handler.partitions > 1]
    nothing = dict.fromkeys(("handler", "actor", "domain", "handled", "failed", "mean", "longest", "queued"))
    found += [
        {"message": name, "node": node.name, **nothing}
        for message in node.handles
        if (name := str(message)) not in names and not any(handler.handles(message) for handler in several)
    ]
    return found


def _table(rows: list[dict[str, Any]]) -> Any:
    made = table("message", "node", "handler", "domain", "handled>", "failed>", "mean>", "longest>", "queued>")
    last = None
    for each in rows:
        told = each["handler"] is not None
        row(
            made,
            each["message"] if each["message"] != last else "",
            each["node"],
            each["handler"] or "(does not tell)",
            each["domain"] or "",
            f"{each['handled']:,}" if told else "",
            f"{each['failed']:,}" if told else "",
            duration(each["mean"]) if each["mean"] is not None else "",
            duration(each["longest"]) if told and each["handled"] else "",
            each["queued"] if told else "",
        )
        last = each["message"]
    return made
