"""How an answer finds its way: callback points, and what handlers pass on."""

import asyncio

import pytest
from tests.node.messages import Answer, Done, Job, Other, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.node.exceptions import EXCEPTION
from framewire.node.payloads import type_of
from framewire.wire import Distribution, TraceOptions


def test_the_first_message_that_is_a_callback_point_returns_to_the_asking_hub():
    async def main():
        async with fw.Node() as node:
            others = await node.new_hub()

            @node.handler(Question)
            async def pass_on(_):
                return Job(1)

            @node.handler(Job)
            async def finish(job):
                return [Answer("first"), Done(job.number)]

            @node.handler(Answer)
            async def hear(_): ...

            assert await node.hub.ask(Question(), Done, Answer) == Answer("first")
            assert await others.ask(Question(), Done) == Done(1)

    run(main())


def test_a_message_that_is_no_callback_point_goes_on_to_its_handler():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def pass_on(question):
                return Answer(question.text)

            @node.handler(Answer)
            async def finish(answer):
                return Done(len(answer.text))

            assert await node.hub.ask(Question("four"), Done) == Done(4)

    run(main())


def copied(message):
    return (
        message.correlation_id,
        message.callback_points,
        message.callback_key,
        message.callback_receiver_identity,
        message.callback_receiver_node_identity,
        message.trace_options,
        message.routing,
    )


def test_what_handlers_return_carries_the_callback_and_options_of_what_they_handled():
    async def main():
        async with fw.Node(identity="here") as node:
            seen = []

            @node.handler(Question)
            async def first(_, ctx):
                seen.append(ctx.message)
                return Job(1)

            @node.handler(Job)
            async def second(job, ctx):
                seen.append(ctx.message)
                return Done(job.number)

            await node.hub.ask(Question(), Done, trace=True, correlation_id=b"flow")
            first_seen, second_seen = map(copied, seen)
            assert first_seen == second_seen
            assert first_seen == (
                b"flow",
                (type_of(Done).message_id, EXCEPTION),
                1,
                node.hub.identity,
                b"here",
                TraceOptions.ROUTING,
                (),
            )

    run(main())


def test_what_is_left_of_the_time_travels_with_the_flow():
    async def main():
        async with fw.Node() as node:
            seen = []

            @node.handler(Question)
            async def first(_, ctx):
                seen.append(ctx.deadline)
                return Job(1)

            @node.handler(Job)
            async def second(job, ctx):
                seen.append(ctx.deadline)
                return Done(job.number)

            await node.hub.ask(Question(), Done, timeout=5)
            assert seen[0] == seen[1] is not None

    run(main())


def test_a_message_that_a_handler_broadcasts_carries_no_callback():
    async def main():
        async with fw.Node() as node:
            seen = []

            @node.handler(Question)
            async def shout(_, ctx):
                await ctx.broadcast(Answer("to all, and not to the one who asked"))
                return Done()

            @node.handler(Answer)
            async def hear(_, ctx):
                seen.append(ctx.message)
                return Done(99)

            assert await node.hub.ask(Question(), Answer, Done, correlation_id=b"flow") == Done()
            await eventually(lambda: seen)
            assert seen[0].distribution == Distribution.BROADCAST
            assert seen[0].correlation_id == b"flow"
            assert seen[0].callback_points == ()
            assert seen[0].callback_receiver_identity == b""

    run(main())


def test_the_exception_message_is_always_a_callback_point():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def fail(_):
                return fw.ExceptionMessage(message="as a message", exception_type="shop.SoldOut")

            with pytest.raises(fw.RemoteError) as raised:
                await node.hub.ask(Question(), Answer)
            assert raised.value.type_name == "shop.SoldOut"
            assert raised.value.detail == "as a message"

    run(main())


def test_asking_for_the_exception_message_gives_it_as_an_answer():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def fail(_):
                raise ValueError("no")

            told = await node.hub.ask(Question(), Answer, fw.ExceptionMessage)
            assert (told.exception_type, told.message) == ("builtins.ValueError", "no")

    run(main())


def test_a_message_of_the_flow_that_nobody_handles_is_named():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def pass_on(_):
                return Job(1)

            with pytest.raises(
                fw.NoRoute, match=r"test.question v1: test.job v1, which came of it: nobody handles"
            ):
                await node.hub.ask(Question(), Answer)

    run(main())


def test_messages_without_a_callback_have_nobody_to_return_to():
    async def main():
        async with fw.Node() as node:
            handled = asyncio.Event()

            @node.handler(Question)
            async def answer(_):
                return Answer("to whoever handles answers")

            @node.handler(Answer)
            async def hear(_, ctx):
                assert ctx.message.callback_points == ()
                handled.set()

            await node.hub.tell(Question())
            await handled.wait()

    run(main())


def test_ctx_reply_does_what_returning_does():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def answer(question, ctx):
                await ctx.reply(Answer(question.text))

            assert await node.hub.ask(Question("Ada"), Answer) == Answer("Ada")

    run(main())


def test_ctx_forward_hands_the_flow_to_a_certain_actor():
    class Expert(fw.Actor):
        @fw.handles(Question, Other)
        async def answer(self, given):
            return Answer(f"{type(given).__name__} {given.text} for the expert")

    async def main():
        async with fw.Node() as node:
            expert = await node.host(Expert())

            @node.handler(Job)
            async def delegate(job, ctx):
                await ctx.forward(Question(str(job.number)), to_actor=expert)

            @node.handler(Other)
            async def pass_on(_, ctx):
                await ctx.forward(to_actor=expert)

            assert await node.hub.ask(Job(7), Answer) == Answer("Question 7 for the expert")
            answers = [await node.hub.ask(Other("Ada"), Answer) for _ in range(2)]
            assert answers == [Answer("Other Ada for the expert")] * 2

    run(main())
