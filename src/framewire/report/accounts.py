"""The tables of signatures, wire formats and versions."""

from __future__ import annotations

from collections import Counter, defaultdict

from framewire.report.facts import Facts
from framewire.report.markup import Child, Element, el
from framewire.report.tables import code, number, table, words
from framewire.report.wording import amount, day, part, short, short_names

__all__ = ["adoption", "audit"]

_STATES = {
    "valid": "valid",
    "invalid": "wrong",
    "unsigned": "unsigned",
    "unknown_domain": "key not there",
    "unchecked": "not checked",
    "local": "never on a wire",
}
_DAYS = 14
_ROWS = 25


def audit(facts: Facts) -> Element:
    """A row for each domain, a column for each state that occurs."""
    by_domain: dict[str, Counter[str]] = defaultdict(Counter)
    for each in facts.audit.rows:
        by_domain[each.domain][each.state] += each.rows
    states = [state for state in _STATES if any(state in told for told in by_domain.values())]
    others = sorted({state for told in by_domain.values() for state in told} - set(_STATES))
    columns = [
        code("domain"),
        *(number(_STATES.get(state, short(state, 20))) for state in (*states, *others)),
    ]
    rows: list[list[Child]] = []
    for domain, told in sorted(by_domain.items()):
        cells = [_cell(state, told[state]) for state in (*states, *others)]
        rows.append([short(domain, 48) if domain else "(none)", *cells])
    return table("Rows of messages by domain and signature", columns, rows, most=_ROWS, unknown=facts.audit.more)


def _cell(state: str, rows: int) -> Child:
    return el("span", amount(rows), class_="alarm") if state == "invalid" and rows else amount(rows)


def adoption(facts: Facts) -> list[Element]:
    """Formats by day, and the messages and versions that occur most."""
    by_day: dict[object, Counter[int | None]] = defaultdict(Counter)
    for each in facts.formats.rows:
        by_day[each.day][each.wire_version] += each.rows
    formats = sorted({each.wire_version for each in facts.formats.rows}, key=lambda version: -(version or 0))
    days = sorted({each.day for each in facts.formats.rows}, reverse=True)
    columns = [words("day"), *(number(_format(version)) for version in formats)]
    rows: list[list[Child]] = [
        [day(one), *(_share(by_day[one][version], by_day[one].total()) for version in formats)] for one in days
    ]
    return [
        table("Wire formats by day, newest first", columns, rows, most=_DAYS, unknown=facts.formats.more),
        _versions(facts),
    ]


def _format(version: int | None) -> str:
    return "unknown" if version is None else f"format {version}"


def _share(some: int, every: int) -> Child:
    return [amount(some), " ", el("span", part(some, every), class_="share")]


def _versions(facts: Facts) -> Element:
    names = short_names(each.node for each in facts.versions.rows)
    columns = (
        code("message"),
        code("node"),
        number("format"),
        number("rows"),
    )
    rows = [
        (short(each.message, 48), names[each.node], amount(each.wire_version), amount(each.rows))
        for each in facts.versions.rows
    ]
    return table(
        "The commonest messages by node and format", columns, rows, most=_ROWS, unknown=facts.versions.more
    )
