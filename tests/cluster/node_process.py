"""A node as a process: ``node_process.py NAME BIND HEARTBEAT MISSES SERVER...``, until its input ends."""

import asyncio
import logging
import sys
import time

import msgspec

import framewire as fw


@fw.message("process.who")
class Who(msgspec.Struct):
    pass


@fw.message("process.name")
class Name(msgspec.Struct):
    name: str


@fw.message("process.block")
class Block(msgspec.Struct):
    """Block the event loop of whoever handles this."""

    seconds: float


@fw.message("process.never")
class Never(msgspec.Struct):
    """What nobody answers."""


class Process(fw.Actor):
    concurrency = 10

    def __init__(self, name):
        self.name = name

    @fw.handles(Who)
    async def who(self, _):
        return Name(self.name)

    @fw.handles(Block)
    async def block(self, block):
        time.sleep(block.seconds)  # noqa: ASYNC251 - this is what must not do harm
        return Name(self.name)

    @fw.handles(Never)
    async def never(self, _):
        await asyncio.Event().wait()


async def main(name, bind, heartbeat, misses, *servers):
    node = fw.Node(
        identity=f"{name}-{time.time_ns()}",
        bind=bind,
        rendezvous=servers,
        heartbeat=float(heartbeat),
        misses=int(misses),
        stall_after=0.3,
        stop_timeout=0,
    )
    async with node:
        await node.host(Process(name))
        sys.stdout.write(f"{node.identity.decode()} {node._transport.uri}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    logging.disable()
    asyncio.run(main(*sys.argv[1:]))
