"""Messages that are like others before them: nothing about them is mistaken for what the others had."""

import os

import msgspec
import pytest
from tests.node.running import run

import framewire as fw
from framewire.testing import Cluster
from framewire.wire import decode, encode


@fw.message("like.question")
class Question(msgspec.Struct):
    number: int


@fw.message("like.answer")
class Answer(msgspec.Struct):
    number: int


@fw.message("like.step")
class Step(msgspec.Struct):
    number: int


@fw.message("like.note")
class Note(msgspec.Struct):
    number: int


KEY = os.urandom(32)


def ring():
    return fw.KeyRing([fw.DomainKey("likes", KEY)], {"likes": ["like.*"]})


def overheard(cluster):
    messages = []

    def hear(_, __, frames):
        messages.append(decode(frames))
        assert encode(messages[-1]) == frames
        return frames

    cluster.network.intercept(hear)
    return messages


@pytest.mark.parametrize("keyring", [None, ring()], ids=["unsigned", "signed"])
def test_each_of_many_questions_has_its_own_answer_flow_and_time(keyring):
    async def scenario():
        async with Cluster(2, keyring=keyring) as cluster:
            seen = []

            @cluster[1].handler(Question)
            async def answer(question: Question, ctx: fw.Context) -> Answer:
                seen.append((question.number, ctx.correlation_id, ctx.remaining))
                return Answer(question.number)

            await cluster.settled()
            messages = overheard(cluster)
            for number in range(5):
                asked = cluster[0].hub.ask(Question(number), Answer, timeout=10 + number)
                assert (await asked).number == number
            flows = [message.correlation_id for message in messages if message.identity == b"like.question"]
            assert [flow for _, flow, _ in seen] == flows
            assert len(set(flows)) == 5
            assert [message.correlation_id for message in messages] == [flow for flow in flows for _ in range(2)]
            assert len({message.callback_key for message in messages}) == 5
            assert all(9 + number < remaining <= 10 + number for number, _, remaining in seen)

    run(scenario())


def test_a_limit_of_time_is_not_taken_over_by_a_message_without_one():
    async def scenario():
        async with Cluster(2) as cluster:
            left = []

            @cluster[1].handler(Note)
            async def note(_: Note, ctx: fw.Context) -> None:
                left.append(ctx.remaining)

            await cluster.settled()
            for ttl in (5.0, None, 7.0):
                await cluster[0].hub.tell(Note(1), ttl=ttl)
            await cluster.settled()
            assert left[1] is None
            assert left[0] <= 5 < left[2] <= 7

    run(scenario())


def test_a_signature_is_checked_however_often_its_like_was_good():
    async def scenario():
        async with Cluster(2, keyring=ring()) as cluster:
            heard = []

            @cluster[1].handler(Question)
            async def answer(question: Question) -> Answer:
                heard.append(question.number)
                return Answer(question.number)

            await cluster.settled()
            for number in range(3):
                await cluster[0].hub.ask(Question(number), Answer, timeout=10)

            def tamper(_, __, frames):
                message = decode(frames)
                changed = message.replace(body_frames=(msgspec.msgpack.encode({"number": 99}),))
                return encode(changed) if message.identity == b"like.question" else frames

            cluster.network.intercept(tamper)
            with pytest.raises(fw.BadSignature):
                await cluster[0].hub.ask(Question(3), Answer, timeout=10)
            assert heard == [0, 1, 2]
            assert cluster[1].dead_letters.counts["bad_signature"] == 1

    run(scenario())


def test_a_handler_may_send_one_message_on_and_the_next_to_a_certain_actor():
    async def scenario():
        async with Cluster(3) as cluster:
            handled = []

            class Stepper(fw.Actor):
                def __init__(self, name):
                    self.name = name

                @fw.handles(Step)
                async def step(self, step: Step) -> Answer:
                    handled.append((self.name, step.number))
                    return Answer(step.number)

            there = await cluster[2].host(Stepper("there"))
            await cluster[1].host(Stepper("here"))

            @cluster[1].handler(Question)
            async def question(asked: Question, ctx: fw.Context) -> None:
                if asked.number % 2:
                    await ctx.forward(Step(asked.number), to_actor=fw.Route(there.receiver, cluster[2].identity))
                else:
                    await ctx.reply(Step(asked.number))

            await cluster.settled()
            for number in range(8):
                answer = await cluster[0].hub.ask(Question(number), Answer, timeout=10)
                assert answer.number == number
            assert {number for name, number in handled if name == "there"} >= {1, 3, 5, 7}
            assert sorted(number for _, number in handled) == list(range(8))

    run(scenario())


def test_confirmed_and_asked_messages_of_one_class_do_not_mix():
    async def scenario():
        async with Cluster(2) as cluster:

            @cluster[1].handler(Question)
            async def answer(question: Question) -> Answer:
                return Answer(question.number)

            await cluster.settled()
            for number in range(4):
                await cluster[0].hub.send(Question(number), timeout=10)
                assert (await cluster[0].hub.ask(Question(number), Answer, timeout=10)).number == number
                await cluster[0].hub.tell(Question(number))
                gathered = await cluster[0].hub.gather(Question(number), Answer, timeout=10, stop_after=1)
                assert [each.number for each in gathered] == [number]
            await cluster.settled()
            assert not cluster[0].dead_letters.counts
            assert not cluster[1].dead_letters.counts

    run(scenario())
