"""Inline handlers, and handlers that start at once because their actor is idle."""

import asyncio
import contextlib

import msgspec
import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, run

import framewire as fw


def test_inline_handlers_that_call_one_another_do_not_exhaust_the_stack():
    count = 20
    kinds = [
        fw.message(f"ring.{index}")(msgspec.defstruct(f"Ring{index}", [("left", int)])) for index in range(count)
    ]

    def pass_on_to(following):
        return lambda given: following(given.left - 1) if given.left else Done()

    async def main():
        async with fw.Node() as node:
            for index, kind in enumerate(kinds):
                node.handler(kind, inline=True)(pass_on_to(kinds[(index + 1) % count]))
            assert await node.hub.ask(kinds[0](5_000), Done) == Done()

    run(main())


def test_an_inline_handler_that_fails_tells_the_caller():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question, inline=True)
            def fail(question):
                raise ValueError(question.text)

            with pytest.raises(fw.RemoteError, match="ValueError") as raised:
                await node.hub.ask(Question("no"), Answer)
            assert raised.value.detail == "no"

    run(main())


@pytest.mark.parametrize(
    "problem", [asyncio.CancelledError(), GeneratorExit(), StopIteration(), StopAsyncIteration()]
)
@pytest.mark.parametrize("kind", ["inline", "thread", "coroutine"])
def test_no_exception_is_too_strange_to_reach_the_caller(kind, problem):
    async def main():
        async with fw.Node() as node:

            def fail(_):
                raise problem

            async def fail_later(_):
                await asyncio.sleep(0)
                raise problem

            node.handler(Question, inline=kind == "inline")(fail_later if kind == "coroutine" else fail)
            for _ in range(3):
                with pytest.raises(fw.RemoteError):
                    await node.hub.ask(Question(), Answer)

    run(main())


def test_what_an_inline_handler_sends_gets_its_place_in_a_full_mailbox():
    async def main():
        go = asyncio.Event()
        handled = []
        async with fw.Node() as node:

            @node.handler(Question, inline=True)
            def fan_out(_):
                return [Job(number) for number in range(5)]

            @node.handler(Job, mailbox=1, overflow="reject")
            async def slow(job):
                await go.wait()
                handled.append(job.number)

            await node.hub.tell(Question())
            await eventually(lambda: node.stats().actors[-1].queued == 4)
            go.set()
            await eventually(lambda: handled == [0, 1, 2, 3, 4])
            assert len(node.dead_letters) == 0

    run(main())


def test_no_flow_begins_at_an_inline_handler_while_what_it_leads_to_is_full():
    async def main():
        go = asyncio.Event()
        handled = []
        async with fw.Node() as node:

            @node.handler(Question, inline=True)
            def fan_out(_):
                return [Job(number) for number in range(5)]

            @node.handler(Job, mailbox=1)
            async def slow(job):
                await go.wait()
                handled.append(job.number)

            await node.hub.tell(Question())
            telling = asyncio.create_task(node.hub.tell(Question()))
            await eventually(lambda: node.stats().actors[-2].waiting == 1)
            assert not telling.done()
            go.set()
            await telling
            await eventually(lambda: handled == [0, 1, 2, 3, 4] * 2)

    run(main())


def test_timeouts_in_a_handler_are_the_handlers_own():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def impatient(_):
                try:
                    async with asyncio.timeout(0):
                        await asyncio.Event().wait()
                except TimeoutError:
                    return Answer("in vain")

            for _ in range(5):
                assert await node.hub.ask(Question(), Answer, timeout=5) == Answer("in vain")

    run(main())


def test_what_a_handler_waits_for_is_cancelled_with_its_wait():
    async def main():
        async with fw.Node() as node:
            children = []

            @node.handler(Question)
            async def impatient(_):
                children.append(asyncio.create_task(asyncio.Event().wait()))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0):
                        await children[-1]
                return Answer(str(children[-1].cancelled()))

            for _ in range(5):
                assert await node.hub.ask(Question(), Answer, timeout=5) == Answer("True")

    run(main())


def test_a_program_that_is_to_end_ends_and_its_promise_with_it():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question, inline=True)
            def leave(_):
                raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                node.hub.start(Question(), Answer)
            assert node.stats().pending == []

    run(main())


def test_a_task_group_that_fails_at_once_is_the_handlers_own():
    async def main():
        async with fw.Node() as node:

            async def fail():
                raise ValueError("child")

            @node.handler(Question)
            async def parent(_):
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(fail())
                        group.create_task(asyncio.Event().wait())
                except* ValueError:
                    pass
                return Answer("survived")

            for _ in range(5):
                assert await node.hub.ask(Question(), Answer, timeout=5) == Answer("survived")

    run(main())


def test_a_handler_that_cancels_its_own_task_does_not_take_its_actor_along():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def suicidal(_):
                asyncio.current_task().cancel()
                await asyncio.sleep(0)

            promises = [node.hub.start(Question(), Answer, timeout=5) for _ in range(5)]
            ends = await asyncio.gather(*promises, return_exceptions=True)
            assert [type(end) for end in ends] == [fw.RemoteError] * 5

    run(main())


def test_the_sender_is_still_the_current_task_after_a_handler_began_at_once():
    async def main():
        async with fw.Node() as node:
            tasks = set()

            @node.handler(Question)
            async def answer(_):
                tasks.add(asyncio.current_task())
                await asyncio.sleep(0)
                tasks.add(asyncio.current_task())
                return Answer()

            me = asyncio.current_task()
            for _ in range(3):
                await node.hub.ask(Question(), Answer)
                assert asyncio.current_task() is me
            assert len(tasks) == 1
            assert me not in tasks

    run(main())


def test_handlers_that_ask_one_another_for_ever_end_by_their_time_or_when_no_worker_is_left():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question, concurrency=1000)
            async def again(question, ctx):
                return await ctx.ask(question, Answer)

            with pytest.raises((fw.Expired, fw.RemoteError, fw.Deadlock)):
                await node.hub.ask(Question(), Answer, timeout=0.2)

    run(main())
