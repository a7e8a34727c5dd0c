"""Stopping: in order, within a deadline, with nothing left."""

import asyncio
import contextlib
import math
import threading
import time

import msgspec
import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, framewire_threads, run, until
from tests.node.transports import Recording

import framewire as fw


class Working(fw.Actor):
    def __init__(self):
        self.go = asyncio.Event()
        self.handled = []

    @fw.handles(Job)
    async def job(self, job):
        await self.go.wait()
        self.handled.append(job.number)
        return Done(job.number)


def test_what_runs_and_what_waits_is_finished_and_answered():
    async def main():
        async with fw.Node() as node:
            working = Working()
            await node.host(working)
            promises = [node.hub.start(Job(number), Done) for number in range(5)]
            stopping = asyncio.create_task(node.stop())
            await eventually(lambda: not node.running)
            assert not any(promise.done for promise in promises)
            working.go.set()
            await stopping
            assert [promise.result().number for promise in promises] == [0, 1, 2, 3, 4]
            assert len(node.dead_letters) == 0

    run(main())


def test_a_stopping_node_accepts_nothing_more():
    async def main():
        async with fw.Node() as node:
            working = Working()
            await node.host(working)
            promise = node.hub.start(Job(1), Done)
            stopping = asyncio.create_task(node.stop())
            await eventually(lambda: not node.running)
            for refused in (
                node.hub.ask(Job(2), Done),
                node.hub.send(Job(2)),
                node.hub.tell(Job(2)),
                node.hub.broadcast(Job(2)),
                node.hub.gather(Job(2), Done),
                node.host(Working()),
                node.new_hub(),
            ):
                with pytest.raises(fw.NodeStopped, match="stopping"):
                    await refused
            with pytest.raises(fw.NodeStopped):
                node.handler(Question)(lambda _: None)
            working.go.set()
            await stopping
            assert await promise == Done(1)

    run(main())


def test_handlers_may_ask_to_the_end():
    async def main():
        async with fw.Node() as node:
            working = Working()
            await node.host(working)

            @node.handler(Question)
            async def outer(_, ctx):
                await eventually(lambda: not node.running)
                working.go.set()
                return Answer(str((await ctx.ask(Job(5), Done)).number))

            promise = node.hub.start(Question(), Answer)
            await eventually(lambda: node.stats().actors[-1].busy)
            await node.stop()
            assert promise.result() == Answer("5")

    run(main())


@pytest.mark.parametrize("forwards", [True, False], ids=["forwards", "backwards"])
def test_a_flow_through_many_actors_is_finished_whatever_their_order(forwards):
    steps = [fw.message(f"drain.{index}")(msgspec.defstruct(f"Drain{index}", [])) for index in range(11)]

    def pass_on_to(following):
        async def pass_on(_):
            for _ in range(5):
                await asyncio.sleep(0)
            return following()

        return pass_on

    async def main():
        async with fw.Node() as node:
            for index in range(10) if forwards else reversed(range(10)):
                node.handler(steps[index])(pass_on_to(steps[index + 1]))
            promise = node.hub.start(steps[0](), steps[10])
            await node.stop()
            assert type(promise.result()) is steps[10]

    run(main())


def test_the_order_is_finish_unregister_hooks_close():
    async def main():
        transport = Recording()
        diary = transport.diary

        class Diarist(fw.Actor):
            async def stopping(self):
                diary.append("stopping hook")

            @fw.handles(Job)
            async def job(self, job):
                await eventually(lambda: not node.running)
                diary.append("handled")
                return Done(job.number)

        node = fw.Node(transport=transport)
        async with node:
            await node.host(Diarist())
            promise = node.hub.start(Job(1), Done)
            await eventually(lambda: node.stats().actors[-1].busy)
        assert promise.result() == Done(1)
        assert [entry for entry in diary if entry[0] != "sent"] == [
            "started",
            "handled",
            "stopping hook",
            "stopped",
        ]

    run(main())


def test_what_is_not_finished_in_time_ends_as_node_stopped():
    async def main():
        async with fw.Node() as node:
            await node.host(Working())
            promises = [node.hub.start(Job(number), Done) for number in range(3)]
            await node.stop(0.05)
            for promise in promises:
                with pytest.raises(fw.NodeStopped):
                    promise.result()
            assert node.dead_letters.counts == {fw.Reason.NODE_STOPPED: 3}

    run(main())


def test_a_promise_whose_answer_never_comes_ends_as_node_stopped():
    async def main():
        async with fw.Node() as node:

            @node.handler(Job)
            async def swallow(_): ...

            asking = asyncio.create_task(node.hub.ask(Job(1), Done))
            await eventually(lambda: node.stats().pending)
        with pytest.raises(fw.NodeStopped, match="before the answer came"):
            await asking

    run(main())


def test_whoever_waits_for_room_is_told():
    async def main():
        async with fw.Node() as node:
            await node.host(Working(), mailbox=1)
            node.hub.start(Job(1), Done)
            await eventually(lambda: node.stats().actors[-1].busy)
            await node.hub.tell(Job(2))
            telling = asyncio.create_task(node.hub.tell(Job(3)))
            sending = asyncio.create_task(node.hub.send(Job(4)))
            await eventually(lambda: node.stats().actors[-1].waiting == 2)
            await node.stop(0)
            for task in (telling, sending):
                with pytest.raises(fw.NodeStopped):
                    await task

    run(main())


def test_a_handler_that_ignores_its_cancellation_is_left_behind_after_a_moment():
    async def main():
        let_go = asyncio.Event()
        async with fw.Node() as node:

            @node.handler(Job)
            async def stubborn(_):
                while not let_go.is_set():
                    with contextlib.suppress(asyncio.CancelledError):
                        await let_go.wait()

            promise = node.hub.start(Job(1), Done)
            await eventually(lambda: node.stats().actors[-1].busy)
            await asyncio.wait_for(node.stop(0), 10)
            with pytest.raises(fw.NodeStopped):
                promise.result()
        let_go.set()
        await eventually(lambda: len(asyncio.all_tasks()) == 1)

    run(main())


def test_a_handler_that_answers_when_it_is_cut_off_is_heard():
    async def main():
        async with fw.Node() as node:

            @node.handler(Job)
            async def graceful(job):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
                return Done(job.number)

            promise = node.hub.start(Job(1), Done)
            await eventually(lambda: node.stats().actors[-1].busy)
            await node.stop(0)
            assert promise.result() == Done(1)

    run(main())


def test_a_stopping_hook_that_never_ends_does_not_keep_the_node():
    class Endless(fw.Actor):
        async def stopping(self):
            await asyncio.Event().wait()

    async def main():
        async with fw.Node() as node:
            await node.host(Endless())
            await asyncio.wait_for(node.stop(0), 10)

    run(main())


def test_a_thread_that_never_ends_does_not_keep_the_node():
    let_go = threading.Event()

    async def main():
        async with fw.Node() as node:

            @node.handler(Job)
            def block(_):
                let_go.wait(30)

            promise = node.hub.start(Job(1), Done)
            await eventually(lambda: node._core.threads.unfinished)
            await asyncio.wait_for(node.stop(0), 10)
            with pytest.raises(fw.NodeStopped):
                promise.result()
            let_go.set()
            await eventually(lambda: not framewire_threads())

    run(main())


def test_an_async_generator_is_closed_when_it_is_cut_off():
    async def main():
        closed = []
        async with fw.Node() as node:

            @node.handler(Question)
            async def stream(_):
                try:
                    yield Job(1)
                    await asyncio.Event().wait()
                finally:
                    closed.append(True)

            await node.hub.tell(Question())
            await eventually(lambda: node.stats().actors[-1].busy)
            await node.stop(0)
            assert closed == [True]

    run(main())


@pytest.mark.parametrize("times", [2, 5])
def test_stopping_more_than_once_is_fine(times):
    async def main():
        async with fw.Node() as node:
            await node.host(Working())
            await asyncio.gather(*(node.stop() for _ in range(times)))
            await node.stop()

    run(main())


def test_a_node_that_never_started_can_be_stopped():
    run(fw.Node().stop())


@pytest.mark.parametrize("timeout", [-1, math.nan])
def test_a_deadline_that_is_none_is_refused(timeout):
    async def main():
        async with fw.Node() as node:
            with pytest.raises(fw.UsageError, match="timeout"):
                await node.stop(timeout)

    run(main())


def test_a_node_lives_once():
    async def main():
        async with fw.Node() as node:
            with pytest.raises(fw.UsageError, match="lives once"):
                await node.start()
        with pytest.raises(fw.UsageError, match="lives once"):
            await node.start()

    run(main())


def test_a_handler_may_stop_its_own_node():
    async def main():
        async with fw.Node() as node:

            @node.handler(Job)
            async def last(job):
                await node.stop()
                return Done(job.number)

            began = time.monotonic()
            assert await node.hub.ask(Job(1), Done) == Done(1)
            await node.serve()
            assert time.monotonic() - began < node._core.settings.stop_timeout

    run(main())


def test_serve_waits_until_the_node_is_stopped():
    async def main():
        async with fw.Node() as node:
            serving = asyncio.create_task(node.serve())
            await asyncio.sleep(0)
            assert not serving.done()
            await node.stop()
            await serving
        await node.serve()
        with pytest.raises(fw.UsageError, match="not running"):
            await fw.Node().serve()

    run(main())


def test_an_error_in_the_body_stops_the_node_and_gets_through():
    async def main():
        node = fw.Node()

        async def body():
            async with node:
                await node.host(Working())
                raise ValueError("body")

        with pytest.raises(ValueError, match="body"):
            await body()
        assert not node.running

    run(main())


def test_cancelling_the_task_stops_the_node_and_gets_through():
    async def main():
        entered = asyncio.Event()

        async def body():
            async with fw.Node() as node:
                await node.host(Working())
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(body())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


def test_a_node_that_cannot_start_leaves_nothing_behind():
    class Broken(Recording):
        async def start(self, _):
            raise OSError("no socket")

    async def main():
        with pytest.raises(OSError, match="no socket"):
            await fw.Node(transport=Broken()).start()

    run(main())


def test_an_actor_that_starts_while_the_node_stops_is_stopped_too():
    async def main():
        diary = []
        go = asyncio.Event()

        class Slow(fw.Actor):
            async def started(self):
                await go.wait()
                diary.append("started")

            async def stopping(self):
                diary.append("stopping")

        async with fw.Node() as node:
            hosting = asyncio.create_task(node.host(Slow()))
            await asyncio.sleep(0)
            await node.stop()
            go.set()
            with pytest.raises(fw.NodeStopped):
                await hosting
        assert diary == ["started", "stopping"]

    run(main())


def test_stopping_while_everybody_sends_leaves_every_promise_ended():
    async def main():
        async with fw.Node(mailbox=5) as node:

            @node.handler(Job, concurrency=3)
            async def job(job):
                await asyncio.sleep(0)
                return Done(job.number)

            ends = []

            async def ask_on():
                with contextlib.suppress(fw.NodeStopped):
                    while True:
                        ends.append(await node.hub.ask(Job(1), Done))

            asking = [asyncio.create_task(ask_on()) for _ in range(20)]
            await eventually(lambda: len(ends) > 200)
            await node.stop()
            await asyncio.gather(*asking)
            assert node.stats().pending == []
            assert len(node.dead_letters) == 0

    run(main())


def test_stopping_while_an_actor_restarts():
    async def main():
        class Restarting(fw.Actor):
            restart = fw.Restart(after=1, backoff=0)
            starts = 0

            async def started(self):
                self.starts += 1
                if self.starts > 1:
                    await asyncio.Event().wait()

            @fw.handles(Job)
            async def fail(self, _):
                raise ValueError

        async with fw.Node() as node:
            restarting = Restarting()
            await node.host(restarting)
            promises = [node.hub.start(Job(number), Done) for number in range(3)]
            await eventually(lambda: restarting.starts == 2)
            await node.stop(0.05)
            with pytest.raises(fw.RemoteError):
                promises[0].result()
            for promise in promises[1:]:
                with pytest.raises(fw.NodeStopped):
                    promise.result()

    run(main())


def test_stopping_while_an_actor_leaves():
    async def main():
        async with fw.Node(stop_timeout=30) as node:
            address = await node.host(Working())
            promise = node.hub.start(Job(1), Done)
            await eventually(lambda: node.stats().actors[-1].busy)
            leaving = asyncio.create_task(node.unhost(address))
            await asyncio.sleep(0)
            await asyncio.wait_for(node.stop(0), 10)
            await leaving
            with pytest.raises(fw.MessageError):
                promise.result()

    run(main())


def test_a_hundred_nodes_leave_no_threads():
    async def main():
        for _ in range(100):
            async with fw.Node() as node:
                node.handler(Job)(lambda job: Done(job.number))
                await node.hub.ask(Job(1), Done)

    run(main())
    until(lambda: not framewire_threads())
