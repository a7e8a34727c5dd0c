"""How handlers are written, run and answered for."""

import asyncio
import functools
import threading

import msgspec
import pytest
from tests.node.messages import Answer, Job, Other, Question
from tests.node.running import eventually, run

import framewire as fw


async def ask(node, actor=None, text="Ada"):
    if actor is not None:
        await node.host(actor)
    return await node.hub.ask(Question(text), Answer, timeout=10)


def answered(actor):
    async def main():
        async with fw.Node() as node:
            return (await ask(node, actor)).text

    return run(main())


def test_a_coroutine_handles_on_the_event_loop():
    class Greeter(fw.Actor):
        @fw.handles(Question)
        async def answer(self, question):
            await asyncio.sleep(0)
            return Answer(f"{question.text} {threading.current_thread() is threading.main_thread()}")

    assert answered(Greeter()) == "Ada True"


def test_a_plain_def_handles_in_a_thread():
    class Greeter(fw.Actor):
        @fw.handles(Question)
        def answer(self, question):
            return Answer(f"{question.text} {threading.current_thread().name}")

    assert answered(Greeter()).startswith("Ada framewire handler")


def test_an_inline_def_handles_at_once_where_the_message_is_sent():
    class Greeter(fw.Actor):
        @fw.handles(Question, inline=True)
        def answer(self, question):
            return Answer(f"{question.text} {threading.current_thread() is threading.main_thread()}")

    async def main():
        async with fw.Node() as node:
            await node.host(Greeter())
            promise = node.hub.start(Question("Ada"), Answer)
            assert promise.done
            assert await promise == Answer("Ada True")

    run(main())


def test_an_async_generator_sends_each_message_as_it_yields():
    async def main():
        async with fw.Node() as node:
            seen = []
            halfway = asyncio.Event()

            @node.handler(Question)
            async def count(_):
                yield Job(1)
                await halfway.wait()
                yield Job(2)

            @node.handler(Job)
            async def collect(job):
                seen.append(job.number)
                halfway.set()

            await node.hub.tell(Question())
            await eventually(lambda: seen == [1, 2])

    run(main())


@pytest.mark.parametrize(
    ("returned", "expected"),
    [(None, []), (Job(1), [1]), ([Job(1), Job(2)], [1, 2]), ((Job(1), Job(2)), [1, 2]), ([], [])],
    ids=["nothing", "one", "list", "tuple", "empty list"],
)
def test_a_handler_returns_nothing_one_or_several(returned, expected):
    async def main():
        async with fw.Node() as node:
            seen = []

            @node.handler(Question)
            async def answer(_):
                return returned

            @node.handler(Job)
            async def collect(job):
                seen.append(job.number)

            @node.handler(Other)
            async def end(_):
                return Answer()

            await node.hub.tell(Question())
            await eventually(lambda: len(seen) == len(expected))
            await node.hub.ask(Other(), Answer)
            assert seen == expected
            assert len(node.dead_letters) == 0

    run(main())


@pytest.mark.parametrize("inline", [False, True], ids=["thread", "inline"])
def test_a_plain_function_can_be_a_handler(inline):
    async def main():
        node = fw.Node()

        @node.handler(Question, inline=inline)
        def answer(question):
            return Answer(question.text)

        async with node:
            assert await ask(node) == Answer("Ada")

    run(main())


def test_a_function_can_become_a_handler_while_the_node_runs():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question, Job)
            async def answer(given, ctx):
                return Answer(f"{type(given).__name__} {ctx.message_id}")

            assert await ask(node) == Answer("Question test.question v1")
            assert await node.hub.ask(Job(), Answer) == Answer("Job test.job v1")

    run(main())


class Callable:
    async def __call__(self, question):
        return Answer(question.text)


async def prefixed(prefix, question):
    return Answer(prefix + question.text)


@pytest.mark.parametrize("function", [Callable(), functools.partial(prefixed, "")], ids=["object", "partial"])
def test_whatever_can_be_called_can_be_a_handler(function):
    async def main():
        async with fw.Node() as node:
            node.handler(Question)(function)
            assert await ask(node) == Answer("Ada")

    run(main())


def test_a_handler_may_be_inherited_and_overridden():
    class Polite(fw.Actor):
        @fw.handles(Question)
        async def answer(self, _):
            return Answer("please")

    class Inherits(Polite):
        pass

    class Overrides(Polite):
        @fw.handles(Question)
        async def answer(self, _):
            return Answer("no")

    assert answered(Inherits()) == "please"
    assert answered(Overrides()) == "no"


@fw.message("orders.place", version=1, partition="eu")
class PlaceEu(msgspec.Struct):
    pass


@fw.message("orders.place", version=1, partition="us")
class PlaceUs(msgspec.Struct):
    pass


@fw.message("orders.place", version=2, partition="eu")
class PlaceEu2(msgspec.Struct):
    pass


def test_the_same_message_in_several_partitions_and_versions_goes_to_different_handlers():
    class Orders(fw.Actor):
        @fw.handles(PlaceEu)
        async def eu(self, _):
            return Answer("eu")

        @fw.handles(PlaceUs)
        async def us(self, _):
            return Answer("us")

    class Newer(fw.Actor):
        @fw.handles(PlaceEu2)
        async def eu(self, _):
            return Answer("eu 2")

    async def main():
        async with fw.Node() as node:
            await node.host(Orders())
            await node.host(Newer())
            placed = [await node.hub.ask(cls(), Answer) for cls in (PlaceEu, PlaceUs, PlaceEu2)]
            assert [answer.text for answer in placed] == ["eu", "us", "eu 2"]

    run(main())


def test_a_type_handled_twice_by_one_actor_is_an_error_at_once():
    with pytest.raises(fw.UsageError, match=r"Twice handles test.question v1 twice: in one and two"):

        class Twice(fw.Actor):
            @fw.handles(Question)
            async def one(self, _): ...

            @fw.handles(Question)
            async def two(self, _): ...


def test_a_type_handled_twice_by_one_function_is_an_error_at_once():
    with pytest.raises(fw.UsageError, match="one message twice"):

        @fw.Node().handler(Question, Question)
        async def twice(_): ...


def test_two_actors_of_one_class_take_turns():
    class Counting(fw.Actor):
        def __init__(self, name):
            self.name = name

        @fw.handles(Question)
        async def answer(self, _):
            return Answer(self.name)

    async def main():
        async with fw.Node() as node:
            await node.host(Counting("a"))
            await node.host(Counting("b"))
            answers = [(await ask(node)).text for _ in range(4)]
            assert answers == ["a", "b", "a", "b"]

    run(main())


def test_one_actor_cannot_be_hosted_twice():
    class Single(fw.Actor):
        @fw.handles(Question)
        async def answer(self, _): ...

    async def main():
        async with fw.Node() as node:
            single = Single()
            address = await node.host(single)
            with pytest.raises(fw.UsageError, match="hosted already"):
                await node.host(single)
            await node.unhost(address)
            await node.host(single)

    run(main())


def test_an_actor_without_handlers_can_be_hosted():
    async def main():
        async with fw.Node() as node:
            await node.host(fw.Actor())

    run(main())


def needs_context(_):
    """More than a handler gets."""


@pytest.mark.parametrize(
    ("declare", "complaint"),
    [
        (fw.handles, "name at least one"),
        (lambda: fw.Node().handler()(needs_context), "name at least one"),
        (lambda: fw.handles(int), "int is not a message"),
        (lambda: fw.handles(Question, inline=True)(prefixed), "only a plain def can run inline"),
        (lambda: fw.Node().handler(Question)(lambda: None), "must take the payload"),
        (lambda: fw.Node().handler(Question)(lambda _a, _b, _c: None), "must take the payload"),
        (lambda: fw.Restart(attempts=0), "attempts: 0"),
        (lambda: fw.Restart(after=0), "after: 0"),
        (lambda: fw.Restart(backoff=-1), "backoff: -1"),
    ],
    ids=["no type", "function", "int", "inline", "no payload", "too much", "attempts", "after", "backoff"],
)
def test_a_handler_that_cannot_work_is_an_error_at_once(declare, complaint):
    with pytest.raises(fw.UsageError, match=complaint):
        declare()


def test_a_def_that_yields_is_an_error_at_once():
    with pytest.raises(fw.UsageError, match="yields; make it `async def`"):

        @fw.handles(Question)
        def generate(_, __):
            yield Answer()


@pytest.mark.parametrize(
    "returned", ["text", {"a": 1}, [Answer(), 5], Question], ids=["str", "dict", "list", "class"]
)
def test_returning_something_that_is_no_message_is_told_to_the_caller(returned):
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def answer(_):
                return returned

            with pytest.raises(fw.RemoteError, match="is not a message; declare it"):
                await ask(node)

    run(main())


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        (lambda node: node.host(5), "neither an actor nor something that makes one"),
        (lambda node: node.host(fw.Actor(), concurrency=0), "concurrency: 0"),
        (lambda node: node.host(fw.Actor(), mailbox=0), "mailbox: 0"),
        (lambda node: node.host(fw.Actor(), overflow="explode"), "overflow: 'explode'"),
        (lambda node: node.host(lambda: 5), "no actor"),
    ],
    ids=["number", "concurrency", "mailbox", "overflow", "factory"],
)
def test_hosting_what_cannot_be_hosted_is_an_error(host, complaint):
    async def main():
        async with fw.Node() as node:
            with pytest.raises(fw.UsageError, match=complaint):
                await host(node)

    run(main())


def test_options_of_a_function_are_checked():
    async def main():
        node = fw.Node()

        @node.handler(Question, concurrency=-1)
        async def answer(_): ...

        with pytest.raises(fw.UsageError, match="concurrency: -1"):
            await node.start()

    run(main())
