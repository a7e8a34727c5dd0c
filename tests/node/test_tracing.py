"""The steps of a message that asked to be traced."""

import logging

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import run

import framewire as fw
from framewire.capture import cut_of, read
from framewire.wire import Message, TraceOptions, decode, encode


async def traced(node, **options):
    @node.handler(Question)
    async def pass_on(_):
        return Job(1)

    @node.handler(Job)
    async def finish(job):
        return Done(job.number)

    await node.hub.ask(Question(), Done, correlation_id=b"flow", **options)


def steps(node):
    taken = []
    node.on_trace(taken.append)
    return taken


def test_a_traced_message_gives_its_steps_to_the_hook():
    async def main():
        node = fw.Node(identity="here")
        taken = steps(node)
        async with node:
            await traced(node, trace=True)
        by_message = {}
        for step in taken:
            by_message.setdefault(step.message_id.identity, []).append(step.step)
        assert by_message == {
            b"test.question": ["received", "routed", "handled"],
            b"test.job": ["routed", "handled"],
            b"test.done": ["replied", "routed"],
        }
        assert {step.correlation_id for step in taken} == {b"flow"}
        assert {step.node for step in taken} == {b"here"}
        assert [step.at for step in taken] == sorted(step.at for step in taken)

    run(main())


def test_a_message_that_was_not_asked_to_be_traced_gives_nothing():
    async def main():
        node = fw.Node()
        taken = steps(node)
        async with node:
            await traced(node)
        assert taken == []

    run(main())


def test_steps_are_structured_log_records(caplog):
    caplog.set_level(logging.INFO, "framewire.trace")

    async def main():
        async with fw.Node() as node:
            await traced(node, trace=True)

    run(main())
    records = [record for record in caplog.records if record.name == "framewire.trace"]
    assert {record.framewire.step for record in records} == {"received", "routed", "handled", "replied"}
    assert all(record.framewire.correlation_id == b"flow" for record in records)
    assert "test.question v1" in records[0].getMessage()


def test_a_message_of_another_node_is_traced_by_its_own_options():
    async def main():
        node = fw.Node()
        taken = steps(node)
        async with node:

            @node.handler(Question, inline=True)
            def look(_): ...

            frames = encode(
                Message(
                    b"test.question",
                    body_frames=(b"\x80",),
                    trace_options=TraceOptions.ROUTING,
                    correlation_id=b"far",
                )
            )
            node.port.receive(b"there", frames)
        assert [(step.step, step.correlation_id) for step in taken] == [
            ("received", b"far"),
            ("routed", b"far"),
            ("handled", b"far"),
        ]
        assert taken[0].detail == "from node there"

    run(main())


def test_a_message_that_is_broadcast_is_no_reply():
    async def main():
        node = fw.Node()
        taken = steps(node)
        async with node:

            @node.handler(Question)
            async def shout(_, ctx):
                await ctx.broadcast(Answer())
                return Done()

            @node.handler(Answer, inline=True)
            def hear(_): ...

            await node.hub.ask(Question(), Answer, Done, trace=True)
        assert [step.message_id.identity for step in taken if step.step == "replied"] == [b"test.done"]

    run(main())


def test_a_hook_that_fails_harms_nobody():
    async def main():
        node = fw.Node()

        @node.on_trace
        def fail(_):
            raise ValueError("hook")

        taken = steps(node)
        async with node:
            await traced(node, trace=True)
        assert len(taken) == 7

    run(main())


@pytest.mark.parametrize("fails", [True, False])
def test_a_handler_that_failed_was_handled(fails):
    async def main():
        node = fw.Node()
        taken = steps(node)
        async with node:

            @node.handler(Question)
            async def perhaps(_):
                if fails:
                    raise ValueError
                return Answer()

            await node.hub.gather(Question(), Answer, stop_after=1, trace=True)
        assert [step.step for step in taken if step.message_id.identity == b"test.question"][-1] == "handled"

    run(main())


# --- and what is recorded of it


def test_a_traced_flow_is_recorded_whole_with_its_steps_by_a_node_that_records_nothing_else(tmp_path):
    taken = []

    class First(fw.Actor):
        @fw.handles(Question)
        async def first(self, _: Question, ctx: fw.Context):
            await ctx.tell(Answer("told"))
            return Job(1)

    async def main():
        recorder = fw.Capture(tmp_path, sample=0.0, bodies="drop", identities=["nothing.*"], directions=["sent"])
        async with fw.Node(identity="here", capture=recorder) as node:
            node.on_trace(taken.append)
            await node.host(First())

            @node.handler(Job)
            async def finish(job):
                return Done(job.number)

            @node.handler(Answer)
            async def hear(_):
                """It was told."""

            for flow in (b"flow", b"another"):
                await node.hub.ask(Question("x"), Done, correlation_id=flow, trace=flow == b"flow")
        assert recorder.stats.left_out > 0

    run(main())
    rows = [(row["direction"], decode(row["frames"])) for row in read(tmp_path).to_pylist()]
    assert {message.correlation_id for _, message in rows} == {b"flow"}
    whole = {message.identity: message.body for direction, message in rows if direction == "delivered"}
    assert whole.keys() == {b"test.question", b"test.answer", b"test.job", b"test.done"}
    assert not any(cut_of(body) for body in whole.values())
    steps = [(message.identity, *message.body_frames) for direction, message in rows if direction == "trace"]
    assert steps == [(step.message_id.identity, step.step.encode(), step.detail.encode()) for step in taken]


def test_a_node_that_records_everything_records_steps_in_their_place(tmp_path):
    async def main():
        async with fw.Node(identity="here", capture=str(tmp_path)) as node:
            await traced(node, trace=True)
            await traced_again(node)

    async def traced_again(node):
        await node.hub.ask(Question(), Done, correlation_id=b"untraced")

    run(main())
    rows = read(tmp_path).to_pylist()
    steps = [row for row in rows if row["direction"] == "trace"]
    assert len(steps) == 7
    assert {(row["node"], row["peer"], row["reason"]) for row in steps} == {(b"here", b"", None)}
    assert {decode(row["frames"]).correlation_id for row in steps} == {b"flow"}
