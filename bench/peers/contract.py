"""What a peer must do to be measured, and how: the same for all.

It runs in each peer's own environment, so it knows the standard library only. A peer's module says how to serve and
how to connect, and ends with ``main(serve, Client)``. A server answers asks with their body, and counts tells. A
client has

- ``ask(body)``: one ask, and its answer;
- ``asks(body, count, outstanding)``: so many asks, so many of them open at a time;
- ``tells(body, count)``: messages without an answer; it returns when the server has counted all of them;
- ``close()``.

What these return is how many seconds they took, if they know better than who calls them; else nothing. All of it is
called from one thread that does nothing else. Clients that live on an event loop are ``AsyncClient``.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from itertools import repeat
from statistics import median, quantiles
from typing import Any, Protocol, TypeVar

__all__ = ["AsyncClient", "Client", "loop_factory", "main", "until_ended"]

T = TypeVar("T")

SMALL = b"x" * 100
OUTSTANDING = 1000
BODIES = {"1 kB": (1_000, 100), "10 kB": (10_000, 100), "1 MB": (1_000_000, 8)}
"""Sizes, and how many asks with such a body are open at a time."""
SECONDS = 1.5
"""What one measurement may take, about; slow peers get fewer messages, not more time."""


class Client(Protocol):
    def ask(self, body: bytes) -> bytes: ...
    def asks(self, body: bytes, count: int, outstanding: int) -> float | None: ...
    def tells(self, body: bytes, count: int) -> float | None: ...
    def close(self) -> None: ...


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """The loop of uvloop where it is installed: nobody shall be slow for want of it."""
    try:
        import uvloop  # noqa: PLC0415 - see above
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop  # type: ignore[no-any-return]


class AsyncClient:
    """What clients on asyncio have in common; each says ``open``, ``one``, ``note``, ``counted`` and ``shut``."""

    def __init__(self, address: str) -> None:
        self.runner = asyncio.Runner(loop_factory=loop_factory())
        self.noted = 0
        self.run(self.open(address))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    async def open(self, address: str) -> None:
        raise NotImplementedError

    async def one(self, body: bytes) -> bytes:
        raise NotImplementedError

    async def note(self, body: bytes) -> None:
        raise NotImplementedError

    async def counted(self) -> int:
        raise NotImplementedError

    async def shut(self) -> None:
        raise NotImplementedError

    def ask(self, body: bytes) -> bytes:
        return self.run(self.one(body))

    def one_by_one(self, body: bytes, count: int) -> list[float]:
        """Many asks within one run of the loop: starting it is not what is measured."""

        async def each() -> list[float]:
            times = []
            for _ in repeat(None, count):
                began = time.perf_counter()
                await self.one(body)
                times.append(time.perf_counter() - began)
            return times

        return self.run(each())

    def asks(self, body: bytes, count: int, outstanding: int) -> None:
        left: Iterator[None] = repeat(None, count)

        async def asker() -> None:
            for _ in left:
                await self.one(body)

        async def crowd() -> None:
            await asyncio.gather(*(asker() for _ in range(outstanding)))

        self.run(crowd())

    def tells(self, body: bytes, count: int) -> None:
        async def all_of_them() -> None:
            for _ in repeat(None, count):
                await self.note(body)
            self.noted += count
            deadline = time.monotonic() + 60
            while await self.counted() < self.noted:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"of {self.noted} tells only {await self.counted()} came")
                await asyncio.sleep(0.001)

        self.run(all_of_them())

    def close(self) -> None:
        self.run(self.shut())
        self.runner.close()


async def until_ended() -> None:
    """Wait for the signal that ends a server."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()


def main(
    serve: Callable[[Callable[[str], None]], None],
    client: Callable[[str], Client] | None = None,
    local: Callable[[], Client] | None = None,
) -> None:
    """Serve, or connect to such a server and measure, as the command line says."""
    kind, *rest = sys.argv[1:]
    if kind == "serve":
        serve(lambda address: print(json.dumps({"address": address}), flush=True))
    elif kind == "drive" and client is not None:
        print(json.dumps(_measured(client(rest[0]))), flush=True)
    elif kind == "local" and local is not None:
        print(json.dumps(_local(local())), flush=True)
    else:
        raise SystemExit(f"cannot {kind}")


def _measured(client: Client) -> dict[str, float]:
    try:
        if client.ask(SMALL) != SMALL:
            raise ValueError("the answer is not what was asked")
        times = _one_by_one(client)
        found = {"p50_us": median(times) * 1e6, "p99_us": quantiles(times, n=100)[98] * 1e6}
        found["asks_per_s"] = _rate(lambda count: client.asks(SMALL, count, OUTSTANDING), OUTSTANDING, 60_000)
        found["tells_per_s"] = _rate(lambda count: client.tells(SMALL, count), 500, 200_000)
        for name, (size, outstanding) in BODIES.items():
            body = b"x" * size
            found[f"asks_per_s, {name}"] = _rate(
                lambda count, body=body, most=outstanding: client.asks(body, count, most),  # type: ignore[misc]
                outstanding,
                20_000,
            )
        return found
    finally:
        client.close()


def _local(client: Client) -> dict[str, float]:
    try:
        times = _one_by_one(client, most=50_000)
        return {"local_asks_per_s": len(times) / sum(times)}
    finally:
        client.close()


def _one_by_one(client: Client, most: int = 4_000) -> list[float]:
    many = getattr(client, "one_by_one", None) or (lambda body, count: [_timed(client, body) for _ in range(count)])
    warm = many(SMALL, 100)
    return list(many(SMALL, max(100, min(most, round(SECONDS / median(warm))))))


def _timed(client: Client, body: bytes) -> float:
    began = time.perf_counter()
    client.ask(body)
    return time.perf_counter() - began


def _rate(run: Callable[[int], float | None], least: int, most: int) -> float:
    count = max(least, min(most, round(least * SECONDS / _seconds(run, least))))
    return count / _seconds(run, count)


def _seconds(run: Callable[[int], float | None], count: int) -> float:
    began = time.perf_counter()
    return run(count) or time.perf_counter() - began
