"""One lake and all that is asked of it: what the report and the dashboard are made from."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from framewire.history import accounts, courses, flows, mishaps, recorded, summary, topology
from framewire.history.accounts import Adopted, Audited, AuditGroup, FormatDay, Handler
from framewire.history.courses import LatencyCourse, OutcomeCourse
from framewire.history.flows import WRONG, Flow, FlowPage, FlowSearch
from framewire.history.following import Following
from framewire.history.mishaps import DeadGroup, DeadLetter, Loss, LossGroup, Page, Quarantined, QuarantineGroup
from framewire.history.recorded import Told
from framewire.history.summary import Summary
from framewire.history.topology import Topology
from framewire.history.windows import ALWAYS, Window
from framewire.spark.legs import Story

__all__ = ["History"]


class History:
    """A lake, open to questions from any thread. Neither Spark nor Java is needed.

    It is opened with the first question, so a lake may come into being later; until then, and where it cannot be
    read, questions raise ``UsageError`` with what to do. What a pipeline writes meanwhile is seen within seconds.
    """

    def __init__(self, lake: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.lake = lake
        self._lake = Following(lake, clock=clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it; questions that are being answered are answered."""
        self._lake.close()

    def period(self) -> Window | None:
        """The time that the lake tells of; None while it is empty."""
        return summary.period(self._lake)

    def summary(self, window: Window = ALWAYS) -> Summary:
        """The lake in a few numbers."""
        return summary.summary(self._lake, window)

    def topology(self, window: Window = ALWAYS, *, limit: int = 200) -> Topology:
        """Nodes and edges, the busiest first, for the hours that a window touches."""
        return topology.topology(self._lake, window, limit=limit)

    def latency(
        self,
        window: Window = ALWAYS,
        *,
        sender: str | None = None,
        receiver: str | None = None,
        node: str | None = None,
        message: str | None = None,
    ) -> LatencyCourse:
        """Percentiles of the latency over time: of all hops, or of an edge, to or from a node, of a message."""
        return courses.latency(self._lake, window, sender=sender, receiver=receiver, node=node, message=message)

    def outcomes(self, window: Window = ALWAYS) -> OutcomeCourse:
        """What became of flows over time."""
        return courses.outcomes(self._lake, window)

    def flows(
        self,
        search: FlowSearch | None = None,
        *,
        order: str = "newest",
        limit: int = 100,
        offset: int = 0,
    ) -> FlowPage:
        """The flows that a search finds, in one of ``ORDERS``."""
        return flows.find_flows(self._lake, search or FlowSearch(), order=order, limit=limit, offset=offset)

    def slowest_flows(self, window: Window = ALWAYS, *, limit: int = 20) -> FlowPage:
        """The flows that took longest."""
        return self.flows(FlowSearch(window=window), order="slowest", limit=limit)

    def failed_flows(self, window: Window = ALWAYS, *, limit: int = 20) -> FlowPage:
        """The flows that failed, expired or died, the newest first."""
        return self.flows(FlowSearch(window=window, outcomes=WRONG), limit=limit)

    def flow(self, flow: str) -> Flow | None:
        """The flow that has exactly this id, as text."""
        found = self.flows(FlowSearch(beginning=flow), order="oldest", limit=100).flows
        return next((each for each in found if each.flow == flow), None)

    def story(self, flow: Flow, *, most: int = 2000) -> Story | None:
        """What happened in a flow, message by message."""
        return self.stories((flow,), most=most).get(flow.flow)

    def stories(self, some: tuple[Flow, ...], *, most: int = 2000) -> dict[str, Story]:
        """What happened in some flows, by their ids; ``most`` limits what is told of each."""
        return flows.stories_of(self._lake, some, most=most)

    def recorded(self, flow: Flow, *, limit: int = 500, bodies: bool = True) -> Told:
        """The messages of a flow as nodes recorded them, in the order of their times."""
        return recorded.recorded(self._lake, flow, limit=limit, bodies=bodies)

    def losses(
        self,
        window: Window = ALWAYS,
        *,
        kind: str | None = None,
        node: str | None = None,
        message: str | None = None,
        limit: int = 200,
    ) -> Page[Loss]:
        """Losses, the newest first."""
        return mishaps.losses(self._lake, window, kind=kind, node=node, message=message, limit=limit)

    def loss_groups(self, window: Window = ALWAYS, *, limit: int = 50) -> Page[LossGroup]:
        """Losses by kind and edge, the most first."""
        return mishaps.loss_groups(self._lake, window, limit=limit)

    def dead_letters(
        self,
        window: Window = ALWAYS,
        *,
        reason: str | None = None,
        node: str | None = None,
        message: str | None = None,
        limit: int = 200,
    ) -> Page[DeadLetter]:
        """Dead letters, the newest first."""
        return mishaps.dead_letters(self._lake, window, reason=reason, node=node, message=message, limit=limit)

    def dead_groups(self, window: Window = ALWAYS, *, limit: int = 50) -> Page[DeadGroup]:
        """Dead letters by reason, the most first."""
        return mishaps.dead_groups(self._lake, window, limit=limit)

    def quarantine(
        self, window: Window = ALWAYS, *, error: str | None = None, node: str | None = None, limit: int = 200
    ) -> Page[Quarantined]:
        """What is in quarantine, the newest first."""
        return mishaps.quarantine(self._lake, window, error=error, node=node, limit=limit)

    def quarantine_groups(self, window: Window = ALWAYS, *, limit: int = 50) -> Page[QuarantineGroup]:
        """What is in quarantine by reason, the most first."""
        return mishaps.quarantine_groups(self._lake, window, limit=limit)

    def audit(
        self,
        window: Window = ALWAYS,
        *,
        state: str | None = None,
        domain: str | None = None,
        node: str | None = None,
        limit: int = 1000,
    ) -> Page[Audited]:
        """Signatures by domain, state and node, the most first."""
        return accounts.audit(self._lake, window, state=state, domain=domain, node=node, limit=limit)

    def audit_groups(self, window: Window = ALWAYS, *, limit: int = 200) -> Page[AuditGroup]:
        """Signatures by domain and state, the most first."""
        return accounts.audit_groups(self._lake, window, limit=limit)

    def format_days(self, window: Window = ALWAYS, *, limit: int = 1000) -> Page[FormatDay]:
        """Wire formats by day, the newest day first."""
        return accounts.format_days(self._lake, window, limit=limit)

    def adoption(
        self,
        window: Window = ALWAYS,
        *,
        wire_version: int | None = None,
        message: str | None = None,
        node: str | None = None,
        limit: int = 1000,
    ) -> Page[Adopted]:
        """Wire formats and message versions by node, the most first."""
        return accounts.adoption(
            self._lake, window, wire_version=wire_version, message=message, node=node, limit=limit
        )

    def handlers(
        self,
        window: Window = ALWAYS,
        *,
        node: str | None = None,
        message: str | None = None,
        limit: int = 1000,
    ) -> Page[Handler]:
        """What actors got and how long they took, the busiest first."""
        return accounts.handlers(self._lake, window, node=node, message=message, limit=limit)
