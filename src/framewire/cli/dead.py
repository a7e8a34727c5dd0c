"""``framewire dead``: what could not be delivered in a cluster, and why."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from framewire.cli.live import Report, chosen, cluster_options, duration, row, table, view
from framewire.node.reports import LetterStats
from framewire.operation.observing import Observer, Seen

__all__ = ["dead"]


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option("--reason", metavar="REASON", help="Only these: no_route, expired, overloaded, bad_signature …")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The last N letters in all."
)
@cluster_options(watch=True)
def dead(nodes: tuple[str, ...], reason: str | None, limit: int, **told: Any) -> None:
    """Show the dead letters of a live cluster: how many by reason, and the last of them.

    NODE is a node's name, or how it begins. A node keeps its last 100 letters (node.keep_dead_letters).

    Exit status: 0, or 5 if there is no such node, 7 if no node was found, 2 if the command line is wrong.

    Example: framewire dead --reason no_route --rendezvous tcp://host:7400
    """

    async def look(observer: Observer, found: list[Seen]) -> Report:
        seen = await observer.look(chosen(found, nodes), letters=10_000 if reason else limit)
        counts: Counter[str] = Counter()
        letters: list[tuple[str, LetterStats]] = []
        for node in seen:
            if node.stats is not None:
                counts.update(node.stats.dead_letters)
                letters += [(node.name, each) for each in node.stats.letters if reason in (None, each.reason)]
        letters = sorted(letters, key=lambda pair: pair[1].age)[:limit]
        by_reason = {name: count for name, count in counts.most_common() if reason in (None, name)}
        data = {"counts": by_reason, "letters": [_data(*pair) for pair in letters]}
        return Report(data, lambda: _table(by_reason, letters))

    view(told, look)


def _data(node: str, letter: LetterStats) -> dict[str, Any]:
    return {
        "node": node,
        "reason": letter.reason,
        "message": letter.message or None,
        "age": letter.age,
        "flow": letter.flow,
        "detail": letter.detail,
        "domain": letter.domain,
    }


def _table(counts: dict[str, int], letters: list[tuple[str, LetterStats]]) -> Any:
    title = ", ".join(f"{count:,} {reason}" for reason, count in counts.items()) or "no dead letters"
    made = table("ago>", "reason", "message", "node", "why", "flow", title=title)
    for node, each in letters:
        row(made, duration(each.age), each.reason, each.message or "(no message)", node, each.detail, each.flow)
    return made
