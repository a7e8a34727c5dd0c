"""A reader takes all that there is, a batch at a time, however it came."""

import asyncio

import pytest
import zmq
from tests.node.running import eventually, run

from framewire.cluster.sockets import _BATCH, Reader


def reading(check):
    """Let something happen to a reader and the socket that it hears."""

    async def main():
        with zmq.Context() as context:
            source, target = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
            heard = []
            try:
                target.bind("inproc://reading")
                source.connect("inproc://reading")
                await check(lambda: Reader(target, heard.append, 10, 1000), source, heard)
            finally:
                source.close(0)
                target.close(0)

    run(main())


@pytest.mark.parametrize("count", [1, _BATCH - 1, _BATCH, _BATCH + 1, 3 * _BATCH])
def test_what_came_before_it_began_is_taken(count):
    async def check(begin, source, heard):
        for number in range(count):
            source.send_multipart([b"%d" % number])
        reader = begin()
        await eventually(lambda: len(heard) == count)
        assert heard == [[b"%d" % number] for number in range(count)]
        reader.close()

    reading(check)


@pytest.mark.parametrize("count", [1, _BATCH - 1, _BATCH, _BATCH + 1, 3 * _BATCH])
def test_what_comes_time_and_again_is_taken(count):
    async def check(begin, source, heard):
        reader = begin()
        for turn in range(1, 6):
            for number in range(count):
                source.send_multipart([b"%d" % number])
            await eventually(lambda turn=turn: len(heard) == turn * count)
        reader.close()

    reading(check)


def test_what_comes_while_others_are_taken_is_taken():
    async def check(begin, source, heard):
        left = 5 * _BATCH

        def answer(frames):
            nonlocal left
            heard.append(frames)
            if left:
                left -= 1
                source.send_multipart([b"one more"])

        reader = begin()
        reader._take = answer
        source.send_multipart([b"the first"])
        await eventually(lambda: len(heard) == 5 * _BATCH + 1)
        reader.close()

    reading(check)


def test_what_is_dropped_for_its_size_counts_as_taken():
    async def check(begin, source, heard):
        for _ in range(2 * _BATCH):
            source.send_multipart([b"x" * 2000])
        source.send_multipart([b"fits"])
        reader = begin()
        await eventually(lambda: heard == [[b"fits"]])
        assert reader.oversized == 2 * _BATCH
        reader.close()

    reading(check)


def test_others_on_the_event_loop_have_a_go_between_two_batches():
    async def check(begin, source, heard):
        for _ in range(3 * _BATCH):
            source.send_multipart([b"x"])
        reader, seen = begin(), []
        while len(heard) < 3 * _BATCH:
            seen.append(len(heard))
            await asyncio.sleep(0)
        assert len(set(seen)) >= 3
        reader.close()

    reading(check)
