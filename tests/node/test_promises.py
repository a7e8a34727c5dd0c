"""Every promise ends exactly once, and an error says all that is known."""

import asyncio

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.node.parcel import Callback, Parcel
from framewire.node.payloads import type_of

ANSWER = type_of(Answer).message_id


class Silent(fw.Actor):
    """Never answers."""

    @fw.handles(Question)
    async def wait(self, _):
        await asyncio.Event().wait()


class Failing(fw.Actor):
    @fw.handles(Question)
    async def fail(self, _):
        raise ValueError("no")


async def error_of(node, **options):
    with pytest.raises(fw.MessageError) as raised:
        await node.hub.ask(Question(), Answer, correlation_id=b"flow", **options)
    return raised.value


async def expired(node):
    await node.host(Silent())
    return await error_of(node, timeout=0.03)


async def no_route(node):
    return await error_of(node)


async def remote(node):
    await node.host(Failing())
    return await error_of(node)


async def overloaded(node):
    await node.host(Silent(), mailbox=1, overflow="reject")
    for _ in range(2):
        node.hub.start(Question(), Answer)
        await eventually(lambda: node.stats().actors[-1].busy)
    return await error_of(node)


async def no_room(node):
    await node.host(Silent(), mailbox=1)
    for _ in range(2):
        node.hub.start(Question(), Answer)
        await eventually(lambda: node.stats().actors[-1].busy)
    return await error_of(node, timeout=0.05)


async def stopped(node):
    await node.host(Silent())
    asking = asyncio.create_task(error_of(node))
    await eventually(lambda: node.stats().pending)
    await node.stop(0)
    return await asking


async def stopped_before(node):
    await node.stop(0)
    return await error_of(node)


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (expired, fw.Expired),
        (no_route, fw.NoRoute),
        (remote, fw.RemoteError),
        (overloaded, fw.Overloaded),
        (no_room, fw.Overloaded),
        (stopped, fw.NodeStopped),
        (stopped_before, fw.NodeStopped),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_error_carries_message_flow_target_node_time_and_last_hop(end, kind):
    async def main():
        async with fw.Node(identity="here", stop_timeout=0) as node:
            error = await end(node)
            assert type(error) is kind
            assert str(error.message_id) == "test.question v1"
            assert error.correlation_id == b"flow"
            assert error.target
            assert error.node == b"here"
            assert error.elapsed is not None
            assert 0 <= error.elapsed < 15
            assert error.last_hop
            for fact in ("test.question v1", "here", "flow"):
                assert fact in str(error)

    run(main())


def test_a_promise_that_is_printed_tells_what_was_asked_and_nothing_of_what_it_said():
    async def main():
        async with fw.Node(stop_timeout=0) as node:
            await node.host(Silent())
            promise = node.hub.start(Question("a secret"), Answer)
            asked = repr(promise)
            promise.cancel()
            assert asked == f"<Promise of {type_of(Question).message_id} to any handler, open>"
            assert repr(promise) == asked.replace("open", "done")

    run(main())


def test_an_expired_promise_is_a_timeout_error():
    async def main():
        async with fw.Node(stop_timeout=0) as node:
            await node.host(Silent())
            with pytest.raises(TimeoutError):
                await node.hub.ask(Question(), Answer, timeout=0.02)

    run(main())


def test_the_last_hop_of_an_expired_promise_is_the_actor_that_had_it():
    async def main():
        async with fw.Node(stop_timeout=0) as node:
            address = await node.host(Silent())
            error = await error_of(node, timeout=0.02, to_actor=address)
            assert error.last_hop == f"actor {address.receiver.hex()} here"
            assert error.target == f"actor {address.receiver.hex()}"

    run(main())


def test_a_late_reply_is_counted_and_dropped():
    async def main():
        async with fw.Node() as node:
            go = asyncio.Event()

            @node.handler(Job, cancel_late=False)
            async def slow(job):
                await go.wait()
                return Done(job.number)

            with pytest.raises(fw.Expired):
                await node.hub.ask(Job(1), Done, timeout=0.02)
            go.set()
            await eventually(lambda: node.dead_letters.counts == {fw.Reason.LATE_REPLY: 1})

    run(main())


def test_a_duplicate_reply_is_counted_and_dropped():
    async def main():
        async with fw.Node() as node:

            @node.handler(Job)
            async def twice(job):
                return [Done(job.number), Done(job.number + 1)]

            assert await node.hub.ask(Job(1), Done) == Done(1)
            assert node.dead_letters.counts == {fw.Reason.DUPLICATE_REPLY: 1}

    run(main())


def forged(node, key=1, message_id=ANSWER, flow=b"flow", *, callback=True):
    """A reply that nobody sent."""
    points = Callback(node.hub.identity, node.identity, key, (ANSWER,)) if callback else None
    return Parcel(message_id, Answer("forged"), None, flow, points, receiver=node.hub.identity)


@pytest.mark.parametrize("options", [{"key": 999}, {"key": 0}, {"key": -1}, {"callback": False}], ids=str)
def test_an_unknown_reply_is_counted_and_dropped(options):
    async def main():
        async with fw.Node() as node:
            node._core.send(forged(node, **options))
            assert node.dead_letters.counts == {fw.Reason.UNKNOWN_REPLY: 1}

    run(main())


def test_a_reply_of_another_type_or_flow_than_was_asked_for_is_counted_and_dropped():
    async def main():
        async with fw.Node(stop_timeout=0) as node:
            await node.host(Silent())
            promise = node.hub.start(Question(), Answer, correlation_id=b"flow")
            node._core.send(forged(node, message_id=type_of(Done).message_id))
            node._core.send(forged(node, flow=b"another flow"))
            assert node.dead_letters.counts == {fw.Reason.UNKNOWN_REPLY: 2}
            assert not promise.done
            node._core.send(forged(node))
            assert await promise == Answer("forged")

    run(main())


def test_a_promise_that_nobody_awaits_is_no_cause_for_alarm():
    async def main():
        async with fw.Node() as node:
            node.hub.start(Question(), Answer)
            await node.host(Failing())
            node.hub.start(Question(), Answer)

    run(main())


def test_an_error_does_not_grow_however_often_it_is_looked_at():
    async def main():
        async with fw.Node() as node:
            promise = node.hub.start(Question(), Answer)
            depths = set()
            for _ in range(5):
                with pytest.raises(fw.NoRoute) as raised:
                    await promise
                depths.add(len(raised.traceback))
            assert len(depths) == 1

    run(main())


def test_ended_promises_are_not_kept():
    async def main():
        async with fw.Node() as node:
            await node.host(Failing())
            for _ in range(50):
                with pytest.raises(fw.RemoteError):
                    await node.hub.ask(Question(), Answer)
            assert node.stats().pending == []

    run(main())
