"""What a caller learns when something fails on another node."""

import asyncio
import contextlib

import pytest
from tests.cluster_seam.messages import Answer, Question, answerers
from tests.node.running import eventually, run

import framewire as fw
from framewire.testing import Cluster, ManualClock


async def failure(cluster, **options):
    """How an ask from the first node ends."""
    options.setdefault("timeout", 10)
    with pytest.raises(fw.MessageError) as caught:
        await cluster[0].hub.ask(Question(), Answer, **options)
    return caught.value


def test_an_exception_on_another_node_is_a_remote_error_that_says_everything():
    async def scenario():
        async with Cluster(2) as cluster:

            class Broken(fw.Actor):
                @fw.handles(Question)
                async def question(self, _: Question) -> None:
                    raise LookupError("no such order")

            await cluster[1].host(Broken())
            await cluster.settled()
            error = await failure(cluster)
            assert type(error) is fw.RemoteError
            assert (error.type_name, error.detail) == ("LookupError", "no such order")
            assert error.actor.endswith("Broken.question")
            assert error.node == b"node-1"
            assert 'raise LookupError("no such order")' in error.traceback
            assert str(error.message_id) == "seam.question v1"
            assert error.last_hop == "memory://node-1"
            assert error.correlation_id
            assert error.elapsed >= 0

    run(scenario())


def test_a_failure_at_the_end_of_a_chain_reaches_the_caller():
    async def scenario():
        async with Cluster(3) as cluster:

            @fw.message("seam.between")
            class Between(bytes):
                pass

            @cluster[1].handler(Question)
            async def first(_: Question) -> Between:
                return Between()

            @cluster[2].handler(Between)
            async def last(_: Between) -> None:
                raise ZeroDivisionError("far away")

            await cluster.settled()
            error = await failure(cluster)
            assert (error.type_name, error.node) == ("ZeroDivisionError", b"node-2")

    run(scenario())


def test_overloaded_on_another_node():
    async def scenario():
        async with Cluster(2) as cluster:
            started, release = asyncio.Event(), asyncio.Event()

            async def stuck(_: Question) -> Answer:
                started.set()
                await release.wait()
                return Answer(1)

            cluster[1].handler(Question, mailbox=1, overflow="reject")(stuck)
            await cluster.settled()
            promises = [cluster[0].hub.start(Question(), Answer, timeout=10)]
            async with asyncio.timeout(5):
                await started.wait()
            promises += [cluster[0].hub.start(Question(), Answer, timeout=10) for _ in range(4)]
            await eventually(lambda: sum(promise.done for promise in promises) == 3)
            for promise in promises[2:]:
                with pytest.raises(fw.Overloaded, match=r"mailbox of .*stuck is full") as caught:
                    promise.result()
                assert caught.value.node == b"node-1"
            release.set()
            assert [(await promise).number for promise in promises[:2]] == [1, 1]

    run(scenario())


def test_node_stopped_on_another_node():
    async def scenario():
        async with Cluster(2) as cluster:
            started = asyncio.Event()

            @cluster[1].handler(Question)
            async def stuck(_: Question) -> None:
                started.set()
                await asyncio.Event().wait()

            await cluster.settled()
            running, queued = (cluster[0].hub.start(Question(), Answer, timeout=10) for _ in range(2))
            async with asyncio.timeout(5):
                await started.wait()
            await cluster.settled(handlers=False)
            await cluster[1].stop(timeout=0)
            for promise in (running, queued):
                with pytest.raises(fw.NodeStopped) as caught:
                    await promise
                assert caught.value.node == b"node-1"

    run(scenario())


def test_no_route_on_another_node():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, route_grace=1.0) as cluster:
            promise = cluster[0].hub.start(Question(), Answer, to_node=b"node-1", timeout=10)
            await clock.advance(1.5)
            with pytest.raises(fw.NoRoute, match="nobody handles it") as caught:
                promise.result()
            assert caught.value.node == b"node-1"
            assert cluster[1].dead_letters.counts == {fw.Reason.NO_ROUTE: 1}

    run(scenario())


def test_expired_on_another_node():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock) as cluster:
            release = asyncio.Event()

            @cluster[1].handler(Question)
            async def slow(_: Question) -> Answer:
                await release.wait()
                return Answer()

            await cluster.settled()
            too_late = cluster[0].hub.start(Question(), Answer, ttl=1.0, timeout=10)
            await clock.advance(1.5)
            with pytest.raises(fw.Expired, match=r"slow was cancelled: its deadline has passed") as caught:
                too_late.result()
            assert caught.value.node == b"node-1"
            assert cluster[1].dead_letters.counts == {fw.Reason.EXPIRED: 1}

    run(scenario())


def test_a_body_that_the_other_node_cannot_read_is_a_bad_body():
    async def scenario():
        async with Cluster(2) as cluster:

            @fw.message("seam.question")
            class Newer(bytes):
                """The same message id, other bytes."""

            await answerers(cluster, 1)
            with pytest.raises(fw.BadBody, match="not a Question as msgpack") as caught:
                await cluster[0].hub.ask(Newer(b"\xc1"), Answer, timeout=10)
            assert caught.value.node == b"node-1"
            assert cluster[1].dead_letters.counts == {fw.Reason.BAD_BODY: 1}

    run(scenario())


def test_a_payload_that_cannot_be_written_never_leaves():
    async def scenario():
        async with Cluster(2) as cluster:
            await answerers(cluster, 1)
            with pytest.raises(fw.BadBody, match="cannot write this Question"):
                await cluster[0].hub.ask(Question(object()), Answer)
            assert cluster[0].stats().pending == []
            assert cluster[0].dead_letters.counts == {fw.Reason.BAD_BODY: 1}
            assert len(cluster.journal) == 0

    run(scenario())


def test_a_payload_that_cannot_be_written_when_its_handler_appears_ends_its_promise():
    async def scenario():
        async with Cluster(2, route_grace=60) as cluster:
            promise = cluster[0].hub.start(Question(object()), Answer, timeout=10)
            await answerers(cluster, 1)
            with pytest.raises(fw.BadBody, match="cannot write this Question"):
                await promise

    run(scenario())


def test_an_answer_nobody_waits_for_any_more_is_a_late_reply():
    async def scenario():
        async with Cluster(2) as cluster:
            release = asyncio.Event()

            @cluster[1].handler(Question)
            async def stubborn(_: Question) -> Answer:
                with contextlib.suppress(asyncio.CancelledError):
                    await release.wait()
                return Answer()

            await cluster.settled()
            asking = asyncio.create_task(cluster[0].hub.ask(Question(), Answer, timeout=10))
            await cluster.settled(handlers=False)
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking
            release.set()
            await cluster.settled()
            assert cluster[0].dead_letters.counts == {fw.Reason.LATE_REPLY: 1}

    run(scenario())
