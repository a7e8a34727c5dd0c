"""What handlers know and can do beyond their payload."""

import asyncio

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, run

import framewire as fw


def test_a_handler_can_ask_within_its_flow():
    async def main():
        async with fw.Node() as node:
            flows = []

            @node.handler(Question)
            async def outer(_, ctx):
                flows.append(ctx.correlation_id)
                done = await ctx.ask(Job(3), Done)
                return Answer(str(done.number))

            @node.handler(Job)
            async def inner(job, ctx):
                flows.append(ctx.correlation_id)
                return Done(job.number + 1)

            assert await node.hub.ask(Question(), Answer) == Answer("4")
            assert flows[0] == flows[1]

    run(main())


def test_a_handler_asks_no_longer_than_its_flow_has_time():
    async def main():
        async with fw.Node() as node:
            limits = []

            @node.handler(Question)
            async def outer(_, ctx):
                await ctx.ask(Job(), Done, timeout=1000)

            @node.handler(Job)
            async def inner(_, ctx):
                limits.append(ctx.remaining)
                return Done()

            promise = node.hub.start(Question(), Answer, timeout=5)
            await eventually(lambda: limits)
            assert 0 < limits[0] <= 5
            promise.cancel()

    run(main())


@pytest.mark.parametrize("options", [{}, {"ttl": 2.0}], ids=["default", "own"])
def test_a_handler_can_tell_without_its_answers_going_to_the_caller(options):
    async def main():
        async with fw.Node() as node:
            seen = []

            @node.handler(Question)
            async def outer(_, ctx):
                await ctx.tell(Job(), **options)
                return Answer()

            @node.handler(Job)
            async def inner(_, ctx):
                seen.append(ctx.message)

            await node.hub.ask(Question(), Answer, timeout=5, trace=True)
            await eventually(lambda: seen)
            assert seen[0].callback_points == ()
            assert seen[0].trace_options == fw.TraceOptions.ROUTING
            assert 0 < seen[0].ttl_ticks <= options.get("ttl", 5) * 10_000_000

    run(main())


def test_a_message_without_a_limit_has_no_deadline():
    async def main():
        async with fw.Node() as node:
            seen = []

            @node.handler(Question)
            async def look(_, ctx):
                seen.append((ctx.deadline, ctx.remaining, ctx.source))

            await node.hub.tell(Question())
            await eventually(lambda: seen)
            assert seen == [(None, None, b"")]

    run(main())


def test_a_thread_can_wait_for_what_the_loop_does():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            def outer(_, ctx):
                return Answer(str(ctx.wait(ctx.ask(Job(3), Done)).number))

            @node.handler(Job)
            async def inner(job):
                return Done(job.number)

            assert await node.hub.ask(Question(), Answer) == Answer("3")

    run(main())


def test_a_thread_waits_no_longer_than_its_flow_has_time():
    async def main():
        async with fw.Node() as node:
            ended = []

            @node.handler(Question)
            def outer(_, ctx):
                try:
                    ctx.wait(asyncio.Event().wait())
                except TimeoutError:
                    ended.append(True)

            with pytest.raises(fw.Expired):
                await node.hub.ask(Question(), Answer, timeout=1)
            await eventually(lambda: ended)

    run(main())


def test_waiting_on_the_event_loop_is_refused_instead_of_blocking_it():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def outer(_, ctx):
                return ctx.wait(ctx.ask(Job(), Done))

            with pytest.raises(fw.RemoteError, match="use await"):
                await node.hub.ask(Question(), Answer)

    run(main())
