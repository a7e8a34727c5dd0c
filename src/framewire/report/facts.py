"""All that a report tells, asked of a lake at once and bounded, so that what is made from it can be too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from framewire.history import (
    ALWAYS,
    Adopted,
    AuditGroup,
    DeadGroup,
    Flow,
    FlowPage,
    FormatDay,
    Handler,
    History,
    LatencyCourse,
    LossGroup,
    OutcomeCourse,
    Page,
    QuarantineGroup,
    Summary,
    Topology,
    Window,
)
from framewire.spark.legs import Story

__all__ = ["Facts", "gathered"]

_FLOWS = 6
_ROWS = 1000
_EVENTS = 400


@dataclass(frozen=True, slots=True)
class Facts:
    """What a report is made from."""

    window: Window
    summary: Summary
    topology: Topology
    latency: LatencyCourse
    outcomes: OutcomeCourse
    slowest: FlowPage
    wrong: FlowPage
    stories: Mapping[str, Story]
    handlers: Page[Handler]
    losses: Page[LossGroup]
    dead: Page[DeadGroup]
    quarantine: Page[QuarantineGroup]
    audit: Page[AuditGroup]
    formats: Page[FormatDay]
    versions: Page[Adopted]


def gathered(history: History, window: Window = ALWAYS, *, flows: int = _FLOWS) -> Facts:
    """Ask a lake, or some time of it. ``flows`` is how many of the slowest, and of those gone wrong, are told."""
    slowest = history.slowest_flows(window, limit=flows)
    wrong = history.failed_flows(window, limit=flows)
    told: dict[str, Flow] = {flow.flow: flow for flow in (*slowest.flows, *wrong.flows)}
    return Facts(
        window=window,
        summary=history.summary(window),
        topology=history.topology(window),
        latency=history.latency(window),
        outcomes=history.outcomes(window),
        slowest=slowest,
        wrong=wrong,
        stories=history.stories(tuple(told.values()), most=_EVENTS),
        handlers=history.handlers(window, limit=_ROWS),
        losses=history.loss_groups(window, limit=_ROWS),
        dead=history.dead_groups(window, limit=_ROWS),
        quarantine=history.quarantine_groups(window, limit=_ROWS),
        audit=history.audit_groups(window, limit=_ROWS),
        formats=history.format_days(window, limit=_ROWS),
        versions=history.adoption(window, limit=_ROWS),
    )
