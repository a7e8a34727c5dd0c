import asyncio

import pytest
from tests.node.running import run
from tests.testing.messages import Ping, Pong

import framewire as fw
from framewire.node.clock import DeadlineWheel
from framewire.testing import ManualClock


def test_time_stands_still_until_it_is_moved():
    async def scenario():
        clock = ManualClock(start=100.0)
        assert clock.time() == 100.0
        await clock.advance(2.5)
        assert clock.time() == 102.5

    run(scenario())


def test_timers_fire_in_the_order_of_their_moments_and_see_their_own_time():
    async def scenario():
        clock = ManualClock()
        fired = []
        for delay in (3, 1, 2):
            clock.call_later(delay, lambda delay=delay: fired.append((delay, clock.time())))
        await clock.advance(2)
        assert fired == [(1, 1.0), (2, 2.0)]
        assert clock.pending == 1
        await clock.advance(10)
        assert fired[-1] == (3, 3.0)

    run(scenario())


def test_timers_of_one_moment_fire_in_the_order_they_were_set():
    async def scenario():
        clock = ManualClock()
        fired = []
        for name in "abc":
            clock.call_later(1, fired.append, name)
        await clock.advance(1)
        assert fired == ["a", "b", "c"]

    run(scenario())


def test_a_timer_that_sets_another_is_followed_within_one_advance():
    async def scenario():
        clock = ManualClock()
        ticks = []

        def tick():
            ticks.append(clock.time())
            clock.call_later(1, tick)

        clock.call_later(1, tick)
        await clock.advance(5)
        assert ticks == [1.0, 2.0, 3.0, 4.0, 5.0]

    run(scenario())


def test_a_cancelled_timer_does_not_fire():
    async def scenario():
        clock = ManualClock()
        fired = []
        timer = clock.call_later(1, fired.append, "no")
        timer.cancel()
        assert clock.pending == 0
        await clock.advance(2)
        assert fired == []

    run(scenario())


def test_the_event_loop_settles_between_two_moments():
    async def scenario():
        clock = ManualClock()
        woken = asyncio.get_running_loop().create_future()
        log = []

        async def sleeper():
            await woken
            log.append(("woken", clock.time()))

        task = asyncio.create_task(sleeper())
        clock.call_later(1, woken.set_result, None)
        clock.call_later(2, lambda: log.append(("second", clock.time())))
        await clock.advance(5)
        assert log == [("woken", 1.0), ("second", 2.0)]
        await task

    run(scenario())


def test_an_error_in_a_timer_is_the_tests_to_see():
    async def scenario():
        clock = ManualClock()
        clock.call_later(1, lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await clock.advance(1)

    run(scenario())


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_time_only_goes_forward(seconds):
    async def scenario():
        with pytest.raises(fw.UsageError, match="seconds"):
            await ManualClock().advance(seconds)

    run(scenario())


def test_a_clock_needs_turns():
    with pytest.raises(fw.UsageError, match="turns"):
        ManualClock(turns=0)


def test_a_timeout_of_an_hour_takes_no_time():
    async def scenario():
        clock = ManualClock()
        async with fw.Node(clock=clock, signals=False) as node:

            @node.handler(Ping)
            async def never(_: Ping) -> None:
                """Answer nothing."""

            promise = node.hub.start(Ping(), Pong, timeout=3600)
            await clock.advance(3599)
            assert not promise.done
            await clock.advance(2)
            with pytest.raises(fw.Expired, match="no answer in 3600"):
                promise.result()

    run(scenario())


@pytest.mark.parametrize("slot", [29, 57, 58, 113, 114, 115, 116])
def test_deadlines_come_due_where_division_rounds_down(slot):
    """0.29 / 0.01 is less than 29: a wheel that divides waits for a moment that never comes."""

    async def scenario():
        clock = ManualClock()
        expired = []
        wheel = DeadlineWheel(clock, expired.append)
        wheel.add("item", (slot - 1) * 0.01 + 0.001)
        await clock.advance(slot * 0.01 + 0.01)
        assert expired == ["item"]
        wheel.close()

    run(scenario())
