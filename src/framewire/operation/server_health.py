"""Whether a rendezvous server is well, for orchestrators: the pages that nodes have, on a thread beside it.

The server has a thread and no event loop, so that the pages are answered says nothing of it; when it last came
round does.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from http import HTTPStatus
from types import TracebackType
from typing import Self

from framewire.cluster import Rendezvous
from framewire.operation.http import Page, Server
from framewire.operation.status import Phase

__all__ = ["ServerHealth"]

_SHORTEST = 5.0
"""Seconds for which a server may stand still before it is said to, however quick its heartbeat is."""
_MISSES = 3


class ServerHealth:
    """Tells of a server at an address for as long as the ``with`` lasts; ``port`` is where."""

    def __init__(
        self,
        server: Rendezvous,
        endpoint: str,
        heartbeat: float = 1.0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server, self._endpoint, self._clock = server, endpoint, clock
        self._patience = max(_SHORTEST, _MISSES * heartbeat)
        self._begun: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, name="framewire health", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = asyncio.Event()
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self.port = self._begun.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    @property
    def phase(self) -> Phase:
        """How far the server is."""
        pulse = self._server.pulse
        if pulse is None:
            return Phase.STARTING
        if self._server.is_stopping:
            return Phase.DRAINING
        return Phase.READY if self._clock() - pulse <= self._patience else Phase.SILENT

    def _run(self) -> None:
        asyncio.run(self._answer())

    async def _answer(self) -> None:
        pages = Server({"/live": self._live, "/ready": self._ready})
        try:
            await pages.start("rendezvous.health", self._endpoint)
        except BaseException as problem:  # noqa: BLE001 - whoever began this thread waits for it
            self._begun.set_exception(problem)
            return
        self._loop = asyncio.get_running_loop()
        self._begun.set_result(pages.port)
        try:
            await self._over.wait()
        finally:
            await pages.close()

    async def _live(self) -> Page:
        live = self.phase is not Phase.SILENT
        return _page({"live": live}, good=live)

    async def _ready(self) -> Page:
        phase = self.phase
        ready = phase is Phase.READY
        return _page({"ready": ready, "server": phase}, good=ready)


def _page(told: dict[str, object], *, good: bool) -> Page:
    return Page(json.dumps(told) + "\n", status=HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE)
