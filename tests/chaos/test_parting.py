"""Leaving: what is under way to a node that leaves is answered, by it or by another, and fails for nobody."""

import asyncio
import contextlib

import pytest
from tests.cluster.clustering import Named, acquainted, handled_by, make_node, peers, served
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster import parting
from framewire.cluster.channel import open_channel
from framewire.cluster.parting import Partings

QUESTION = fw.MessageId(b"test.question")


class Slow(fw.Actor):
    """Answers when it may."""

    def __init__(self):
        self.may = asyncio.Event()
        self.asked = 0

    @fw.handles(Question)
    async def answer(self, _):
        self.asked += 1
        await self.may.wait()
        return Answer("slow")


class Blocked:
    """A channel that has no room."""

    oversized = 0

    def send(self, _):
        return False

    def send_many(self, _):
        return 0


@contextlib.contextmanager
def blocked(node):
    """Let nothing leave a node, so that it waits."""
    links = node._transport._links
    channels = {link: link.channel for link in links._links.values()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("framewire.cluster.links.open_channel", lambda *_: Blocked())
        for link in channels:
            link.channel = Blocked()
        yield links
    for link in links._links.values():
        link.channel = channels.get(link) or open_channel(link.socket)


def test_what_comes_to_a_node_after_it_has_said_that_it_leaves_is_answered(monkeypatch):
    monkeypatch.setattr(parting, "_HEARD", 2.0)

    async def main(server):
        async with make_node(server) as asker, make_node(server) as other, make_node(server) as leaving:
            await leaving.host(Named("leaving"))
            await other.host(Named("other"))
            await acquainted(asker, other, leaving)
            await handled_by(2, asker, other, leaving)
            asker._router.peer_unregistered = lambda *_: None  # it does not hear of it
            stopping = asyncio.create_task(leaving.stop())
            await handled_by(1, other)
            assert not stopping.done()
            asked = [asker.hub.ask(Question("who"), Answer) for _ in range(20)]
            assert {answer.text for answer in await asyncio.gather(*asked)} == {"other", "leaving"}
            await stopping
            assert len(leaving.dead_letters) == 0

    run(served(main))


def test_an_ask_waits_for_the_last_answer_of_a_node_that_has_left():
    async def main(server):
        async with make_node(server) as asker, make_node(server) as leaving:
            slow = Slow()
            await leaving.host(slow)
            await acquainted(asker, leaving)
            await handled_by(1, asker)
            asking = asyncio.create_task(asker.hub.ask(Question("who"), Answer))
            await eventually(lambda: slow.asked)
            asker._transport._left(leaving.identity)  # the news overtakes the answer
            assert leaving.identity not in peers(asker)
            slow.may.set()
            assert (await asking).text == "slow"

    run(served(main))


def test_an_ask_of_a_node_that_has_left_without_an_answer_is_unreachable_by_the_misses():
    async def main(server):
        async with make_node(server, misses=3) as asker, make_node(server) as leaving:
            slow = Slow()
            await leaving.host(slow)
            await acquainted(asker, leaving)
            await handled_by(1, asker)
            asking = asyncio.create_task(asker.hub.ask(Question("who"), Answer, timeout=60))
            await eventually(lambda: slow.asked)
            asker._transport._left(leaving.identity)
            with pytest.raises(fw.Unreachable):
                await asking
            slow.may.set()

    run(served(main))


def test_what_waits_for_a_node_that_leaves_goes_to_another():
    async def main(server):
        async with make_node(server) as asker, make_node(server) as other, make_node(server) as leaving:
            await leaving.host(Named("leaving"))
            await acquainted(asker, other, leaving)
            await handled_by(1, asker, other)
            with blocked(asker) as links:
                asking = asyncio.create_task(asker.hub.ask(Question("who"), Answer))
                await eventually(lambda: links.queued)
                await other.host(Named("other"))
                await handled_by(2, asker)
                asker._transport._left(leaving.identity)
            assert (await asking).text == "other"
            assert not asker.dead_letters.counts

    run(served(main))


def test_what_waits_for_a_node_that_leaves_and_is_for_that_node_alone_is_unreachable():
    async def main(server):
        async with make_node(server) as asker, make_node(server) as leaving:
            await acquainted(asker, leaving)
            with blocked(asker) as links:
                asked = asker.hub.ask(Question("who"), Answer, to_node=leaving.identity)
                asking = asyncio.create_task(asked)
                await eventually(lambda: links.queued)
                asker._transport._left(leaving.identity)
                with pytest.raises(fw.Unreachable, match="has left"):
                    await asking

    run(served(main))


def test_a_node_that_is_there_again_is_no_longer_waited_for():
    async def main():
        over = []
        partings = Partings(0.01, over.append)
        partings.begin(b"back")
        partings.end(b"back")
        partings.end(b"back")
        assert over == [b"back"]
        partings.begin(b"gone")
        await eventually(lambda: over == [b"back", b"gone"])
        partings.begin(b"never")
        partings.close()
        partings.end(b"never")
        assert over == [b"back", b"gone"]

    run(main())


def test_no_ask_fails_while_the_only_node_that_handles_it_is_started_anew():
    async def main(server):
        async with make_node(server) as asker:
            answers, stop = [], asyncio.Event()

            async def ask_on():
                while not stop.is_set():
                    answers.append(await asker.hub.ask(Question(), Answer))
                    await asyncio.sleep(0.001)

            asking = []
            for name in ("first", "second", "third"):
                async with make_node(server) as owner:
                    await owner.host(Named(name))
                    await handled_by(1, asker)
                    asking = asking or [asyncio.create_task(ask_on()) for _ in range(20)]
                    await eventually(lambda name=name: Answer(name) in answers[-20:])
                    assert not any(task.done() for task in asking)
                    if name == "third":
                        stop.set()
                        await asyncio.gather(*asking)
                assert fw.Reason.NODE_STOPPED not in owner.dead_letters.counts
            assert {answer.text for answer in answers} == {"first", "second", "third"}
            assert len(asker.dead_letters) == 0

    run(served(main), timeout=60)


def test_how_long_a_node_is_waited_for_is_its_own_setting():
    async def main(server):
        async with make_node(server) as asker:
            async with make_node(server, route_grace=0.3) as owner:
                await owner.host(Named("owner"))
                await handled_by(1, asker)
            with pytest.raises(fw.NoRoute, match=r"asked 0 nodes for 0\.[0-3] s"):
                await asker.hub.ask(Question(), Answer, timeout=5)

    run(served(main))
