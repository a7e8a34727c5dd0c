"""After a fork: what the parent made says that it is of no use in the child, and a new one works there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import asyncio, concurrent.futures, multiprocessing, os, sys, traceback
import msgspec
import framewire as fw

@fw.message("forks.ask")
class Ask(msgspec.Struct):
    pass

@fw.message("forks.answer")
class Answer(msgspec.Struct):
    pid: int

class Answering(fw.Actor):
    @fw.handles(Ask)
    async def answer(self, _):
        return Answer(os.getpid())

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def refused(kind, use):
    # Whether a use is refused at once, with an error that names this process and what to do.
    try:
        use()
    except fw.UsageError as error:
        text = str(error)
        return f"this {kind} " in text and f"process {os.getpid()} " in text and "a new one after the fork" in text
    return False

def in_child(function):
    # Run a function in a forked child, which must end well.
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
CLIENT = """
client = fw.Client(bind="tcp://127.0.0.1:*", stop_timeout=1)
route = client.host(Answering())
parent = client.ask(Ask(), Answer).pid

def child():
    uses = {
        "ask": lambda: client.ask(Ask(), Answer),
        "start": lambda: client.start(Ask(), Answer),
        "send": lambda: client.send(Ask()),
        "tell": lambda: client.tell(Ask()),
        "broadcast": lambda: client.broadcast(Ask()),
        "gather": lambda: client.gather(Ask(), Answer),
        "host": lambda: client.host(Answering()),
        "stats": client.stats,
        "close": client.close,
    }
    say("not refused:", [name for name, use in uses.items() if not refused("client", use)])
    with client:
        pass  # it is not this process's to close
    with fw.Client(peers=[client.node.uri], route_grace=20, timeout=20) as new:
        say("answered by the parent:", new.ask(Ask(), Answer).pid == parent)
        new.host(Answering(), local=True)

in_child(child)
in_child(child)
say("the parent's still works:", client.ask(Ask(), Answer).pid == os.getpid())
client.close()
"""
NODE = """
unstarted = fw.Node()

async def main():
    async with fw.Node(bind="tcp://127.0.0.1:*", stop_timeout=1) as node:
        route = await node.host(Answering())
        await node.hub.ask(Ask(), Answer)
        hub = node.hub

        def child():
            def driven(coroutine):
                # The parent's event loop is not the child's: run the first step by hand.
                try:
                    coroutine.send(None)
                finally:
                    coroutine.close()

            uses = {
                "ask": lambda: driven(hub.ask(Ask(), Answer)),
                "ask a node": lambda: driven(hub.ask(Ask(), Answer, to_node=node.identity)),
                "start": lambda: hub.start(Ask(), Answer),
                "send": lambda: driven(hub.send(Ask())),
                "tell": lambda: driven(hub.tell(Ask())),
                "broadcast": lambda: driven(hub.broadcast(Ask())),
                "gather": lambda: driven(hub.gather(Ask(), Answer)),
                "host": lambda: driven(node.host(Answering())),
                "unhost": lambda: driven(node.unhost(route)),
                "handler": lambda: node.handler(Ask)(print),
                "new_hub": lambda: driven(node.new_hub()),
                "serve": lambda: driven(node.serve()),
                "stop": lambda: driven(node.stop()),
                "begin": lambda: driven(node.start()),
                "begin one that was not": lambda: asyncio.run(unstarted.start()),
                "enter one that was not": lambda: asyncio.run(unstarted.__aenter__()),
                "its hub": lambda: unstarted.hub,
            }
            say("not refused:", [name for name, use in uses.items() if not refused("node", use)])
            try:
                driven(node.__aexit__(None, None, None))
            except StopIteration as left:
                say("left without stopping it:", left.value)  # as it is the parent's to stop

            async def new():
                async with fw.Node(peers=[node.uri], route_grace=20, timeout=20) as made:
                    say("answered by the parent:", (await made.hub.ask(Ask(), Answer)).pid == os.getppid())

            asyncio.run(new())

        # In a thread, as the parent's event loop has to go on meanwhile.
        await asyncio.to_thread(in_child, child)
        say("the parent's still works:", (await hub.ask(Ask(), Answer)).pid == os.getpid())

fw.run(main())
"""
MULTIPROCESSING = """
client = fw.Client(bind="tcp://127.0.0.1:*", stop_timeout=1)
client.host(Answering())
uri = client.node.uri
own = None

def old(_):
    return refused("client", lambda: client.ask(Ask(), Answer))

def begin():
    global own
    own = fw.Client(peers=[uri], route_grace=20, timeout=20)

def new(_):
    return own.ask(Ask(), Answer).pid == os.getppid(), os.getpid()

fork = multiprocessing.get_context("fork")
with fork.Pool(2, initializer=begin) as pool:
    say("not refused:", pool.map(old, range(4)).count(False))
    say("answered:", all(answered for answered, _ in pool.map(new, range(4))))
with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork, initializer=begin) as pool:
    say("not refused:", [*pool.map(old, range(4))].count(False))
    say("answered:", all(answered for answered, _ in pool.map(new, range(4))))
process = fork.Process(target=lambda: sys.exit(0 if old(0) else 1))
process.start()
process.join()
say("process:", process.exitcode)
say("the parent's still works:", client.ask(Ask(), Answer).pid == os.getpid())
client.close()
"""
EXPECTED = {
    "client": (
        CLIENT,
        ["not refused: []", "answered by the parent: True"] * 2 + ["the parent's still works: True"],
    ),
    "node": (
        NODE,
        [
            "not refused: []",
            "left without stopping it: False",
            "answered by the parent: True",
            "the parent's still works: True",
        ],
    ),
    "multiprocessing": (
        MULTIPROCESSING,
        ["not refused: 0", "answered: True"] * 2 + ["process: 0", "the parent's still works: True"],
    ),
}


@pytest.mark.parametrize("uvloop", [True, False], ids=["uvloop", "asyncio"])
@pytest.mark.parametrize("name", EXPECTED)
def test_what_the_parent_made_is_refused_in_the_child_and_a_new_one_works(name, uvloop):
    script, expected = EXPECTED[name]
    without = "" if uvloop else "import sys; sys.modules['uvloop'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", without + BEGIN + script],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert (done.stdout.splitlines(), done.returncode) == (expected, 0), done.stderr
    assert "Traceback" not in done.stderr


SIGNALLED = """
import time

def wait(started):
    started.set()
    time.sleep(60)

async def main():
    fork = multiprocessing.get_context("fork")
    async with fw.Node() as node:
        await node.host(Answering())
        for number in ("terminate", "kill"):
            started = fork.Event()
            process = fork.Process(target=wait, args=(started,))
            process.start()
            assert started.wait(20)
            getattr(process, number)()
            process.join(20)
            say(number, process.exitcode)
        await asyncio.sleep(0.05)  # the loop has come round, and has heard what there is to be heard
        say("running:", node.running, (await node.hub.ask(Ask(), Answer)).pid == os.getpid())

fw.run(main())
"""


@pytest.mark.parametrize("uvloop", [True, False], ids=["uvloop", "asyncio"])
def test_a_signal_to_a_forked_child_ends_the_child_and_not_the_parent(uvloop):
    without = "" if uvloop else "import sys; sys.modules['uvloop'] = None\n"
    code = without + BEGIN + SIGNALLED
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout.splitlines() == ["terminate -15", "kill -9", "running: True True"], done.stderr
    assert done.returncode == 0
