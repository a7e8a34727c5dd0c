"""The tables of history: what each one asks the lake, how it can be filtered, shown and exported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from framewire.dashboard.elements import Cell, Column
from framewire.dashboard.filters import WINDOW, Choice, Field, Query
from framewire.dashboard.showing import address, brief, bytes_text, count, flow_address, moment, shown
from framewire.errors import WireError
from framewire.history import Adopted, Audited, History, Page, Quarantined
from framewire.wire.codec import decode
from framewire.wire.message import readable

__all__ = ["LISTINGS", "Listing", "flow_in"]

_TONES = {"valid": "good", "invalid": "bad", "unknown_domain": "warn"}
_BY_NODE = Field("node", "node", hint="its whole name")
_BY_MESSAGE = Field("message", "message", hint="its whole name")
_LONGEST = 200
"""Characters of a name that may go into an address as a filter."""


@dataclass(frozen=True, slots=True)
class Part:
    """One column: its headings on the page and in a file, and what each of them has of a row."""

    column: Column
    name: str
    raw: Callable[[Any], object]
    show: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Listing:
    """One table: ``ask`` has the rows, and ``parts`` are its columns."""

    name: str
    title: str
    about: str
    nothing: str
    fields: tuple[Field, ...]
    ask: Callable[[History, Query, int], Page[Any]]
    parts: tuple[Part, ...]
    groups: Callable[[History, Query], list[tuple[str, int]]] | None = None
    """How many there are of which kind, shown above the table."""
    group_field: str = ""
    """The filter that such a kind is a value of."""
    others: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(part.column for part in self.parts)

    def row(self, row: Any) -> tuple[Any, ...]:
        """A row as a page shows it."""
        return tuple(part.show(row) for part in self.parts)

    @property
    def heading(self) -> tuple[str, ...]:
        """The first line of a file."""
        return tuple(part.name for part in self.parts)

    def raw(self, row: Any) -> tuple[object, ...]:
        """A row as a file has it."""
        return tuple(part.raw(row) for part in self.parts)


def flow_in(row: Quarantined) -> str | None:
    """The flow of what is in quarantine, where it is a message all the same: one that came too late."""
    try:
        return readable(decode(row.frames).correlation_id) or None
    except WireError:
        return None


def _part(
    name: str,
    show: Callable[[Any], Any],
    *,
    label: str = "",
    of: Callable[[Any], Any] | None = None,
    number: bool = False,
    wide: bool = False,
) -> Part:
    """A column that shows one value of a row: that of its name, unless ``of`` finds another."""
    raw = of or attrgetter(name)
    return Part(Column(label or name, number=number, wide=wide), name, raw, lambda row: show(raw(row)))


def _asking(method: Callable[..., Page[Any]], *filters: str) -> Callable[[History, Query, int], Page[Any]]:
    """A question of the lake whose filters have the names of those of the page."""

    def ask(lake: History, query: Query, limit: int) -> Page[Any]:
        return method(lake, query.window, limit=limit, **{name: query.text(name) for name in filters})

    return ask


def _named(name: str) -> Cell:
    return Cell(brief(name), title=shown(name), mono=True)


def _bad(value: str) -> Cell:
    return Cell(shown(value, 60), tone="bad")


_AT = _part("at", lambda at: Cell(moment(at), sort=moment(at)), label="at (UTC)")
_NODE = _part("node", _named)
_MESSAGE = _part("message", lambda message: shown(message, 80), wide=True)


def _flow(of: Callable[[Any], str | None]) -> Part:
    return _part(
        "flow", lambda flow: Cell(shown(flow, 18), href=flow_address(flow), mono=True, title=shown(flow)), of=of
    )


def _counted(where: Callable[[Any], str]) -> Part:
    """How many rows of the lake a row stands for, with what they lead to."""
    return Part(
        Column("rows", number=True),
        "rows",
        attrgetter("rows"),
        lambda row: Cell(count(row.rows), sort=row.rows, href=where(row)),
    )


def _filter(name: str) -> str:
    return name if len(name) <= _LONGEST else ""


def _frames_of(row: Quarantined) -> str:
    return address("/quarantine", at=row.at.isoformat(), node=_filter(row.node))


def _quarantined_at(row: Quarantined) -> Cell:
    return Cell(moment(row.at), href=_frames_of(row), sort=moment(row.at))


def _quarantined_frames(row: Quarantined) -> Cell:
    size = sum(map(len, row.frames))
    return Cell(f"{len(row.frames):,}, {bytes_text(size)}", sort=size, href=_frames_of(row))


def _signed(row: Audited) -> str:
    if row.state == "invalid":
        return address("/dead-letters", reason="bad_signature", node=_filter(row.node))
    return address("/flows", node=_filter(row.node))


def _in_use(row: Adopted) -> str:
    return address("/flows", node=_filter(row.node), message=row.message[:_LONGEST])


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
        "Nothing was lost, as far as the lake knows.",
        (
            Field("kind", "kind", "choice", _choices("not_received", "not_delivered")),
            _BY_NODE,
            _BY_MESSAGE,
            *WINDOW,
        ),
        _asking(History.losses, "kind", "node", "message"),
        (
            _AT,
            _part("kind", lambda kind: _bad("never " + kind.removeprefix("not_"))),
            _part("from", _named, of=attrgetter("sender")),
            _part("to", _named, of=attrgetter("receiver")),
            _MESSAGE,
            _flow(attrgetter("flow")),
        ),
        _loss_kinds,
        "kind",
    )
    yield Listing(
        "dead-letters",
        "Dead letters",
        "What nodes gave up, and why.",
        "No node gave a message up, as far as the lake knows.",
        (Field("reason", "reason", hint="such as no_route"), _BY_NODE, _BY_MESSAGE, *WINDOW),
        _asking(History.dead_letters, "reason", "node", "message"),
        (_AT, _part("reason", _bad), _NODE, _MESSAGE, _flow(attrgetter("flow"))),
        _dead_reasons,
        "reason",
    )
    yield Listing(
        "quarantine",
        "Quarantine",
        "What is no message, or came too late to be counted. Each row opens its frames.",
        "Everything that was recorded is a message.",
        (Field("error", "error", hint="such as late"), _BY_NODE, *WINDOW),
        _asking(History.quarantine, "error", "node"),
        (
            Part(Column("at (UTC)"), "at", attrgetter("at"), _quarantined_at),
            _part("error", _bad),
            _NODE,
            _part("direction", shown),
            _part("peer", _named, of=attrgetter("peer_name"), wide=True),
            Part(Column("frames", number=True), "frames", lambda row: len(row.frames), _quarantined_frames),
            _flow(flow_in),
        ),
        _errors,
        "error",
        ("at",),
    )
    yield Listing(
        "audit",
        "Audit",
        "Signatures by domain and node, as the pipeline checked them.",
        "Nothing was recorded in this time.",
        (
            Field(
                "state",
                "signature",
                "choice",
                _choices("valid", "invalid", "unsigned", "unknown_domain", "unchecked", "local"),
            ),
            Field("domain", "domain"),
            _BY_NODE,
            *WINDOW,
        ),
        _asking(History.audit, "state", "domain", "node"),
        (
            _part("domain", lambda domain: shown(domain or "(none)", 60)),
            _part(
                "signature_state",
                lambda found: Cell(shown(found, 40), tone=_TONES.get(found)),
                label="signature",
                of=attrgetter("state"),
            ),
            _NODE,
            _counted(_signed),
            _part("last", lambda at: moment(at)[:16], label="last hour", wide=True),
        ),
        _signatures,
        "state",
    )
    yield Listing(
        "adoption",
        "Adoption",
        "Which wire formats and message versions are in use, and where.",
        "Nothing was recorded in this time.",
        (Field("format", "format", "choice", _choices("1", "4", "5")), _BY_MESSAGE, _BY_NODE, *WINDOW),
        lambda lake, query, limit: lake.adoption(
            query.window,
            wire_version=query.whole("format"),
            message=query.text("message"),
            node=query.text("node"),
            limit=limit,
        ),
        (
            _part("wire_version", lambda version: "—" if version is None else f"V{version}", label="format"),
            _MESSAGE,
            _part("version", lambda version: version, number=True),
            _NODE,
            _counted(_in_use),
            _part("first", lambda day: day.isoformat()),
            _part("last", lambda day: day.isoformat()),
        ),
    )


LISTINGS = {listing.name: listing for listing in _all()}
"""Every table, by the last part of its address."""
