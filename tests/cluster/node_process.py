"""A node as a process: ``node_process.py NAME OPTIONS``, options as JSON, until its input ends."""

import asyncio
import json
import logging
import sys
import time

import msgspec

import framewire as fw
from framewire.cluster.channel import COMPILED


@fw.message("process.who")
class Who(msgspec.Struct):
    pass


@fw.message("process.name")
class Name(msgspec.Struct):
    name: str
    compiled: bool = COMPILED


@fw.message("process.block")
class Block(msgspec.Struct):
    """Block the event loop of whoever handles this."""

    seconds: float


@fw.message("process.never")
class Never(msgspec.Struct):
    """What nobody answers."""


@fw.message("process.change")
class Change(msgspec.Struct):
    """Let the extra actor come or go."""

    there: bool


@fw.message("process.extra")
class Extra(msgspec.Struct):
    """What the extra actor handles."""


@fw.message("process.note")
class Note(msgspec.Struct):
    """Keep a number."""

    number: int


@fw.message("process.notes")
class Notes(msgspec.Struct):
    """Ask for the numbers that were kept."""


@fw.message("process.noted")
class Noted(msgspec.Struct):
    """In the order in which they came."""

    numbers: list[int]


class Notebook(fw.Actor):
    def __init__(self):
        self.numbers = []

    @fw.handles(Note)
    async def note(self, note):
        self.numbers.append(note.number)

    @fw.handles(Notes)
    async def notes(self, _):
        return Noted(self.numbers)


class ExtraActor(fw.Actor):
    @fw.handles(Extra)
    async def extra(self, _):
        return Name("extra")


class Process(fw.Actor):
    concurrency = 10

    def __init__(self, name):
        self.name = name
        self.extra = None
        self.stall = ""

    @fw.handles(Who)
    async def who(self, _):
        return Name(self.name)

    @fw.handles(Block)
    async def block(self, block):
        time.sleep(block.seconds)  # noqa: ASYNC251 - this is what must not do harm
        return Name(self.stall)

    @fw.handles(Never)
    async def never(self, _):
        await asyncio.Event().wait()

    @fw.handles(Change)
    async def change(self, change):
        if change.there:
            self.extra = await self.node.host(ExtraActor())
        else:
            await self.node.unhost(self.extra)
        return Name(self.name)


async def main(name, options):
    told = {"identity": f"{name}-{time.time_ns()}", **json.loads(options)}
    node = fw.Node(stall_after=0.3, stop_timeout=0, **told)
    async with node:
        process = Process(name)
        node.on_stall(lambda stall: setattr(process, "stall", stall.handler))
        await node.host(process)
        await node.host(Notebook())
        sys.stdout.write(f"{node.identity.decode()} {node.uri}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    logging.disable()
    fw.run(main(*sys.argv[1:]))
