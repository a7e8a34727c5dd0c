import asyncio

from tests.node.running import run

from framewire.testing import ManualClock
from framewire.testing.pipe import Pipe


def test_nothing_comes_out_while_it_is_put_in():
    async def scenario():
        out = []
        pipe = Pipe(ManualClock(), out.append)
        pipe.put("a")
        assert (out, len(pipe)) == ([], 1)
        await asyncio.sleep(0)
        assert (out, len(pipe)) == (["a"], 0)

    run(scenario())


def test_a_delay_keeps_the_order():
    async def scenario():
        clock, out = ManualClock(), []
        pipe = Pipe(clock, out.append)
        pipe.put("slow", 2.0)
        pipe.put("fast", 0.5)
        assert pipe.due == 2.0
        await clock.advance(1.9)
        assert out == []
        await clock.advance(0.2)
        assert out == ["slow", "fast"]

    run(scenario())


def test_what_overtakes_comes_out_first():
    async def scenario():
        out = []
        pipe = Pipe(ManualClock(), out.append)
        for item in "abc":
            pipe.put(item)
        pipe.put("x", overtaking=2)
        await asyncio.sleep(0)
        assert out == ["a", "x", "b", "c"]

    run(scenario())


def test_what_is_put_in_on_the_way_out_waits_for_the_next_turn():
    async def scenario():
        out = []

        def take(item):
            out.append(item)
            if item == "a":
                pipe.put("later")

        pipe = Pipe(ManualClock(), take)
        pipe.put("a")
        await asyncio.sleep(0)
        assert out == ["a"]
        await asyncio.sleep(0)
        assert out == ["a", "later"]

    run(scenario())


def test_a_pipe_may_be_cleared_on_the_way_out():
    async def scenario():
        out, left = [], []

        def take(item):
            out.append(item)
            left.extend(pipe.clear())

        pipe = Pipe(ManualClock(), take)
        for item in "abc":
            pipe.put(item)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (out, left) == (["a"], ["b", "c"])
        pipe.put("d")
        await asyncio.sleep(0)
        assert out == ["a", "d"]

    run(scenario())


def test_the_last_things_of_a_kind_are_counted():
    async def scenario():
        pipe = Pipe(ManualClock(), lambda _: None)
        for item in (1, "x", 2, 3):
            pipe.put(item)
        assert pipe.last(lambda item: isinstance(item, int)) == 2
        pipe.clear()

    run(scenario())
