"""SIGTERM and SIGINT stop nodes in good order under ``fw.run``, and are left alone anywhere else."""

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
"""
NESTED = """
async def main():
    async with fw.Node() as outer, fw.Node() as node:
        await node.host(Slow())
        await node.hub.tell(Job())
        await node.serve()
    print("closed", flush=True)
"""

CONCURRENT = """
async def one(enter):
    async with fw.Node() as node:
        await node.host(Slow())
        await enter.wait()
        await node.hub.tell(Job())
        await node.serve()

async def main():
    enter = asyncio.Barrier(2)
    async with asyncio.TaskGroup() as group:
        group.create_task(one(enter))
        group.create_task(one(enter))
    print("closed", flush=True)
"""
STARTED = """
async def main():
    node = fw.Node()
    await node.start()
    try:
        await node.host(Slow())
        await node.hub.tell(Job())
        await node.serve()
    finally:
        await node.stop()
        print("closed", flush=True)
"""
SLOW_TO_STOP = """
async def main():
    async with fw.Node() as node:
        @node.handler(Job)
        async def job(_):
            print("ready", flush=True)
            while node.running:
                await asyncio.sleep(0.005)
            print("draining", flush=True)
            await asyncio.Event().wait()

        await node.hub.tell(Job())
        await node.serve()
    print("closed", flush=True)
"""
OWN_HANDLERS = """
import os, signal

async def main():
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    async with fw.Node() as node, fw.Node() as other:
        await node.host(Slow())
        await node.hub.tell(Job())
        await over.wait()
        print("the program's own handler", flush=True)
    over.clear()
    os.kill(os.getpid(), signal.SIGTERM)
    await over.wait()
    print("which stays", flush=True)
"""
RESTORED = """
import os, signal

signal.signal(signal.SIGTERM, lambda *_: print("the program's own handler", flush=True))
signal.signal(signal.SIGINT, signal.default_int_handler)

async def main():
    async with fw.Node() as node:
        await node.host(Slow())
        await node.hub.tell(Job())
        await node.serve()

fw.run(main())
os.kill(os.getpid(), signal.SIGTERM)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""
FW_RUN, ASYNCIO_RUN = "\nfw.run(main())\n", "\nasyncio.run(main())\n"


def started(script):
    """A process that runs a script and has said its first word."""
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", BEGIN + script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts this in the background may have told it to ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no threads
    )
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return process


def interrupted(script, number):
    """What a script says from its first word on, if it gets a signal then."""
    with started(script) as process:
        try:
            process.send_signal(number)
            said, complaints = process.communicate(timeout=60)
        except BaseException:
            process.kill()
            raise
    return said.split("\n")[:-1], complaints, process.returncode


SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)


@SIGNALS
@pytest.mark.parametrize(
    ("script", "said"),
    [
        (SERVING, ["finished", "stopping hook", "closed"]),
        (ASKING, ["interrupted", "stopping hook", "closed"]),
        (CLEANING_UP, ["cleaned up", "finished", "stopping hook", "closed"]),
        (NESTED, ["finished", "stopping hook", "closed"]),
    ],
    ids=["serving", "asking", "cleaning up", "nested"],
)
@pytest.mark.parametrize("told", [False, True], ids=["fw.run", "signals=True"])
def test_a_signal_stops_the_node_and_the_program_goes_on_to_its_end(script, said, number, told):
    program = script.replace("fw.Node()", "fw.Node(signals=True)") + ASYNCIO_RUN if told else script + FW_RUN
    assert interrupted(program, number) == (said, "", 0)


@SIGNALS
def test_a_signal_stops_the_nodes_of_every_task(number):
    with started(CONCURRENT + FW_RUN) as process:
        assert process.stdout.readline() == "ready\n"  # that of the other node
        process.send_signal(number)
        said, complaints = process.communicate(timeout=60)
    assert sorted(said.split()) == sorted(["closed", *["finished", "stopping", "hook"] * 2])
    assert (complaints, process.returncode) == ("", 0)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_where_no_node_is_entered_a_signal_cancels_the_program(number, status):
    said, complaints, ended = interrupted(STARTED + FW_RUN, number)
    assert said == ["finished", "stopping hook", "closed"]
    assert complaints.strip().split("\n")[-1] == ("KeyboardInterrupt" if number == signal.SIGINT else "")
    assert ended == status


@SIGNALS
def test_a_second_signal_ends_the_program_at_once(number):
    with started(SLOW_TO_STOP + FW_RUN) as process:
        process.send_signal(number)
        assert process.stdout.readline() == "draining\n"
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    assert (said, process.returncode) == ("", -number)


@SIGNALS
def test_a_node_in_another_program_leaves_its_signals_alone(number):
    expected = ["the program's own handler", "finished", "stopping hook", "which stays"]
    assert interrupted(OWN_HANDLERS + ASYNCIO_RUN, number) == (expected, "", 0)


def test_a_node_in_a_program_without_handlers_is_ended_like_the_program():
    assert interrupted(SERVING + ASYNCIO_RUN, signal.SIGTERM) == ([], "", -signal.SIGTERM)


def test_run_restores_the_handlers_that_there_were():
    expected = ["finished", "stopping hook", "the program's own handler"]
    assert interrupted(RESTORED, signal.SIGTERM) == (expected, "", 0)
