"""The line between a supervisor and one of its workers: a pair of sockets, a JSON object a line.

The worker says how far it is whenever that changes, and what it has done when it is asked. It is told to stop over
the line and not by a signal: a signal may come from elsewhere at the same time (systemd sends it to all processes
of a service), and a worker takes a second one for an order to end at once. Where the line ends, the other side is
gone: a worker whose supervisor was killed drains and ends, so that none is left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

import msgspec

from framewire.operation.status import Phase, Report

__all__ = ["SupervisorEnd", "WorkerEnd"]

_LONGEST = 64 * 1024 * 1024
"""Bytes of a line: a node with thousands of actors has much to tell."""
_QUESTION, _STOP = b"?\n", b"stop\n"
_PATIENCE = 1.0
"""Seconds after which a worker that does not answer is silent."""
_LAST_WORDS = 1.0
"""Seconds for what a process has said before it ended; more are only needed where a child of it holds the line."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Report).decode


class WorkerEnd:
    """A worker's end of the line."""

    def __init__(
        self,
        end: socket.socket,
        *,
        report: Callable[[], Report],
        stop: Callable[[], None],
        gone: Callable[[], None],
    ) -> None:
        self._socket = end
        self._report = report
        self._stop = stop
        self._gone = gone

    async def start(self) -> None:
        """Listen to the supervisor from now on."""
        reader, self._writer = await asyncio.open_connection(sock=self._socket)
        self._listening = asyncio.create_task(self._listen(reader), name="framewire worker")

    def tell(self, phase: Phase, *, signalled: bool = False) -> None:
        """Say how far this worker is."""
        self._write(Report(phase, signalled=signalled))

    async def close(self) -> None:
        """Say nothing more."""
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                if line == _STOP:
                    self._stop()
                else:
                    self._write(self._report())
        self._gone()

    def _write(self, report: Report) -> None:
        with contextlib.suppress(ConnectionError):
            self._writer.write(_encode(report) + b"\n")


class SupervisorEnd:
    """A supervisor's end of the line to one process."""

    def __init__(self, end: socket.socket, *, told: Callable[[Report], None]) -> None:
        self._socket = end
        self._told = told
        self._asked: asyncio.Future[Report | None] | None = None

    async def start(self) -> None:
        """Listen to the worker from now on."""
        reader, self._writer = await asyncio.open_connection(sock=self._socket, limit=_LONGEST)
        self._listening = asyncio.create_task(self._listen(reader), name="framewire supervisor")

    async def ask(self) -> Report | None:
        """What the worker has done; None where it does not say in time. Who asks meanwhile gets the same answer."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.get_running_loop().create_future()
            with contextlib.suppress(ConnectionError):
                self._writer.write(_QUESTION)
        try:
            return await asyncio.wait_for(asyncio.shield(self._asked), _PATIENCE)
        except TimeoutError:
            return None

    def stop(self) -> None:
        """Tell the worker to stop."""
        with contextlib.suppress(ConnectionError):
            self._writer.write(_STOP)

    async def close(self) -> None:
        """Listen no more, once the last words of a process that has ended were heard."""
        await asyncio.wait([self._listening], timeout=_LAST_WORDS)
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening
        self._answer(None)
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                report = _decode(line)
                self._told(report)
                if report.stats is not None:
                    self._answer(report)

    def _answer(self, report: Report | None) -> None:
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(report)
