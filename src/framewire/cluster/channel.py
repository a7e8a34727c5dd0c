"""Whole messages in and out of a ZeroMQ socket.

There are two makes of ``Channel`` that behave alike: one compiled, which spends a microsecond or two on a message,
and one on pyzmq alone, for where there was no compiler or ``FRAMEWIRE_PURE=1`` is set. Neither blocks.

Frames are bytes, and so they are typed; only the frames of a body may be views (``memoryview``) as well. Those are
sent from where they are, and the compiled channel receives the large frames of a body of several as views of
libzmq's own memory, without a copy (bench/bodies.py).
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
from collections.abc import Sequence
from typing import Protocol

import zmq
from zmq.backend import Socket as _Socket

from framewire.wire.moulds import DESCRIPTORS, FIXED, HOLES, are_alike

__all__ = ["COMPILED", "Channel", "PureChannel", "open_channel"]

log = logging.getLogger("framewire.cluster")

_EDITION = 9
"""That of ``_zmqio.c`` which goes with this module."""
_MOST_OFFENDERS = 1000
# Plain numbers: with pyzmq's own names for them, which are enumerations, each frame takes a microsecond more.
_NOW, _NOW_AND_MORE, _IS_THERE_MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE), int(zmq.RCVMORE)
MAX_FRAMES = 10_000
MAX_BYTES = 256 * 1024 * 1024


class Channel(Protocol):
    """A socket for whole messages. It belongs to the thread that made it."""

    @property
    def oversized(self) -> int:
        """How many messages were dropped for having too many frames or bytes."""

    @property
    def unread(self) -> int:
        """How many messages were dropped because there was no memory for them."""

    @property
    def offenders(self) -> list[bytes]:
        """The first frame of each message that was dropped, until somebody takes them out; at most a thousand."""

    def receive(self, limit: int, /) -> list[list[bytes]]:
        """Up to so many messages that are there now."""

    def receive_runs(self, limit: int, /) -> list[list[list[bytes]]]:
        """The same, but those that follow one another and are alike together: see ``framewire.wire.moulds``."""

    def send(self, frames: Sequence[bytes], /) -> bool:
        """Send a message; False where there is no room for it now. ``OSError`` for what will not pass."""

    def send_many(self, messages: Sequence[Sequence[bytes]], /) -> int:
        """Send messages in order up to the first that does not pass; how many. ``OSError`` for the very first."""


class PureChannel:
    """The same on pyzmq alone."""

    def __init__(self, socket: zmq.Socket[bytes], max_frames: int, max_bytes: int) -> None:
        if max_frames < 1 or max_bytes < 0:
            raise ValueError("max_frames must be at least 1 and max_bytes not negative")
        self._socket = socket
        self._owner = threading.get_ident()
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self.oversized = 0
        self.unread = 0
        self.offenders: list[bytes] = []

    def receive(self, limit: int, /) -> list[list[bytes]]:
        # The backend's own calls: pyzmq's convenience around them takes as long as they do.
        self._must_own()
        messages: list[list[bytes]] = []
        socket, receive, get = self._socket, _Socket.recv, _Socket.get
        max_frames, max_bytes = self._max_frames, self._max_bytes
        for _ in range(limit):
            try:
                frames = [receive(socket, _NOW)]
                size = len(frames[0])
                while get(socket, _IS_THERE_MORE):
                    frame = receive(socket, 0)
                    size += len(frame)
                    if size <= max_bytes and len(frames) <= max_frames:
                        frames.append(frame)
            except MemoryError:
                self.unread += 1
                self._skip_rest()
                continue
            except zmq.Again:
                break
            except zmq.ZMQError as problem:
                if messages:
                    break  # what was received counts; the error will come again
                raise _os_error(problem) from None
            if len(frames) > max_frames or size > max_bytes:
                self.oversized += 1
                if len(self.offenders) < _MOST_OFFENDERS and len(frames[0]) <= max_bytes:
                    self.offenders.append(frames[0])
            else:
                messages.append(frames)
        return messages

    def _skip_rest(self) -> None:
        """Take what is left of a message off the socket, so that the next call starts with the next message."""
        while _Socket.get(self._socket, _IS_THERE_MORE):
            with contextlib.suppress(MemoryError):
                _Socket.recv(self._socket, 0)

    def receive_runs(self, limit: int, /) -> list[list[list[bytes]]]:
        runs: list[list[list[bytes]]] = []
        for frames in self.receive(limit):
            if runs and are_alike(runs[-1][0], frames):
                runs[-1].append(frames)
            else:
                runs.append([frames])
        return runs

    def send(self, frames: Sequence[bytes], /) -> bool:
        self._must_own()
        if not frames:
            raise ValueError("a message has at least one frame")
        size = sum(_size(index, frame) for index, frame in enumerate(frames))
        if len(frames) > self._max_frames or size > self._max_bytes:
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
        socket, send, last = self._socket, _Socket.send, len(frames) - 1
        sent = True
        for index, frame in enumerate(frames):
            try:
                send(socket, frame, _NOW if index == last else _NOW_AND_MORE)
            except zmq.Again:
                if index == 0:
                    return False
                sent = False  # the connection went in the middle: libzmq drops the message, but wants its end
            except zmq.ZMQError as problem:
                raise _os_error(problem) from None
        return sent

    def send_many(self, messages: Sequence[Sequence[bytes]], /) -> int:
        for count, frames in enumerate(messages):
            try:
                if not self.send(frames):
                    return count
            except OSError:
                if count:
                    return count  # what was sent counts; the error will come again
                raise
        return len(messages)

    def _must_own(self) -> None:
        if threading.get_ident() != self._owner:
            raise RuntimeError("a channel belongs to the thread that made it")


def _size(index: int, frame: object) -> int:
    """Return the bytes of a frame, or raise what is wrong with it."""
    if isinstance(frame, bytes):
        return len(frame)
    if not isinstance(frame, memoryview):
        raise TypeError(f"frame {index} is {type(frame).__name__}, not bytes")
    if not frame.c_contiguous:  # this is also where a view that was released is told
        raise BufferError(f"frame {index}: the bytes of the view are not in a row")
    return frame.nbytes


def _os_error(problem: zmq.ZMQError) -> OSError:
    number = problem.errno or errno.EIO
    return OSError(number, os.strerror(number))


def _compiled() -> type | None:
    if os.environ.get("FRAMEWIRE_PURE", "") not in ("", "0"):
        return None
    try:
        from zmq.backend.cython import _zmq  # noqa: PLC0415 - not there on other backends

        from framewire.cluster import _zmqio  # type: ignore[attr-defined] # noqa: PLC0415 - may not be built

        _zmqio.load(_zmq.__file__)
    except (ImportError, OSError):
        return None
    if getattr(_zmqio, "EDITION", 1) != _EDITION:
        log.warning("the compiled channel is of another version of framewire and is not used; install it again")
        return None
    return _zmqio.Channel  # type: ignore[no-any-return]


_CompiledChannel = _compiled()
COMPILED = _CompiledChannel is not None
"""Whether the compiled channel is in use."""


def open_channel(socket: zmq.Socket[bytes], max_frames: int = MAX_FRAMES, max_bytes: int = MAX_BYTES) -> Channel:
    """A channel on a socket: the compiled one where it can be had."""
    if _CompiledChannel is None:
        return PureChannel(socket, max_frames, max_bytes)
    return _CompiledChannel(socket, max_frames, max_bytes, HOLES, DESCRIPTORS, FIXED)  # type: ignore[no-any-return]
