"""Messages for which there is no memory: none is lost in silence, and those beside them arrive."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.cluster.clustering import Named, acquainted, between, handled_by, make_node, served
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.node import admission, likeness
from framewire.node.payloads import declare

LIMITED = """
import asyncio, resource, sys, zmq
from pathlib import Path
from framewire.cluster.channel import COMPILED
from framewire.cluster.sockets import Reader

MEGABYTE = 1 << 20

def address_space():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

async def main():
    came, unread, two = [], [], asyncio.Event()
    def take(frames):
        came.append(frames)
        if len(came) == 3:
            two.set()
    with zmq.Context() as context:
        sender, receiver = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
        # Within a process libzmq hands messages over as they are: only Python needs memory for them.
        sender.bind("inproc://memory")
        receiver.connect("inproc://memory")
        reader = Reader(receiver, take, 100, 512 * MEGABYTE, unread=unread.append)
        await asyncio.sleep(0)
        sender.send_multipart([b"peer", b"before"])
        sender.send_multipart([b"peer", bytes(256 * MEGABYTE), b"tail", bytes(256 * MEGABYTE), b"end"])
        sender.send_multipart([b"peer", b"after"])
        sender.send_multipart([b"peer", b"and after"])
        limit = address_space() + 128 * MEGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        await asyncio.wait_for(two.wait(), 20)
        reader.close()
        sender.close()
    print(COMPILED, came, unread)

asyncio.run(main())
"""


@pytest.mark.parametrize("pure", ["", "1"], ids=["compiled", "pure"])
def test_a_message_without_memory_is_counted_and_those_beside_it_arrive(pure):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "FRAMEWIRE_PURE": pure, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    came = [[b"peer", b"before"], [b"peer", b"after"], [b"peer", b"and after"]]
    compiled = done.stdout.split(" ")[0]
    assert done.stdout == f"{compiled} {came} [1]\n", done.stderr
    assert compiled == "False" or not pure
    assert "there was no memory for 1 messages, which are lost" in done.stderr


def failing(real, problem):
    """A function of framewire's own that fails where a message says so."""

    def function(*arguments):
        frames = next(each for each in arguments if isinstance(each, list))
        if any(b"heavy" in frame for frame in frames):
            raise problem
        return real(*arguments)

    return function


@pytest.mark.parametrize(
    ("problem", "error", "detail"),
    [
        (MemoryError(), fw.Overloaded, "there was no memory to read it"),
        (KeyError("a fault"), fw.RemoteError, "'a fault'"),
    ],
)
def test_who_asks_with_a_message_that_cannot_be_read_is_told_at_once(monkeypatch, problem, error, detail):
    monkeypatch.setattr(admission, "decode", failing(admission.decode, problem))

    async def main(one, two, actor, _):
        with pytest.raises(error) as failed:
            await one.hub.ask(Question("heavy"), Answer, timeout=10)
        assert (failed.value.detail, failed.value.elapsed < 5) == (detail, True)
        assert two.dead_letters.counts == {"unread": 1}
        assert next(iter(two.dead_letters)).message.message_id == fw.MessageId(b"test.question")
        assert list(two.stats().refused.values()) == [{"unread": 1}]
        assert (await one.hub.ask(Question("light"), Answer)).text == "two"
        assert actor.asked == ["light"]

    between(main)


def test_of_several_that_come_together_every_caller_is_told(monkeypatch):
    async def main(one, two, actor, _):
        await one.hub.ask(Question("light"), Answer)
        monkeypatch.setattr(likeness.Familiar, "recall", failing(likeness.Familiar.recall, MemoryError()))
        asked = [one.hub.start(Question("heavy"), Answer, timeout=10) for _ in range(20)]
        for promise in asked:
            with pytest.raises(fw.Overloaded, match="there was no memory to read it"):
                await promise
        assert two.dead_letters.counts == {"unread": 20}
        assert actor.asked == ["light"]

    between(main)


def test_an_answer_that_cannot_be_read_ends_the_promise(monkeypatch):
    monkeypatch.setattr(admission, "decode", failing(admission.decode, MemoryError()))

    async def main(server):
        async with make_node(server) as one, make_node(server) as two:
            await two.host(Named("heavy"))
            await acquainted(one, two)
            await handled_by(1, one, two)
            with pytest.raises(fw.Overloaded, match="there was no memory to read it"):
                await one.hub.ask(Question(), Answer, timeout=10)
            await eventually(lambda: one.dead_letters.counts == {"unread": 1})

    run(served(main))


class Heavy:
    """A message whose body there is never memory for."""


def no_memory(_):
    raise MemoryError


declare(Heavy, fw.MessageId(b"memory.heavy"), "raw", lambda _: b"12345", no_memory)


@fw.message("memory.done")
class Done(msgspec.Struct):
    pass


def test_a_body_for_which_there_is_no_memory_is_a_dead_letter_and_the_caller_is_told():
    async def main(server):
        async with make_node(server) as one, make_node(server) as two:

            @two.handler(Heavy)
            async def heavy(_):
                return Done()

            await acquainted(one, two)
            with pytest.raises(fw.BadBody, match="there was no memory to read 5 bytes as Heavy"):
                await one.hub.ask(Heavy(), Done, timeout=10)
            assert two.dead_letters.counts == {"bad_body": 1}

    run(served(main))
