"""A recorded node as a process: ``recording_process.py PATH OPTIONS``, until it is killed.

It tells itself one number after another, and writes each to its output when it has been handled, with the time.
"""

import asyncio
import json
import sys
import time

import msgspec

import framewire as fw


@fw.message("process.number")
class Number(msgspec.Struct):
    number: int


class Counting(fw.Actor):
    @fw.handles(Number)
    async def count(self, number: Number) -> None:
        sys.stdout.write(f"{number.number} {time.time()}\n")
        sys.stdout.flush()


async def main(path, options):
    async with fw.Node(capture=fw.Capture(path, **options), identity="doomed") as node:
        await node.host(Counting())
        number = 0
        while True:
            await node.hub.tell(Number(number))
            number += 1
            await asyncio.sleep(0)


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
