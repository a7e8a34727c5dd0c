"""Several messages that came together and are alike: each of them fares as if it had come alone."""

import asyncio
import contextlib

import msgspec
import pytest
from tests.node.running import eventually, run
from tests.node.test_tap import Notes
from tests.node.transports import Recording

import framewire as fw
from framewire.node import Node
from framewire.node.deadletters import Reason
from framewire.routing import Route
from framewire.wire import Message, MessageId, RouterAddress, decode, encode


@fw.message("run.note")
class Note(msgspec.Struct):
    number: int


@fw.message("run.question")
class Question(msgspec.Struct):
    number: int


@fw.message("run.answer")
class Answer(msgspec.Struct):
    number: int


class Listener(fw.Actor):
    def __init__(self, heard=None):
        self.heard = [] if heard is None else heard

    @fw.handles(Note)
    async def hear(self, note: Note, context: fw.Context) -> None:
        self.heard.append((note.number, context.correlation_id))

    @fw.handles(Question)
    async def answer(self, question: Question) -> Answer:
        return Answer(question.number)


class AtOnce(fw.Actor):
    def __init__(self):
        self.heard = []

    @fw.handles(Note, inline=True)
    def hear(self, note: Note) -> None:
        self.heard.append(note.number)


def note(number, identity=b"run.note", body=None, **changes):
    message = Message(
        identity,
        body_frames=(msgspec.msgpack.encode(Note(number)) if body is None else body,),
        correlation_id=b"flow-%d" % number,
        routing=(RouterAddress("tcp://127.0.0.1:7001", b"there"),),
        socket_identity=b"there",
        hops=1,
    )
    return encode(message.replace(**changes))


def notes(count):
    return [note(number) for number in range(count)]


def test_they_are_handled_in_order_each_in_its_own_flow():
    async def main():
        async with fw.Node(signals=False) as node:
            listener = Listener()
            await node.host(listener)
            node.port.receive_alike(b"there", notes(3))  # of a kind that has not been seen
            node.port.receive_alike(b"there", notes(3))
            await eventually(lambda: len(listener.heard) == 6)
            assert listener.heard == 2 * [(number, b"flow-%d" % number) for number in range(3)]
            assert node.stats().totals["received"] == 6

    run(main())


def test_several_actors_take_them_in_turn():
    async def main():
        async with fw.Node(signals=False) as node:
            heard = [[], []]
            for one in heard:
                await node.host(Listener(one))
            node.port.receive(b"there", note(0))
            node.port.receive_alike(b"there", notes(5)[1:])
            await eventually(lambda: sum(map(len, heard)) == 5)
            assert sorted(map(len, heard)) == [2, 3]

    run(main())


def test_an_actor_that_takes_several_at_a_time_gets_several():
    together = asyncio.Barrier(3)

    class Companions(fw.Actor):
        concurrency = 3

        @fw.handles(Note)
        async def wait(self, _: Note) -> None:
            await together.wait()

    async def main():
        async with fw.Node(signals=False) as node:
            await node.host(Companions())
            node.port.receive(b"there", note(0))
            node.port.receive_alike(b"there", notes(3)[1:])
            node.port.receive_alike(b"there", notes(3))
            await eventually(lambda: node.stats().totals["handled"] == 6)

    run(main())


def test_an_inline_handler_is_done_with_them_at_once():
    async def main():
        async with fw.Node(signals=False) as node:
            actor = AtOnce()
            await node.host(actor)
            node.port.receive(b"there", note(0))
            node.port.receive_alike(b"there", notes(3))
            assert actor.heard == [0, 0, 1, 2]

    run(main())


def test_a_mailbox_with_room_for_some_takes_those_and_refuses_the_others():
    async def main():
        async with fw.Node(signals=False) as node:
            listener = Listener()
            await node.host(listener, mailbox=4, overflow="reject")
            node.port.receive(b"there", note(0))
            await eventually(lambda: len(listener.heard) == 1)
            node.port.several()
            node.port.receive_alike(b"there", notes(7))
            await eventually(lambda: len(listener.heard) == 5)
            assert node.dead_letters.counts[Reason.OVERLOADED] == 3

    run(main())


def test_a_bad_one_among_them_is_a_dead_letter_and_the_others_are_handled():
    async def main():
        async with fw.Node(signals=False) as node:
            listener = Listener()
            await node.host(listener)
            run_of_notes = notes(4)
            run_of_notes[2] = note(2, body=b"\xc1")
            odd = note(3)
            odd[-3] = b"\1"  # the ttl of V5 is eight bytes
            node.port.receive(b"there", note(0))
            node.port.receive_alike(b"there", [*run_of_notes, odd])
            await eventually(lambda: len(listener.heard) == 4)
            assert [number for number, _ in listener.heard] == [0, 0, 1, 3]
            assert node.dead_letters.counts[Reason.BAD_BODY] == 1
            assert node.dead_letters.counts[Reason.MALFORMED] == 1

    run(main())


def test_a_bad_signature_and_a_replay_among_them_are_refused():
    ring = fw.KeyRing([fw.DomainKey("shop", bytes(range(32)))], {"shop": ["run.*"]}, once=["shop"])

    def signed(number):
        return encode(ring.sign(decode(note(number))))

    async def main():
        async with fw.Node(signals=False, keyring=ring) as node:
            listener = Listener()
            await node.host(listener)
            forged = signed(3)
            forged[2] = msgspec.msgpack.encode(Note(33))
            node.port.receive(b"there", signed(0))
            node.port.receive_alike(b"there", [signed(1), signed(2), forged, signed(1), signed(4)])
            await eventually(lambda: len(listener.heard) == 4)
            assert [number for number, _ in listener.heard] == [0, 1, 2, 4]
            assert node.dead_letters.counts[Reason.BAD_SIGNATURE] == 1
            assert node.dead_letters.counts[Reason.REPLAYED] == 1

    run(main())


def test_keys_that_changed_in_between_count():
    async def main():
        async with fw.Node(signals=False) as node:
            listener = Listener()
            await node.host(listener)
            node.port.receive_alike(b"there", notes(2))
            await eventually(lambda: len(listener.heard) == 2)
            node.use_keys(fw.KeyRing([fw.DomainKey("shop", bytes(range(32)))], {"shop": ["run.*"]}))
            node.port.receive_alike(b"there", notes(2))
            await eventually(lambda: node.dead_letters.counts[Reason.BAD_SIGNATURE] == 2)
            assert len(listener.heard) == 2

    run(main())


def test_those_that_nobody_handles_are_dead_letters():
    async def main():
        async with fw.Node(signals=False, route_grace=0) as node:
            await node.host(Listener())
            node.port.receive_alike(b"there", [note(number, b"run.unknown") for number in range(3)])
            node.port.receive_alike(b"there", [note(number, b"run.unknown") for number in range(3)])
            assert node.dead_letters.counts[Reason.NO_ROUTE] == 6

    run(main())


@pytest.mark.parametrize("known", [False, True])
def test_each_of_them_is_recorded(known):
    recorder = Notes()

    async def main():
        async with Node(signals=False, recorder=recorder) as node:
            listener = Listener()
            await node.host(listener)
            if known:
                node.port.receive(b"there", note(9))
            node.port.receive_alike(b"there", notes(3))
            await eventually(lambda: len(listener.heard) == 3 + known)
        flows = {"received": [], "delivered": []}
        for direction, _, frames, _ in recorder.kept:
            flows[direction].append(decode(list(frames)).correlation_id)
        expected = [b"flow-9"] * known + [b"flow-0", b"flow-1", b"flow-2"]
        assert flows == {"received": expected, "delivered": expected}
        assert {peer for direction, peer, _, _ in recorder.kept if direction == "received"} == {b"there"}

    run(main())


@contextlib.asynccontextmanager
async def asking(**options):
    """A node that knows of another whom it can ask, and what it sends there."""
    transport = Recording()
    async with Node(signals=False, transport=transport, **options) as node:
        node.port.peer_registered(b"there", [(Route(b"\1actor"), (MessageId(b"run.question"),))])
        yield node, transport


def answers_to(node, transport):
    """The answer to each question that was sent, with the number that comes next."""
    questions = [decode(frames) for what, _, frames in transport.diary[1:] if what == "sent"]
    return [
        note(
            number,
            b"run.answer",
            correlation_id=question.correlation_id,
            callback_key=question.callback_key,
            callback_points=question.callback_points,
            callback_receiver_identity=node.hub.identity,
            callback_receiver_node_identity=node.identity,
            receiver_identity=node.hub.identity,
            receiver_node_identity=node.identity,
        )
        for number, question in enumerate(questions)
    ]


def test_answers_that_come_together_end_the_promises_that_wait_for_them():
    async def main():
        async with asking() as (node, transport):
            promises = [node.hub.start(Question(number), Answer) for number in range(5)]
            answers = answers_to(node, transport)
            node.port.receive(b"there", answers[0])
            node.port.receive_alike(b"there", [*answers[1:], answers[1]])
            assert [(await promise).number for promise in promises] == [0, 1, 2, 3, 4]
            assert node.dead_letters.counts[Reason.DUPLICATE_REPLY] == 1

    run(main())


def test_of_answers_that_come_together_each_that_is_not_good_is_told_apart():
    async def main():
        async with asking() as (node, transport):
            promises = [node.hub.start(Question(number), Answer) for number in range(6)]
            answers = answers_to(node, transport)
            promises[2].cancel()
            answers[3][2] = b"\xc1"  # no msgpack
            strange = answers[4].copy()
            strange[-4] = b"another flow"
            odd = answers[4].copy()
            odd[-3] = b"\1"  # the ttl of V5 is eight bytes
            assert decode(strange).correlation_id == b"another flow"
            node.port.receive(b"there", answers[0])
            node.port.receive_alike(b"there", [*answers[1:4], strange, odd, *answers[4:]])
            assert [promises[number].result().number for number in (0, 1, 4, 5)] == [0, 1, 4, 5]
            with pytest.raises(fw.BadBody, match="not a Answer as msgpack"):
                promises[3].result()
            counts = node.dead_letters.counts
            assert counts[Reason.LATE_REPLY] == counts[Reason.BAD_BODY] == 1
            assert counts[Reason.UNKNOWN_REPLY] == counts[Reason.MALFORMED] == 1
            assert node.stats().totals["received"] == 8
            assert node.stats().totals["replies"] == 4

    run(main())


def test_answers_that_come_together_are_recorded_as_received_and_delivered():
    recorder = Notes()

    async def main():
        async with asking(recorder=recorder) as (node, transport):
            promises = [node.hub.start(Question(number), Answer) for number in range(4)]
            answers = answers_to(node, transport)
            node.port.receive(b"there", answers[0])
            node.port.receive_alike(b"there", answers[1:])
            assert [(await promise).number for promise in promises] == [0, 1, 2, 3]
        found = {"received": [], "delivered": []}
        for direction, _, frames, _ in recorder.kept:
            if direction != "sent":
                found[direction].append(decode(list(frames)).body)
        assert found["received"] == found["delivered"] == [decode(frames).body for frames in answers]

    run(main())


def test_a_gathering_takes_answers_that_come_together():
    async def main():
        async with asking() as (node, transport):
            gathering = asyncio.ensure_future(node.hub.gather(Question(0), Answer, stop_after=3))
            await eventually(lambda: len(transport.diary) > 1)
            (answer,) = answers_to(node, transport)
            node.port.receive(b"there", answer)
            node.port.receive_alike(b"there", [answer, answer])
            assert len(await gathering) == 3

    run(main())
