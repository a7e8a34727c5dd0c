"""A node with keys as a process: ``domain_process.py NAME KEYFILE OPTIONS``. SIGHUP has it read its keys anew."""

import asyncio
import json
import logging
import signal
import sys
import time

import msgspec

import framewire as fw


@fw.message("pay.charge")
class Charge(msgspec.Struct):
    cents: int = 0


@fw.message("pay.charged")
class Charged(msgspec.Struct):
    cents: int
    by: str
    refused: dict[str, int] = {}


@fw.message("open.look")
class Look(msgspec.Struct):
    """Ask which charges a node can send on, and what it has refused."""


@fw.message("open.seen")
class Seen(msgspec.Struct):
    handlers: int
    refused: dict[str, int]


class Cashier(fw.Actor):
    concurrency = 100

    def __init__(self, name):
        self.name = name

    @fw.handles(Charge)
    async def charge(self, charge: Charge) -> Charged:
        return Charged(charge.cents, self.name)


class Window(fw.Actor):
    @fw.handles(Look)
    async def look(self, _: Look) -> Seen:
        handlers = [route for route in self.node._router.table.all(fw.MessageId(b"pay.charge")) if route.node]
        return Seen(len(handlers), {str(reason): count for reason, count in self.node.dead_letters.counts.items()})


async def main(name, keyfile, options):
    told = json.loads(options)
    cashier = told.pop("cashier", True)
    node = fw.Node(
        identity=f"{name}-{time.time_ns()}",
        keyring=fw.KeyRing.from_file(keyfile) if keyfile else None,
        stop_timeout=0,
        **told,
    )
    async with node:
        if cashier:
            await node.host(Cashier(name))
        await node.host(Window())

        def anew():
            node.use_keys(fw.KeyRing.from_file(keyfile))
            say("rekeyed")

        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, anew)
        say(f"{node.identity.decode()} {node.uri}")
        await asyncio.to_thread(sys.stdin.read)


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logging.disable()
    fw.run(main(*sys.argv[1:]))
