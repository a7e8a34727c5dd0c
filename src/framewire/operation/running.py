"""One node, from its first breath to its last: started, its program hosted, drained when it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from framewire.cluster import Node
from framewire.config import Configuration
from framewire.node import Reason
from framewire.operation.apps import host
from framewire.operation.control import WorkerEnd
from framewire.operation.exits import Exit
from framewire.operation.rekeying import Rekeying
from framewire.operation.status import Endpoints, Phase, Report
from framewire.wire.message import readable

__all__ = ["Running", "node_for"]

log = logging.getLogger("framewire.operation")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_UNHEARD = 2.0
"""Seconds without any rendezvous server after which that is told."""


def node_for(config: Configuration, worker: int | None = None) -> Node:
    """The node that a configuration describes; ``worker`` is its number among several."""
    options = config.node_options()
    if worker is not None and "identity" in options:
        options["identity"] = f"{options['identity']}-{worker}"
    make: Callable[..., Node] = Node
    if config["node.spans"]:
        from framewire.operation.spans import SpanNode  # noqa: PLC0415 - OpenTelemetry is optional

        make = SpanNode
    return make(keyring=config.keyring(), capture=config.capture(), signals=False, **options)


class Running:
    """Runs a node until a signal, its supervisor's end or its own ``stop`` ends it."""

    def __init__(
        self, config: Configuration, app: Any, *, worker: int | None = None, control: socket.socket | None = None
    ) -> None:
        self._config = config
        self._app = app
        self._stop: asyncio.Event = asyncio.Event()
        self._told: int | None = None
        self._node = node_for(config, worker)
        self._node.starting = True
        # The supervisor answers for its workers: an address has room for one.
        self._endpoints = Endpoints(config, self._reports) if control is None else None
        self._control = (
            None
            if control is None
            else WorkerEnd(control, report=self._report, stop=self._told_to_stop, gone=self._orphaned)
        )

    async def run(self) -> Exit:
        """Serve until it is enough; how it ended."""
        async with contextlib.AsyncExitStack() as closing:
            self._catch_signals()
            closing.callback(self._release_signals)
            rekeying = Rekeying(self._config, self._node)
            rekeying.start()
            closing.callback(rekeying.stop)
            if self._control is not None:
                await self._control.start()
                self._control.tell(Phase.STARTING)
                closing.push_async_callback(self._control.close)
            if self._endpoints is not None:
                await self._endpoints.start()
                closing.push_async_callback(self._endpoints.close)
            await self._node.start()
            closing.push_async_callback(self._node.stop)
            if await self._unless_stopped(host(self._node, self._app)):
                self._node.starting = False
                await self._unless_stopped(self._join())
                await self._unless_stopped(self._node.serve())
            return await self._drained()

    async def _join(self) -> None:
        """Say that the node is ready, once it has reached a rendezvous server; without one nobody finds it."""
        if not self._node.has_joined:
            self._tell()
            told = self._config["cluster.rendezvous"]
            servers = ", ".join(server if isinstance(server, str) else server[0] for server in told)
            warning = asyncio.get_running_loop().call_later(
                _UNHEARD,
                log.warning,
                "no rendezvous server was reached yet, so this node is not ready: %s",
                servers,
            )
            try:
                await self._node.joined()
            finally:
                warning.cancel()
        if self._node.running:
            where = f" at {self._node.uri}" if self._node.uri else ", connected to no other"
            log.info("node %s is ready%s", readable(self._node.identity), where)
            self._tell()

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do something, or leave it when it is time to stop; whether it was done."""
        doing, stopping = asyncio.create_task(work), asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([doing, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                return False
            await doing
        finally:
            for task in (doing, stopping):
                task.cancel()
            await asyncio.wait([doing, stopping], timeout=self._config["node.stop_timeout"])
        return True

    async def _drained(self) -> Exit:
        self._tell()
        await self._node.stop()
        undone = self._node.dead_letters.counts[Reason.NODE_STOPPED]
        if undone:
            log.warning("stopped; %d messages were not handled", undone)
            return Exit.UNDONE
        log.info("stopped; nothing was left undone")
        return Exit.OK

    @property
    def _phase(self) -> Phase:
        """How far the node is, by its own account, so that health, ``framewire ps`` and metrics agree."""
        return Phase.DRAINING if self._stop.is_set() else Phase(self._node.state)

    def _tell(self) -> None:
        if self._control is not None:
            self._control.tell(self._phase, signalled=self._told is not None)

    def _report(self) -> Report:
        return Report(self._phase, self._node.stats(pending=1), signalled=self._told is not None)

    async def _reports(self) -> Mapping[str, Report]:
        return {"": self._report()}

    def _orphaned(self) -> None:
        if not self._stop.is_set():
            log.warning("the supervisor is gone; stopping")
            self._stop.set()

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._signalled, number)

    def _release_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    def _signalled(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._told is not None:
            log.warning("%s again: ending at once", name)
            logging.shutdown()
            os._exit(128 + number)
        self._told = number
        if not self._stop.is_set():  # else the supervisor was quicker, and got the same signal
            self._begin_to_stop(name)
            self._tell()

    def _told_to_stop(self) -> None:
        if not self._stop.is_set():
            self._begin_to_stop(signal.SIGTERM.name)

    def _begin_to_stop(self, name: str) -> None:
        log.info("stopping on %s; what runs has %.1f s", name, self._config["node.stop_timeout"])
        self._stop.set()
