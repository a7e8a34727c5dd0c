"""What goes to which node by message, and how long answers take."""

import pytest
from tests.node.messages import Answer, Question
from tests.node.running import run

import framewire as fw
from framewire.node.samples import Samples
from framewire.testing import Cluster
from framewire.wire import MessageId

TEA, CAKE = MessageId(b"tea"), MessageId(b"cake")


def sending(samples, messages):
    """Send messages as a node does."""
    for message in messages:
        samples.due -= 1
        if samples.due <= 0:
            samples.sent(b"there", message)


def told(samples):
    return {message: found.sent for _, message, found in samples.busiest(10)}


def test_with_little_to_do_everything_is_counted():
    samples = Samples()
    sending(samples, [TEA, CAKE, TEA])
    assert told(samples) == {TEA: 2, CAKE: 1}


def test_with_much_to_do_a_few_stand_for_all():
    samples = Samples()
    samples.adapt(50_000.0)
    sending(samples, [TEA, TEA, TEA, CAKE] * 2500)
    found = told(samples)
    assert found[TEA] == pytest.approx(7500, rel=0.01)
    assert found[CAKE] == pytest.approx(2500, rel=0.02)
    samples.adapt(10.0)
    sending(samples, [CAKE] * 117)
    assert told(samples)[CAKE] - found[CAKE] in range(100, 135)


def test_the_busiest_come_first_and_no_more_than_asked_for():
    samples = Samples()
    sending(samples, [CAKE, TEA, TEA])
    assert [message for _, message, _ in samples.busiest(1)] == [TEA]


def test_there_are_bounds_to_what_is_remembered():
    samples = Samples()
    for number in range(3000):
        samples.sent(b"there", MessageId(b"%d" % number))
        samples.answered(b"there", TEA, 1.0)
    assert len(samples.busiest(10_000)) == 1000


def test_quantiles_are_of_the_last_answers():
    samples = Samples()
    for took in [100.0] * 50 + [1.0] * 60 + [5.0] * 4:
        samples.answered(b"there", TEA, took)
    [(_, _, found)] = samples.busiest(1)
    assert (found.quantile(0.5), found.quantile(0.95)) == (1.0, 5.0)
    assert Samples()._way(b"there", CAKE).quantile(0.5) is None


class Oracle(fw.Actor):
    @fw.handles(Question)
    async def answer(self, question: Question) -> Answer:
        return Answer(question.text)


def test_a_node_tells_what_it_sends_to_whom_and_how_long_answers_take():
    async def main():
        async with Cluster(2) as cluster:
            asker, oracle = cluster[0], cluster[1]
            await oracle.host(Oracle())
            await cluster.settled()
            for _ in range(5):
                await asker.hub.ask(Question(), Answer)
            asked = next(way for way in asker.stats().ways if way.message == "test.question v1")
            assert (asked.node, asked.sent) == ("node-1", 5)
            assert asked.p50 is not None
            assert asked.p95 >= asked.p50
            answered = next(way for way in oracle.stats().ways if way.message == "test.answer v1")
            assert (answered.node, answered.sent, answered.p50) == ("node-0", 5, None)

    run(main())
