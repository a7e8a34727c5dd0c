"""What a recorder is shown of a node's messages."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
import pytest
from tests.node.running import run

import framewire as fw
from framewire.testing import Cluster
from framewire.wire import decode


@fw.message("tap.question", version=1)
class Question(msgspec.Struct):
    text: str


@fw.message("tap.answer", version=1)
class Answer(msgspec.Struct):
    text: str


class Oracle(fw.Actor):
    @fw.handles(Question)
    async def answer(self, question: Question) -> Answer:
        if question.text == "fail":
            raise ValueError(question.text)
        return Answer(question.text.upper())


class Notes:
    """A recorder that keeps everything."""

    def __init__(self) -> None:
        self.node = b""
        self.closed = 0
        self.kept: list[tuple[str, bytes, tuple[bytes, ...], str | None]] = []
        self.times: list[int] = []

    def open(self, node: bytes) -> None:
        self.node = node

    def record(
        self, direction: str, peer: bytes, frames: Sequence[bytes], reason: str | None = None, at: int = 0
    ) -> None:
        self.kept.append((direction, peer, tuple(frames), reason))
        self.times.append(at)

    def close(self) -> None:
        self.closed += 1

    def seen(self) -> list[tuple[str, str]]:
        return [(direction, str(decode(list(frames)).message_id)) for direction, _, frames, _ in self.kept]


def test_what_is_sent_has_the_time_from_before_it_went():
    async def main():
        there = Notes()
        async with Cluster() as cluster:
            handler = await cluster.join(recorder=there)
            await handler.host(Oracle())
            asker = await cluster.join()
            before = time.time_ns()
            assert (await asker.hub.ask(Question("why"), Answer)).text == "WHY"
        assert [bool(at) for at in there.times] == [False, False, True], (
            "of what is received and delivered it is now"
        )
        assert before <= there.times[-1] <= time.time_ns()

    run(main())


def test_a_question_to_another_node_is_recorded_where_it_leaves_and_where_it_comes():
    async def main():
        here, there = Notes(), Notes()
        async with Cluster() as cluster:
            asker = await cluster.join(recorder=here)
            handler = await cluster.join(recorder=there)
            await handler.host(Oracle())
            assert (await asker.hub.ask(Question("why"), Answer)).text == "WHY"
            hub, nodes = asker.hub.identity, (asker.identity, handler.identity)
        assert here.node == nodes[0]
        question, answer = "tap.question v1", "tap.answer v1"
        assert here.seen() == [("sent", question), ("received", answer), ("delivered", answer)]
        assert there.seen() == [("received", question), ("delivered", question), ("sent", answer)]
        assert [peer for _, peer, _, _ in here.kept] == [nodes[1], nodes[1], hub]
        assert there.kept[0][1] == nodes[0]
        assert here.kept[0][2][2:] == there.kept[0][2][2:]
        assert there.kept[2][2][2:] == here.kept[1][2][2:]
        assert (here.closed, there.closed) == (1, 1)

    run(main())


def test_a_message_that_never_leaves_its_node_is_recorded_with_its_body():
    async def main():
        notes = Notes()
        async with fw.Node(capture=notes) as node:
            await node.host(Oracle())
            await node.hub.ask(Question("why"), Answer)
        assert notes.seen() == [("delivered", "tap.question v1"), ("delivered", "tap.answer v1")]
        bodies = [msgspec.msgpack.decode(decode(list(frames)).body) for _, _, frames, _ in notes.kept]
        assert bodies == [{"text": "why"}, {"text": "WHY"}]

    run(main())


def test_a_failure_is_recorded_as_the_exception_that_reaches_the_hub():
    async def main():
        notes = Notes()
        async with fw.Node(capture=notes) as node:
            await node.host(Oracle())
            with pytest.raises(fw.RemoteError):
                await node.hub.ask(Question("fail"), Answer)
            assert notes.kept[-1][:2] == ("delivered", node.hub.identity)
        assert [name for _, name in notes.seen()] == ["tap.question v1", "KINO.EXCEPTION v1"]

    run(main())


def test_a_dead_letter_is_recorded_with_its_reason():
    async def main():
        notes = Notes()
        async with fw.Node(capture=notes) as node:
            await node.hub.tell(Question("anybody?"))
        assert [(direction, reason) for direction, _, _, reason in notes.kept] == [("dead", "no_route")]
        assert notes.seen() == [("dead", "tap.question v1")]

    run(main())


def test_frames_that_are_no_message_are_recorded_as_received_and_dead():
    async def main():
        notes = Notes()
        async with fw.Node(capture=notes) as node:
            node.port.receive(b"stranger", [b"stranger", b"", b"nonsense"])
        assert [(direction, reason) for direction, _, _, reason in notes.kept] == [
            ("received", None),
            ("dead", "malformed"),
        ]
        assert all(frames == (b"stranger", b"", b"nonsense") for _, _, frames, _ in notes.kept)

    run(main())
