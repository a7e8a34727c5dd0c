"""One flow for people: a heading, and a line with a bar for each message.

All names come from recordings, so they are made printable and put into ``Text``, never into markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from framewire._counts import counted
from framewire.cli.lakes import cell_text

if TYPE_CHECKING:
    from framewire.spark.legs import Leg, Story

__all__ = ["waterfall"]

_BAD, _GOOD, _FAINT, _WARN = "bold red", "green", "dim", "yellow"
_OUTCOMES = {"completed": _GOOD, "failed": _BAD, "expired": _BAD, "dead": _BAD, "open": _WARN}
_ON_ITS_WAY, _WAITING, _AT_WORK, _END = "─", "┄", "█", "▏"
_SHORTEST_NAME = 8
_SHORTEST_BAR, _LONGEST_BAR = 12, 48


def waterfall(story: Story, *, width: int, limit: int) -> RenderableType:
    """A flow as it is shown."""
    shown = story.legs[:limit]
    parts: list[RenderableType] = [*_heading(story), _table(story, shown, width)]
    left = len(story.legs) - len(shown)
    if left or story.left_out:
        more = " at least" if story.left_out else ""
        parts.append(Text(f"…{more} {left + story.left_out:,} more; --limit shows them", style=_FAINT))
    parts += _slowest(story)
    if story.trace:
        parts.append(_trace(story, limit))
    return Group(*parts)


def _trace(story: Story, limit: int) -> Table:
    shown = story.trace[:limit]
    names = _short_names({step.node_name for step in shown})
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style=_FAINT)
    table.add_column("at", justify="right", no_wrap=True)
    for name in ("node", "traced", "message"):
        table.add_column(name, overflow="fold")
    for step in shown:
        table.add_row(
            Text(f"+{_span(step.at - story.began)}", style=_FAINT),
            Text(names[step.node_name]),
            Text(cell_text(f"{step.step} {step.detail}")),
            Text(cell_text(step.message)),
        )
    if len(story.trace) > len(shown):
        table.caption = f"… {len(story.trace) - len(shown):,} more; --limit shows them"
    return table


def _heading(story: Story) -> list[Text]:
    facts = story.facts
    outcome = facts["outcome"] or "open"
    first = Text.assemble(
        (cell_text(facts["flow"]), "bold"), "  ", cell_text(facts["message"] or "—"), "  ",
        (cell_text(outcome), _OUTCOMES.get(outcome, "")),
    )  # fmt: skip
    counts = [
        counted(facts["messages"], "message"),
        counted(facts["hops"], "hop"),
        counted(facts["nodes"], "node"),
    ]
    second = f"began {cell_text(facts['started_at'])} UTC on {cell_text(facts['origin_name'])}"
    lines = [first, Text(f"{second}, took {_span(facts['duration_us'])}: {', '.join(counts)}", style=_FAINT)]
    if facts["exception"]:
        told = f"✗ {cell_text(facts['exception'])}: {cell_text(facts['exception_text'] or '')}"
        lines.append(Text(told, style=_BAD))
    return lines


def _table(story: Story, legs: Iterable[Leg], width: int) -> Table:
    legs = list(legs)
    names = _short_names({name for leg in legs for name in (leg.from_name, leg.to_name)})
    began = story.began
    length = max(story.ended - began, 1.0)
    bar = min(max(width - 84, _SHORTEST_BAR), _LONGEST_BAR)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style=_FAINT)
    table.add_column("at", justify="right", no_wrap=True)
    table.add_column("from → to", overflow="fold")
    table.add_column("message", overflow="fold")
    table.add_column("", no_wrap=True, min_width=bar)
    table.add_column("way", justify="right", no_wrap=True)
    table.add_column("work", justify="right", no_wrap=True)
    table.add_column("outcome")
    for leg in legs:
        there = f" → {names[leg.to_name]}" if leg.to_node != leg.from_node else ""
        table.add_row(
            Text(f"+{_span(leg.began - began)}", style=_FAINT),
            Text(f"{names[leg.from_name]}{there}"),
            Text(cell_text(leg.message)),
            _bar(leg, began, length, bar),
            Text(_span(_between(leg.sent, leg.received))),
            Text(_span(_between(leg.handed, leg.done))),
            _fate(leg),
        )
    return table


def _bar(leg: Leg, began: float, length: float, width: int) -> Text:
    def column(at: float) -> int:
        return min(max(int((at - began) / length * width), 0), width - 1)

    text = Text(" " * column(leg.began))
    for start, end, mark, style in (
        (leg.sent, leg.received, _ON_ITS_WAY, "cyan"),
        (leg.received, leg.handed, _WAITING, _FAINT),
        (leg.handed, leg.done, _AT_WORK, _BAD if leg.failed else "blue"),
    ):
        if start is not None and end is not None:
            text.append(mark * (column(end) - len(text) + (mark == _AT_WORK)), style=style)
    if leg.done is None or not text.plain.strip():
        text.append(_END, style=_BAD if _went_wrong(leg) else "blue")
    return text


def _fate(leg: Leg) -> Text:
    if leg.fate == "delivered":
        if leg.failed:
            return Text("its handler raised", style=_BAD)
        return Text("reached the hub", style=_GOOD) if leg.to_hub else Text("handled")
    if leg.fate == "dead":
        return Text(f"dead: {cell_text(leg.reason or 'no reason told')}", style=_BAD)
    told = {"sent": "passed on", "vanished": "received, never delivered", "lost": "never received"}
    style = _BAD if _went_wrong(leg) else _FAINT
    return Text(told.get(leg.fate or "", "not known yet"), style=style)


def _went_wrong(leg: Leg) -> bool:
    return leg.failed or leg.fate in ("dead", "vanished", "lost")


def _slowest(story: Story) -> list[Text]:
    slowest = story.facts["slowest"]
    if not slowest or slowest.get("us") is None:
        return []
    step = f"{cell_text(slowest['message'])} on {cell_text(slowest['node_name'])}"
    return [Text.assemble(("slowest step: ", _FAINT), f"{_span(slowest['us'])} until {step} was delivered")]


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else end - start


def _span(microseconds: float | None) -> str:
    """A length of time in as few characters as tell it."""
    if microseconds is None:
        return ""
    size = abs(microseconds)
    if size < 1000:
        return f"{microseconds:.0f} µs"
    if size < 1_000_000:
        return f"{microseconds / 1000:.1f} ms"
    return f"{microseconds / 1_000_000:,.2f} s"


def _short_names(names: Iterable[str]) -> dict[str, str]:
    """The beginnings of names, as short as tells them apart."""
    every = set(names)
    lengths = range(_SHORTEST_NAME, max(map(len, every), default=0) + 1)
    length = next((one for one in lengths if len({name[:one] for name in every}) == len(every)), _SHORTEST_NAME)
    return {name: cell_text(name if len(name) <= length + 4 else f"{name[:length]}…") for name in every}
