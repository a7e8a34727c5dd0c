"""NATS: nats-server between two programs that use nats-py."""

import asyncio
import contextlib
import socket

import nats
from contract import AsyncClient, loop_factory, main, until_ended


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def serve(ready):
    async def run():
        port = free_port()
        broker = await asyncio.create_subprocess_exec(
            "nats-server", "-a", "127.0.0.1", "-p", str(port), stderr=asyncio.subprocess.DEVNULL
        )
        try:
            address = f"nats://127.0.0.1:{port}"
            connection = await connected(address)
            notes = 0

            async def question(told):
                await told.respond(told.data)

            async def note(_):
                nonlocal notes
                notes += 1

            async def count(told):
                await told.respond(b"%d" % notes)

            for subject, handler in (("question", question), ("note", note), ("count", count)):
                await connection.subscribe(
                    subject, cb=handler, pending_msgs_limit=1_000_000, pending_bytes_limit=1 << 30
                )
            await connection.flush()
            ready(address)
            await until_ended()
            await connection.close()
        finally:
            broker.terminate()
            await broker.wait()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run())


async def connected(address):
    for _ in range(200):
        with contextlib.suppress(OSError, nats.errors.NoServersError):
            return await nats.connect(address, allow_reconnect=False, pending_size=1 << 28)
        await asyncio.sleep(0.02)
    raise TimeoutError("nats-server does not answer")


class Asking(AsyncClient):
    async def open(self, address):
        self.connection = await connected(address)

    async def one(self, body):
        return (await self.connection.request("question", body, timeout=30)).data

    async def note(self, body):
        await self.connection.publish("note", body)

    async def counted(self):
        return int((await self.connection.request("count", b"", timeout=30)).data)

    async def shut(self):
        await self.connection.close()


if __name__ == "__main__":
    main(serve, Asking)
