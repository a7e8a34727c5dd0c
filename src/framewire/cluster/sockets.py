"""ZeroMQ sockets on an asyncio event loop: the descriptor is watched, and each wake-up drains a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import zmq

from framewire.cluster.channel import Channel, open_channel
from framewire.errors import ConfigError

__all__ = ["Reader", "bind_first", "connect", "make_socket"]

_BATCH = 256


def make_socket(context: zmq.Context[zmq.Socket[bytes]], kind: int, **options: int | bytes) -> zmq.Socket[bytes]:
    """A socket that does not outlive its node, with options by name."""
    made = context.socket(kind)
    made.setsockopt(zmq.LINGER, 0)
    for name, value in options.items():
        made.setsockopt(getattr(zmq, name), value)
    return made


def bind_first(bound: zmq.Socket[bytes], addresses: list[str]) -> str:
    """Bind to the first address that is free; where that is."""
    problem = "no address given"
    for address in addresses:
        try:
            bound.setsockopt(zmq.IPV6, int("[" in address))
            bound.bind(address)
        except zmq.ZMQError as error:
            problem = f"{address}: {error.strerror or error}"
        else:
            return bound.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()  # type: ignore[union-attr]
    raise ConfigError(
        "bind", [f"cannot listen at {problem}" + (" (and those before)" if len(addresses) > 1 else "")]
    )


def connect(source: zmq.Socket[bytes], address: str) -> None:
    """Connect to an address, which may be one of IPv6."""
    source.setsockopt(zmq.IPV6, int("[" in address))
    source.connect(address)


class Reader:
    """Hands every message of a socket to a function, a batch at a time, so that others get their turn."""

    def __init__(
        self, source: zmq.Socket[bytes], take: Callable[[list[bytes]], None], max_frames: int, max_bytes: int
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = source
        self._take = take
        self._again: asyncio.Handle | None = None
        self.channel: Channel = open_channel(source, max_frames, max_bytes)
        self._descriptor = int(source.getsockopt(zmq.FD))
        self._loop.add_reader(self._descriptor, self._drain)
        self._again = self._loop.call_soon(self._drain)  # what came before is not told by the descriptor

    def _drain(self) -> None:
        # The descriptor tells of changes, not of states: go on until there is nothing.
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self._socket.closed:
            return
        before = self.channel.oversized
        messages = self.channel.receive(_BATCH)
        if messages or self.channel.oversized != before:
            self._again = self._loop.call_soon(self._drain)
        for frames in messages:
            self._take(frames)

    def close(self) -> None:
        """Read no more, and close the socket."""
        self._loop.remove_reader(self._descriptor)
        if self._again is not None:
            self._again.cancel()
        self._socket.close(0)
