"""The report as one HTML file that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

import base64
import hashlib

from framewire._counts import counted
from framewire._version import __version__
from framewire.report.facts import Facts
from framewire.report.findings import findings
from framewire.report.markup import Element, el, written
from framewire.report.sections import Section, sections
from framewire.report.stylesheet import page_styles
from framewire.report.wording import amount, part, period, short, span

__all__ = ["report_page"]

_LONGEST_TITLE = 160


def report_page(facts: Facts, *, title: str) -> str:
    """The text of the file."""
    told = sections(facts)
    styles = page_styles()
    # The stylesheet is our own and the only thing that a browser may act upon, told by its hash.
    allowed = base64.b64encode(hashlib.sha256(styles.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    shown = short(title, _LONGEST_TITLE)
    head = "".join(
        map(
            written,
            (
                el("meta", charset="utf-8"),
                el("meta", http_equiv="Content-Security-Policy", content=policy),
                el("meta", name="viewport", content="width=device-width, initial-scale=1"),
                el("meta", name="referrer", content="no-referrer"),
                el("meta", name="generator", content=f"framewire {__version__}"),
                el("title", shown),
            ),
        )
    )
    body = "\n".join(
        map(written, (_header(facts, shown, told), el("main", [part.element for part in told]), _footer()))
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}<style>{styles}</style></head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _header(facts: Facts, title: str, told: list[Section]) -> Element:
    summary = facts.summary
    when = "Nothing is known of this time."
    if summary.first is not None and summary.last is not None:
        length = span((summary.last - summary.first).total_seconds() * 1_000_000)
        when = f"{period(summary.first, summary.last)} · {length} · {counted(summary.nodes, 'node')}"
    points = [
        el("li", each.text, class_="wrong" if each.wrong else None, data_sign="✗" if each.wrong else "·")
        for each in findings(facts)
    ]
    links = [el("li", el("a", part.heading, href=f"#{part.name}")) for part in told]
    return el(
        "header",
        el("div", el("p", "framewire report", class_="mark"), _theme(), class_="top"),
        el("h1", title),
        el("p", when, class_="period"),
        _figures(facts),
        el("ul", points, class_="findings") if points else None,
        el("nav", el("ul", links), class_="contents", aria_label="Contents"),
    )


def _theme() -> Element:
    """Light or dark without a script: the stylesheet looks at which one is chosen."""
    choices = (("theme-system", "System"), ("theme-light", "Light"), ("theme-dark", "Dark"))
    labels = [
        el("label", el("input", type="radio", name="theme", id=name, checked=not place), text)
        for place, (name, text) in enumerate(choices)
    ]
    return el("fieldset", el("legend", "Colours"), labels, class_="theme")


def _figures(facts: Facts) -> Element:
    told = facts.summary
    flows = told.flows
    wrong = ", ".join(
        f"{amount(flows.of(name))} {name}" for name in ("failed", "expired", "dead") if flows.of(name)
    )
    figures = (
        ("Flows", amount(flows.all), f"{amount(flows.open)} still open", False),
        ("Completed", part(flows.completed, flows.all), f"{amount(flows.completed)} flows", False),
        ("Went wrong", amount(flows.wrong), wrong or "none", bool(flows.wrong)),
        ("Half of them within", span(told.p50_us), f"95 % within {span(told.p95_us)}", False),
        ("Messages recorded", amount(told.rows), f"{amount(told.sent)} from node to node", False),
        ("Lost", amount(told.lost), f"{part(told.lost, told.sent)} of those", bool(told.lost)),
        ("Dead letters", amount(told.dead), f"handlers raised {counted(told.failed, 'time')}", bool(told.dead)),
        (
            "Wrong signatures",
            amount(told.refused),
            f"{amount(told.quarantined)} in quarantine",
            bool(told.refused),
        ),
    )
    return el(
        "dl",
        [
            el(
                "div",
                el("dt", name),
                el("dd", big, class_="big"),
                el("dd", small, class_="small"),
                class_="alarming" if alarming else None,
            )
            for name, big, small, alarming in figures
        ],
        class_="figures",
    )


def _footer() -> Element:
    text = (
        f"Made by framewire {__version__}. All times are UTC, by the clocks of the nodes. Names and texts are as "
        f"they were recorded, shortened where they are long."
    )
    return el("footer", el("p", text))
