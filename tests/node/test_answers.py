"""Answers to questions of other nodes: those to many questions that are alike fare as the first one did."""

import asyncio

import msgspec
import pytest
from tests.node.running import eventually, run
from tests.node.test_tap import Notes
from tests.node.transports import Recording

import framewire as fw
from framewire.node import Node
from framewire.node.deadletters import Reason
from framewire.node.exceptions import EXCEPTION
from framewire.testing import ManualClock
from framewire.wire import Message, MessageId, RouterAddress, decode, encode


@fw.message("answers.question")
class Question(msgspec.Struct):
    number: int


@fw.message("answers.answer")
class Answer(msgspec.Struct):
    number: object


@fw.message("answers.further")
class Further(msgspec.Struct):
    number: int


class Oracle(fw.Actor):
    """Answers with what it is told to for a number, or with the number."""

    def __init__(self, **said):
        self.said = said

    @fw.handles(Question)
    async def answer(self, question: Question) -> Answer | Further:
        said = self.said.get(f"n{question.number}", Answer(question.number))
        return await said() if callable(said) else said


class Crowded(Recording):
    """Refuses, or lets wait, what it is told to."""

    outcome = None

    def send(self, peer, frames):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        super().send(peer, frames)
        return self.outcome


def question(number, **changes):
    message = Message(
        b"answers.question",
        body_frames=(msgspec.msgpack.encode(Question(number)),),
        correlation_id=b"flow-%d" % number,
        callback_receiver_identity=b"\0hub",
        callback_receiver_node_identity=b"there",
        callback_key=number + 1,
        callback_points=(MessageId(b"answers.answer"), EXCEPTION),
        routing=(RouterAddress("tcp://127.0.0.1:7001", b"there"),),
        socket_identity=b"there",
        hops=1,
    )
    return encode(message.replace(**changes))


class Case:
    def __init__(self, node, transport):
        self.node = node
        self.transport = transport

    async def ask(self, number, **changes):
        """Let the other node ask, and wait until that has been handled."""
        self.node.port.receive(b"there", question(number, **changes))
        await eventually(lambda: self.node.stats().totals["handled"] > number)

    def sent(self):
        return [decode(entry[2]) for entry in self.transport.diary if entry[0] == "sent"]


def asked(check, oracle=None, transport=None, **options):
    """Let another node ask twice, so that the kind is known, and then go on as the check says."""
    transport = transport or Recording()

    async def main():
        async with Node(signals=False, transport=transport, **options) as node:
            await node.host(oracle or Oracle())
            node.port.peer_registered(b"there", ())

            case = Case(node, transport)
            await case.ask(0)
            await case.ask(1)
            await check(case)

    run(main())


def test_they_are_what_the_first_one_is_but_for_what_is_new():
    async def check(case):
        await case.ask(2)
        first, second, third = case.sent()
        assert [answer.body for answer in case.sent()] == [msgspec.msgpack.encode(Answer(n)) for n in range(3)]
        assert [answer.correlation_id for answer in case.sent()] == [b"flow-0", b"flow-1", b"flow-2"]
        assert [answer.callback_key for answer in case.sent()] == [1, 2, 3]
        same = first.replace(body=third.body, correlation_id=b"flow-2", callback_key=3)
        assert encode(same) == encode(third)
        assert second.receiver_identity == b"\0hub"
        assert second.receiver_node_identity == b"there"

    asked(check)


def test_they_are_counted_and_recorded_like_all_that_is_sent():
    recorder = Notes()

    async def check(case):
        await case.ask(2)
        totals = case.node.stats().totals
        assert totals["sent"] == totals["forwarded"] == totals["handled"] == 3
        recorded = [
            frames for direction, peer, frames, _ in recorder.kept if (direction, peer) == ("sent", b"there")
        ]
        assert [decode(list(frames)).correlation_id for frames in recorded] == [b"flow-0", b"flow-1", b"flow-2"]

    asked(check, recorder=recorder)


def test_what_is_left_of_a_question_s_time_goes_with_its_answer():
    clock = ManualClock()

    async def check(case):
        await clock.advance(1)
        await case.ask(2, ttl_ticks=50_000_000)
        await case.ask(3)
        assert [answer.ttl_ticks for answer in case.sent()] == [0, 0, 50_000_000, 0]

    asked(check, clock=clock)


def test_one_whose_time_is_over_does_not_leave():
    clock = ManualClock()

    async def late():
        await clock.advance(6)
        return Answer(2)

    async def check(case):
        await case.ask(2, ttl_ticks=50_000_000)
        assert case.node.dead_letters.counts[Reason.EXPIRED] == 1
        assert case.sent()[-1].message_id == EXCEPTION

    asked(check, Oracle(n2=late), clock=clock)


def test_one_that_cannot_be_written_is_told_to_whoever_asked():
    async def check(case):
        await case.ask(2)
        assert case.node.dead_letters.counts[Reason.BAD_BODY] == 1
        assert case.sent()[-1].message_id == EXCEPTION
        assert case.sent()[-1].correlation_id == b"flow-2"
        await case.ask(3)
        assert case.sent()[-1].body == msgspec.msgpack.encode(Answer(3))

    asked(check, Oracle(n2=Answer(object())))


def test_what_is_no_answer_goes_to_whoever_handles_it():
    async def check(case):
        heard = []

        @case.node.handler(Further)
        async def further(message: Further) -> None:
            heard.append(message.number)

        await case.ask(2)
        await eventually(lambda: heard == [22])
        assert len(case.sent()) == 2

    asked(check, Oracle(n2=Further(22)))


def test_one_for_a_node_that_is_gone_is_a_dead_letter():
    async def check(case):
        case.node.port.peer_lost(b"there")
        await case.ask(2)
        await eventually(lambda: case.node.dead_letters.counts[Reason.NO_ROUTE] == 1)
        assert len(case.sent()) == 2

    asked(check, route_grace=0.01)


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [(fw.Overloaded("full"), Reason.OVERLOADED), (fw.Unreachable("nobody there"), Reason.UNREACHABLE)],
)
def test_one_that_the_way_does_not_take_is_a_dead_letter(refusal, reason):
    transport = Crowded()

    async def check(case):
        transport.outcome = refusal
        await case.ask(2)
        transport.outcome = None
        assert case.node.dead_letters.counts[reason] >= 1
        assert case.node.stats().totals["forwarded"] == 2
        await case.ask(3)
        assert case.sent()[-1].body == msgspec.msgpack.encode(Answer(3))

    asked(check, transport=transport)


def test_a_handler_waits_where_the_way_is_full():
    transport = Crowded()

    async def check(case):
        transport.outcome = asyncio.get_running_loop().create_future()
        case.node.port.receive(b"there", question(2))
        case.node.port.receive(b"there", question(3))
        await eventually(lambda: len(case.sent()) == 3)
        assert case.node.stats().totals["handled"] == 2
        room, transport.outcome = transport.outcome, None
        room.set_result(None)
        await eventually(lambda: case.node.stats().totals["handled"] == 4)
        assert [answer.correlation_id for answer in case.sent()[2:]] == [b"flow-2", b"flow-3"]

    asked(check, transport=transport)


def test_new_keys_are_used_at_once():
    def ring(key):
        return fw.KeyRing([fw.DomainKey("oracle", key * 32)], {"oracle": ["answers.answer"]})

    async def check(case):
        case.node.use_keys(ring(b"one"))
        await case.ask(2)
        await case.ask(3)
        case.node.use_keys(ring(b"two"))
        await case.ask(4)
        first, second, third, fourth, fifth = case.sent()
        assert first.signature == second.signature == b""
        assert ring(b"one").verify(third) == third
        assert ring(b"one").verify(fourth) == fourth
        assert ring(b"two").verify(fifth) == fifth

    asked(check)
