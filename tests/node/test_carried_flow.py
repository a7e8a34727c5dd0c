"""What is sent within a handler, by whatever way, belongs to its flow."""

import asyncio
import gc
import weakref

import msgspec
import pytest
from tests.node.messages import Answer, Done, Job, Other, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.testing import Cluster, ManualClock

FLOW = b"the flow"
ROUTING = fw.TraceOptions.ROUTING


@fw.message("carried.seen")
class Seen(msgspec.Struct):
    """What a handler saw of a message."""

    flow: bytes
    left: float | None
    traced: bool


class Watcher(fw.Actor):
    """Answers with what it sees of its messages, and keeps it."""

    concurrency = 100

    def __init__(self):
        self.seen = []

    @fw.handles(Job)
    async def job(self, _, ctx):
        seen = Seen(ctx.correlation_id, ctx.remaining, bool(ctx.message.trace_options & ROUTING))
        self.seen.append(seen)
        return seen

    @fw.handles(Seen)
    async def ignore(self, _):
        """Take the answers to what was told, and so to nobody."""


@pytest.fixture
def client():
    """A client whose node is another than that of the handlers."""
    with fw.Client() as made:
        yield made


async def sends(hub, way, **options):
    """Send a job by one of the ways that a hub has."""
    if way in ("ask", "gather"):
        await getattr(hub, way)(Job(), Seen, **options, **({"stop_after": 1} if way == "gather" else {}))
    elif way == "start":
        await hub.start(Job(), Seen, **options)
    else:
        await getattr(hub, way)(Job(), **options)


WAYS = ["ask", "start", "send", "tell", "broadcast", "gather"]


@pytest.mark.parametrize("way", WAYS)
def test_what_a_handler_sends_through_a_hub_is_of_its_flow_and_has_no_more_time(way):
    async def main():
        async with fw.Node() as node:
            watcher = Watcher()
            await node.host(watcher)

            @node.handler(Question)
            async def outer(_):
                await sends(node.hub, way)
                return Answer()

            await node.hub.ask(Question(), Answer, timeout=5, correlation_id=FLOW, trace=True)
            await eventually(lambda: watcher.seen)
            assert watcher.seen[0].flow == FLOW
            assert 0 < watcher.seen[0].left <= 5
            assert watcher.seen[0].traced

    run(main())


@pytest.mark.parametrize("options", [{"timeout": 1000.0}, {"ttl": 1000.0}], ids=["timeout", "ttl"])
@pytest.mark.parametrize("way", ["ask", "start", "send"])
def test_no_option_gives_it_more_time(way, options):
    async def main():
        async with fw.Node() as node:
            watcher = Watcher()
            await node.host(watcher)

            @node.handler(Question)
            async def outer(_):
                await sends(node.hub, way, **options)
                return Answer()

            await node.hub.ask(Question(), Answer, timeout=5)
            assert 0 < watcher.seen[0].left <= 5

    run(main())


def test_it_may_have_less_time():
    async def main():
        async with fw.Node() as node:
            watcher = Watcher()
            await node.host(watcher)

            @node.handler(Question)
            async def outer(_):
                await node.hub.ask(Job(), Seen, timeout=2)
                await node.hub.tell(Job(), ttl=1)
                return Answer()

            await node.hub.ask(Question(), Answer, timeout=5)
            await eventually(lambda: len(watcher.seen) == 2)
            assert 1 < watcher.seen[0].left <= 2
            assert 0 < watcher.seen[1].left <= 1

    run(main())


def test_an_answer_is_waited_for_no_longer_than_the_flow_has_time():
    async def main():
        clock = ManualClock()
        async with fw.Node(clock=clock, timeout=1000) as node:
            ended = []

            @node.handler(Question, cancel_late=False)
            async def outer(_):
                try:
                    await node.hub.ask(Job(), Done, timeout=500)
                except fw.Expired as error:
                    ended.append(error)

            @node.handler(Job, cancel_late=False)
            async def never(_):
                await asyncio.Event().wait()

            promise = node.hub.start(Question(), Answer, timeout=5)
            await clock.advance(6)
            with pytest.raises(fw.Expired):
                await promise
            await eventually(lambda: ended)
            await node.stop(0)

    run(main())


def test_a_handler_that_is_late_gets_no_more_time_for_what_it_asks():
    async def main():
        clock = ManualClock()
        async with fw.Node(clock=clock) as node:
            late, ended = asyncio.Event(), []

            @node.handler(Question, cancel_late=False)
            async def outer(_):
                await late.wait()
                try:
                    await node.hub.ask(Job(), Done)
                except fw.Expired as error:
                    ended.append(error)

            @node.handler(Job)
            async def job(_):
                return Done()

            promise = node.hub.start(Question(), Answer, timeout=5)
            await clock.advance(6)
            with pytest.raises(fw.Expired):
                await promise
            late.set()
            await eventually(lambda: ended)

    run(main())


def test_a_flow_may_be_given_another_name_and_keeps_its_deadline():
    async def main():
        async with fw.Node() as node:
            watcher = Watcher()
            await node.host(watcher)

            @node.handler(Question)
            async def outer(_):
                await node.hub.ask(Job(), Seen, correlation_id=b"another")
                return Answer()

            await node.hub.ask(Question(), Answer, timeout=5)
            assert watcher.seen[0].flow == b"another"
            assert watcher.seen[0].left <= 5

    run(main())


def test_an_inline_handler_has_its_own_flow_and_not_that_of_its_sender():
    async def main():
        async with fw.Node() as node:
            watcher, promises = Watcher(), []
            await node.host(watcher)

            @node.handler(Question, inline=True)
            def inline(_):
                promises.append(node.hub.start(Job(), Seen))
                return Answer()

            @node.handler(Other)
            async def outer(_):
                await node.hub.ask(Question(), Answer, correlation_id=b"inner")
                promises.append(node.hub.start(Job(), Seen))
                return Done()

            await node.hub.ask(Question(), Answer, correlation_id=FLOW, timeout=5)
            assert (await promises[0]).flow == FLOW
            await node.hub.ask(Other(), Done, correlation_id=b"outer", timeout=5)
            assert (await promises[1]).flow == b"inner"
            assert (await promises[2]).flow == b"outer"
            assert (await node.hub.ask(Job(), Seen)).flow not in (FLOW, b"inner", b"outer")

    run(main())


def test_a_thread_carries_its_flow_into_the_event_loop():
    async def main():
        async with fw.Node() as node:
            watcher = Watcher()
            await node.host(watcher)

            @node.handler(Question)
            def outer(_, ctx):
                ctx.wait(node.hub.ask(Job(), Seen))
                return Answer()

            await node.hub.ask(Question(), Answer, correlation_id=FLOW, timeout=5)
            assert watcher.seen[0].flow == FLOW
            assert watcher.seen[0].left <= 5

    run(main())


@pytest.mark.parametrize("way", ["ask", "start", "send", "tell", "broadcast", "gather"])
def test_a_client_in_a_handlers_thread_carries_its_flow(way, client):
    """The client has a node and an event loop of its own."""

    def use():
        if way == "start":
            client.start(Job(), Seen).result()
        elif way in ("ask", "gather"):
            getattr(client, way)(Job(), Seen, **({"stop_after": 1} if way == "gather" else {}))
        else:
            getattr(client, way)(Job())

    async def main():
        watcher = Watcher()
        await asyncio.to_thread(client.host, watcher)
        async with fw.Node() as node:

            @node.handler(Question)
            def outer(_):
                use()
                return Answer()

            await node.hub.ask(Question(), Answer, correlation_id=FLOW, timeout=5, trace=True)
            await eventually(lambda: watcher.seen)
            assert watcher.seen[0].flow == FLOW
            assert 0 < watcher.seen[0].left <= 5
            assert watcher.seen[0].traced

    run(main())


def test_the_deadline_is_translated_to_the_clock_of_the_clients_node(client):
    async def main():
        watcher = Watcher()
        await asyncio.to_thread(client.host, watcher)
        async with fw.Node(clock=ManualClock(1e6)) as node:

            @node.handler(Question)
            def outer(_):
                client.ask(Job(), Seen)
                return Answer()

            await node.hub.ask(Question(), Answer, timeout=5)
            assert 0 < watcher.seen[0].left <= 5

    run(main())


def test_a_thread_of_ones_own_carries_the_flow_with_its_context(client):
    async def main():
        watcher = Watcher()
        await asyncio.to_thread(client.host, watcher)
        async with fw.Node() as node:

            @node.handler(Question)
            async def outer(_):
                await asyncio.to_thread(client.ask, Job(), Seen)
                return Answer()

            await node.hub.ask(Question(), Answer, correlation_id=FLOW)
            assert watcher.seen[0].flow == FLOW

    run(main())


# --- tasks


def test_a_task_keeps_the_flow_of_its_handler_while_the_worker_handles_the_next_message():
    async def main():
        async with fw.Node() as node:
            watcher, tasks, go = Watcher(), [], asyncio.Event()
            await node.host(watcher)

            async def later():
                await go.wait()
                await node.hub.ask(Job(), Seen)

            class Starter(fw.Actor):
                @fw.handles(Question)
                async def start(self, question):
                    if question.text:
                        tasks.append(asyncio.create_task(later()))
                        return Answer()
                    go.set()
                    await tasks[0]
                    await node.hub.ask(Job(), Seen)
                    return Answer()

            await node.host(Starter())
            await node.hub.ask(Question("first"), Answer, correlation_id=b"first", trace=True, timeout=5)
            await node.hub.ask(Question(), Answer, correlation_id=b"second", timeout=25)
            first, second = watcher.seen
            assert (first.flow, first.traced) == (b"first", True)
            assert 0 < first.left <= 5
            assert (second.flow, second.traced) == (b"second", False)
            assert 20 < second.left <= 25

    run(main())


def test_a_task_goes_on_with_flows_of_its_own_when_its_handler_has_ended_and_the_time_of_its_flow_is_over():
    async def main():
        clock = ManualClock()
        async with fw.Node(clock=clock, timeout=100) as node:
            watcher, tasks, go = Watcher(), [], [asyncio.Event(), asyncio.Event()]
            await node.host(watcher)

            async def later():
                for event in go:
                    await event.wait()
                    await node.hub.ask(Job(), Seen)

            @node.handler(Question)
            async def start(_):
                tasks.append(asyncio.create_task(later()))
                return Answer()

            await node.hub.ask(Question(), Answer, correlation_id=FLOW, timeout=5, trace=True)
            await clock.advance(4)
            go[0].set()
            await eventually(lambda: len(watcher.seen) == 1)
            await clock.advance(2)
            go[1].set()
            await tasks[0]
            within, after = watcher.seen
            assert (within.flow, within.left, within.traced) == (FLOW, 1, True)
            assert after.flow not in (FLOW, b"")
            assert (after.left, after.traced) == (100, False)

    run(main())


def test_a_task_of_a_handler_whose_caller_gave_up_goes_on_in_its_flow():
    async def main():
        async with fw.Node() as node:
            watcher, tasks, go = Watcher(), [], asyncio.Event()
            await node.host(watcher)

            async def later():
                await go.wait()
                return await node.hub.ask(Job(), Seen)

            @node.handler(Question)
            async def start(_):
                tasks.append(asyncio.create_task(later()))
                await asyncio.Event().wait()

            promise = node.hub.start(Question(), Answer, correlation_id=FLOW)
            await eventually(lambda: tasks)
            promise.cancel()
            await eventually(lambda: node.dead_letters.counts[fw.Reason.CANCELLED])
            go.set()
            assert (await tasks[0]).flow == FLOW

    run(main())


def test_a_task_that_still_asks_when_its_handler_has_ended_does_not_let_the_next_handler_seem_to():
    async def main():
        async with fw.Node() as node:
            asked, go, tasks = [], asyncio.Event(), []

            class Starter(fw.Actor):
                reentrant = True

                @fw.handles(Question)
                async def start(self, question, ctx):
                    asked.append(question.text)
                    if question.text == "first":
                        tasks.append(asyncio.create_task(ctx.ask(Job(), Done)))
                        await eventually(lambda: started)
                    elif question.text == "second":
                        await node.hub.tell(Question("third"))
                        await asyncio.sleep(0)
                        asked.append("second ends")
                    return Answer()

            started = []

            @node.handler(Job)
            async def slow(_):
                started.append(True)
                await go.wait()
                return Done()

            await node.host(Starter())
            await node.hub.ask(Question("first"), Answer)
            await node.hub.ask(Question("second"), Answer)
            await eventually(lambda: len(asked) == 4)
            assert asked == ["first", "second", "second ends", "third"]
            go.set()
            assert await tasks[0] == Done()

    run(main())


@fw.message("carried.large")
class Large(msgspec.Struct, weakref=True):
    """A payload that can be seen to be gone."""


def test_neither_an_idle_actor_nor_a_task_keeps_the_payload_of_a_message_that_was_handled():
    async def main():
        async with fw.Node() as node:
            go, tasks = asyncio.Event(), []

            @node.handler(Large)
            async def start(_):
                tasks.append(asyncio.create_task(go.wait()))
                return Answer()

            large = Large()
            gone = weakref.ref(large)
            await node.hub.ask(large, Answer)
            del large
            await eventually(lambda: gc.collect() is not None and gone() is None)
            go.set()
            await tasks[0]

    run(main())


def test_a_hook_of_an_actor_that_a_handler_hosts_belongs_to_no_flow():
    async def main():
        async with fw.Node(timeout=100) as node:
            watcher, tasks = Watcher(), []
            await node.host(watcher)

            class Child(fw.Actor):
                async def started(self):
                    await self.node.hub.ask(Job(), Seen)
                    tasks.append(asyncio.create_task(self.node.hub.ask(Job(), Seen)))

                @fw.handles(Other)
                async def other(self, _):
                    return Done()

            @node.handler(Question)
            async def host(_):
                await node.host(Child())
                await node.hub.ask(Job(), Seen)
                return Answer()

            await node.hub.ask(Question(), Answer, correlation_id=FLOW, timeout=5)
            await asyncio.gather(*tasks)
            assert [seen.flow == FLOW for seen in watcher.seen].count(True) == 1
            assert sorted(seen.left > 50 for seen in watcher.seen) == [False, True, True]

    run(main())


# --- another flow


@pytest.mark.parametrize("way", WAYS)
def test_new_flow_begins_another_with_a_name_and_a_time_of_its_own(way):
    async def main():
        async with fw.Node(timeout=100) as node:
            watcher = Watcher()
            await node.host(watcher)

            @node.handler(Question)
            async def outer(_):
                await sends(node.hub, way, new_flow=True)
                return Answer()

            await node.hub.ask(Question(), Answer, timeout=5, correlation_id=FLOW, trace=True)
            await eventually(lambda: watcher.seen)
            assert watcher.seen[0].flow not in (FLOW, b"")
            left = watcher.seen[0].left
            assert (left is None) if way in ("tell", "broadcast") else 50 < left <= 100
            assert not watcher.seen[0].traced

    run(main())


@pytest.mark.parametrize("way", ["ask", "tell"])
def test_a_context_can_begin_another_flow_too(way):
    async def main():
        async with fw.Node(timeout=100) as node:
            watcher = Watcher()
            await node.host(watcher)

            @node.handler(Question)
            async def outer(_, ctx):
                await sends(ctx, way, new_flow=True)
                return Answer()

            await node.hub.ask(Question(), Answer, timeout=5, correlation_id=FLOW)
            await eventually(lambda: watcher.seen)
            assert watcher.seen[0].flow != FLOW

    run(main())


def test_outside_of_a_handler_every_message_begins_a_flow():
    async def main():
        async with fw.Node() as node:
            watcher = Watcher()
            await node.host(watcher)
            await node.hub.ask(Job(), Seen, new_flow=True)
            await node.hub.ask(Job(), Seen)
            assert len({seen.flow for seen in watcher.seen}) == 2

    run(main())


@pytest.mark.parametrize("way", ["ask", "send", "tell", "gather"])
def test_a_flow_that_a_handler_begins_never_waits_for_room(way):
    """It would wait for its own handler here: the mailbox that is full is that of its own actor."""

    async def main():
        async with fw.Node() as node:
            refused, tells = [], []

            class Busy(fw.Actor):
                mailbox = 1

                @fw.handles(Question)
                async def begin(self, _):
                    await eventually(full)
                    try:
                        if way == "gather":
                            gathered = await node.hub.gather(Job(), Done, stop_after=1, new_flow=True)
                            raise gathered.errors[0]
                        await sends(node.hub, way, new_flow=True)
                    except fw.Overloaded as error:
                        refused.append(error)
                    return Answer()

                @fw.handles(Job)
                async def job(self, _):
                    return Seen(b"", 0, traced=False)

            await node.host(Busy())

            def full():
                [busy] = [actor for actor in node.stats().actors if actor.name.endswith("Busy")]
                return busy.waiting

            answer = node.hub.start(Question(), Answer)
            tells += [asyncio.create_task(node.hub.tell(Job())) for _ in range(3)]
            assert await answer == Answer()
            assert refused[0].retry_after > 0
            await asyncio.gather(*tells)

    run(main())


def test_a_flow_that_a_handler_begins_has_room_where_any_flow_would():
    async def main():
        async with fw.Node() as node:
            done = []

            class Busy(fw.Actor):
                mailbox = 2

                @fw.handles(Question)
                async def begin(self, _):
                    await node.hub.tell(Job(1), new_flow=True)
                    await node.hub.tell(Job(2), new_flow=True)
                    with pytest.raises(fw.Overloaded):
                        await node.hub.tell(Job(3), new_flow=True)
                    with pytest.raises(fw.Overloaded):
                        await node.hub.ask(Job(4), Answer, new_flow=True)
                    await node.hub.tell(Job(5))  # within the flow there is always room
                    return Answer()

                @fw.handles(Job)
                async def job(self, job):
                    done.append(job.number)

            await node.host(Busy())
            await node.hub.ask(Question(), Answer)
            await eventually(lambda: len(done) == 3)
            assert sorted(done) == [1, 2, 5]

    run(main())


def test_a_flow_that_a_task_begins_after_its_handler_has_ended_waits_for_room():
    async def main():
        async with fw.Node() as node:
            go, free, tasks, done = asyncio.Event(), asyncio.Event(), [], []

            async def later():
                await go.wait()
                for number in range(5):
                    await node.hub.tell(Job(number), new_flow=True)

            @node.handler(Question)
            async def start(_):
                tasks.append(asyncio.create_task(later()))
                return Answer()

            @node.handler(Job, mailbox=1)
            async def slow(job):
                await free.wait()
                done.append(job.number)

            await node.hub.ask(Question(), Answer)
            go.set()
            await eventually(lambda: node.stats().actors[-1].waiting)
            assert not tasks[0].done()
            free.set()
            await tasks[0]
            await eventually(lambda: len(done) == 5)

    run(main())


# --- other nodes


@pytest.mark.parametrize("way", ["ask", "tell"])
def test_other_nodes_see_the_routing_of_the_flow(way):
    async def main():
        async with Cluster(3) as cluster:
            first, second, third = cluster.nodes
            seen = []

            @third.handler(Job)
            async def job(_, ctx):
                seen.append(ctx.message)
                return Seen(b"", 0, traced=False)

            @second.handler(Question)
            async def outer(_):
                await sends(second.hub, way)
                return Answer()

            await cluster.settled()
            for _ in range(3):
                await first.hub.ask(Question(), Answer, correlation_id=FLOW)
            await eventually(lambda: len(seen) == 3)
            for message in seen:
                assert message.correlation_id == FLOW
                assert [router.identity for router in message.routing] == [first.identity, second.identity]

    run(main())


@pytest.mark.parametrize(("way", "hops"), [("ask", 2), ("tell", 1)])
def test_a_flow_that_a_handler_begins_leaves_without_the_routing_of_its_own(way, hops):
    """What is told waits there as all that begins does; what a handler awaits must not wait for what waits."""

    async def main():
        async with Cluster(3) as cluster:
            first, second, third = cluster.nodes
            seen = []

            @third.handler(Job)
            async def job(_, ctx):
                seen.append(ctx.message)
                return Seen(b"", 0, traced=False)

            @second.handler(Question)
            async def outer(_):
                await sends(second.hub, way, new_flow=True)
                return Answer()

            await cluster.settled()
            await first.hub.ask(Question(), Answer, correlation_id=FLOW)
            await eventually(lambda: seen)
            assert seen[0].correlation_id != FLOW
            assert [router.identity for router in seen[0].routing] == [second.identity]
            assert seen[0].hops == hops

    run(main())
