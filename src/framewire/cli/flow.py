"""``framewire flow``: one flow as a waterfall, each message on the line of its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from framewire.errors import UsageError

if TYPE_CHECKING:
    from framewire.spark.legs import Leg, Story

__all__ = ["flow"]

_CANDIDATES = 10


@click.command()
@click.argument("correlation_id", metavar="CORRELATION_ID")
@click.option("--lake", required=True, metavar="DIR", help="Where the lake is: a directory, or a URI.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Messages that are shown; --json knows 50 times as many.",
)
def flow(correlation_id: str, *, lake: str, as_json: bool, limit: int) -> None:
    """Show what happened in the flow whose correlation id is, or begins with, CORRELATION_ID.

    Each message has a line: when it began, from where to where it went, and how long it was on its way (─), waited
    (┄) and was worked on (█). All times are by the clock of the node that the flow began on, as far as the lake
    knows how the others differ. The steps of messages that were traced are listed below.

    Example: framewire flow 3f2a --lake lake/
    """
    from framewire.cli.lakes import json_text, lake_errors  # noqa: PLC0415 - only those who ask wait for DuckDB
    from framewire.spark.asking import open_lake  # noqa: PLC0415 - same
    from framewire.spark.stories import days_of, matching, stories, tables_of_stories  # noqa: PLC0415 - same

    with lake_errors():
        with open_lake(lake, ["flows"]) as connection:
            found = matching(connection, correlation_id, _CANDIDATES + 1)
        _must_be_one(found, correlation_id, lake)
        # A year of history costs nothing when only the days of the flow are looked at.
        with open_lake(lake, tables_of_stories, days_of(found[0])) as connection:
            story = next(iter(stories(connection, "flow = ?", [found[0]["flow"]], most=limit * 50)))
    if as_json:
        click.echo(json_text(_as_object(story)))
        return
    from framewire.cli.tables import output  # noqa: PLC0415 - each display loads only what it needs
    from framewire.cli.waterfall import waterfall  # noqa: PLC0415 - same

    console = output()
    console.print(waterfall(story, width=console.width, limit=limit))


def _must_be_one(found: list[dict[str, Any]], wanted: str, lake: str) -> None:
    from framewire.cli.lakes import cell_text  # noqa: PLC0415 - as above

    if not found:
        newest = "select flow, message, outcome from flows order by started_at desc limit 10"
        raise UsageError(
            f"no flow of {lake} has an id that begins with {cell_text(wanted)}. It may be too new (the pipeline "
            f"has not come to it), too old (retention) or not recorded (sampling). The newest flows: "
            f'framewire query "{newest}" --lake {lake}'
        )
    if len(found) == 1:
        return
    shown = ("flow", "started_at", "message", "outcome")
    lines = ["  " + "  ".join(cell_text(each[name]) for name in shown) for each in found[:_CANDIDATES]]
    more = ["  … and more"] if len(found) > _CANDIDATES else []
    told = "\n".join([*lines, *more])
    raise UsageError(
        f"several flows begin with {cell_text(wanted)}, the newest first; give more of the id:\n{told}"
    )


def _as_object(story: Story) -> dict[str, Any]:
    facts: Mapping[str, Any] = story.facts
    began = story.began
    return {
        **{name: value for name, value in facts.items() if name not in ("correlation_id", "origin")},
        "legs": [_leg(leg, began) for leg in story.legs],
        "left_out": story.left_out,
        "trace": [
            {
                "at_us": round(step.at - began, 1),
                "node": step.node_name,
                "message": step.message,
                "step": step.step,
                "detail": step.detail,
            }
            for step in story.trace
        ],
    }


def _leg(leg: Leg, began: float) -> dict[str, Any]:
    def since(at: float | None) -> float | None:
        return None if at is None else round(at - began, 1)

    return {
        "message": leg.message,
        "from": leg.from_name,
        "to": leg.to_name,
        "to_hub": leg.to_hub,
        "fate": leg.fate,
        "reason": leg.reason,
        "failed": leg.failed,
        "sent_us": since(leg.sent),
        "received_us": since(leg.received),
        "handed_us": since(leg.handed),
        "done_us": since(leg.done),
    }
