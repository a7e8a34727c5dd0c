"""Promises end exactly once, whatever happens to them and in whatever order."""

import asyncio
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.node.messages import Answer, Question

import framewire as fw
from framewire.node.core import Core, Settings
from framewire.node.deadletters import Reason
from framewire.node.exceptions import EXCEPTION, exception_from
from framewire.node.hub import MessageHub
from framewire.node.parcel import Parcel
from framewire.node.payloads import type_of

ANSWER = type_of(Answer).message_id
LIMIT = 10.0


class HeldClock:
    """Time that passes when it is told to."""

    def __init__(self):
        self.now = 1000.0
        self.due = []

    def time(self):
        return self.now

    def call_later(self, delay, callback, *args):
        timer = _Timer(self.now + delay, callback, args)
        self.due.append(timer)
        return timer

    def pass_time(self, seconds):
        end = self.now + seconds
        while ready := [timer for timer in self.due if not timer.cancelled and timer.at <= end]:
            timer = min(ready, key=lambda timer: timer.at)
            self.due.remove(timer)
            self.now = max(self.now, timer.at)
            timer.callback(*timer.args)
        self.now = end


class _Timer:
    def __init__(self, at, callback, args):
        self.at, self.callback, self.args, self.cancelled = at, callback, args, False

    def cancel(self):
        self.cancelled = True


class PromisesEndOnce(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = HeldClock()
        self.core = Core(b"here", Settings(timeout=LIMIT), self.clock)
        self.sent = []
        self.core.send = self.sent.append
        self.hub = self.on_loop(self.make_hub)
        self.made = []
        self.expected = {}
        self.endings = Counter()
        self.dropped = Counter()
        self.closed = False

    def teardown(self):
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.turn()
        self.loop.close()

    def make_hub(self):
        return MessageHub(self.core)

    def on_loop(self, function, *args):
        async def call():
            return function(*args)

        return self.loop.run_until_complete(call())

    def turn(self):
        """Let the event loop come round a few times, so that whoever waits is told."""

        async def rounds():
            for _ in range(5):
                await asyncio.sleep(0)

        self.loop.run_until_complete(rounds())

    def end(self, promise, outcome):
        if promise not in self.expected:
            self.expected[promise] = outcome
            return True
        return False

    @rule(timeout=st.sampled_from([1.0, LIMIT]), awaited=st.booleans())
    def ask(self, timeout, awaited):
        if self.closed:
            with pytest.raises(fw.NodeStopped):
                self.on_loop(self.hub.start, Question(), Answer)
            return

        def start():
            promise = self.hub.start(Question(), Answer, timeout=timeout)
            task = None
            if awaited:

                async def wait():
                    try:
                        return await promise
                    finally:
                        self.endings[promise] += 1

                task = self.loop.create_task(wait())
                task.add_done_callback(lambda task: task.cancelled() or task.exception())
            return promise, task, self.clock.now + timeout

        self.made.append(self.on_loop(start))
        self.turn()

    def reply_parcel(self, promise, payload, message_id):
        callback = promise.parcel.callback
        flow = promise.parcel.correlation_id
        return Parcel(message_id, payload, None, flow, callback, receiver=callback.receiver)

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def reply(self, data):
        promise, _, _ = data.draw(st.sampled_from(self.made))
        self.on_loop(self.hub.accept, self.reply_parcel(promise, Answer("yes"), ANSWER))
        if not self.end(promise, Answer("yes")):
            self.dropped["reply"] += 1

    @precondition(lambda self: self.made)
    @rule(data=st.data(), error=st.sampled_from([ValueError, fw.NoRoute, fw.Overloaded]))
    def fail(self, data, error):
        promise, _, _ = data.draw(st.sampled_from(self.made))
        told = exception_from(error("no"), actor="" if issubclass(error, fw.MessageError) else "Actor.handler")
        self.on_loop(self.hub.accept, self.reply_parcel(promise, told, EXCEPTION))
        if not self.end(promise, error if issubclass(error, fw.MessageError) else fw.RemoteError):
            self.dropped["reply"] += 1

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def cancel(self, data):
        promise, _, _ = data.draw(st.sampled_from(self.made))
        self.on_loop(promise.cancel)
        self.end(promise, asyncio.CancelledError)

    @precondition(lambda self: any(task for _, task, _ in self.made))
    @rule(data=st.data())
    def cancel_the_task(self, data):
        promise, task, _ = data.draw(st.sampled_from([made for made in self.made if made[1]]))
        if not task.done():
            self.on_loop(task.cancel)
            self.turn()
            self.end(promise, asyncio.CancelledError)

    @rule(seconds=st.sampled_from([0.005, 0.5, 1.0, 5.0, 20.0]))
    def pass_time(self, seconds):
        self.on_loop(self.clock.pass_time, seconds)
        for promise, _, deadline in self.made:
            if deadline + 0.01 <= self.clock.now:
                self.end(promise, fw.Expired)
            elif deadline <= self.clock.now and promise.done:
                self.end(promise, fw.Expired)  # the wheel may take up to one tick more

    @precondition(lambda self: not self.closed and len(self.made) > 2)
    @rule()
    def stop(self):
        self.on_loop(self.hub.close, "stopped")
        self.closed = True
        for promise, _, _ in self.made:
            self.end(promise, fw.NodeStopped)

    @invariant()
    def each_has_ended_as_the_first_ending_said(self):
        self.turn()
        for promise, task, _ in self.made:
            assert promise.done == (promise in self.expected)
            if promise.done:
                assert outcome(promise) == self.expected[promise]
            if task is not None:
                assert task.done() == promise.done
                assert self.endings[promise] == (1 if promise.done else 0)

    @invariant()
    def those_that_are_open_are_pending_and_no_others(self):
        assert list(self.hub.pending) == [promise for promise, _, _ in self.made if not promise.done]

    @invariant()
    def whatever_came_after_the_end_was_counted(self):
        counts = self.core.dead_letters.counts
        assert counts[Reason.LATE_REPLY] + counts[Reason.DUPLICATE_REPLY] == self.dropped["reply"]
        assert counts[Reason.UNKNOWN_REPLY] == 0


def outcome(promise):
    try:
        return promise.result()
    except BaseException as error:  # noqa: BLE001 - a cancellation is one of the endings
        return type(error)


PromisesEndOnce.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestPromisesEndOnce = PromisesEndOnce.TestCase
