"""framewire itself; with ``FRAMEWIRE_BENCH_SIGNED=1`` every message signed with HMAC-SHA256 and verified."""

import asyncio
import os
from functools import lru_cache

from bench.cluster import Answer, Count, Counted, Echo, Note, Question, bench_keys
from contract import AsyncClient, loop_factory, main, until_ended

import framewire as fw


class Roomy(Echo):
    mailbox = 200_000


def keyring():
    return bench_keys() if os.environ.get("FRAMEWIRE_BENCH_SIGNED") else None


def serve(ready):
    async def run():
        async with fw.Node(bind="tcp://127.0.0.1:*", signals=False, keyring=keyring()) as node:
            await node.host(Roomy())
            ready(node.uri)
            await until_ended()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run())


# A program that sends the same again and again has it as a message already, as others have it as bytes.
as_question, as_note = lru_cache(8)(Question), lru_cache(8)(Note)


class Asking(AsyncClient):
    known = 0

    async def open(self, address):
        self.node = fw.Node(peers=[address] if address else [], signals=False, keyring=keyring())
        await self.node.start()
        self.hub = self.node.hub
        if not address:
            await self.node.host(Roomy())

    async def one(self, body):
        return await self.hub.ask(as_question(body), Answer)

    async def note(self, body):
        await self.hub.tell(as_note(body))

    async def counted(self):
        self.known += (await self.hub.ask(Count(), Counted)).notes  # which begins to count anew
        return self.known

    async def shut(self):
        await self.node.stop()


if __name__ == "__main__":
    main(serve, Asking, lambda: Asking(""))
