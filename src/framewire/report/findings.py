"""What stands out in a lake, in a few sentences: what a colleague would say who has read the whole report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from framewire._counts import counted
from framewire.history import Edge
from framewire.report.facts import Facts
from framewire.report.wording import amount, part, short, short_names, span

__all__ = ["Finding", "findings"]

_FEW_MESSAGES = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence, and whether it is about something that went wrong."""

    text: str
    wrong: bool = False


def findings(facts: Facts) -> list[Finding]:
    """The sentences, what went wrong first."""
    told = [
        _flows(facts),
        _losses(facts),
        _handlers(facts),
        _signatures(facts),
        _quarantine(facts),
        _slowest(facts),
        _formats(facts),
    ]
    return sorted((finding for finding in told if finding is not None), key=lambda finding: not finding.wrong)


def _flows(facts: Facts) -> Finding | None:
    flows = facts.summary.flows
    if not flows.all:
        return None
    if not flows.wrong:
        still = f"; {counted(flows.open, 'is', 'are')} still open" if flows.open else ""
        return Finding(f"No flow failed, expired or died{still}.")
    kinds = [f"{amount(flows.of(name))} {name}" for name in ("failed", "expired", "dead") if flows.of(name)]
    named = Counter(flow.exception for flow in facts.wrong.flows if flow.exception)
    commonest = f" Among the newest, {short(named.most_common(1)[0][0], 48)} is the commonest." if named else ""
    return Finding(
        f"{counted(flows.wrong, 'flow')} of {amount(flows.all)} ({part(flows.wrong, flows.all)}) went wrong: "
        f"{', '.join(kinds)}.{commonest}",
        wrong=True,
    )


def _losses(facts: Facts) -> Finding | None:
    lost, sent = facts.summary.lost, facts.summary.sent
    if not lost:
        return Finding("Nothing was lost between nodes.") if sent else None
    where = ""
    if facts.losses.rows:
        worst = facts.losses.rows[0]
        names = short_names({worst.sender, worst.receiver})
        most = "most of them " if len(facts.losses.rows) > 1 else ""
        where = f", {most}from {names[worst.sender]} to {names[worst.receiver]} ({amount(worst.losses)})"
    verb = "was" if lost == 1 else "were"
    told = f"{amount(lost)} of {counted(sent, 'message')} between nodes {verb} lost"
    return Finding(f"{told}{where}; that is {part(lost, sent)}.", wrong=True)


def _handlers(facts: Facts) -> Finding | None:
    failing = max(facts.handlers.rows, key=lambda handler: handler.failed, default=None)
    if failing is None or not failing.failed:
        return None
    node = short_names({failing.node})[failing.node]
    return Finding(
        f"Handlers raised {counted(facts.summary.failed, 'time')}; of the busiest, {short(failing.message, 48)} on "
        f"{node} most often: {amount(failing.failed)} of {amount(failing.delivered)}.",
        wrong=True,
    )


def _signatures(facts: Facts) -> Finding | None:
    wrong = facts.summary.refused
    unknown = facts.summary.signatures.get("unknown_domain", 0)
    if not wrong and not unknown:
        return None
    parts = []
    if wrong:
        parts.append(f"{counted(wrong, 'recorded message has', 'recorded messages have')} a wrong signature")
    if unknown:
        parts.append(f"{counted(unknown, 'is', 'are')} of a domain whose key was not there")
    return Finding(f"{'; '.join(parts)}.", wrong=bool(wrong))


def _quarantine(facts: Facts) -> Finding | None:
    number = facts.summary.quarantined
    if not number:
        return None
    named = [short(group.error, 40) for group in facts.quarantine.rows[:3]]
    why = f" ({', '.join(named)})" if named else ""
    return Finding(f"{counted(number, 'recorded row is', 'recorded rows are')} no message{why}.", wrong=True)


def _slowest(facts: Facts) -> Finding | None:
    known = [edge for edge in facts.topology.edges if edge.traffic.p95_us is not None]
    # One slow message is no slow edge.
    slowest = max(
        (edge for edge in known if edge.traffic.received >= _FEW_MESSAGES),
        key=_p95,
        default=max(known, key=_p95, default=None),
    )
    if slowest is None:
        return None
    names = short_names(node.name for node in facts.topology.nodes)
    return Finding(
        f"The slowest edge is from {names[slowest.sender]} to {names[slowest.receiver]}: 95 % of its messages took "
        f"{span(slowest.traffic.p95_us)} or less."
    )


def _p95(edge: Edge) -> float:
    return edge.traffic.p95_us or 0.0


def _formats(facts: Facts) -> Finding | None:
    rows: Counter[int | None] = Counter()
    for each in facts.formats.rows:
        rows[each.wire_version] += each.rows
    old = sum(number for version, number in rows.items() if version is not None and version < 5)
    return Finding(f"{part(old, rows.total())} of what was recorded is in an older wire format.") if old else None
