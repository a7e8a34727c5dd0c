"""The ways to send a message."""

import asyncio
import datetime as dt
import math

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, run

import framewire as fw


class Worker(fw.Actor):
    def __init__(self):
        self.handled = []
        self.go = asyncio.Event()
        self.go.set()

    @fw.handles(Job)
    async def job(self, job):
        await self.go.wait()
        self.handled.append(job.number)
        return Done(job.number)


async def working(node, **options):
    worker = Worker()
    await node.host(worker, **options)
    return worker


def test_ask_gives_the_answer():
    async def main():
        async with fw.Node() as node:
            await working(node)
            assert await node.hub.ask(Job(1), Done) == Done(1)

    run(main())


def test_start_gives_a_promise_that_can_be_awaited_looked_at_and_cancelled():
    async def main():
        async with fw.Node() as node:
            worker = await working(node)
            worker.go.clear()
            promise = node.hub.start(Job(1), Done)
            cancelled = node.hub.start(Job(2), Done)
            assert not promise.done
            with pytest.raises(asyncio.InvalidStateError):
                promise.result()
            cancelled.cancel()
            worker.go.set()
            assert await promise == Done(1)
            assert await promise == promise.result() == Done(1)
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            await eventually(lambda: node.dead_letters.counts[fw.Reason.LATE_REPLY] == 1)

    run(main())


def test_several_tasks_may_await_one_promise():
    async def main():
        async with fw.Node() as node:
            worker = await working(node)
            worker.go.clear()
            promise = node.hub.start(Job(1), Done)

            async def wait():
                return await promise

            waiting = [asyncio.create_task(wait()) for _ in range(3)]
            await asyncio.sleep(0)
            worker.go.set()
            assert await asyncio.gather(*waiting) == [Done(1)] * 3

    run(main())


def test_send_returns_when_the_message_is_there_and_not_when_it_is_handled():
    async def main():
        async with fw.Node() as node:
            worker = await working(node)
            worker.go.clear()
            await node.hub.send(Job(1))
            assert worker.handled == []
            worker.go.set()
            await eventually(lambda: worker.handled == [1])

    run(main())


def test_send_waits_until_there_is_room():
    async def main():
        async with fw.Node() as node:
            worker = await working(node, mailbox=1)
            worker.go.clear()
            await node.hub.send(Job(1))
            await eventually(lambda: node.stats().actors[-1].busy == 1)
            await node.hub.send(Job(2))
            third = asyncio.create_task(node.hub.send(Job(3)))
            await eventually(lambda: node.stats().actors[-1].waiting == 1)
            assert not third.done()
            worker.go.set()
            await third

    run(main())


def test_send_to_nobody_is_told():
    async def main():
        async with fw.Node() as node:
            with pytest.raises(fw.NoRoute):
                await node.hub.send(Job(1))

    run(main())


def test_a_receipt_is_not_an_answer():
    async def main():
        async with fw.Node() as node:
            await working(node)
            await node.hub.send(Job(1))
            await eventually(lambda: node.dead_letters.counts)
            # The handler's answer has nobody who asked for it, and nobody who handles it.
            assert node.dead_letters.counts == {fw.Reason.NO_ROUTE: 1}

    run(main())


def test_a_failure_after_the_receipt_is_no_reply_to_anybody():
    async def main():
        async with fw.Node() as node:
            failed = asyncio.Event()

            @node.handler(Question)
            async def fail(_):
                failed.set()
                raise ValueError("after the receipt")

            await node.hub.send(Question())
            await failed.wait()
            await node.hub.send(Question())
        assert len(node.dead_letters) == 0

    run(main())


def test_tell_is_one_way():
    async def main():
        async with fw.Node() as node:
            worker = await working(node)
            worker.go.clear()
            assert await node.hub.tell(Job(1)) is None
            assert node.stats().pending == []
            worker.go.set()
            await eventually(lambda: worker.handled == [1])

    run(main())


def test_whoever_tells_without_end_lets_others_have_a_go():
    async def main():
        async with fw.Node() as node:
            await working(node)
            turns = 0

            async def other():
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            others = asyncio.create_task(other())
            for _ in range(1024):
                await node.hub.tell(Job(1))
            others.cancel()
            assert turns >= 4

    run(main())


def test_telling_nobody_is_a_dead_letter():
    async def main():
        async with fw.Node() as node:
            await node.hub.tell(Job(1))
            assert node.dead_letters.counts == {fw.Reason.NO_ROUTE: 1}

    run(main())


def test_a_broadcast_reaches_every_handler_once():
    async def main():
        async with fw.Node() as node:
            workers = [await working(node) for _ in range(5)]
            await node.hub.broadcast(Job(7))
            await eventually(lambda: all(worker.handled for worker in workers))
            assert [worker.handled for worker in workers] == [[7]] * 5

    run(main())


def test_a_broadcast_waits_until_all_have_room():
    async def main():
        async with fw.Node() as node:
            workers = [await working(node, mailbox=1) for _ in range(3)]
            for worker in workers:
                worker.go.clear()
            for number in range(2):
                await node.hub.broadcast(Job(number))
                await eventually(lambda: all(actor.busy for actor in node.stats().actors[1:]))
            third = asyncio.create_task(node.hub.broadcast(Job(2)))
            await eventually(lambda: sum(actor.waiting for actor in node.stats().actors) == 3)
            for worker in workers[:2]:
                worker.go.set()
            await eventually(lambda: sum(actor.waiting for actor in node.stats().actors) == 1)
            assert not third.done()
            workers[2].go.set()
            await third

    run(main())


def test_a_broadcast_to_full_mailboxes_that_reject_is_told_and_reaches_the_others():
    async def main():
        async with fw.Node() as node:
            full = [await working(node, mailbox=1, overflow="reject") for _ in range(2)]
            free = await working(node)
            for worker in full:
                worker.go.clear()
            for number in range(2):
                await node.hub.broadcast(Job(number))
                await eventually(lambda: all(actor.busy for actor in node.stats().actors[1:3]))
            with pytest.raises(fw.Overloaded):
                await node.hub.broadcast(Job(2))
            await eventually(lambda: free.handled == [0, 1, 2])
            for worker in full:
                worker.go.set()

    run(main())


def test_the_default_timeout_is_the_nodes():
    async def main():
        async with fw.Node(timeout=0.05) as node:
            worker = await working(node)
            worker.go.clear()
            with pytest.raises(fw.Expired):
                await node.hub.ask(Job(1), Done)
            worker.go.set()

    run(main())


def test_a_call_can_have_a_timeout_of_its_own():
    async def main():
        async with fw.Node(timeout=0.01) as node:
            worker = await working(node)
            worker.go.clear()
            promise = node.hub.start(Job(1), Done, timeout=10)
            with pytest.raises(fw.Expired):
                await node.hub.ask(Job(2), Done)
            assert not promise.done
            worker.go.set()
            assert await promise == Done(1)

    run(main())


@pytest.mark.parametrize("timeout", [0, -1, math.inf, math.nan])
def test_a_timeout_that_is_no_time_is_refused(timeout):
    async def main():
        async with fw.Node() as node:
            await working(node)
            for ask in (node.hub.ask, node.hub.gather):
                with pytest.raises(fw.UsageError, match="timeout"):
                    await ask(Job(1), Done, timeout=timeout)
            assert node.stats().pending == []

    run(main())


@pytest.mark.parametrize("ttl", [0, -1, math.nan])
def test_a_ttl_that_is_no_time_is_refused(ttl):
    async def main():
        async with fw.Node() as node:
            await working(node)
            with pytest.raises(fw.UsageError, match="ttl"):
                await node.hub.ask(Job(1), Done, ttl=ttl)
            for send in (node.hub.tell, node.hub.broadcast, node.hub.send):
                with pytest.raises(fw.UsageError, match="ttl"):
                    await send(Job(1), ttl=ttl)

    run(main())


def test_a_timeout_of_thousands_of_years_is_as_good_as_any():
    async def main():
        async with fw.Node() as node:
            await working(node)
            assert await node.hub.ask(Job(1), Done, timeout=1e18) == Done(1)

    run(main())


def test_cancelling_the_awaiting_task_cancels_the_promise():
    async def main():
        async with fw.Node() as node:
            worker = await working(node)
            worker.go.clear()
            task = asyncio.create_task(node.hub.ask(Job(1), Done))
            await eventually(lambda: len(node.stats().pending) == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert node.stats().pending == []
            await eventually(lambda: node.dead_letters.counts == {fw.Reason.CANCELLED: 1})
            worker.go.set()

    run(main())


def test_a_promise_in_a_timeout_of_asyncio_is_cancelled_by_it():
    async def main():
        async with fw.Node() as node:
            worker = await working(node)
            worker.go.clear()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(node.hub.ask(Job(1), Done), 0.02)
            assert node.stats().pending == []
            worker.go.set()

    run(main())


def test_several_hubs_have_promises_of_their_own():
    async def main():
        async with fw.Node() as node:
            worker = await working(node)
            worker.go.clear()
            other = await node.new_hub()
            mine, theirs = node.hub.start(Job(1), Done), other.start(Job(2), Done)
            assert [len(list(hub.pending)) for hub in (node.hub, other)] == [1, 1]
            assert node.hub.identity != other.identity
            worker.go.set()
            assert (await theirs, await mine) == (Done(2), Done(1))

    run(main())


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda hub: hub.ask(Job(1)), "name at least one message type"),
        (lambda hub: hub.ask(5, Done), "int is not a message"),
        (lambda hub: hub.ask(Job(1), int), "int is not a message"),
        (lambda hub: hub.tell(object()), "object is not a message"),
        (lambda hub: hub.gather(Job(1), Done, stop_after=0), "stop_after: 0"),
    ],
    ids=["no type", "payload", "type", "tell", "stop_after"],
)
def test_what_cannot_be_asked_is_refused_at_once(ask, complaint):
    async def main():
        async with fw.Node() as node:
            await working(node)
            with pytest.raises(fw.UsageError, match=complaint):
                await ask(node.hub)
            assert node.stats().pending == []

    run(main())


def test_every_flow_has_a_correlation_id_of_its_own():
    async def main():
        async with fw.Node() as node:
            seen = []

            @node.handler(Question)
            async def look(_, ctx):
                seen.append(ctx.correlation_id)
                return Answer()

            other = await node.new_hub()
            for hub in (node.hub, other) * 50:
                await hub.ask(Question(), Answer)
            assert all(seen)
            assert len(set(seen)) == 100

    run(main())


def test_a_node_that_does_not_run_says_so():
    with pytest.raises(fw.UsageError, match="not running"):
        _ = fw.Node().hub


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("timeout", "5"),
        ("timeout", b"5"),
        ("timeout", True),
        ("timeout", 5j),
        ("timeout", dt.timedelta(seconds=5)),
        ("timeout", float("nan")),
        ("timeout", [5]),
        ("ttl", "5"),
        ("ttl", object()),
        ("ttl", float("nan")),
        ("to_node", "node"),
        ("to_node", 7),
        ("to_node", ["node"]),
        ("to_actor", "actor"),
        ("to_actor", 7),
        ("to_actor", ("a", "b")),
        ("correlation_id", "flow"),
    ],
)
def test_an_option_of_the_wrong_type_is_a_usage_error_that_names_it(option, value):
    async def main():
        async with fw.Node() as node:
            await working(node)
            hub = node.hub
            calls = [
                lambda **options: hub.ask(Job(1), Done, **options),
                lambda **options: hub.send(Job(1), **options),
            ]
            if option != "timeout":
                calls.append(lambda **options: hub.tell(Job(1), **options))
            if option in ("timeout", "correlation_id"):
                calls.append(lambda **options: hub.gather(Job(1), Done, **options))
            for call in calls:
                with pytest.raises(fw.UsageError, match=f"^{option}: "):
                    await call(**{option: value})
            with pytest.raises(fw.UsageError, match=f"^{option}: "):
                hub.start(Job(1), Done, **{option: value})
            assert hub.awaited == 0
            assert await hub.ask(Job(2), Done) == Done(2)

    run(main())


@pytest.mark.parametrize("value", ["1", 0, -1, 1.5])
def test_stop_after_of_the_wrong_type_is_a_usage_error(value):
    async def main():
        async with fw.Node() as node:
            with pytest.raises(fw.UsageError, match=r"^stop_after: "):
                await node.hub.gather(Job(1), Done, stop_after=value)

    run(main())


@pytest.mark.parametrize("value", ["1", float("nan"), -1, True])
def test_stopping_with_a_timeout_of_the_wrong_type_is_a_usage_error(value):
    async def main():
        async with fw.Node() as node:
            with pytest.raises(fw.UsageError, match=r"^timeout: "):
                await node.stop(value)
            assert node.running

    run(main())
