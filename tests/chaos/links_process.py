"""All the links of a troubled cluster, through one process that can cut, hold, delay and damage each of them.

``links_process.py LINKS``: a JSON object of names, each with the port to listen at and the port to pass on to.
Lines on its input change links: ``{"links": [...], "cut": true}``; what is not named there is as it should be.

    cut      connections end, and new ones are refused
    held     nothing passes, and nobody is told: what is under way arrives when it is over, as after a pulled cable
    delay    everything arrives so many seconds later
    damage   how probable it is that a piece of what passes has one wrong byte; whatever it is that does this takes
             its connections along when it goes
"""

import asyncio
import contextlib
import json
import random
import sys

from tests.chaos.member_process import lines, say

PIECE = 65_536


class Link:
    """One way in, and the connections on it."""

    def __init__(self, target, chance):
        self._target = target
        self._chance = chance
        self._writers = set()
        self._open = asyncio.Event()
        self._open.set()
        self.damaged = 0
        self._damage = 0.0
        self.change()

    def change(self, *, cut=False, held=False, delay=0.0, damage=0.0):
        broken = cut or (self._damage and not damage)
        self._cut, self._delay, self._damage = cut, delay, damage
        if held:
            self._open.clear()
        else:
            self._open.set()
        if broken:
            for writer in self._writers:
                writer.transport.abort()

    async def connected(self, reader, writer):
        """Pass a connection on, both ways, until either end has enough of it."""
        if self._cut:
            writer.transport.abort()
            return
        try:
            there = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        ends = (writer, there[1])
        self._writers |= {*ends}
        both = [
            asyncio.create_task(self._pass(reader, ends[1])),
            asyncio.create_task(self._pass(there[0], ends[0])),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._writers -= {*ends}
            for task in both:
                task.cancel()
            for end in ends:
                end.close()

    async def _pass(self, reader, writer):
        loop = asyncio.get_running_loop()
        under_way = asyncio.Queue(1000)

        async def read():
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(PIECE):
                    await under_way.put((loop.time() + self._delay, data))
            await under_way.put((loop.time(), b""))

        reading = asyncio.create_task(read())
        try:
            with contextlib.suppress(ConnectionError):
                while True:
                    due, data = await under_way.get()
                    if due > loop.time():
                        await asyncio.sleep(due - loop.time())
                    await self._open.wait()
                    if not data:
                        return
                    writer.write(self._spoiled(data))
                    await writer.drain()
        finally:
            reading.cancel()

    def _spoiled(self, data):
        if not self._damage or self._chance.random() >= self._damage:
            return data
        self.damaged += 1
        spoiled = bytearray(data)
        spoiled[self._chance.randrange(len(spoiled))] ^= 1 << self._chance.randrange(8)
        return bytes(spoiled)


async def main(told):
    links, servers = {}, []
    for name, (listen, target) in told["links"].items():
        chance = random.Random(f"{told['seed']}/{name}")  # noqa: S311 - from a seed, to be had again
        links[name] = Link(target, chance)
        servers.append(await asyncio.start_server(links[name].connected, "127.0.0.1", listen))
    say(links=len(links))
    async for line in lines():
        change = json.loads(line)
        for name in change.pop("links"):
            links[name].change(**change)
        say(damaged=sum(link.damaged for link in links.values()))
    for server in servers:
        server.close()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
