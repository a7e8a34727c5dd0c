"""A rendezvous server of kino's that speaks ZMTP 2.0, as NetMQ of its time does: the protocol by hand, over TCP."""

import asyncio
import contextlib
import struct

from tests.cluster.kino_peer import RendezvousServer
from tests.cluster.kino_wire import Letter, chunk, milliseconds

SIGNATURE = b"\xff" + bytes(7) + b"\x01\x7f"
REVISION = b"\x01"
PUB, ROUTER = b"\x01", b"\x06"
MORE, LONG = 1, 2
BEAT_S = 0.2


class Connection:
    """One connection after its handshake: no mechanism, no commands, and no name."""

    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer

    async def shake_hands(self, kind):
        """Greet, tell the socket's type, and exchange names."""
        self._writer.write(SIGNATURE + REVISION + kind + b"\x00\x00")
        greeting = await self._reader.readexactly(12)
        assert greeting[:1] == b"\xff"
        assert greeting[10] >= REVISION[0]
        await self._frame()
        return self

    async def receive(self):
        frames, flags = [], MORE
        while flags & MORE:
            flags, frame = await self._frame()
            frames.append(frame)
        return frames

    def send(self, frames):
        last = len(frames) - 1
        for number, frame in enumerate(frames):
            more = MORE if number < last else 0
            size = struct.pack(">BQ", more | LONG, len(frame)) if len(frame) > 255 else bytes((more, len(frame)))
            self._writer.write(size + frame)

    async def _frame(self):
        flags = (await self._reader.readexactly(1))[0]
        size = await self._reader.readexactly(8 if flags & LONG else 1)
        return flags, await self._reader.readexactly(int.from_bytes(size, "big"))

    def close(self):
        self._writer.close()


class OldRendezvous(RendezvousServer):
    """Repeats to all who listen what anyone tells it, like ``KinoRendezvous``. Use it with ``async with``."""

    def __init__(self):
        self.unicast = self.broadcast = ""
        self.told = []
        """Names of messages that nodes sent here."""
        self._listeners = set()
        self._connections = set()

    async def __aenter__(self):
        self._servers = [
            await asyncio.start_server(serve, "127.0.0.1", 0)
            for serve in (self._serve_speaker, self._serve_listener)
        ]
        ports = [server.sockets[0].getsockname()[1] for server in self._servers]
        self.unicast, self.broadcast = (f"tcp://127.0.0.1:{port}" for port in ports)
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_):
        self._beating.cancel()
        for server in self._servers:
            server.close()
        for connection in self._connections:
            connection.close()
        await asyncio.wait([self._beating])

    async def _beat(self):
        while True:
            self._answer(Letter(b"KINO.HEARTBEAT", chunk(1, milliseconds(round(BEAT_S * 1000)))).frames())
            await asyncio.sleep(BEAT_S)

    async def _serve_speaker(self, reader, writer):
        async with self._connected(reader, writer, ROUTER) as connection:
            while True:
                frames = await connection.receive()
                self.told.append(frames[-6])
                self._answer(frames)

    async def _serve_listener(self, reader, writer):
        async with self._connected(reader, writer, PUB) as connection:
            while True:
                (subscription,) = await connection.receive()
                if subscription == b"\x01":
                    self._listeners.add(connection)

    @contextlib.asynccontextmanager
    async def _connected(self, reader, writer, kind):
        connection = Connection(reader, writer)
        self._connections.add(connection)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            yield await connection.shake_hands(kind)
        self._connections.discard(connection)
        self._listeners.discard(connection)
        connection.close()

    def tell(self, frames):
        for listener in self._listeners:
            listener.send(frames)
