"""What is told of a node or a way that was picked in the live cluster, and changes while one looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from framewire.dashboard.elements import Cell, Column, Figure, Table, block, text
from framewire.dashboard.graph import Address, tone
from framewire.dashboard.live_graph import asks_by_way
from framewire.dashboard.pages.aside import named
from framewire.dashboard.sendings import Sending
from framewire.dashboard.shell import section
from framewire.dashboard.showing import brief, count, flow_address, rate, shown, span
from framewire.dashboard.watching import Look, Watch
from framewire.node.reports import LetterStats, PendingStats

__all__ = ["LiveNode", "LivePanel", "LiveWay"]

_MOST = 40
_ASKS = (Column("age", number=True), Column("message", wide=True), Column("now at"), Column("flow"))
_HANDLERS = (
    Column("message", wide=True),
    Column("a second", number=True),
    Column("took", number=True),
    Column("longest", number=True),
    Column("failed", number=True),
)
_SENDINGS = (
    Column("node", wide=True),
    Column("a second", number=True),
    Column("in all", number=True),
    Column("dropped", number=True),
    Column("waiting", number=True),
)
_MESSAGES = (
    Column("message", wide=True),
    Column("a second", number=True),
    Column("p50", number=True),
    Column("p95", number=True),
)
_LETTERS = (
    Column("ago", number=True),
    Column("reason"),
    Column("message"),
    Column("why", wide=True),
    Column("flow"),
)


class LivePanel(Protocol):
    """Something that is shown anew after every look."""

    def show(self, look: Look) -> None: ...


class LiveWay:
    """What one node sends to another, and what the other does with it."""

    def __init__(self, watch: Watch, ends: tuple[str, str], *, has_lake: bool) -> None:
        self._watch, self._ends, self._has_lake = watch, ends, has_lake
        named(*ends)
        self._state = text("p", "", "soft", aria_live="polite")
        with block("div", "fw-figures"):
            self._rate, self._sent = Figure("Sent a second"), Figure("Sent in all")
            self._dropped, self._waiting = Figure("Dropped"), Figure("Waiting")
        with section("Messages", "and how long answers take"):
            self._messages = Table("Messages this way", _MESSAGES, "Nothing was sent this way yet.")
        with section("Open asks", "sent this way, and not answered yet"):
            self._asks = Table("Open asks this way", _ASKS, "Nobody waits for an answer.")
        with section("Handlers", f"what {brief(ends[1])} does with all that it gets"):
            self._handlers = Table("Handlers of the receiver", _HANDLERS, "It has none of its own.")

    def show(self, look: Look) -> None:
        found = next((each for each in look.sendings if (each.sender, each.receiver) == self._ends), None)
        problems = [problem for name in self._ends if (problem := _absence(look, name))]
        if found is None and not problems:
            problems = [
                f"{brief(self._ends[0])} has sent nothing this way yet, or is too old to count what it sends."
            ]
        self._state.set_text(" ".join(problems))
        self._state.set_visibility(bool(problems))
        self._figures(found)
        self._messages.show(_message_rows(found))
        self._asks.show(_ask_rows(asks_by_way(look).get(self._ends, ()), has_lake=self._has_lake))
        self._handlers.show(_handler_rows(look, self._ends[1]))

    def _figures(self, told: Sending | None) -> None:
        if told is None:
            for figure in (self._rate, self._sent, self._dropped, self._waiting):
                figure.show("—")
            return
        self._rate.show(rate(told.rate), self._watch.sent_line(*self._ends))
        self._sent.show(count(told.sent))
        self._dropped.show(count(told.dropped), tone="bad" if told.trouble else "")
        self._waiting.show(count(told.waiting))


class LiveNode:
    """What a node does, whom it sends to, and who sends to it."""

    def __init__(self, name: str, where: Address, *, has_lake: bool) -> None:
        self._name, self._where, self._has_lake = name, where, has_lake
        named(name)
        self._state = text("p", "", "soft", aria_live="polite")
        with section("Handlers"):
            self._handlers = Table("Handlers of this node", _HANDLERS, "It has none of its own.")
        with section("Sends to"):
            self._to = Table("Sends to", _SENDINGS, "It has sent nothing to another node.")
        with section("Gets from"):
            self._from = Table("Gets from", _SENDINGS, "No other node has sent it anything.")
        with section("Open asks", "of its own"):
            self._asks = Table("Open asks of this node", _ASKS, "It waits for no answer.")
        with section("The last dead letters"):
            self._letters = Table("Dead letters of this node", _LETTERS, "Everything could be delivered.")

    def show(self, look: Look) -> None:
        name = self._name
        stats = next((each.stats for each in look.nodes if each.name == name), None)
        rates = {} if stats is None else stats.rates
        told = ", ".join(f"{rate(rates.get(kind, 0.0))} {kind}" for kind in ("sent", "handled", "failed"))
        self._state.set_text(_absence(look, name) or f"a second: {told}")
        self._handlers.show(_handler_rows(look, name))
        self._to.show(self._sending(each, each.receiver) for each in look.sendings if each.sender == name)
        self._from.show(self._sending(each, each.sender) for each in look.sendings if each.receiver == name)
        self._asks.show(_ask_rows(stats.pending if stats is not None else (), has_lake=self._has_lake))
        self._letters.show(_letter_rows(stats.letters if stats is not None else (), has_lake=self._has_lake))

    def _sending(self, each: Sending, other: str) -> tuple[Any, ...]:
        return (
            Cell(
                brief(other),
                href=self._where(sender=each.sender, receiver=each.receiver),
                title=shown(other),
                mono=True,
            ),
            Cell(rate(each.rate), sort=each.rate),
            Cell(count(each.sent), sort=each.sent),
            Cell(count(each.dropped), sort=each.dropped, tone=tone(each.trouble) or None),
            Cell(count(each.waiting), sort=each.waiting),
        )


def _absence(look: Look, name: str) -> str:
    """Why nothing new is told of a node; empty where it tells it itself."""
    for gone in look.gone:
        if gone.name == name:
            return f"{brief(name)} is gone; it was last seen at {gone.last_seen:%H:%M:%S} UTC."
    for node in look.nodes:
        if node.name == name:
            return "" if node.stats is not None else f"{brief(name)} {shown(node.problem, 300)}."
    return f"{brief(name)} is not there now."


def _message_rows(sending: Sending | None) -> Iterator[tuple[Any, ...]]:
    for each in sending.messages[:_MOST] if sending is not None else ():
        yield (
            Cell(shown(each.message, 60), title=shown(each.message)),
            Cell(rate(each.rate), sort=each.rate),
            Cell(span(each.p50), sort=each.p50 or 0.0),
            Cell(span(each.p95), sort=each.p95 or 0.0),
        )


def _handler_rows(look: Look, name: str) -> Iterator[tuple[Any, ...]]:
    found = sorted((each for each in look.handlers if each.node == name), key=lambda each: -each.rate)
    for each in found[:_MOST]:
        done = each.handler
        yield (
            Cell(shown(done.message, 60), title=shown(done.name)),
            Cell(rate(each.rate), sort=each.rate),
            Cell(span(each.took), sort=each.took or 0.0),
            Cell(span(done.longest), sort=done.longest),
            Cell(count(done.failed), sort=done.failed, tone="bad" if done.failed else None),
        )


def _ask_rows(asks: Iterable[PendingStats], *, has_lake: bool) -> Iterator[tuple[Any, ...]]:
    for each in sorted(asks, key=lambda ask: -ask.age)[:_MOST]:
        yield (
            Cell(span(each.age), sort=each.age),
            shown(each.message, 60),
            brief(each.sent_to or "itself"),
            _flow(each.flow, has_lake=has_lake),
        )


def _letter_rows(letters: Iterable[LetterStats], *, has_lake: bool) -> Iterator[tuple[Any, ...]]:
    for each in sorted(letters, key=lambda letter: letter.age)[:_MOST]:
        yield (
            Cell(span(each.age), sort=each.age),
            Cell(shown(each.reason), tone="bad"),
            shown(each.message or "(no message)", 60),
            shown(each.detail, 300),
            _flow(each.flow, has_lake=has_lake),
        )


def _flow(flow: str, *, has_lake: bool) -> Cell:
    return Cell(shown(flow, 13), href=flow_address(flow) if has_lake else None, mono=True, title=shown(flow))
