"""Deadlines in a wheel, and in a queue."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from tests.node.test_promise_model import HeldClock

from framewire.node.clock import DeadlineQueue, DeadlineWheel

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


class Queued:
    """Things that begin and end, with a queue that looks after them."""

    def __init__(self, limit):
        self.clock = HeldClock()
        self.waiting = {}
        self.expired = {}
        self.queue = DeadlineQueue(self.clock, limit, self.waiting.items, self.expire, TICK)

    def begin(self, item):
        self.waiting[item] = self.clock.now
        if not self.queue.watching:
            self.queue.watch(self.clock.now)

    def expire(self, item):
        assert item not in self.expired
        self.expired[item] = self.clock.now - self.waiting.pop(item)


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 3), st.booleans()), max_size=40))
def test_in_a_queue_each_expires_once_not_early_and_within_a_tick(steps):
    queued, ended = Queued(limit=5), set()
    for number, (seconds, oldest, ends) in enumerate(steps):
        queued.begin(number)
        if ends and oldest in queued.waiting:
            del queued.waiting[oldest]
            ended.add(oldest)
        queued.clock.pass_time(seconds)
    queued.clock.pass_time(10)
    assert queued.expired.keys() | ended == set(range(len(steps)))
    assert not queued.expired.keys() & ended
    for took in queued.expired.values():
        assert 5 - 1e-9 <= took <= 5 + 2 * TICK


def test_a_queue_whose_things_all_ended_does_not_look_again_until_another_begins():
    queued = Queued(limit=5)
    queued.begin("a")
    del queued.waiting["a"]
    queued.clock.pass_time(6)
    assert not queued.queue.watching
    queued.begin("b")
    queued.clock.pass_time(6)
    assert list(queued.expired) == ["b"]


def test_what_begins_while_others_expire_is_looked_after():
    queued = Queued(limit=1)

    def again(item):
        queued.expire(item)
        if item < 3:
            queued.begin(item + 1)

    queued.queue._expired = again
    queued.begin(0)
    queued.clock.pass_time(10)
    assert list(queued.expired) == [0, 1, 2, 3]


def test_a_closed_queue_calls_nobody():
    queued = Queued(limit=1)
    queued.begin("a")
    queued.queue.close()
    queued.clock.pass_time(10)
    assert queued.expired == {}
