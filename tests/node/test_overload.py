"""A producer ten times as fast as its consumer, under each policy: nothing grows, and nothing is lost uncounted."""

import asyncio
import time
import tracemalloc
from collections import Counter

import pytest
from tests.node.messages import Done, Job, Other
from tests.node.running import eventually, run

import framewire as fw

MAILBOX = 50
DURATIONS = [pytest.param(0.7, id="short"), pytest.param(10, id="long", marks=pytest.mark.long)]


class Slow(fw.Actor):
    """Takes ten turns of the event loop for what its producer sends in one."""

    handled = 0

    @fw.handles(Job)
    async def job(self, _):
        self.handled += 1
        for _ in range(10):
            await asyncio.sleep(0)


class Watched:
    """The longest queues, and the most memory in the first and in the second half of a test."""

    def __init__(self, node, seconds):
        self.node = node
        self.longest = Counter()
        self.most = {"early": 0, "late": 0}
        self.half = time.monotonic() + seconds / 2
        self.end = self.half + seconds / 2

    def look(self):
        stats = self.node.stats().actors[-1]
        for name in ("queued", "waiting"):
            self.longest[name] = max(self.longest[name], getattr(stats, name))
        half = "early" if time.monotonic() < self.half else "late"
        self.most[half] = max(self.most[half], tracemalloc.get_traced_memory()[0])


async def overload(policy, seconds):
    async with fw.Node(mailbox=MAILBOX, overflow=policy, keep_dead_letters=20) as node:
        slow = Slow()
        await node.host(slow)
        watched = Watched(node, seconds)
        sent = rejected = 0
        while time.monotonic() < watched.end or sent < 10 * MAILBOX:
            for _ in range(10):
                sent += 1
                try:
                    await node.hub.tell(Job(sent))
                except fw.Overloaded:
                    rejected += 1
            watched.look()
            await asyncio.sleep(0)
        await eventually(lambda: not node.stats().actors[-1].queued and not node.stats().actors[-1].busy)
        return sent, slow.handled, rejected, node.dead_letters.counts[fw.Reason.OVERLOADED], watched


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("seconds", DURATIONS)
@pytest.mark.parametrize("policy", ["wait", "reject", "drop_oldest"])
@pytest.mark.usefixtures("traced")
def test_overload_is_bounded_and_every_message_is_accounted_for(policy, seconds):
    sent, handled, rejected, dead, watched = run(overload(policy, seconds), timeout=seconds + 30)
    if policy == "wait":
        assert (rejected, dead) == (0, 0)
        assert sent == handled
    elif policy == "reject":
        assert rejected == dead > 0
        assert sent == handled + rejected
    else:
        assert rejected == 0 < dead
        assert sent == handled + dead
    assert watched.longest["queued"] <= MAILBOX
    assert watched.longest["waiting"] <= 1
    assert watched.most["late"] < watched.most["early"] + 200_000


def test_many_producers_wait_in_the_order_they_came():
    async def main():
        async with fw.Node(mailbox=1) as node:
            order = []
            go = asyncio.Event()

            @node.handler(Job)
            async def slow(job):
                await go.wait()
                order.append(job.number)

            producers = []
            for number in range(20):
                producers.append(asyncio.create_task(node.hub.tell(Job(number))))
                await asyncio.sleep(0)
            await eventually(lambda: node.stats().actors[-1].waiting == 18)
            go.set()
            await asyncio.gather(*producers)
            await eventually(lambda: len(order) == 20)
            assert order == list(range(20))

    run(main())


async def full(node, **options):
    """An actor with one message at work and one in its mailbox of one."""
    go = asyncio.Event()

    @node.handler(Job, mailbox=1, cancel_late=False, **options)
    async def slow(job):
        await go.wait()
        return Done(job.number)

    first = node.hub.start(Job(1), Done)
    await eventually(lambda: node.stats().actors[-1].busy == 1)
    return go, [first, node.hub.start(Job(2), Done)]


def test_a_mailbox_that_rejects_tells_the_caller_overloaded():
    async def main():
        async with fw.Node() as node:
            go, promises = await full(node, overflow="reject")
            for refused in (node.hub.ask(Job(3), Done), node.hub.send(Job(3)), node.hub.tell(Job(3))):
                with pytest.raises(fw.Overloaded, match=r"mailbox of .*slow is full \(1, reject\)"):
                    await refused
            go.set()
            assert [done.number for done in await asyncio.gather(*promises)] == [1, 2]

    run(main())


def test_a_mailbox_that_drops_the_oldest_tells_its_caller_overloaded():
    async def main():
        async with fw.Node() as node:
            go, [first, dropped] = await full(node, overflow="drop_oldest")
            third = node.hub.start(Job(3), Done)
            with pytest.raises(fw.Overloaded):
                await dropped
            go.set()
            assert (await first, await third) == (Done(1), Done(3))

    run(main())


def test_tell_awaits_room():
    async def main():
        async with fw.Node() as node:
            go, promises = await full(node)
            telling = asyncio.create_task(node.hub.tell(Job(3)))
            await eventually(lambda: node.stats().actors[-1].waiting == 1)
            assert not telling.done()
            go.set()
            await telling
            await asyncio.gather(*promises)

    run(main())


def test_tell_does_not_wait_for_ever():
    async def main():
        async with fw.Node(timeout=0.05) as node:
            go = asyncio.Event()

            @node.handler(Job, mailbox=1)
            async def slow(_):
                await go.wait()

            await node.hub.tell(Job(1))
            await eventually(lambda: node.stats().actors[-1].busy == 1)
            await node.hub.tell(Job(2))
            with pytest.raises(fw.Overloaded, match="waited"):
                await node.hub.tell(Job(3))
            with pytest.raises(fw.Overloaded):
                await node.hub.tell(Job(4), ttl=0.01)
            assert node.stats().actors[-1].waiting == 0
            go.set()

    run(main())


def test_a_cancelled_tell_waits_no_longer():
    async def main():
        async with fw.Node() as node:
            go, promises = await full(node)
            telling = asyncio.create_task(node.hub.tell(Job(3)))
            await eventually(lambda: node.stats().actors[-1].waiting == 1)
            telling.cancel()
            go.set()
            assert len(await asyncio.gather(*promises)) == 2
            assert telling.cancelled()
            assert node.stats().actors[-1].handlers[0].handled == 2

    run(main())


def test_an_actor_that_floods_itself_comes_to_an_end():
    async def main():
        async with fw.Node(max_queued=100) as node:

            @node.handler(Job, mailbox=2)
            async def multiply(job):
                return [Job(job.number - 1)] * 5 if job.number else None

            await node.hub.tell(Job(6))
            await eventually(lambda: node.dead_letters.counts[fw.Reason.OVERLOADED])
            await eventually(lambda: not node.stats().actors[-1].queued)

    run(main())


def test_what_a_handler_sends_gets_its_place_up_to_a_bound_of_bytes():
    async def main():
        async with fw.Node(max_queued_bytes=1000) as node:
            go = asyncio.Event()

            @node.handler(Done)
            async def flood(_):
                return [Other("x" * 100) for _ in range(20)]

            @node.handler(Other, mailbox=2)
            async def slow(_):
                await go.wait()

            await node.hub.tell(Done())
            await eventually(lambda: node.dead_letters.counts[fw.Reason.OVERLOADED])
            actor = node.stats().actors[-1]
            assert actor.busy + actor.queued + node.dead_letters.counts[fw.Reason.OVERLOADED] == 20
            assert 9 <= actor.queued <= 12  # two in the mailbox, and as many more as have 1,000 bytes
            go.set()

    run(main())


def test_a_handler_that_sends_never_waits_for_a_mailbox_of_its_own_node():
    async def main():
        async with fw.Node() as node:
            handled, sent = [], asyncio.Event()

            @node.handler(Done)
            async def flood(_):
                for number in range(200):
                    yield Job(number)
                sent.set()

            @node.handler(Job, mailbox=3)
            async def slow(job):
                await sent.wait()
                handled.append(job.number)

            await node.hub.tell(Done())
            await eventually(lambda: handled == list(range(200)))
            assert len(node.dead_letters) == 0

    run(main())


def test_only_so_many_promises_are_open_at_a_time():
    async def scenario():
        async with fw.Node(promises=10, signals=False) as node:
            release = asyncio.Event()

            @node.handler(Job)
            async def answer(job: Job) -> Done:
                await release.wait()
                return Done(job.number)

            open_promises = [node.hub.start(Job(1), Done) for _ in range(10)]
            with pytest.raises(fw.Overloaded, match="10 promises are open"):
                node.hub.start(Job(2), Done)
            release.set()
            for promise in open_promises:
                await promise
            assert (await node.hub.ask(Job(3), Done)).number == 3

    run(scenario())
