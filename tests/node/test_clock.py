"""Deadlines in a wheel."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from tests.node.test_promise_model import HeldClock

from framewire.node.clock import DeadlineWheel

TICK = 0.01


def wheel():
    clock = HeldClock()
    expired = []
    return clock, expired, DeadlineWheel(clock, lambda item: expired.append((item, clock.now)), TICK)


@given(st.lists(st.floats(0, 100), max_size=30), st.lists(st.floats(0.001, 30), max_size=20))
def test_each_expires_once_not_early_and_within_a_tick(delays, steps):
    clock, expired, watching = wheel()
    deadlines = {number: clock.now + delay for number, delay in enumerate(delays)}
    for number, deadline in deadlines.items():
        watching.add(number, deadline)
    for seconds in itertools.chain(steps, [200]):
        clock.pass_time(seconds)
    assert sorted(number for number, _ in expired) == sorted(deadlines)
    for number, at in expired:
        assert deadlines[number] <= at <= deadlines[number] + 2 * TICK


@given(st.lists(st.tuples(st.floats(0, 10), st.booleans()), max_size=30))
def test_what_is_taken_out_does_not_expire(items):
    clock, expired, watching = wheel()
    kept = set()
    for number, (delay, keep) in enumerate(items):
        slot = watching.add(number, clock.now + delay)
        if keep:
            kept.add(number)
        else:
            watching.discard(number, slot)
    assert sum(map(len, watching._slots.values())) == len(kept)
    assert all(watching._slots.values())
    clock.pass_time(20)
    assert {number for number, _ in expired} == kept


def test_a_closed_wheel_calls_nobody():
    clock, expired, watching = wheel()
    watching.add("a", clock.now + 1)
    watching.close()
    clock.pass_time(10)
    assert expired == []


def test_what_is_added_while_others_expire_expires_too():
    clock = HeldClock()
    expired = []

    def again(item):
        expired.append(item)
        if item < 3:
            watching.add(item + 1, clock.now + 1)

    watching = DeadlineWheel(clock, again, TICK)
    watching.add(0, clock.now)
    clock.pass_time(10)
    assert expired == [0, 1, 2, 3]
