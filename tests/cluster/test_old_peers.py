"""Nodes that write V4 and callers that know nothing but V1, on the same socket as everybody else."""

import contextlib
import os

import msgspec
import pytest
import zmq
from tests.cluster.clustering import Named, acquainted, handled_by, make_node, served, uri_of
from tests.node.messages import Answer, Job, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.capture import read as recorded
from framewire.cluster import old_peers
from framewire.cluster.old_peers import Guests
from framewire.wire import Message, MessageId, decode, encode
from framewire.wire.message import Distribution

V4, V5, V5_INT = b"\x04\0\0\0", b"\x05\0", b"\x05\0\0\0"


@fw.message("test.question", version=7)
class Question7(msgspec.Struct):
    text: str = ""


@fw.message("test.answer", version=7)
class Answer7(msgspec.Struct):
    text: str = ""


def wiretapped(node):
    """The format frames of everything that comes in at a node, by message."""
    seen = {}
    take = node._transport._front._take
    node._transport._front._take = lambda frames: (seen.setdefault(frames[-6], frames[-1]), take(frames))
    return seen


@pytest.mark.parametrize(("wire_version", "written"), [(4, V4), (5, V5)])
def test_a_node_writes_the_format_that_it_is_told_to(wire_version, written):
    async def main(server):
        async with make_node(server, wire_version=wire_version) as one, make_node(server) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            await acquainted(one, two)
            seen = wiretapped(two)
            assert (await one.hub.ask(Question(), Answer)).text == "two"
            assert seen == {b"KINO.PING": written, b"test.question": written}, "it introduces itself first"

    run(served(main))


def test_a_peer_that_is_known_to_write_v4_is_answered_in_v4_and_others_are_not():
    async def main(server):
        old, new, one = make_node(server, wire_version=4), make_node(server), make_node(server)
        async with old, new, one:
            await one.host(Named("one"))
            await handled_by(1, old, new)
            await acquainted(old, new, one)
            to_old, to_new = wiretapped(old), wiretapped(new)
            assert (await old.hub.ask(Question(), Answer)).text == "one"
            assert (await new.hub.ask(Question(), Answer)).text == "one"
            assert to_old == {b"KINO.PING": V4, b"test.answer": V4}
            assert to_new == {b"KINO.PING": V5, b"test.answer": V5}

    run(served(main))


def test_a_peer_that_was_never_heard_of_is_answered_in_its_own_format():
    async def main(server):
        async with make_node(server, wire_version=4) as old, make_node(server) as one:
            await one.host(Named("one"))
            await handled_by(1, old)
            await acquainted(old, one)
            one._transport._gone(old.identity, "forgotten for the test")
            seen = wiretapped(old)
            assert (await old.hub.ask(Question(), Answer, timeout=5)).text == "one"
            assert seen[b"test.answer"] == V4

    run(served(main))


def test_a_peer_is_answered_with_the_very_format_frame_that_it_writes():
    async def main(server):
        async with make_node(server) as one, make_node(server) as two:
            await acquainted(one, two)
            one._transport._note_format(two.identity, V5_INT)
            seen = wiretapped(two)
            await one.hub.tell(Question(), to_node=two.identity)
            await eventually(lambda: b"test.question" in seen)
            assert seen == {b"KINO.PING": V5_INT, b"test.question": V5_INT}
            one._transport._note_format(two.identity, V5)
            await one.hub.tell(Job(), to_node=two.identity)
            await eventually(lambda: b"test.job" in seen)
            assert seen[b"test.job"] == V5

    run(served(main))


# --- V1


class Caller:
    """A V1 caller: one connection, and a callback receiver of its own."""

    def __init__(self, context, callers, uri):
        self._made_of = context, callers, uri
        self.socket = callers.enter_context(context.socket(zmq.DEALER))
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(uri)

    def another(self):
        return Caller(*self._made_of)

    def send(self, identity=b"test.question", version=b"1.0", body=b"\x81\xa4text\xa2hi", points=(), **fields):
        fields = {"correlation_id": b"flow of V1"} | fields
        points = tuple(MessageId(name, number) for name, number in points)
        self.socket.send_multipart(
            encode(
                Message(
                    identity,
                    version,
                    b"",
                    (body,),
                    callback_receiver_identity=b"V1 hub",
                    callback_points=points,
                    **fields,
                ),
                1,
            )
        )

    async def answer(self):
        await eventually(lambda: self.socket.poll(0))
        return decode(self.socket.recv_multipart())


def called(main, remote=False, keyring=None, **options):
    """Run a test with a V1 caller at a node; the actor is there, or on another node."""

    async def with_caller(server):
        front, back = make_node(server, keyring=keyring, **options), make_node(server, keyring=keyring)
        async with front, back:
            actor = Named("actor")
            await (back if remote else front).host(actor)
            await handled_by(1, front)
            await acquainted(front, back)
            with zmq.Context() as context, contextlib.ExitStack() as callers:
                await main(front, actor, Caller(context, callers, uri_of(front)))

    run(served(with_caller))


@pytest.mark.parametrize("remote", [False, True], ids=["here", "on another node"])
def test_a_v1_request_is_answered_as_v1_over_its_own_connection(remote):
    async def main(_, actor, caller):
        caller.send(points=[(b"test.answer", b"1.0")])
        answer = await caller.answer()
        assert answer.wire_version == 1
        assert (answer.identity, answer.version) == (b"test.answer", b"1.0")
        assert answer.body == b"\x81\xa4text\xa5actor"
        assert answer.correlation_id == b"flow of V1"
        assert answer.receiver_identity == answer.callback_receiver_identity == b"V1 hub"
        assert actor.asked == ["hi"]

    called(main, remote)


def test_the_answer_to_a_v1_caller_is_recorded_as_delivered(tmp_path):
    async def main(_, __, caller):
        caller.send(points=[(b"test.answer", b"1.0")])
        await caller.answer()

    called(main, remote=True, capture=tmp_path)
    answers = [row for row in recorded(tmp_path).to_pylist() if decode(row["frames"]).identity == b"test.answer"]
    assert [row["direction"] for row in answers] == ["received", "delivered"]
    assert answers[1]["peer"].startswith(b"\x00V1-"), "its stand-in"


def test_an_answer_has_the_version_that_the_caller_wrote():
    async def main(_, __, caller):
        caller.send(version=b"1", points=[(b"test.answer", b"1"), (b"test.other", b"2.0")])
        answer = await caller.answer()
        assert answer.version == b"1"
        assert answer.callback_points == (MessageId(b"test.answer", b"1"), MessageId(b"test.other", b"2.0"))

    called(main)


def test_versions_that_are_no_numbers_are_mapped_by_the_configuration():
    async def main(front, _, caller):
        @front.handler(Question7)
        async def seven(question):
            return Answer7(question.text)

        caller.send(version=b"beta", points=[(b"test.answer", b"beta")])
        answer = await caller.answer()
        assert (answer.version, answer.body) == (b"beta", b"\x81\xa4text\xa2hi")

    called(main, versions={b"beta": 7})


def test_a_version_that_is_not_mapped_is_a_dead_letter_that_says_so():
    async def main(front, actor, caller):
        caller.send(version=b"gamma", points=[(b"test.answer", b"1.0")])
        await eventually(lambda: front.dead_letters.counts.total() == 1)
        [letter] = front.dead_letters
        assert "map it with versions={b'gamma': N}" in letter.detail
        assert actor.asked == []

    called(main)


def test_an_exception_reaches_a_v1_caller_that_asks_for_it():
    async def main(_, __, caller):
        caller.send(body=b"\x81\xa4text\xa4fail", points=[(b"test.answer", b"1.0"), (b"KINO.EXCEPTION", b"1.0")])
        answer = await caller.answer()
        assert (answer.identity, answer.version) == (b"KINO.EXCEPTION", b"1.0")
        assert b"actor does not like this" in answer.body

    called(main)


def test_callers_get_their_own_answers():
    async def main(_, __, caller):
        callers = [caller, *(caller.another() for _ in range(4))]
        for number, one in enumerate(callers):
            one.send(points=[(b"test.answer", b"1.0")], correlation_id=b"%d" % number)
        for number, one in enumerate(callers):
            assert (await one.answer()).correlation_id == b"%d" % number
            assert not one.socket.poll(0)

    called(main)


@pytest.mark.parametrize("distribution", list(Distribution))
def test_a_v1_message_without_a_callback_is_handled_like_any_other(distribution):
    async def main(_, actor, caller):
        caller.send(distribution=distribution)
        await eventually(lambda: actor.asked == ["hi"])

    called(main)


def test_a_v1_body_that_looks_like_a_format_frame_is_a_body():
    async def main(front, _, caller):
        bodies = []

        @fw.message("test.raw")
        class Raw(bytes):
            pass

        @front.handler(Raw)
        async def take(raw):
            bodies.append(bytes(raw))

        caller.send(b"test.raw", body=V5)
        await eventually(lambda: bodies == [V5])

    called(main)


def single_callback(identity, version, body=b"\x81\xa4text\xa2hi"):
    """A V1 request of the older kind: one callback, its identity and version where count and offset came to be."""
    frames = encode(Message(b"test.question", b"1.0", b"", (body,), correlation_id=b"flow of V1"), 1)
    frames[-4], frames[-5], frames[-6] = b"V1 hub", identity, version
    return frames


@pytest.mark.parametrize(
    ("identity", "version", "reason"),
    [
        (b"test.answer", b"1.0", "bad_integer"),
        (b"PONG", b"1.0", "bad_integer"),
        (b"PONG", b"1.10", "bad_offset"),  # four bytes each, which are read as numbers that cannot be
    ],
)
def test_a_request_with_a_single_callback_is_malformed_and_never_half_read(identity, version, reason):
    async def main(front, actor, caller):
        caller.socket.send_multipart(single_callback(identity, version))
        await eventually(lambda: front.dead_letters.counts["malformed"] == 1)
        [letter] = front.dead_letters
        assert letter.detail.startswith(f"{reason}: callback_")
        assert actor.asked == []

    called(main)


def test_a_message_of_the_older_kind_without_a_callback_is_handled():
    async def main(_, actor, caller):
        caller.socket.send_multipart(single_callback(b"", b""))
        await eventually(lambda: actor.asked == ["hi"])

    called(main)


def test_the_source_of_a_v1_message_without_an_envelope_is_its_connection_and_not_its_body():
    async def main(front, _, caller):
        sources = []

        @front.handler(Job)
        async def take(_, ctx):
            sources.append(ctx.source)

        caller.send(b"test.job", body=b"\x80")
        await eventually(lambda: sources)
        assert sources[0] != b"\x80"
        assert front._transport._connections.routing_id(sources[0]) is not None

    called(main)


def test_an_answer_of_several_frames_cannot_be_said_in_v1_and_is_a_dead_letter():
    @fw.message("test.frames")
    class Frames(fw.Buffers):
        pass

    async def main(front, _, caller):
        @front.handler(Job)
        async def several(_):
            return Frames([b"one", b"two"])

        caller.send(b"test.job", body=b"\x80", points=[(b"test.frames", b"1.0")])
        await eventually(lambda: front.dead_letters.counts["bad_body"] == 1)
        (letter,) = front.dead_letters
        assert letter.detail == "this cannot be said in V1: body_frames: V1 holds one frame, not 2"

    called(main)


def test_the_answer_to_a_caller_that_has_hung_up_is_a_dead_letter():
    async def main(front, _, caller):
        gone = []

        @front.handler(Job)
        async def slow(_):
            caller.socket.close(0)
            await eventually(lambda: gone)
            return Answer("too late")

        caller.send(b"test.job", body=b"\x80", points=[(b"test.answer", b"1.0")])
        await eventually(lambda: caller.socket.closed)
        name = next(iter(front._transport._guests._stand_ins)).connection
        connection = front._transport._connections.routing_id(name)

        def hung_up():
            try:
                front._transport._front.send([connection, b"probe"])
            except OSError:
                return True
            return False

        await eventually(hung_up)
        gone.append(True)
        await eventually(lambda: front.dead_letters.counts["unreachable"] == 1)

    called(main)


def test_a_v1_message_of_a_signed_domain_is_refused():
    async def main(front, actor, caller):
        caller.send(points=[(b"test.answer", b"1.0")])
        await eventually(lambda: front.dead_letters.counts["bad_signature"] == 1)
        assert actor.asked == []

    called(main, keyring=fw.KeyRing([fw.DomainKey("sales", os.urandom(32))], {"sales": ["test.*"]}))


def guests(admitted, dismissed):
    return Guests(
        b"node",
        {},
        admit=lambda receiver, _: admitted.append(receiver),
        dismiss=dismissed.append,
        send=lambda _: None,
    )


def request(receiver):
    return Message(
        b"q",
        b"1.0",
        callback_receiver_identity=receiver,
        callback_points=(MessageId(b"a", b"1.0"),),
        wire_version=1,
    )


def test_a_caller_that_asks_again_has_the_same_stand_in():
    admitted = []
    made = guests(admitted, [])
    first, second, other = (
        made.upgraded(request(receiver), connection)
        for receiver, connection in ((b"hub", b"c1"), (b"hub", b"c1"), (b"hub", b"c2"))
    )
    assert first.callback_receiver_identity == second.callback_receiver_identity
    assert first.callback_receiver_identity != other.callback_receiver_identity
    assert first.callback_receiver_node_identity == b"node"
    assert admitted == [first.callback_receiver_identity, other.callback_receiver_identity]


def test_stand_ins_are_bounded_and_the_one_that_was_not_needed_for_longest_goes(monkeypatch):
    monkeypatch.setattr(old_peers, "_MOST", 2)
    admitted, dismissed = [], []
    made = guests(admitted, dismissed)
    for receiver in (b"one", b"two", b"one", b"three"):
        made.upgraded(request(receiver), b"connection")
    assert dismissed == [admitted[1]]
