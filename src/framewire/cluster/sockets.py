"""ZeroMQ sockets on an asyncio event loop: the descriptor is watched, and each wake-up drains a batch."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

import zmq

from framewire.cluster.channel import Channel, open_channel
from framewire.cluster.connections import seed_connection_numbers
from framewire.errors import ConfigError

__all__ = ["CannotListenError", "Reader", "bind_first", "connect", "make_socket"]

log = logging.getLogger("framewire.cluster")

_BATCH = 64


class CannotListenError(ConfigError):
    """An address that is right, and where nobody can listen now."""


def make_socket(context: zmq.Context[zmq.Socket[bytes]], kind: int, **options: int | bytes) -> zmq.Socket[bytes]:
    """A socket that does not outlive its node, with options by name."""
    if kind == zmq.ROUTER:
        seed_connection_numbers()
    made = context.socket(kind)
    # A machine that was switched off says nothing; without this its connections would stay open for ever.
    keep_alive = {"TCP_KEEPALIVE": 1, "TCP_KEEPALIVE_IDLE": 10, "TCP_KEEPALIVE_INTVL": 5, "TCP_KEEPALIVE_CNT": 3}
    for name, value in {"LINGER": 0, **keep_alive, **options}.items():
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
    raise CannotListenError(
        "bind", [f"cannot listen at {problem}" + (" (and those before)" if len(addresses) > 1 else "")]
    )


def connect(source: zmq.Socket[bytes], address: str) -> None:
    """Connect to an address, which may be one of IPv6."""
    source.setsockopt(zmq.IPV6, int("[" in address))
    source.connect(address)


class Reader:
    """Hands every message of a socket to a function, a batch at a time, so that others get their turn."""

    def __init__(
        self,
        source: zmq.Socket[bytes],
        take: Callable[[list[bytes]], None],
        max_frames: int,
        max_bytes: int,
        *,
        take_run: Callable[[list[list[bytes]]], bool] | None = None,
        taken: Callable[[int], None] = lambda _: None,
        several: Callable[[], None] = lambda: None,
        dropped: Callable[[Counter[bytes]], None] = lambda _: None,
        unread: Callable[[int], None] = lambda _: None,
        failed: Callable[[list[bytes], Exception], None] = lambda *_: None,
    ) -> None:
        """``several`` is called before more than one message is handed over, ``dropped`` with who sent too much.

        ``taken`` is called with how many came, ``unread`` with how many there was no memory for, and ``failed``
        with each that ``take`` or ``take_run`` has raised an exception for. What follows one another and is alike
        is offered to ``take_run`` first; False where it will not have it.
        """
        self._loop = asyncio.get_running_loop()
        self._socket = source
        self._take = take
        self._take_run = take_run or (lambda _: False)
        self._taken = taken
        self._several = several
        self._dropped = dropped
        self._unread = unread
        self._failed = failed
        self._busy = False
        self._channel: Channel = open_channel(source, max_frames, max_bytes)
        self._descriptor = int(source.getsockopt(zmq.FD))
        self._loop.add_reader(self._descriptor, self.drain)
        self._again: asyncio.Handle | None = None
        self._look_again()  # what came before is not told by the descriptor

    @property
    def oversized(self) -> int:
        """How many messages were dropped for having too many frames or bytes."""
        return self._channel.oversized

    def drain(self) -> None:
        """Take what is there now, up to a batch; the rest has its turn soon."""
        if self._busy or self._socket.closed:
            return
        self._busy = True
        try:
            channel = self._channel
            before, unread_before = channel.oversized, channel.unread
            runs = channel.receive_runs(_BATCH)
            oversized, unread = channel.oversized - before, channel.unread - unread_before
            count = sum(map(len, runs))
            # The descriptor tells of changes, not of states: go on until there was nothing.
            if count + oversized + unread >= _BATCH:
                self._look_again()
            if unread:
                log.error("there was no memory for %d messages, which are lost", unread)
                self._unread(unread)
            if oversized:
                self._dropped(self._offenders(oversized))
            if count:
                self._taken(count)
            if count > 1:
                self._several()
            for run in runs:
                self._hand_over(run)
        finally:
            self._busy = False

    def _hand_over(self, run: list[list[bytes]]) -> None:
        if len(run) > 1:
            try:
                if self._take_run(run):
                    return
            except Exception as problem:
                log.exception("%d messages of %d frames could not be taken in", len(run), len(run[0]))
                for frames in run:
                    self._failed(frames, problem)
                return
        for frames in run:
            try:
                self._take(frames)
            except Exception as problem:
                log.exception("a message of %d frames could not be taken in", len(frames))
                self._failed(frames, problem)

    def _offenders(self, count: int) -> Counter[bytes]:
        """Who sent so many messages that were too large; nobody in particular where even their name was."""
        known = Counter(self._channel.offenders)
        self._channel.offenders.clear()
        unknown = count - known.total()
        return known + Counter({b"": unknown}) if unknown else known

    def send(self, frames: list[bytes]) -> bool:
        """Send a message over the socket that is read from, see ``Channel.send``."""
        try:
            return self._channel.send(frames)
        finally:
            self._look_again()  # sending takes note of what came in, and then the descriptor does not tell

    def _look_again(self) -> None:
        if self._again is not None:
            self._again.cancel()
        self._again = self._loop.call_soon(self.drain)

    def close(self, linger: int = 0) -> None:
        """Read no more, and close the socket; what was sent has so many milliseconds to get out."""
        self._loop.remove_reader(self._descriptor)
        if self._again is not None:
            self._again.cancel()
        self._socket.close(linger)
