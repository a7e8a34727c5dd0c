"""Spans of OpenTelemetry's for what handlers do."""

import asyncio
import time

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import run

import framewire as fw
from framewire.operation import spans
from framewire.operation.spans import SpanNode, flow_ids
from framewire.spark.traces import trace_id

pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry's SDK is optional")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_current_span


def spanned(main, **options):
    """Run a test with a node that makes spans; the spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def with_node():
        async with SpanNode(provider=provider, identity="me", signals=False, **options) as node:
            await main(node)

    run(with_node())
    return exporter.get_finished_spans()


class Shop(fw.Actor):
    @fw.handles(Question)
    async def asked(self, question: Question, ctx: fw.Context) -> Answer:
        await asyncio.sleep(0)
        if question.text == "fail":
            raise ValueError("on purpose")
        return Answer(ctx.correlation_id.decode())

    @fw.handles(Job)
    def worked(self, job: Job) -> Done:
        assert get_current_span().is_recording()
        return Done(job.number)


def test_a_handler_is_a_span_by_the_conventions_for_messaging():
    async def main(node):
        await node.host(Shop())
        assert (await node.hub.ask(Question("tea"), Answer, correlation_id=b"my-flow")).text == "my-flow"

    (span,) = spanned(main)
    assert span.name == "process test.question v1"
    assert span.kind is SpanKind.CONSUMER
    assert dict(span.attributes) == {
        "messaging.system": "framewire",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "test.question",
        "messaging.message.conversation_id": "my-flow",
        "framewire.message.version": 1,
        "framewire.handler": "Shop.asked",
    }
    assert span.status.status_code is StatusCode.UNSET


def test_all_spans_of_a_flow_are_one_trace_the_one_that_is_exported_from_the_lake():
    async def main(node):
        await node.host(Shop())
        await node.hub.ask(Question("tea"), Answer, correlation_id=b"my-flow")
        await node.hub.ask(Job(1), Done, correlation_id=b"my-flow")
        await node.hub.ask(Job(1), Done, correlation_id=b"another")

    one, two, other = spanned(main)
    assert one.context.trace_id == two.context.trace_id == int(trace_id(b"my-flow"), 16) == flow_ids(b"my-flow")[0]
    assert one.parent.span_id == two.parent.span_id == flow_ids(b"my-flow")[1]
    assert one.context.span_id != two.context.span_id
    assert other.context.trace_id != one.context.trace_id


def test_a_failure_is_on_its_span():
    async def main(node):
        await node.host(Shop())
        with pytest.raises(fw.RemoteError, match="on purpose") as caught:
            await node.hub.ask(Question("fail"), Answer)
        assert caught.value.actor == "Shop.asked"

    (span,) = spanned(main)
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "ValueError"
    assert span.events[0].attributes["exception.message"] == "on purpose"


def test_handlers_of_every_kind_have_spans_which_are_current_in_them():
    async def main(node):
        seen = []

        @node.handler(Question, inline=True)
        def inline(question):
            seen.append(get_current_span().is_recording())
            return Answer(question.text)

        class Streams(fw.Actor):
            @fw.handles(Job)
            async def stream(self, job):
                for number in range(job.number):
                    seen.append(get_current_span().is_recording())
                    yield Done(number)

        await node.host(Streams())
        assert await node.hub.ask(Question("tea"), Answer) == Answer("tea")
        assert len(await node.hub.gather(Job(2), Done, stop_after=2, timeout=5)) == 2
        assert seen == [True, True, True]

    assert sorted(span.name for span in spanned(main)) == ["process test.job v1", "process test.question v1"]


def test_a_handler_of_many_partitions_makes_one_span_for_each_message_with_its_partition():
    async def main(node):
        @node.handler(Question, partitions=["eu", "us"])
        async def asked(question):
            return Answer(question.text)

        for partition in ("eu", "us"):
            await node.hub.ask(Question("tea"), Answer, partition=partition)

    spans = spanned(main)
    assert [span.name for span in spans] == ["process test.question v1"] * 2
    assert [span.attributes["messaging.destination.partition.id"] for span in spans] == ["eu", "us"]


def test_a_restarted_actor_still_makes_spans():
    class Fragile(Shop):
        restart = fw.Restart(after=1, backoff=0)

    async def main(node):
        await node.host(Fragile)
        with pytest.raises(fw.RemoteError):
            await node.hub.ask(Question("fail"), Answer)
        await node.hub.ask(Question("tea"), Answer)
        assert next(actor for actor in node.stats().actors if actor.name.endswith("Fragile")).restarts == 1

    assert len(spanned(main)) == 2


def test_what_blocks_the_event_loop_is_still_named():
    class Blocks(fw.Actor):
        @fw.handles(Job)
        async def job(self, _):
            time.sleep(0.5)  # noqa: ASYNC251 - this is what is to be noticed
            return Done(1)

    stalls = []

    async def main(node):
        node.on_stall(stalls.append)
        await node.host(Blocks())
        await node.hub.ask(Job(1), Done)

    spanned(main, stall_after=0.1)
    assert [stall.handler.rpartition(".")[2] for stall in stalls] == ["job"]


def test_messages_by_which_nodes_run_the_cluster_have_no_spans():
    async def main(node):
        await node.hub.ask(fw.NodeInfo(), fw.NodeStats)

    assert spanned(main, bind="tcp://127.0.0.1:*") == ()


def test_without_the_sdk_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(spans, "find_spec", lambda name: None if name == "opentelemetry.sdk" else object())
    with pytest.raises(fw.UsageError, match=r"pip install 'framewire\[otel\]'"):
        SpanNode()
