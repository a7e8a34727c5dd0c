"""A very small HTTP server: a few pages for orchestrators and Prometheus, and nothing else.

Whoever can reach it must not be able to harm the node that it tells of. So there is a limit to everything: to
connections, to the size of a request, and to the time that one takes; and one connection is one answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from framewire.cluster.sockets import CannotListenError

__all__ = ["JSON", "TEXT", "CannotListenError", "Page", "Pages", "Server", "place"]

log = logging.getLogger("framewire.endpoints")

TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""What Prometheus calls its text format; any other reader takes it for plain text."""
JSON = "application/json"

_CONNECTIONS = 32
_HEAD = 8192
"""Bytes of a request."""
_PATIENCE = 5.0
"""Seconds for a request and its answer."""


@dataclass(frozen=True, slots=True)
class Page:
    """What is answered."""

    body: str
    kind: str = JSON
    status: HTTPStatus = HTTPStatus.OK


Pages = Mapping[str, Callable[[], Awaitable[Page]]]
"""What there is, by path."""


def place(endpoint: str) -> tuple[str | None, int]:
    """The host and the port of ``HOST:PORT``; no host stands for all."""
    host, _, port = endpoint.rpartition(":")
    return (None if host == "*" else host.strip("[]")), int(port)


class Server:
    """Serves pages at one address."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._open: set[asyncio.Task[None] | None] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, option: str, endpoint: str) -> None:
        """Listen; ``option`` is what the address was told by."""
        host, port = place(endpoint)
        try:
            self._server = await asyncio.start_server(self._connected, host, port, limit=_HEAD)
        except OSError as problem:
            why = problem.strerror or problem
            raise CannotListenError("endpoints", [f"{option}: cannot listen at {endpoint}: {why}"]) from None
        self.port = self._server.sockets[0].getsockname()[1]
        log.info("%s at http://%s:%d", " and ".join(self._pages), host or "*", self.port)

    async def close(self) -> None:
        """Listen no more, and leave nobody on the line."""
        if self._server is not None:
            self._server.close()
            for connection in filter(None, tuple(self._open)):
                connection.cancel()
            await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._open.add(task)
        try:
            async with asyncio.timeout(_PATIENCE):
                if len(self._open) > _CONNECTIONS:
                    page, head = _problem(HTTPStatus.SERVICE_UNAVAILABLE), False
                else:
                    page, head = await self._answer(reader)
                writer.write(_written(page, head=head))
                await writer.drain()
        except (TimeoutError, ConnectionError):
            log.debug("a request was given up")
        except asyncio.CancelledError:
            log.debug("a request was cut off")  # by close, which is the only one to know this task
        finally:
            self._open.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[Page, bool]:
        try:
            asked = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _problem(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), False
        except asyncio.IncompleteReadError:
            return _problem(HTTPStatus.BAD_REQUEST), False
        words = asked.split(b"\r\n", 1)[0].split()
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _problem(HTTPStatus.BAD_REQUEST), False
        head = words[0] == b"HEAD"
        if not head and words[0] != b"GET":
            return _problem(HTTPStatus.METHOD_NOT_ALLOWED), False
        make = self._pages.get(words[1].partition(b"?")[0].decode(errors="replace"))
        if make is None:
            return _problem(HTTPStatus.NOT_FOUND, f"; there is {', '.join(self._pages)}"), head
        try:
            return await make(), head
        except Exception:
            log.exception("%s failed", words[1])
            return _problem(HTTPStatus.INTERNAL_SERVER_ERROR), head


def _problem(status: HTTPStatus, more: str = "") -> Page:
    return Page(f"{status.phrase}{more}\n", "text/plain; charset=utf-8", status)


def _written(page: Page, *, head: bool) -> bytes:
    body = page.body.encode()
    lines = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}",
        f"Content-Type: {page.kind}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Connection: close",
        "",
        "",
    )
    return "\r\n".join(lines).encode() + (b"" if head else body)
