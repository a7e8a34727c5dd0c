"""ZMTP 3.0 by hand, over plain TCP sockets: what libzmq would refuse to say is said here.

``connect`` speaks to a socket that listens, ``Listener`` is one that others connect to. Both know only the NULL
mechanism: that is all that a peer without keys can speak. Everything has a deadline; ``ConnectionError`` tells that
the other side has ended the connection.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Self

__all__ = ["GREETING", "Listener", "Peer", "connect", "ready"]

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + b"\0" + bytes(31)
_MORE, _LONG, _COMMAND = 1, 2, 4
_TIMEOUT = 10.0


def ready(kind: bytes, identity: bytes | None = None) -> bytes:
    """Return the READY command of a socket: its type, and the name that it claims."""
    properties = [(b"Socket-Type", kind)]
    if identity is not None:
        properties.append((b"Identity", identity))
    body = b"\x05READY" + b"".join(
        bytes([len(name)]) + name + struct.pack(">I", len(value)) + value for name, value in properties
    )
    return _head(_COMMAND, len(body)) + body


def _head(flags: int, size: int) -> bytes:
    return bytes([flags, size]) if size < 256 else bytes([flags | _LONG]) + struct.pack(">Q", size)


class Peer:
    """One connection, after or before its handshake."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(_TIMEOUT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection

    def shake_hands(self, kind: bytes = b"DEALER", identity: bytes | None = None) -> Self:
        """Greet, and wait for the other side's READY: it has taken note of the name by then."""
        self.connection.sendall(GREETING + ready(kind, identity))
        self._read(len(GREETING))
        flags, _ = self._frame()
        if not flags & _COMMAND:
            raise ConnectionError("the other side does not end its handshake")
        return self

    def send(self, frames: list[bytes]) -> None:
        """Send a message."""
        last = len(frames) - 1
        self.connection.sendall(
            b"".join(_head(_MORE if at < last else 0, len(frame)) + frame for at, frame in enumerate(frames))
        )

    def receive(self) -> list[bytes]:
        """Receive a message; commands are passed over."""
        frames = []
        while True:
            flags, frame = self._frame()
            if flags & _COMMAND:
                continue
            frames.append(frame)
            if not flags & _MORE:
                return frames

    def close(self) -> None:
        """End the connection."""
        self.connection.close()

    def _frame(self) -> tuple[int, bytes]:
        flags = self._read(1)[0]
        size = struct.unpack(">Q", self._read(8))[0] if flags & _LONG else self._read(1)[0]
        return flags, self._read(size)

    def _read(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            more = self.connection.recv(size - len(found))
            if not more:
                raise ConnectionError("the other side has ended the connection")
            found += more
        return bytes(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(address: str, kind: bytes = b"DEALER", identity: bytes | None = None) -> Peer:
    """Connect to an address of ZeroMQ's and shake hands, under a name or under none."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    peer = Peer(socket.create_connection((host, int(port)), timeout=_TIMEOUT))
    try:
        return peer.shake_hands(kind, identity)
    except BaseException:
        peer.close()
        raise


class Listener:
    """A port at which others may connect, and be told any name."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._socket = socket.create_server((host, 0))
        self.uri = f"tcp://{host}:{self._socket.getsockname()[1]}"

    def take(self, *, timeout: float = _TIMEOUT) -> Peer:
        """Wait for a connection, and say nothing there; ``TimeoutError`` where there is none."""
        self._socket.settimeout(timeout)
        connection, _ = self._socket.accept()
        return Peer(connection)

    def accept(self, kind: bytes = b"ROUTER", identity: bytes | None = None, *, timeout: float = _TIMEOUT) -> Peer:
        """Wait for a connection and shake hands; ``TimeoutError`` where there is none."""
        peer = self.take(timeout=timeout)
        try:
            return peer.shake_hands(kind, identity)
        except BaseException:
            peer.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
