"""How far a process is, and the pages that tell it: live, ready, metrics."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

import msgspec

from framewire.config import Configuration
from framewire.node.reports import NodeStats
from framewire.operation.http import TEXT, Page, Server
from framewire.operation.metrics import exposition

__all__ = ["Endpoints", "Phase", "Report", "Reports"]


class Phase(StrEnum):
    """Where a node is in its life."""

    STARTING = "starting"
    JOINING = "joining"
    """The app is hosted, but no rendezvous server was reached yet."""
    READY = "ready"
    DRAINING = "draining"
    GONE = "gone"
    """No process at the moment; it will be started again."""
    SILENT = "silent"
    """A process that does not answer: its event loop stands still."""
    DONE = "done"
    """A worker that has stopped itself: it is not started again, and nothing is missing without it."""


class Report(msgspec.Struct):
    """One node: how far it is, and what it has done, if it could be asked."""

    phase: Phase
    stats: NodeStats | None = None
    restarts: int = 0
    """How often its process had to be started again."""
    signalled: bool = False
    """Whether a signal has told it to stop, which its supervisor has not sent."""


Reports = Callable[[], Awaitable[Mapping[str, Report]]]
"""What asks the nodes of this process: by worker's number, or one without a name."""


@dataclass(frozen=True, slots=True)
class _Telling:
    reports: Reports

    async def live(self) -> Page:
        """That this is answered is the answer."""
        return Page(json.dumps({"live": True}) + "\n")

    async def ready(self) -> Page:
        """Whether every node that should be there takes messages."""
        phases = {name or "node": report.phase for name, report in (await self.reports()).items()}
        expected = {phase for phase in phases.values() if phase is not Phase.DONE}
        ready = expected == {Phase.READY}
        status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
        return Page(json.dumps({"ready": ready, "nodes": phases}) + "\n", status=status)

    async def metrics(self) -> Page:
        """Everything, for Prometheus."""
        found = await self.reports()
        nodes = {name: report.stats for name, report in found.items() if report.stats is not None}
        lines = []
        if any(found):
            lines = [
                "# HELP framewire_worker_restarts_total Times that the worker's process had to be started again.",
                "# TYPE framewire_worker_restarts_total counter",
                *(
                    f'framewire_worker_restarts_total{{worker="{name}"}} {each.restarts}'
                    for name, each in found.items()
                ),
            ]
        return Page(exposition(nodes, lines), TEXT)


class Endpoints:
    """The addresses at which all this is told; they may be one."""

    def __init__(self, config: Configuration, reports: Reports) -> None:
        telling = _Telling(reports)
        pages: dict[str, dict[str, Callable[[], Awaitable[Page]]]] = {}
        self._options: dict[str, str] = {}
        for option, served in (
            ("endpoints.health", {"/live": telling.live, "/ready": telling.ready}),
            ("endpoints.metrics", {"/metrics": telling.metrics}),
        ):
            if (address := config[option]) is not None:
                pages.setdefault(address, {}).update(served)
                self._options.setdefault(address, option)
        self._servers = {address: Server(served) for address, served in pages.items()}

    async def start(self) -> None:
        """Listen at all of them, or ``ConfigError``."""
        try:
            for address, server in self._servers.items():
                await server.start(self._options[address], address)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Listen no more."""
        for server in self._servers.values():
            await server.close()
