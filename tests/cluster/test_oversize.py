"""Messages that are larger than a node takes: what happens to them, and to those beside them."""

import asyncio
import contextlib

import pytest
import zmq
from tests.cluster.clustering import Named, acquainted, handled_by, make_node, peers, served, uri_of
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.wire import Message, encode

LIMIT = 2048


def with_a_narrow_node(main, **options):
    """Run a test on a node with the usual limits, and one that takes little and hosts an actor."""

    async def with_nodes(server):
        narrow = make_node(server, max_message_bytes=LIMIT, max_frames=50, **options)
        async with make_node(server) as one, narrow:
            actor = Named("narrow")
            await narrow.host(actor)
            await acquainted(one, narrow)
            await handled_by(1, one)
            await main(one, narrow, actor)

    run(served(with_nodes))


async def answered_again(node):
    """Wait until the connection that was closed has been made anew."""
    while True:
        with contextlib.suppress(fw.Expired):  # what was on the same connection may be lost with it
            return await node.hub.ask(Question("small"), Answer, timeout=0.5)


@pytest.mark.parametrize("size", [LIMIT, 2 * LIMIT - 10])
def test_a_frame_of_up_to_twice_the_size_is_dropped_alone_and_counted_by_its_sender(size):
    async def main(one, narrow, actor):
        await one.hub.ask(Question("before"), Answer)
        questions = [Question("x" * size if number == 10 else f"{number}") for number in range(20)]
        asked = (one.hub.ask(question, Answer, timeout=2) for question in questions)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [number for number, each in enumerate(answers) if not isinstance(each, Answer)] == [10]
        assert len(actor.asked) == 20
        assert list(narrow.stats().refused.values()) == [{"oversized": 1}]

    with_a_narrow_node(main)


def test_a_message_that_is_far_too_large_does_not_get_in_and_those_after_it_do():
    async def main(one, _, actor):
        await one.hub.tell(Question("x" * 2 * LIMIT))
        assert (await answered_again(one)).text == "narrow"
        assert set(actor.asked) == {"small"}

    with_a_narrow_node(main)


def test_who_asks_with_a_message_that_its_receiver_does_not_take_waits_in_vain_but_does_not_lose_the_node():
    async def main(one, narrow, _):
        with pytest.raises(fw.Expired):
            await one.hub.ask(Question("x" * 2 * LIMIT), Answer, timeout=1)
        assert narrow.identity in peers(one)
        assert (await answered_again(one)).text == "narrow"

    with_a_narrow_node(main)


@pytest.mark.parametrize(
    "frames",
    [[b"x" * (LIMIT // 2)] * 3, [b""] * 51, [b"x" * (LIMIT + 1)]],
    ids=["too many bytes in all", "too many frames", "too many bytes in one"],
)
def test_a_message_that_is_too_large_is_dropped_alone_and_counted_by_its_sender(frames):
    async def main(_, narrow, actor):
        with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
            stranger.setsockopt(zmq.ROUTING_ID, b"stranger")
            stranger.connect(uri_of(narrow))
            stranger.send_multipart(frames)
            good = Message(b"test.question", hops=1).replace(body=b"\x81\xa4text\xa4good")
            stranger.send_multipart(encode(good)[1:])
            await eventually(lambda: actor.asked == ["good"])
            assert narrow._transport._front.oversized == 1
            assert narrow.stats().refused == {"stranger": {"oversized": 1}}, "by whom it was sent"

    with_a_narrow_node(main)


def test_a_message_of_just_the_size_that_is_taken_arrives():
    async def main(one, _, actor):
        await one.hub.ask(Question("x" * (LIMIT // 2)), Answer)
        assert actor.asked == ["x" * (LIMIT // 2)]

    with_a_narrow_node(main)


def test_a_message_that_is_too_large_does_not_leave_and_no_other_is_lost_with_it():
    async def main(server):
        async with (
            make_node(server, max_message_bytes=LIMIT) as one,
            make_node(server, max_message_bytes=LIMIT) as two,
        ):
            actor = Named("two")
            await two.host(actor)
            await acquainted(one, two)
            await handled_by(1, one)
            questions = [Question("x" * 2 * LIMIT if number % 5 == 4 else f"{number}") for number in range(100)]
            answers = await asyncio.gather(
                *(one.hub.ask(question, Answer, timeout=10) for question in questions), return_exceptions=True
            )
            for question, answer in zip(questions, answers, strict=True):
                if len(question.text) > LIMIT:
                    assert isinstance(answer, fw.BadBody)
                    assert f"at most {LIMIT} (max_message_bytes)" in str(answer)
                else:
                    assert isinstance(answer, Answer)
            assert len(actor.asked) == 80
            assert one.dead_letters.counts == {"bad_body": 20}

    run(served(main))


class Failing(fw.Actor):
    """Fails with a text of the length that is asked for."""

    @fw.handles(Question)
    async def fail(self, question):
        raise ValueError("x" * int(question.text))


@pytest.mark.parametrize("limit", [1024, LIMIT, 128 * 1024])
@pytest.mark.parametrize("length", [10, 100_000, 3_000_000])
def test_a_failure_that_is_too_large_to_leave_still_reaches_its_caller(limit, length):
    async def main(server):
        narrow = make_node(server, max_message_bytes=limit)
        async with make_node(server, max_message_bytes=limit) as one, narrow:
            await narrow.host(Failing())
            await acquainted(one, narrow)
            await handled_by(1, one)
            for _ in range(2):  # the second over a connection that is there
                with pytest.raises(fw.RemoteError, match=r"ValueError in Failing\.fail") as failed:
                    await one.hub.ask(Question(str(length)), Answer, timeout=10)
                assert failed.value.detail.startswith("x")
            assert not one.dead_letters.counts
            assert not narrow.dead_letters.counts

    run(served(main))
