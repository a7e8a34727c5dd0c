"""What did not go as it should: losses, dead letters, and what is no message at all."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from framewire.history.counting import bounded
from framewire.history.following import Following
from framewire.history.windows import ALWAYS, Conditions, Window
from framewire.wire.message import readable

Row = TypeVar("Row")

__all__ = [
    "DeadGroup",
    "DeadLetter",
    "Loss",
    "LossGroup",
    "Page",
    "QuarantineGroup",
    "Quarantined",
    "dead_groups",
    "dead_letters",
    "loss_groups",
    "losses",
    "quarantine",
    "quarantine_groups",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Loss:
    """A message that was sent and never received, or received and never delivered."""

    at: dt.datetime
    kind: str
    """not_received or not_delivered."""
    sender: str
    receiver: str
    message: str
    flow: str | None


@dataclass(frozen=True, slots=True)
class LossGroup:
    """Losses of one kind on one edge."""

    kind: str
    sender: str
    receiver: str
    losses: int
    last: dt.datetime


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that a node gave up."""

    at: dt.datetime
    node: str
    reason: str
    message: str
    flow: str | None


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Dead letters of one reason."""

    reason: str
    letters: int
    nodes: int
    messages: int
    """How many different messages there are among them."""
    commonest: str
    """The message that there are most of."""
    last: dt.datetime


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Frames that are no message, or came too late."""

    at: dt.datetime
    node: str
    direction: str
    peer: bytes | None
    error: str
    frames: tuple[bytes, ...]

    @property
    def peer_name(self) -> str | None:
        """The other node as text, as far as it is known."""
        return None if self.peer is None else readable(self.peer)


@dataclass(frozen=True, slots=True)
class QuarantineGroup:
    """What is in quarantine for one reason."""

    error: str
    rows: int
    nodes: int
    last: dt.datetime


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, the newest first, and whether there are more."""

    rows: tuple[Row, ...]
    more: bool


def losses(
    lake: Following,
    window: Window = ALWAYS,
    *,
    kind: str | None = None,
    node: str | None = None,
    message: str | None = None,
    limit: int = 200,
) -> Page[Loss]:
    """Losses: of a kind, from or to a node, of messages with a part of an id."""
    where = Conditions().within('"at"', window).equal("kind", kind)
    _part(where, message)
    if node is not None:
        where.add("from_name = ? or to_name = ?", node, node)
    rows = _newest(lake, '"at", kind, from_name, to_name, message, flow', "losses", where, limit)
    return Page(tuple(Loss(*row) for row in rows[:limit]), len(rows) > limit)


def loss_groups(lake: Following, window: Window = ALWAYS, *, limit: int = 50) -> Page[LossGroup]:
    """Losses by kind and edge, the most first."""
    where = Conditions().within('"at"', window)
    rest = "group by kind, from_name, to_name order by 4 desc, 1, 2, 3 limit ?"
    rows = lake.select('kind, from_name, to_name, count(*), max("at")', "losses", where, rest, bounded(limit) + 1)
    return Page(tuple(LossGroup(*row) for row in rows[:limit]), len(rows) > limit)


def dead_letters(
    lake: Following,
    window: Window = ALWAYS,
    *,
    reason: str | None = None,
    node: str | None = None,
    message: str | None = None,
    limit: int = 200,
) -> Page[DeadLetter]:
    """Dead letters: of a reason, on a node, of messages with a part of an id."""
    where = Conditions().equal("direction", "dead").within('"at"', window)
    where.equal("coalesce(reason, '')", reason).equal("node_name", node)
    _part(where, message)
    what = "\"at\", node_name, coalesce(reason, ''), message, flow"
    rows = _newest(lake, what, "messages", where, limit)
    return Page(tuple(DeadLetter(*row) for row in rows[:limit]), len(rows) > limit)


def dead_groups(lake: Following, window: Window = ALWAYS, *, limit: int = 50) -> Page[DeadGroup]:
    """Dead letters by reason, the most first."""
    where = Conditions().equal("direction", "dead").within('"at"', window)
    what = (
        "coalesce(reason, ''), count(*), count(distinct node_name), count(distinct message), mode(message), "
        'max("at")'
    )
    rows = lake.select(what, "messages", where, "group by 1 order by 2 desc, 1 limit ?", bounded(limit) + 1)
    return Page(tuple(DeadGroup(*row) for row in rows[:limit]), len(rows) > limit)


def quarantine(
    lake: Following,
    window: Window = ALWAYS,
    *,
    error: str | None = None,
    node: str | None = None,
    limit: int = 200,
) -> Page[Quarantined]:
    """What is in quarantine: for a reason, from a node."""
    where = Conditions().within('"at"', window).equal("error", error).equal("node_name", node)
    rows = _newest(lake, '"at", node_name, direction, peer, error, frames', "quarantine", where, limit)
    return Page(tuple(Quarantined(*(*row[:-1], tuple(row[-1] or ()))) for row in rows[:limit]), len(rows) > limit)


def quarantine_groups(lake: Following, window: Window = ALWAYS, *, limit: int = 50) -> Page[QuarantineGroup]:
    """What is in quarantine by reason, the most first."""
    where = Conditions().within('"at"', window)
    what = "coalesce(error, ''), count(*), count(distinct node_name), max(\"at\")"
    rows = lake.select(what, "quarantine", where, "group by 1 order by 2 desc, 1 limit ?", bounded(limit) + 1)
    return Page(tuple(QuarantineGroup(*row) for row in rows[:limit]), len(rows) > limit)


def _part(where: Conditions, message: str | None) -> None:
    if message:
        where.add("contains(message, ?)", message)


def _newest(lake: Following, what: str, table: str, where: Conditions, limit: int) -> list[tuple[Any, ...]]:
    return lake.select(what, table, where, 'order by "at" desc, 2, 3 limit ?', bounded(limit) + 1)
