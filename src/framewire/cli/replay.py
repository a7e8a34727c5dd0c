"""``framewire replay``: what was recorded, sent to a live cluster again."""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import click

from framewire._counts import counted
from framewire.cli.capture_quantities import moment

if TYPE_CHECKING:
    from framewire.spark.replay import Recorded
    from framewire.spark.sending import Tally

__all__ = ["replay"]

_AS_FAST_AS_POSSIBLE = "max"


def _speed(text: str) -> float | None:
    if text == _AS_FAST_AS_POSSIBLE:
        return None
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise click.BadParameter(f"{text!r} is no speed; write it like 1x, 2x or 0.5x, or max for no pauses")
    return speed


@click.command()
@click.option("--lake", required=True, metavar="DIR", help="Where the lake is: a directory, or a URI.")
@click.option(
    "--rendezvous", multiple=True, metavar="ADDRESS", help="A rendezvous server of the cluster to send to."
)
@click.option(
    "--peer", "peers", multiple=True, metavar="ADDRESS", help="A node of it, where there is no rendezvous."
)
@click.option(
    "--bind", metavar="ADDRESS", help="Where this node listens: any port of the way to the cluster unless given."
)
@click.option("--keys", metavar="KEYS.toml", help="Sign with the keys in this file.")
@click.option(
    "--where", metavar="SQL", help="Only messages that this holds for, such as \"message like 'orders.%'\"."
)
@click.option("--since", type=moment, metavar="WHEN", help="Recorded then or later: 2026-03-01T12:00, or 1h.")
@click.option("--until", type=moment, metavar="WHEN", help="Same; the first moment that is left out.")
@click.option("--dead", is_flag=True, help="Dead letters only, wherever in a flow they died.")
@click.option("--inner", is_flag=True, help="Also what actors sent in the midst of flows.")
@click.option("--speed", type=_speed, default="1x", metavar="2x", help="How fast: 1x (as it was), 0.5x, 10x, max.")
@click.option("--rate", type=float, metavar="N", help="At most N messages a second.")
@click.option("--new-ids", is_flag=True, help="New correlation ids instead of those that were recorded.")
@click.option("--receipts/--no-receipts", default=True, help="Whether each message is confirmed; it is.")
@click.option("--timeout", type=float, default=30.0, show_default=True, help="Seconds for a receipt.")
@click.option("--ledger", metavar="DIR", help="Note what is through here, and do not send it again next time.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N messages.")
@click.option(
    "--json", "as_json", is_flag=True, help="JSON for programs: the summary, or each message of a dry run."
)
def replay(
    *,
    lake: str,
    where: str | None,
    since: dt.datetime | None,
    until: dt.datetime | None,
    dead: bool,
    inner: bool,
    speed: float | None,
    new_ids: bool,
    ledger: str | None,
    dry_run: bool,
    limit: int | None,
    as_json: bool,
    **told: Any,
) -> None:
    """Send messages of a lake to a live cluster again, in the same order and with the same spacing.

    Sent are the messages that began a flow and those that belong to none; what came of them comes of them again.
    Answers, service messages, what had no valid signature and bodies that were cut when they were recorded are
    never sent. Look with --dry-run first: handlers do again what they did.

    Exit status: 0 if all messages got through, 1 if any did not, 2 if the command line is wrong.

    Example: framewire replay --lake lake/ --dead --since 1h --speed max --rendezvous tcp://host:7400
    """
    if dead and inner:
        raise click.UsageError("--dead and --inner exclude each other: dead letters are taken wherever they died.")
    from framewire.cli.lakes import lake_errors  # noqa: PLC0415 - only those who replay wait for DuckDB
    from framewire.spark.asking import open_lake  # noqa: PLC0415 - same
    from framewire.spark.ledger import Ledger  # noqa: PLC0415 - same
    from framewire.spark.replay import Choice, chosen, tables_to_replay  # noqa: PLC0415 - same
    from framewire.spark.replay import replay as send_again  # noqa: PLC0415 - same
    from framewire.spark.sending import Target  # noqa: PLC0415 - same

    times = {"since": _without_zone(since), "until": _without_zone(until)}
    with lake_errors():
        places = {"rendezvous": told.pop("rendezvous"), "peers": told.pop("peers")}
        target = None if dry_run and not any(places.values()) else Target(**places, **told)
        with open_lake(lake, tables_to_replay) as connection:
            choice = Choice(where=where, dead=dead, inner=inner, **times)
            messages = islice(chosen(connection, choice, new_ids=new_ids), limit)
            if dry_run or target is None:
                _show(messages, as_json=as_json)
                return
            book = None if ledger is None else Ledger(ledger, "replay")
            with _Progress(quiet=as_json) as progress:
                tally = send_again(messages, target, speed=speed, ledger=book, progress=progress)
    _sum_up(tally, as_json=as_json)
    sys.exit(1 if tally.failed else 0)


def _without_zone(when: dt.datetime | None) -> dt.datetime | None:
    return None if when is None else when.astimezone(dt.UTC).replace(tzinfo=None)


def _show(messages: Iterator[Recorded], *, as_json: bool) -> None:
    from framewire.cli.lakes import cell_text, json_text  # noqa: PLC0415 - as above

    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    last = 0.0
    for number, each in enumerate(messages):
        last = each.after
        body = b"" if each.message is None else each.message.body
        if each.refused is None:
            counts[each.name] += 1
        else:
            refused[each.refused] += 1
        if as_json:
            shown = {
                "after_seconds": each.after,
                "at": each.at,
                "message": each.name,
                "flow": each.flow,
                "node": each.node_name,
                "broadcast": each.message is not None and each.message.broadcast,
                "body_bytes": len(body),
                "reason": each.reason,
                "refused": each.refused,
            }
            click.echo(json_text(shown))
        elif number < _SHOWN:
            fate = f"  NOT SENT: {each.refused}" if each.refused else f"  {len(body):,} B"
            died = f"  died: {cell_text(each.reason)}" if each.reason else ""
            flow = cell_text(each.flow or "no flow")
            click.echo(f"+{each.after:>10.3f} s  {cell_text(each.name)}  {flow}{died}{fate}")
        elif number == _SHOWN:
            click.echo("…")
    if as_json:
        return
    click.echo(f"{counted(counts.total(), 'message')} over {last:,.1f} s would be sent; nothing was:")
    for name, count in counts.most_common():
        click.echo(f"{count:>10,}  {cell_text(name)}")
    for why, count in refused.most_common():
        click.echo(f"{count:>10,}  would not be sent: {why}")


_SHOWN = 50


def _sum_up(tally: Tally, *, as_json: bool) -> None:
    from framewire.cli.lakes import cell_text, json_text  # noqa: PLC0415 - as above

    if as_json:
        counts = {name: getattr(tally, name) for name in ("confirmed", "told", "skipped", "failed")}
        click.echo(json_text({**counts, "reasons": dict(tally.reasons), "examples": tally.examples}))
        return
    click.echo(str(tally))
    for example in tally.examples:
        click.echo(f"  {cell_text(example)}")
    if not (tally.confirmed or tally.told or tally.failed or tally.skipped):
        click.echo("No message was asked for: the lake has none, or none for which --where and the times hold.")


class _Progress:
    """A line on a terminal that says how far it has come."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet or not sys.stderr.isatty()
        self._status: Any = None

    def __enter__(self) -> Self:
        if not self._quiet:
            from rich.console import Console  # noqa: PLC0415 - only terminals need it

            self._status = Console(stderr=True).status("finding the cluster")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, tally: Tally) -> None:
        if self._status is not None:
            self._status.update(str(tally))
