"""framewire itself; with ``FRAMEWIRE_BENCH_SIGNED=1`` every message signed with HMAC-SHA256 and verified."""

import asyncio
import os
from functools import lru_cache

import msgspec
from contract import AsyncClient, loop_factory, main, until_ended

import framewire as fw


@fw.message("bench.question")
class Question(bytes):
    pass


@fw.message("bench.answer")
class Answer(bytes):
    pass


@fw.message("bench.note")
class Note(bytes):
    pass


@fw.message("bench.count")
class Count(msgspec.Struct):
    pass


@fw.message("bench.counted")
class Counted(msgspec.Struct):
    notes: int


class Echo(fw.Actor):
    mailbox = 200_000

    def __init__(self):
        self.notes = 0

    @fw.handles(Question)
    async def answer(self, question: Question) -> Answer:
        return Answer(question)

    @fw.handles(Note)
    async def note(self, _: Note) -> None:
        self.notes += 1

    @fw.handles(Count)
    async def count(self, _: Count) -> Counted:
        return Counted(self.notes)


def keyring():
    if not os.environ.get("FRAMEWIRE_BENCH_SIGNED"):
        return None
    return fw.KeyRing([fw.DomainKey("bench", bytes(range(32)))], {"bench": ["bench.*"]})


def serve(ready):
    async def run():
        async with fw.Node(bind="tcp://127.0.0.1:*", signals=False, keyring=keyring()) as node:
            await node.host(Echo())
            ready(node.uri)
            await until_ended()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run())


# A program that sends the same again and again has it as a message already, as others have it as bytes.
as_question, as_note = lru_cache(8)(Question), lru_cache(8)(Note)


class Asking(AsyncClient):
    async def open(self, address):
        self.node = fw.Node(peers=[address] if address else [], signals=False, keyring=keyring())
        await self.node.start()
        self.hub = self.node.hub
        if not address:
            await self.node.host(Echo())

    async def one(self, body):
        return await self.hub.ask(as_question(body), Answer)

    async def note(self, body):
        await self.hub.tell(as_note(body))

    async def counted(self):
        return (await self.hub.ask(Count(), Counted)).notes

    async def shut(self):
        await self.node.stop()


if __name__ == "__main__":
    main(serve, Asking, lambda: Asking(""))
