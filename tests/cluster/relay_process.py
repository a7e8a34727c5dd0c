"""Passes TCP connections on, as published ports and long lines do: ``relay_process.py DELAY LISTEN=TARGET...``."""

import asyncio
import sys


async def passed(reader, writer, delay):
    """Pass on what comes, so many seconds later, and in order."""
    loop = asyncio.get_running_loop()
    due = asyncio.Queue()

    async def read():
        while data := await reader.read(65536):
            due.put_nowait((loop.time() + delay, data))
        due.put_nowait((loop.time() + delay, b""))

    reading = asyncio.create_task(read())
    try:
        while True:
            when, data = await due.get()
            await asyncio.sleep(max(0.0, when - loop.time()))
            if not data:
                return
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        return
    finally:
        reading.cancel()
        writer.close()


async def main(delay, *pairs):
    def listening(target):
        async def connected(reader, writer):
            try:
                there = await asyncio.open_connection(*target.split(":"))
            except OSError:
                writer.close()
                return
            await asyncio.gather(
                passed(reader, there[1], float(delay)),
                passed(there[0], writer, float(delay)),
                return_exceptions=True,
            )

        return connected

    servers = []
    for pair in pairs:
        listen, target = pair.split("=")
        servers.append(await asyncio.start_server(listening(target), *listen.split(":")))
    sys.stdout.write("relaying\n")
    sys.stdout.flush()
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
