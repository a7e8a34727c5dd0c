"""The tables of history: what each one asks the lake, how it can be filtered, shown and exported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from framewire.dashboard.elements import Cell, Column
from framewire.dashboard.filters import WINDOW, Choice, Field, Query
from framewire.dashboard.showing import address, brief, bytes_text, count, flow_address, moment, shown
from framewire.errors import WireError
from framewire.history import Adopted, Audited, DeadLetter, History, Loss, Page, Quarantined
from framewire.wire.codec import decode
from framewire.wire.message import readable

__all__ = ["LISTINGS", "Listing", "flow_in"]

_TONES = {"valid": "good", "invalid": "bad", "unknown_domain": "warn"}
_NODE = Field("node", "node", hint="its whole name")
_MESSAGE = Field("message", "message", hint="its whole name")


@dataclass(frozen=True, slots=True)
class Listing:
    """One table: ``ask`` has the rows, ``row`` shows one, ``raw`` is what a file has of it."""

    name: str
    title: str
    about: str
    fields: tuple[Field, ...]
    columns: tuple[Column, ...]
    ask: Callable[[History, Query, int], Page[Any]]
    row: Callable[[Any], tuple[Any, ...]]
    heading: tuple[str, ...]
    raw: Callable[[Any], tuple[object, ...]]
    nothing: str
    groups: Callable[[History, Query], list[tuple[str, int]]] | None = None
    """How many there are of which kind, shown above the table."""
    group_field: str = ""
    """The filter that such a kind is a value of."""
    others: tuple[str, ...] = ()


def flow_in(row: Quarantined) -> str | None:
    """The flow of what is in quarantine, where it is a message all the same: one that came too late."""
    try:
        return readable(decode(row.frames).correlation_id) or None
    except WireError:
        return None


def _at(at: Any) -> Cell:
    return Cell(moment(at), sort=moment(at))


def _node(name: str) -> Cell:
    return Cell(brief(name), title=shown(name), mono=True)


def _flow(flow: str | None) -> Cell:
    return Cell(shown(flow, 18), href=flow_address(flow), mono=True, title=shown(flow))


def _loss(loss: Loss) -> tuple[Any, ...]:
    kind = "never received" if loss.kind == "not_received" else "never delivered"
    return (
        _at(loss.at),
        Cell(kind, tone="bad"),
        _node(loss.sender),
        _node(loss.receiver),
        shown(loss.message, 80),
        _flow(loss.flow),
    )


def _letter(letter: DeadLetter) -> tuple[Any, ...]:
    return (
        _at(letter.at),
        Cell(shown(letter.reason, 60), tone="bad"),
        _node(letter.node),
        shown(letter.message, 80),
        _flow(letter.flow),
    )


def _quarantined(row: Quarantined) -> tuple[Any, ...]:
    picked = address("/quarantine", at=row.at.isoformat(), node=row.node if len(row.node) <= 200 else "")
    size = sum(map(len, row.frames))
    return (
        Cell(moment(row.at), href=picked, sort=moment(row.at)),
        Cell(shown(row.error, 60), tone="bad"),
        _node(row.node),
        row.direction,
        Cell(brief(row.peer_name), title=shown(row.peer_name), mono=True),
        Cell(f"{len(row.frames):,}, {bytes_text(size)}", sort=size, href=picked),
        _flow(flow_in(row)),
    )


def _audited(row: Audited) -> tuple[Any, ...]:
    node = row.node if len(row.node) <= 200 else ""
    where = (
        address("/dead-letters", reason="bad_signature", node=node)
        if row.state == "invalid"
        else address("/flows", node=node)
    )
    return (
        shown(row.domain or "(none)", 60),
        Cell(shown(row.state, 40), tone=_TONES.get(row.state)),
        _node(row.node),
        Cell(count(row.rows), sort=row.rows, href=where),
        moment(row.last)[:16],
    )


def _adopted(row: Adopted) -> tuple[Any, ...]:
    where = address("/flows", node=row.node if len(row.node) <= 200 else "", message=row.message[:200])
    return (
        f"V{row.wire_version}" if row.wire_version is not None else "—",
        shown(row.message, 80),
        row.version,
        _node(row.node),
        Cell(count(row.rows), sort=row.rows, href=where),
        row.first.isoformat(),
        row.last.isoformat(),
    )


def _choices(*values: str) -> tuple[Choice, ...]:
    return Choice("", "any"), *(Choice(value, value.replace("_", " ")) for value in values)


def _dead_reasons(lake: History, query: Query) -> list[tuple[str, int]]:
    return [(each.reason, each.letters) for each in lake.dead_groups(query.window).rows]


def _loss_kinds(lake: History, query: Query) -> list[tuple[str, int]]:
    kinds: dict[str, int] = {}
    for each in lake.loss_groups(query.window, limit=1000).rows:
        kinds[each.kind] = kinds.get(each.kind, 0) + each.losses
    return sorted(kinds.items(), key=lambda pair: -pair[1])


def _errors(lake: History, query: Query) -> list[tuple[str, int]]:
    return [(each.error, each.rows) for each in lake.quarantine_groups(query.window).rows]


def _signatures(lake: History, query: Query) -> list[tuple[str, int]]:
    return sorted(lake.summary(query.window).signatures.items(), key=lambda pair: -pair[1])


def _all() -> Iterator[Listing]:
    yield Listing(
        "losses",
        "Losses",
        "What was sent and never received, or received and never delivered.",
        (Field("kind", "kind", "choice", _choices("not_received", "not_delivered")), _NODE, _MESSAGE, *WINDOW),
        (
            Column("at (UTC)"),
            Column("kind"),
            Column("from"),
            Column("to"),
            Column("message", wide=True),
            Column("flow"),
        ),
        lambda lake, query, limit: lake.losses(
            query.window,
            kind=query.text("kind"),
            node=query.text("node"),
            message=query.text("message"),
            limit=limit,
        ),
        _loss,
        ("at", "kind", "from", "to", "message", "flow"),
        lambda row: (row.at, row.kind, row.sender, row.receiver, row.message, row.flow),
        "Nothing was lost, as far as the lake knows.",
        _loss_kinds,
        "kind",
    )
    yield Listing(
        "dead-letters",
        "Dead letters",
        "What nodes gave up, and why.",
        (Field("reason", "reason", hint="such as no_route"), _NODE, _MESSAGE, *WINDOW),
        (Column("at (UTC)"), Column("reason"), Column("node"), Column("message", wide=True), Column("flow")),
        lambda lake, query, limit: lake.dead_letters(
            query.window,
            reason=query.text("reason"),
            node=query.text("node"),
            message=query.text("message"),
            limit=limit,
        ),
        _letter,
        ("at", "reason", "node", "message", "flow"),
        lambda row: (row.at, row.reason, row.node, row.message, row.flow),
        "No node gave a message up, as far as the lake knows.",
        _dead_reasons,
        "reason",
    )
    yield Listing(
        "quarantine",
        "Quarantine",
        "What is no message, or came too late to be counted. Each row opens its frames.",
        (Field("error", "error", hint="such as late"), _NODE, *WINDOW),
        (
            Column("at (UTC)"),
            Column("error"),
            Column("node"),
            Column("direction"),
            Column("peer", wide=True),
            Column("frames", number=True),
            Column("flow"),
        ),
        lambda lake, query, limit: lake.quarantine(
            query.window, error=query.text("error"), node=query.text("node"), limit=limit
        ),
        _quarantined,
        ("at", "error", "node", "direction", "peer", "frames", "flow"),
        lambda row: (row.at, row.error, row.node, row.direction, row.peer_name, len(row.frames), flow_in(row)),
        "Everything that was recorded is a message.",
        _errors,
        "error",
        ("at",),
    )
    yield Listing(
        "audit",
        "Audit",
        "Signatures by domain and node, as the pipeline checked them.",
        (
            Field(
                "state",
                "signature",
                "choice",
                _choices("valid", "invalid", "unsigned", "unknown_domain", "unchecked", "local"),
            ),
            Field("domain", "domain"),
            _NODE,
            *WINDOW,
        ),
        (
            Column("domain"),
            Column("signature"),
            Column("node"),
            Column("rows", number=True),
            Column("last hour", wide=True),
        ),
        lambda lake, query, limit: lake.audit(
            query.window,
            state=query.text("state"),
            domain=query.text("domain"),
            node=query.text("node"),
            limit=limit,
        ),
        _audited,
        ("domain", "signature_state", "node", "rows", "last"),
        lambda row: (row.domain, row.state, row.node, row.rows, row.last),
        "Nothing was recorded in this time.",
        _signatures,
        "state",
    )
    yield Listing(
        "adoption",
        "Adoption",
        "Which wire formats and message versions are in use, and where.",
        (Field("format", "format", "choice", _choices("1", "4", "5")), _MESSAGE, _NODE, *WINDOW),
        (
            Column("format"),
            Column("message", wide=True),
            Column("version", number=True),
            Column("node"),
            Column("rows", number=True),
            Column("first"),
            Column("last"),
        ),
        lambda lake, query, limit: lake.adoption(
            query.window,
            wire_version=query.whole("format"),
            message=query.text("message"),
            node=query.text("node"),
            limit=limit,
        ),
        _adopted,
        ("wire_version", "message", "version", "node", "rows", "first", "last"),
        lambda row: (row.wire_version, row.message, row.version, row.node, row.rows, row.first, row.last),
        "Nothing was recorded in this time.",
    )


LISTINGS = {listing.name: listing for listing in _all()}
"""Every table, by the last part of its address."""
