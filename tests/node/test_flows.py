"""Flows through many actors."""

import asyncio

import msgspec
import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import run

import framewire as fw

LONGEST = 10
STEPS = [
    fw.message(f"flow.step{number}")(msgspec.defstruct(f"Step{number}", [("passed", list[int])]))
    for number in range(LONGEST + 1)
]
KINDS = ["coroutine", "thread", "inline", "stream"]


def handler(number, kind, fails_at):
    """A handler of one step that returns the next, with its own number added."""

    def following(step):
        if number == fails_at:
            raise ValueError(f"in step {number}")
        return STEPS[number + 1]([*step.passed, number])

    async def coroutine(step):
        await asyncio.sleep(0)
        return following(step)

    async def stream(step):
        yield following(step)

    return {"coroutine": coroutine, "thread": following, "inline": following, "stream": stream}[kind]


def host(node, length, kinds, fails_at=None):
    for number in range(length):
        kind = kinds[number % len(kinds)]
        node.handler(STEPS[number], inline=kind == "inline")(handler(number, kind, fails_at))


@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), KINDS], ids=[*KINDS, "mixed"])
@pytest.mark.parametrize("length", range(1, LONGEST + 1))
def test_the_answer_comes_from_the_last_of_many_actors(length, kinds):
    async def main():
        async with fw.Node() as node:
            host(node, length, kinds)
            answer = await node.hub.ask(STEPS[0]([]), STEPS[length])
            assert answer.passed == list(range(length))

    run(main())


def test_the_tenth_actor_answers_straight_to_the_hub():
    async def main():
        node = fw.Node()
        steps = []

        @node.on_trace
        def record(step):
            if step.step == "routed":
                steps.append((step.message_id.identity, step.detail))

        async with node:
            host(node, LONGEST, ["coroutine"])
            await node.hub.ask(STEPS[0]([]), STEPS[LONGEST], trace=True)
            assert [identity for identity, _ in steps] == [b"flow.step%d" % number for number in range(LONGEST + 1)]
            assert steps[-1][1] == f"to {node.hub.identity.hex()}"

    run(main())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fails_at", [0, 4, 9])
def test_an_exception_anywhere_in_a_flow_reaches_the_caller_at_once(fails_at, kind):
    async def main():
        async with fw.Node() as node:
            host(node, LONGEST, [kind], fails_at)
            with pytest.raises(fw.RemoteError, match=f"in step {fails_at}"):
                await node.hub.ask(STEPS[0]([]), STEPS[LONGEST], timeout=10)
            failed = {each.message: each.failed for actor in node.stats().actors for each in actor.handlers}
            assert failed[f"flow.step{fails_at} v1"] == 1

    run(main())


@pytest.mark.parametrize("kind", ["list", "stream"])
def test_a_flow_fans_out_and_in_again(kind):
    class FanIn(fw.Actor):
        def __init__(self):
            self.parts = {}

        @fw.handles(Done)
        async def join(self, done, ctx):
            parts = self.parts.setdefault(ctx.correlation_id, [])
            parts.append(done.number)
            return Answer(str(sum(parts))) if len(parts) == 20 else None

    async def main():
        async with fw.Node() as node:
            await node.host(FanIn())

            if kind == "list":

                @node.handler(Question)
                async def fan_out(_):
                    return [Job(number) for number in range(20)]
            else:

                @node.handler(Question)
                async def fan_out(_):
                    for number in range(20):
                        yield Job(number)

            @node.handler(Job, concurrency=5)
            async def square(job):
                await asyncio.sleep(0)
                return Done(job.number**2)

            answers = await asyncio.gather(*(node.hub.ask(Question(), Answer) for _ in range(10)))
            assert {answer.text for answer in answers} == {str(sum(number**2 for number in range(20)))}
            assert len(node.dead_letters) == 0

    run(main())


def test_of_several_answers_the_first_counts_and_the_others_are_duplicates():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def answer(_):
                return [Answer("first"), Answer("second"), Answer("third")]

            assert await node.hub.ask(Question(), Answer) == Answer("first")
            assert node.dead_letters.counts == {fw.Reason.DUPLICATE_REPLY: 2}

    run(main())


def test_many_flows_at_once_do_not_get_each_others_answers():
    async def main():
        async with fw.Node() as node:
            hubs = [node.hub, await node.new_hub(), await node.new_hub()]

            @node.handler(Job, concurrency=10)
            async def shuffle(job):
                for _ in range(job.number % 7):
                    await asyncio.sleep(0)
                return Done(job.number)

            asked = [hubs[number % 3].ask(Job(number), Done) for number in range(600)]
            assert [done.number for done in await asyncio.gather(*asked)] == list(range(600))

    run(main())
