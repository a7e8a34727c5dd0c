"""The event loop that framewire runs on where it is free to choose."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest
from tests.node.messages import Answer, Question

import framewire as fw

PROGRAM = """
import asyncio, sys
if "without" in sys.argv:
    sys.modules["uvloop"] = None  # as if it were not installed
import framewire as fw

async def main():
    async with fw.Node(bind="tcp://127.0.0.1:*") as node:
        print(type(asyncio.get_running_loop()).__module__, flush=True)
        if "serve" in sys.argv:
            await node.serve()
    return "done"

if "client" in sys.argv:
    with fw.Client() as client:
        print(type(client._loop).__module__)
elif "own" in sys.argv:
    print(asyncio.run(main()))
else:
    print(fw.run(main()))
"""


def program(*arguments):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def has_uvloop():
    pytest.importorskip("uvloop")


def test_run_uses_uvloop_where_it_is_installed():
    has_uvloop()
    assert program() == ["uvloop", "done"]


def test_run_does_without_uvloop_where_it_is_not_installed():
    loop, result = program("without")
    assert loop.startswith("asyncio.")
    assert result == "done"


def test_a_client_uses_uvloop_where_it_is_installed():
    has_uvloop()
    assert program("client") == ["uvloop"]


def test_a_client_does_without_uvloop_where_it_is_not_installed():
    assert program("client", "without")[0].startswith("asyncio.")


def test_a_program_that_makes_its_own_loop_keeps_it():
    loop, result = program("own")
    assert loop.startswith("asyncio.")
    assert result == "done"


@pytest.mark.parametrize("arguments", [[], ["without"]], ids=["with uvloop", "without"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_node_under_run_heeds_signals(arguments, number):
    if not arguments:
        has_uvloop()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        # A shell that starts this in the background may have told it to ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no threads
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with process:
        process.stdout.readline()
        process.send_signal(number)
        assert process.stdout.read().split() == ["done"]
    assert process.returncode == 0


def test_run_returns_what_the_coroutine_does_and_raises_what_it_does():
    async def answered():
        async with fw.Node(signals=False) as node:

            @node.handler(Question)
            async def answer(_):
                return Answer("yes")

            return (await node.hub.ask(Question(), Answer)).text

    async def failed():
        raise KeyError("lost")

    assert fw.run(answered()) == "yes"
    with pytest.raises(KeyError, match="lost"):
        fw.run(failed())


def test_debug_is_passed_on():
    async def main():
        return asyncio.get_running_loop().get_debug()

    assert fw.run(main(), debug=True)
    assert not fw.run(main(), debug=False)


def test_a_function_that_was_not_called_is_told_so():
    async def main(): ...

    with pytest.raises(fw.UsageError, match=r"call the async function: fw\.run\(main\(\)\)"):
        fw.run(main)
