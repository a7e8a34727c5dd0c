"""Messages that go nowhere: counted, kept, logged, handed over."""

import asyncio
import logging
import os

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.node.deadletters import DeadLetters
from framewire.node.parcel import Parcel
from framewire.node.payloads import type_of
from framewire.wire import Message, encode

JOB = type_of(Job).message_id


class Silent(fw.Actor):
    @fw.handles(Question)
    async def wait(self, _):
        await asyncio.Event().wait()


async def no_route(node):
    await node.hub.tell(Job(1))


async def expired(node):
    await node.host(Silent(), mailbox=5)
    await node.hub.tell(Question())
    await node.hub.tell(Question(), ttl=0.001)
    address = next(route for route, cell in node._cells.items() if cell.name == "Silent")
    deadline = node._core.now() + 0.001
    await eventually(lambda: node._core.now() > deadline)
    cell = node._cells[address]
    await cell._desk.handle(cell.mailbox.take(), next(iter(cell.workers)))


async def overloaded(node):
    await node.host(Silent(), mailbox=1, overflow="reject")
    for _ in range(2):
        await node.hub.tell(Question())
        await eventually(lambda: node.stats().actors[-1].busy)
    with pytest.raises(fw.Overloaded):
        await node.hub.tell(Question())


async def bad_body(node):
    node.handler(Job)(lambda _: None)
    node.port.receive(b"peer", encode(Message(b"test.job", body_frames=(b"\xc1",))))


async def bad_signature(node):
    node.handler(Job)(lambda _: None)
    node.port.receive(b"peer", encode(Message(b"secret.plan", domain="secret")))


async def handler_gone(node):
    address = await node.host(Silent())
    await node.hub.tell(Question())
    await eventually(lambda: node.stats().actors[-1].busy)
    await node.unhost(address)


async def late_reply(node):
    go = asyncio.Event()

    @node.handler(Job, cancel_late=False)
    async def slow(job):
        await go.wait()
        return Done(job.number)

    with pytest.raises(fw.Expired):
        await node.hub.ask(Job(1), Done, timeout=0.02)
    go.set()


async def malformed(node):
    node.port.receive(b"peer", [b"these", b"are", b"no", b"message"])


@pytest.mark.parametrize(
    "die",
    [no_route, expired, overloaded, bad_body, bad_signature, handler_gone, late_reply, malformed],
    ids=lambda die: die.__name__,
)
def test_every_death_is_counted_by_its_reason_and_handed_to_the_hook(die):
    async def main():
        ring = fw.KeyRing([fw.DomainKey("secret", os.urandom(32))], {"secret": ["secret.*"]})
        node = fw.Node(stop_timeout=0.05, keyring=ring)
        handed = []
        node.on_dead_letter(handed.append)
        async with node:
            await die(node)
            await eventually(lambda: len(node.dead_letters))
            assert node.dead_letters.counts == {fw.Reason(die.__name__): 1}
            assert node.stats().dead_letters == {die.__name__: 1}
            assert [letter.reason for letter in handed] == [die.__name__]
            assert list(node.dead_letters) == handed
            assert handed[0].detail

    run(main())


def test_a_dead_letter_has_its_message():
    async def main():
        async with fw.Node() as node:
            await node.hub.tell(Job(7), correlation_id=b"flow")
            [letter] = node.dead_letters
            assert letter.message.message_id == JOB
            assert letter.message.correlation_id == b"flow"
            assert type_of(Job).decode(letter.message.body) == Job(7)

    run(main())


def test_frames_that_are_no_message_are_kept_as_they_came():
    async def main():
        async with fw.Node() as node:
            await malformed(node)
            [letter] = node.dead_letters
            assert letter.message is None
            assert letter.frames == (b"these", b"are", b"no", b"message")

    run(main())


def test_only_the_last_letters_are_kept_but_all_are_counted():
    async def main():
        async with fw.Node(keep_dead_letters=3) as node:
            for number in range(10):
                await node.hub.tell(Job(number))
            kept = [type_of(Job).decode(letter.message.body).number for letter in node.dead_letters]
            assert kept == [7, 8, 9]
            assert len(node.dead_letters) == 10

    run(main())


def test_the_log_is_not_flooded(caplog):
    caplog.set_level(logging.WARNING, "framewire.deadletters")
    now = 0.0
    letters = DeadLetters(10, lambda: now)

    def die(times):
        for _ in range(times):
            letters.add(fw.Reason.NO_ROUTE, "nobody handles it", Parcel(JOB, Job()))

    die(1000)
    now = 1.5
    die(1)
    letters.add(fw.Reason.EXPIRED, "too late", Parcel(JOB, Job()))
    assert [record.getMessage() for record in caplog.records] == [
        "dead letter, no_route: test.job v1: nobody handles it",
        "dead letter, no_route: test.job v1: nobody handles it (and 999 like it)",
        "dead letter, expired: test.job v1: too late",
    ]


def test_a_hook_that_fails_stops_neither_the_node_nor_the_other_hooks():
    async def main():
        node = fw.Node()
        handed = []

        @node.on_dead_letter
        def fail(_):
            raise ValueError("hook")

        node.on_dead_letter(handed.append)
        async with node:
            with pytest.raises(fw.NoRoute):
                await node.hub.ask(Job(1), Done)
            assert len(handed) == 1

    run(main())


def test_a_hook_that_makes_dead_letters_of_its_own_comes_to_an_end():
    async def main():
        node = fw.Node()
        calls = []

        @node.on_dead_letter
        def again(letter):
            calls.append(letter)
            node.hub.start(Job(2), Done)

        async with node:
            await node.hub.tell(Job(1))
            assert len(calls) == 1
            assert node.dead_letters.counts == {fw.Reason.NO_ROUTE: 2}

    run(main())


def test_a_hook_must_be_a_plain_function():
    async def hook(_): ...

    for listen in (fw.Node().on_dead_letter, fw.Node().on_trace, fw.Node().on_stall):
        with pytest.raises(fw.UsageError, match="hook is async"):
            listen(hook)


def test_a_payload_that_cannot_be_written_can_still_be_a_dead_letter():
    @fw.message("test.odd")
    class Odd(Answer):
        anything: object = None

    async def main():
        async with fw.Node() as node:
            await node.hub.tell(Odd(anything=object()))
            [letter] = node.dead_letters
            assert str(letter.message.message_id) == "test.odd v1"

    run(main())
