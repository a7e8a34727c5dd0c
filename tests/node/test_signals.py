"""SIGTERM and SIGINT stop a node in good order."""

import signal
import subprocess
import sys

import pytest

BEGIN = """
import asyncio, logging, msgspec, framewire as fw

logging.getLogger("framewire").setLevel(logging.ERROR)  # answers that nobody waits for are no error here
logging.getLogger("asyncio").addFilter(lambda record: " took " not in record.getMessage())  # a slow machine is not

@fw.message("signals.job")
class Job(msgspec.Struct):
    pass

@fw.message("signals.done")
class Done(msgspec.Struct):
    pass

class Slow(fw.Actor):
    async def stopping(self):
        print("stopping hook", flush=True)

    @fw.handles(Job)
    async def job(self, _):
        print("ready", flush=True)
        while self.node.running:
            await asyncio.sleep(0.005)
        print("finished", flush=True)
        return Done()

"""
SERVING = """
async def main():
    async with fw.Node() as node:
        await node.host(Slow())
        await node.hub.tell(Job())
        await node.serve()
    assert asyncio.current_task().cancelling() == 0
    print("closed", flush=True)

asyncio.run(main())
"""
ASKING = """
async def main():
    async with fw.Node() as node:
        await node.host(Slow())
        try:
            await node.hub.ask(Job(), Done)
        except asyncio.CancelledError:
            print("interrupted", flush=True)
            raise
    print("closed", flush=True)

asyncio.run(main())
"""
CLEANING_UP = """
async def main():
    async with fw.Node() as node:
        await node.host(Slow())
        await node.hub.tell(Job())
        try:
            await node.serve()
        finally:
            await asyncio.sleep(0.01)
            print("cleaned up", flush=True)
    await asyncio.sleep(0.01)
    print("closed", flush=True)

asyncio.run(main())
"""
NESTED = """
async def main():
    async with fw.Node() as outer, fw.Node() as node:
        await node.host(Slow())
        await node.hub.tell(Job())
        await node.serve()
    print("closed", flush=True)

asyncio.run(main())
"""


def interrupted(script, number):
    """What a script says from its first word on, if it gets a signal then."""
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", BEGIN + script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            process.send_signal(number)
            said, complaints = process.communicate(timeout=60)
        except BaseException:
            process.kill()
            raise
    return said.split("\n")[:-1], complaints, process.returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize(
    ("script", "said"),
    [
        (SERVING, ["finished", "stopping hook", "closed"]),
        (ASKING, ["interrupted", "finished", "stopping hook", "closed"]),
        (CLEANING_UP, ["cleaned up", "finished", "stopping hook", "closed"]),
        (NESTED, ["finished", "stopping hook", "closed"]),
    ],
    ids=["serving", "asking", "cleaning up", "nested"],
)
def test_a_signal_stops_the_node_and_the_program_goes_on_to_its_end(script, said, number):
    assert interrupted(script, number) == (said, "", 0)
