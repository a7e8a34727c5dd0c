"""The parts of a report, each a heading, a sentence that says how to read it, and a picture or a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from framewire.history import FlowPage, Traffic
from framewire.report.accounts import adoption, audit
from framewire.report.charts import latency_chart, outcome_chart
from framewire.report.facts import Facts
from framewire.report.flows import flow_articles
from framewire.report.markup import Child, Element, el
from framewire.report.network import MOST_NODES, topology_picture
from framewire.report.tables import code, number, table, words
from framewire.report.wording import amount, moment, part, short, short_names, span

__all__ = ["Section", "sections"]

_EDGES = 15
_ROWS = 25


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report that can be led to."""

    name: str
    heading: str
    about: str
    content: tuple[Child, ...]

    @property
    def element(self) -> Element:
        """The part as it is put on the page."""
        heading = el("h2", self.heading, id=f"{self.name}-heading")
        about = el("p", self.about) if self.about else None
        return el("section", heading, about, self.content, id=self.name, aria_labelledby=f"{self.name}-heading")


def sections(facts: Facts) -> list[Section]:
    """All parts, in the order in which they are read."""
    parts: Sequence[Callable[[Facts], Section]] = (
        _topology, _latency, _outcomes, _slowest, _wrong, _handlers, _losses, _dead, _quarantine, _audit, _adoption,
    )  # fmt: skip
    return [make(facts) for make in parts]


def figure(picture: Element, label: str) -> Element:
    """A picture that is wider than a phone can be moved on its own; the page stays."""
    return el("figure", el("div", picture, class_="scroll", tabindex=0, role="region", aria_label=label))


def nothing(text: str) -> Element:
    """What stands where there is nothing to show."""
    return el("p", text, class_="none")


def _topology(facts: Facts) -> Section:
    told = facts.topology
    about = "What goes between nodes. An edge is as wide as its traffic, and coloured by what went wrong on it."
    if not told.edges:
        return Section("topology", "Topology", about, (nothing("No message went from one node to another."),))
    left = len(told.nodes) - MOST_NODES + told.more_nodes
    if left > 0:
        about += f" The {MOST_NODES} busiest nodes are drawn, {amount(left)} are not."
    names = short_names(node.name for node in told.nodes)
    rows = [_edge(f"{names[edge.sender]} → {names[edge.receiver]}", edge.traffic) for edge in told.edges]
    how = "" if told.exact else " Percentiles are put together from those of hours."
    columns = (
        code("edge"), number("messages"), number("in error"), number("lost"),
        number("p50"), number("p95"), number("p99"),
    )  # fmt: skip
    busiest = table(f"The busiest edges.{how}", columns, rows, most=_EDGES, beyond=told.more_edges)
    return Section("topology", "Topology", about, (figure(topology_picture(told), "Topology"), busiest))


def _edge(name: str, traffic: Traffic) -> list[Child]:
    return [
        name,
        amount(traffic.sent),
        _wrong_of(traffic.errors, traffic.received),
        _wrong_of(traffic.lost, traffic.sent),
        span(traffic.p50_us),
        span(traffic.p95_us),
        span(traffic.p99_us),
    ]


def _wrong_of(some: int, every: int) -> Child:
    if not some:
        return ["0 ", el("span", class_="share")]
    return [el("span", amount(some), class_="alarm"), " ", el("span", part(some, every), class_="share")]


def _latency(facts: Facts) -> Section:
    course = facts.latency
    about = (
        "How long messages were on their way from node to node, by when they were sent: half of them took p50 or "
        "less, 95 % p95, 99 % p99."
    )
    if not any(point.hops for point in course.points):
        return Section(
            "latency", "Latency", about, (nothing("No message is known to have arrived at another node."),)
        )
    if not course.exact:
        about += " There are so many that percentiles are estimated."
    columns = (
        code("from"), number("messages"), number("p50"), number("p95"),
        number("p99"),
    )  # fmt: skip
    rows = [
        (moment(point.at), amount(point.hops), span(point.p50_us), span(point.p95_us), span(point.p99_us))
        for point in course.points
        if point.hops
    ]
    figures = el("details", el("summary", "The same in figures"), table("Latency over time, UTC", columns, rows))
    return Section("latency", "Latency", about, (figure(latency_chart(course), "Latency"), figures))


def _outcomes(facts: Facts) -> Section:
    course = facts.outcomes
    about = "What became of flows, by when they began; those that went wrong are on top."
    if not any(point.flows.all for point in course.points):
        return Section("outcomes", "Flows", about, (nothing("No flow began in this time."),))
    names = ("completed", "open", "expired", "dead", "failed")
    columns = (code("from"), *(number(name) for name in names))
    rows = [
        (moment(point.at), *(amount(point.flows.of(name)) for name in names))
        for point in course.points
        if point.flows.all
    ]
    figures = el("details", el("summary", "The same in figures"), table("Flows over time, UTC", columns, rows))
    return Section("outcomes", "Flows", about, (figure(outcome_chart(course), "Flows"), figures))


def _slowest(facts: Facts) -> Section:
    about = "The flows that took longest, message by message: time on the way, waiting, and work."
    return _flows("slowest", "Slowest flows", about, facts, facts.slowest, "There are no flows in this time.")


def _wrong(facts: Facts) -> Section:
    about = "The newest flows that failed, expired or died."
    return _flows("wrong", "Flows that went wrong", about, facts, facts.wrong, "No flow failed, expired or died.")


def _flows(name: str, heading: str, about: str, facts: Facts, page: FlowPage, none: str) -> Section:
    if not page.flows:
        return Section(name, heading, "", (nothing(none),))
    more = el("p", "There are more; framewire flow shows any of them.", class_="more") if page.more else None
    return Section(name, heading, about, (flow_articles(name, page.flows, facts.stories), more))


def _handlers(facts: Facts) -> Section:
    rows = facts.handlers.rows
    if not rows:
        return Section("handlers", "Handlers", "", (nothing("No actor got a message."),))
    names = short_names(handler.node for handler in rows)
    columns = (
        code("message"), code("node"), number("handled"), number("raised"),
        number("p50"), number("p95"),
    )  # fmt: skip
    told = [
        (
            short(each.message, 48),
            names[each.node],
            amount(each.delivered),
            _wrong_of(each.failed, each.delivered),
            span(each.p50_us),
            span(each.p95_us),
        )
        for each in rows
    ]
    about = "What actors got, and how long they took until the node did the next thing in the flow."
    busiest = table("The busiest handlers", columns, told, most=_ROWS, unknown=facts.handlers.more)
    return Section("handlers", "Handlers", about, (busiest,))


def _losses(facts: Facts) -> Section:
    rows = facts.losses.rows
    if not rows:
        return Section("losses", "Losses", "", (nothing("Nothing was lost."),))
    names = short_names(name for each in rows for name in (each.sender, each.receiver))
    kinds = {"not_received": "sent, never received", "not_delivered": "received, never delivered"}
    columns = (
        code("edge"), words("what happened"), number("messages"), number("last, UTC"),
    )  # fmt: skip
    told = [
        (
            f"{names[each.sender]} → {names[each.receiver]}",
            kinds.get(each.kind, short(each.kind, 40)),
            amount(each.losses),
            moment(each.last),
        )
        for each in rows
    ]
    made = table("Losses by edge", columns, told, most=_ROWS, unknown=facts.losses.more)
    return Section("losses", "Losses", "What one node sent, and no other has seen or passed to an actor.", (made,))


def _dead(facts: Facts) -> Section:
    rows = facts.dead.rows
    if not rows:
        return Section("dead", "Dead letters", "", (nothing("There are no dead letters."),))
    columns = (
        code("reason"), number("letters"), number("nodes"), code("commonest"),
        number("last, UTC"),
    )  # fmt: skip
    told = [
        (
            short(each.reason, 40),
            amount(each.letters),
            amount(each.nodes),
            short(each.commonest, 48),
            moment(each.last),
        )
        for each in rows
    ]
    made = table("Dead letters by reason", columns, told, most=_ROWS, unknown=facts.dead.more)
    return Section("dead", "Dead letters", "Messages that a node gave up, and why.", (made,))


def _quarantine(facts: Facts) -> Section:
    rows = facts.quarantine.rows
    if not rows:
        return Section("quarantine", "Quarantine", "", (nothing("All that was recorded could be read."),))
    columns = (
        code("what is wrong"), number("rows"), number("nodes"),
        number("last, UTC"),
    )  # fmt: skip
    told = [(short(each.error, 48), amount(each.rows), amount(each.nodes), moment(each.last)) for each in rows]
    made = table("Quarantine by error", columns, told, most=_ROWS, unknown=facts.quarantine.more)
    return Section("quarantine", "Quarantine", "Recorded frames that are no message, or came too late.", (made,))


def _audit(facts: Facts) -> Section:
    content = audit(facts) if facts.audit.rows else nothing("No message was recorded.")
    return Section(
        "audit", "Signatures", "Messages as recorded, by security domain and state of signature.", (content,)
    )


def _adoption(facts: Facts) -> Section:
    content = adoption(facts) if facts.formats.rows else nothing("No message was recorded.")
    return Section("adoption", "Versions", "Wire formats and versions of messages that are in use.", (content,))
