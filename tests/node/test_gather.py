"""Request-many: the replies to a broadcast."""

import asyncio

import pytest
from tests.node.messages import Answer, Question
from tests.node.running import run

import framewire as fw


class Voter(fw.Actor):
    def __init__(self, vote):
        self.vote = vote

    @fw.handles(Question)
    async def answer(self, _):
        if self.vote == "ill":
            raise ValueError("ill")
        if self.vote == "asleep":
            await asyncio.Event().wait()
        return Answer(self.vote)


async def gathered(*votes, **options):
    async with fw.Node(stop_timeout=0) as node:
        for vote in votes:
            await node.host(Voter(vote))
        return await node.hub.gather(Question(), Answer, **options)


def texts(replies):
    return sorted(reply.text for reply in replies)


def test_gather_collects_the_replies_of_every_handler():
    replies = run(gathered("a", "b", "c", stop_after=3))
    assert texts(replies) == ["a", "b", "c"]
    assert replies.errors == []


def test_gather_stops_when_there_are_enough():
    assert len(run(gathered("a", "b", "c", stop_after=2))) == 2


def test_gather_gives_what_it_has_when_the_time_is_over():
    assert texts(run(gathered("a", "asleep", "c", timeout=0.1))) == ["a", "c"]


def test_gather_gives_what_it_has_when_there_are_never_enough():
    assert texts(run(gathered("a", stop_after=5, timeout=0.1))) == ["a"]


def test_handlers_that_fail_are_listed_with_their_errors():
    replies = run(gathered("a", "ill", "c", stop_after=3))
    assert texts(replies) == ["a", "c"]
    assert [(type(error), error.detail) for error in replies.errors] == [(fw.RemoteError, "ill")]


def test_gathering_where_nobody_handles_it_is_no_route():
    with pytest.raises(fw.NoRoute):
        run(gathered())


def test_replies_after_enough_are_not_delivered():
    async def main():
        async with fw.Node() as node:
            for vote in "abc":
                await node.host(Voter(vote))
            replies = await node.hub.gather(Question(), Answer, stop_after=1)
            assert len(replies) == 1
            assert node.dead_letters.counts.total() == 2
            assert len(replies) == 1

    run(main())


def test_a_gathering_ends_with_the_node():
    async def main():
        async with fw.Node(stop_timeout=0) as node:
            await node.host(Voter("asleep"))
            gathering = asyncio.create_task(node.hub.gather(Question(), Answer))
            await asyncio.sleep(0)
        with pytest.raises(fw.NodeStopped):
            await gathering

    run(main())


def test_a_handler_that_finds_nobody_itself_does_not_end_the_gathering():
    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def confused(_, ctx):
                await ctx.ask(Answer(), Question)

            await node.host(Voter("a"))
            replies = await node.hub.gather(Question(), Answer, stop_after=2)
            assert texts(replies) == ["a"]
            assert [type(error) for error in replies.errors] == [fw.RemoteError]

    run(main())
