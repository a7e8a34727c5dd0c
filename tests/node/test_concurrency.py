"""How many messages an actor handles at a time, and in which order."""

import asyncio
import contextvars
import threading

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, run

import framewire as fw

NAME = contextvars.ContextVar("name", default="nobody")


class Gate(fw.Actor):
    """Lets messages in, and finishes them when it is told to."""

    def __init__(self):
        self.inside = 0
        self.most = 0
        self.order = []
        self.go = asyncio.Event()

    @fw.handles(Job)
    async def job(self, job):
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self.go.wait()
        self.inside -= 1
        self.order.append(job.number)
        return Done(job.number)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_than_concurrency_messages_are_handled_at_a_time(concurrency):
    async def main():
        async with fw.Node() as node:
            gate = Gate()
            await node.host(gate, concurrency=concurrency)
            promises = [node.hub.start(Job(number), Done) for number in range(10)]
            await eventually(lambda: gate.inside == concurrency)
            gate.go.set()
            await asyncio.gather(*promises)
            assert gate.most == concurrency

    run(main())


def test_concurrency_can_be_said_in_the_class():
    class Wide(Gate):
        concurrency = 2

    async def main():
        async with fw.Node() as node:
            gate = Wide()
            await node.host(gate)
            promises = [node.hub.start(Job(number), Done) for number in range(5)]
            await eventually(lambda: gate.inside == 2)
            gate.go.set()
            await asyncio.gather(*promises)
            assert gate.most == 2

    run(main())


def test_one_at_a_time_keeps_the_order():
    async def main():
        async with fw.Node() as node:
            order = []

            @node.handler(Job)
            async def job(job):
                for _ in range(job.number % 3):
                    await asyncio.sleep(0)
                order.append(job.number)

            for number in range(500):
                await node.hub.tell(Job(number))
            await eventually(lambda: len(order) == 500)
            assert order == list(range(500))

    run(main())


def test_threads_of_one_actor_run_side_by_side():
    async def main():
        both = threading.Barrier(2, timeout=10)

        async with fw.Node() as node:

            @node.handler(Job, concurrency=2)
            def meet(job):
                both.wait()
                return Done(job.number)

            done = await asyncio.gather(*(node.hub.ask(Job(number), Done) for number in range(2)))
            assert [each.number for each in done] == [0, 1]

    run(main())


def test_other_tasks_have_their_turn_while_an_actor_is_flooded():
    async def main():
        async with fw.Node(mailbox=10_000) as node:
            handled = 0

            @node.handler(Job)
            async def job(_):
                nonlocal handled
                handled += 1

            turns = []

            async def other():
                while handled < 5_000:
                    turns.append(handled)
                    await asyncio.sleep(0)

            task = asyncio.create_task(other())
            for number in range(5_000):
                await node.hub.tell(Job(number))
            await task
            assert len(turns) > 10

    run(main())


def test_what_handlers_know_does_not_depend_on_who_sent_the_first_message():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def who(_):
                await asyncio.sleep(0)
                return Answer(NAME.get())

            NAME.set("the first sender")
            assert await node.hub.ask(Question(), Answer) == Answer("nobody")

    run(main())


def test_what_a_handler_does_to_its_context_stays_within_its_actor():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def rename(_):
                NAME.set("the handler")
                return Answer(NAME.get())

            assert await node.hub.ask(Question(), Answer) == Answer("the handler")
            assert NAME.get() == "nobody"

    run(main())
