"""V1 nodes that handle: messages go to them in V1, and their answers come back."""

import asyncio
import os
import threading
from collections import Counter

import bson
import msgspec
import pytest
import zmq
from tests.cluster.clustering import Named, free_ports, handlers, make_node, peers, served, uri_of
from tests.cluster.v1_node import Received, V1Node, written
from tests.node.messages import Answer, Job, Other, Question
from tests.node.running import eventually, run
from tests.wire.vectors import load

import framewire as fw
from framewire.capture import read as recorded
from framewire.cluster import v1_messages
from framewire.cluster.v1_messages import V1Asks, lowered, v1_handled
from framewire.security.curve import Curve
from framewire.wire import Distribution, Message, MessageId, decode, upgrade
from framewire.wire.message import RouterAddress

QUESTION, ANSWER = b"test.question", b"test.answer"


@fw.message("test.question", partition="eu")
class European(msgspec.Struct):
    text: str = ""


@fw.message("test.question", version=7)
class Question7(msgspec.Struct):
    text: str = ""


@fw.message("test.answer", version=7)
class Answer7(msgspec.Struct):
    text: str = ""


def text(value):
    return msgspec.msgpack.encode({"text": value})


def said(name, version=b"1.0"):
    """A handler that answers with its name."""
    return lambda _: (ANSWER, version, text(name))


def exception(_):
    document = {"Exception": {"Message": "no such thing", "ClassName": "System.Exception"}, "StackTrace": "at V1"}
    return b"KINO.EXCEPTION", b"1.0", bson.encode(document) + bytes(20)


def with_v1(main, handled=None, messages=("test.question",), **options):
    """Run a test on a node that has a V1 node in its configuration."""

    async def scenario():
        with V1Node(handled or {QUESTION: said("V1")}) as old:
            async with make_node(v1_nodes={old.uri: list(messages)}, **options) as node:
                await eventually(lambda: peers(node))
                await main(node, old)

    run(scenario())


def test_an_ask_goes_to_a_v1_node_in_v1_and_its_answer_comes_back():
    async def main(node, old):
        answer = await node.hub.ask(Question("hi"), Answer, correlation_id=b"flow 1")
        assert answer == Answer("V1")
        [asked] = old.received
        assert (asked.identity, asked.version, asked.body) == (QUESTION, b"1.0", text("hi"))
        assert asked.correlation_id == b"flow 1"
        assert asked.points == [(ANSWER, b"1.0"), (b"KINO.EXCEPTION", b"1.0")]
        assert asked.callback_receiver == node.hub.identity
        assert asked.routing == [(node.identity, uri_of(node).encode())]
        assert asked.receiver == b""
        assert len(asked.frames) == 15 + 4 + 2 + 2, "nothing but V1, and an envelope"
        assert node.dead_letters.counts.total() == 0

    with_v1(main)


def test_what_is_written_for_a_v1_node_is_what_the_oldest_encoder_wrote():
    for case in load("v1"):
        frames = case["frames"]
        message = decode(frames, ttl_unit="ticks")
        texts = [message.version, *(point.version for point in message.callback_points)]
        versions = {text: 1000 + number for number, text in enumerate(dict.fromkeys(texts))}
        raised = upgrade(message, versions).replace(ttl_ticks=0)
        again = lowered(raised, "tcp://old:1", {}, versions, lambda _: "")
        # All but the envelope, and the time, which the oldest encoder wrote in ticks.
        assert again[2:-3] + again[-2:] == frames[2:-3] + frames[-2:], case["name"]


def test_the_v1_node_of_these_tests_writes_and_reads_as_the_oldest_encoder_did():
    compared = 0
    for case in load("v1"):
        frames, fields = case["frames"], case["fields"]
        received = Received(frames)
        assert received.identity.hex() == fields["identity"]
        assert received.correlation_id.hex() == (fields["correlation_id"] or "")
        told = [tuple(point[:2]) for point in reversed(fields["callbacks"])]
        assert [(identity.hex(), version.hex()) for identity, version in received.points] == told
        if fields["hops"] or fields["trace_options"] or fields["distribution"] or fields["ttl_ticks"]:
            continue
        compared += 1
        made = written(
            received.identity,
            received.version,
            received.body,
            receiver=received.receiver,
            correlation_id=received.correlation_id,
            points=received.points,
            callback_receiver=received.callback_receiver,
            routing=received.routing,
        )
        assert made == frames[2:], case["name"]
    assert compared > 5


def test_an_answer_over_a_connection_of_the_v1_nodes_own_is_taken_too():
    async def main():
        with V1Node({QUESTION: said("V1")}) as old:
            async with make_node(v1_nodes={old.uri: ["test.question"]}) as node:
                old.answers_to = (uri_of(node), node.identity)
                await eventually(lambda: peers(node))
                for number in range(5):
                    assert (await node.hub.ask(Question(str(number)), Answer)).text == "V1"
                assert node.dead_letters.counts.total() == 0

    run(main())


def test_many_asks_at_once_get_their_own_answers():
    def echo(message):
        return ANSWER, b"1.0", message.body

    async def main(node, _):
        answers = await asyncio.gather(*(node.hub.ask(Question(str(n)), Answer) for n in range(500)))
        assert [answer.text for answer in answers] == [str(n) for n in range(500)]

    with_v1(main, {QUESTION: echo})


def test_a_v1_node_is_one_route_among_others():
    async def main(node, old):
        await node.host(Named("here"))
        heard = Counter([(await node.hub.ask(Question(), Answer)).text for _ in range(8)])
        assert heard == {"V1": 4, "here": 4}
        await node.hub.broadcast(Question("all"))
        await eventually(lambda: old.received[-1].body == text("all"))
        assert old.received[-1].distribution == b"\x01\0\0\0"
        assert len(await node.hub.gather(Question(), Answer, stop_after=2)) == 2

    with_v1(main)


def test_a_broadcast_gathers_the_answers_of_several_v1_nodes():
    async def main():
        with V1Node({QUESTION: said("one")}) as one, V1Node({QUESTION: said("two")}) as two:
            listed = {one.uri: ["test.question"], two.uri: ["test.question"]}
            async with make_node(v1_nodes=listed) as node:
                await eventually(lambda: handlers(node) == 2)
                found = await node.hub.gather(Question(), Answer, stop_after=2)
                assert sorted(answer.text for answer in found) == ["one", "two"]
                turns = [(await node.hub.ask(Question(), Answer)).text for _ in range(4)]
                assert sorted(turns) == ["one", "one", "two", "two"]

    run(main())


def test_an_exception_of_a_v1_node_is_a_remote_error():
    async def main(node, old):
        with pytest.raises(fw.RemoteError, match="no such thing") as failure:
            await node.hub.ask(Question(), Answer)
        assert failure.value.traceback == "at V1"
        assert failure.value.last_hop == old.uri

    with_v1(main, {QUESTION: exception})


def test_a_v1_node_that_does_not_answer_lets_the_ask_expire_and_a_late_answer_is_counted():
    held = []

    async def main(node, old):
        with pytest.raises(fw.Expired):
            await node.hub.ask(Question(), Answer, timeout=0.2)
        [asked] = old.received
        assert 0 < int.from_bytes(asked.ttl, "little", signed=True) <= 200, "milliseconds"
        old.send(
            written(ANSWER, b"1.0", text("late"), receiver=node.hub.identity, correlation_id=asked.correlation_id)
        )
        await eventually(lambda: node.dead_letters.counts["late_reply"] == 1)

    with_v1(main, {QUESTION: held.append})


def test_a_second_answer_is_counted_and_one_of_an_unknown_flow_too():
    async def main(node, old):
        await node.hub.ask(Question(), Answer, correlation_id=b"flow")
        for flow in (b"flow", b"never asked"):
            old.send(written(ANSWER, b"1.0", text("x"), receiver=node.hub.identity, correlation_id=flow))
        await eventually(lambda: node.dead_letters.counts.total() == 2)
        assert node.dead_letters.counts == {"duplicate_reply": 1, "unknown_reply": 1}

    with_v1(main)


def test_an_answer_without_a_receiver_is_matched_by_flow_and_callback():
    async def main(node, old):
        promise = node.hub.start(Question(), Answer, correlation_id=b"flow")
        await eventually(lambda: old.received)
        old.send(
            written(
                ANSWER,
                b"1",
                text("unaddressed"),
                correlation_id=b"flow",
                points=old.received[0].points,
                callback_receiver=node.hub.identity,
            )
        )
        assert (await promise).text == "unaddressed"

    with_v1(main, {QUESTION: lambda _: None})


def test_a_v1_node_may_hand_the_flow_on_to_this_node():
    async def main(node, _):
        @node.handler(Job)
        async def finish(job):
            return Answer(f"job {job.number}")

        assert (await node.hub.ask(Question(), Answer)).text == "job 7"

    with_v1(main, {QUESTION: lambda _: (b"test.job", b"1.0", msgspec.msgpack.encode({"number": 7}))})


def test_an_ask_of_another_node_passes_through_to_a_v1_node_and_back():
    async def main(server):
        with V1Node({QUESTION: said("V1")}) as old:
            listed = {old.uri: ["test.question"]}
            async with make_node(server, v1_nodes=listed) as front, make_node(server) as asker:

                @front.handler(Job)
                async def relay(_):
                    return Question("relayed")

                await eventually(lambda: handlers(asker, b"test.job") and handlers(front))
                assert (await asker.hub.ask(Job(), Answer)).text == "V1"

    run(served(main))


def test_a_v1_node_that_dies_ends_its_asks_and_gets_messages_again_when_it_is_back():
    async def main():
        taken, port = free_ports(0)
        taken.close()
        uri = f"tcp://127.0.0.1:{port}"
        old = V1Node({QUESTION: lambda _: None}, uri)
        async with make_node(v1_nodes={uri: ["test.question"]}, route_grace=0.5) as node:
            await eventually(lambda: handlers(node))
            promise = node.hub.start(Question(), Answer, timeout=60)
            await eventually(lambda: old.received)
            old.close()
            with pytest.raises(fw.Unreachable, match=f"node V1 {uri} is gone"):
                await promise
            assert not handlers(node)
            assert not peers(node)
            with pytest.raises(fw.NoRoute):
                await node.hub.ask(Question(), Answer, timeout=60)
            with V1Node({QUESTION: said("back")}, uri):
                await eventually(lambda: handlers(node))
                assert (await node.hub.ask(Question(), Answer)).text == "back"

    run(main(), timeout=30)


def test_others_handle_what_a_v1_node_that_is_away_would_have():
    async def main():
        taken, port = free_ports(0)
        taken.close()
        async with make_node(v1_nodes={f"tcp://127.0.0.1:{port}": ["test.question"]}) as node:
            await node.host(Named("here"))
            assert [(await node.hub.ask(Question(), Answer)).text for _ in range(3)] == ["here"] * 3

    run(main())


def test_an_ask_is_held_for_a_v1_node_that_is_being_started():
    async def main():
        taken, port = free_ports(0)
        taken.close()
        uri = f"tcp://127.0.0.1:{port}"
        async with make_node(v1_nodes={uri: ["test.question"]}, route_grace=10) as node:
            promise = node.hub.start(Question(), Answer)
            with V1Node({QUESTION: said("started")}, uri):
                assert (await promise).text == "started"

    run(main())


def test_a_listener_that_is_no_zeromq_is_not_there_and_does_not_stay_in_the_way():
    async def main():
        lines = []

        async def greet(reader, writer):
            lines.append(await reader.read(1))
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        uri = f"tcp://127.0.0.1:{port}"
        async with make_node(v1_nodes={uri: ["test.question"]}) as node:
            await eventually(lambda: lines)
            assert not peers(node)
            server.close()
            await server.wait_closed()
            with V1Node({QUESTION: said("V1")}, uri):
                await eventually(lambda: handlers(node))
                assert (await node.hub.ask(Question(), Answer)).text == "V1"

    run(main(), timeout=30)


def test_a_v1_node_with_a_name_is_looked_up():
    async def main():
        with V1Node({QUESTION: said("named")}) as old:
            uri = old.uri.replace("127.0.0.1", "localhost")
            async with make_node(v1_nodes={uri: ["test.question"]}) as node:
                assert (await node.hub.ask(Question(), Answer)).text == "named"

    run(main())


# --- versions


def test_versions_are_written_as_the_configuration_has_them_and_read_as_numbers():
    async def main(node, old):
        assert (await node.hub.ask(Question7(), Answer7)).text == "seven"
        assert (await node.hub.ask(Question(), Answer)).text == "one"
        assert [(each.version, each.points[0]) for each in old.received] == [
            (b"beta", (ANSWER, b"beta")),
            (b"1", (ANSWER, b"1.0")),
        ]

    def answer(message):
        return {b"beta": (ANSWER, b"beta", text("seven")), b"1": (ANSWER, b"1", text("one"))}[message.version]

    with_v1(main, {QUESTION: answer}, ["test.question beta", "test.question 1"], versions={b"beta": 7})


def test_messages_may_be_named_by_their_classes():
    async def main(node, old):
        await node.hub.ask(Question7(), Answer)
        await node.hub.ask(Question(), Answer)
        assert [each.version for each in old.received] == [b"7.0", b"1.0"]

    with_v1(main, messages=[Question7, MessageId(QUESTION)])


# --- what V1 cannot carry


def refused(match, error=fw.BadBody, messages=("test.question",), sent=None, **options):
    async def main(node, old):
        with pytest.raises(error, match=match) as failure:
            await (sent(node) if sent else node.hub.ask(Question(), Answer, timeout=60))
        assert failure.value.elapsed < 5, "at once"
        assert old.uri in str(failure.value)
        assert old.received == []
        assert node.dead_letters.counts.total() == 1

    with_v1(main, messages=messages, **options)


def test_a_receiver_node_is_refused():
    name = "V1 cannot carry its receiver node 'V1 tcp://.*' \\(to_node=\\)"
    refused(name, sent=lambda node: node.hub.ask(Question(), Answer, to_node=next(iter(peers(node))), timeout=60))


def test_a_receipt_is_refused():
    refused("the request for a receipt", sent=lambda node: node.hub.send(Question(), timeout=60))


def test_a_partition_in_the_answer_is_refused():
    @fw.message("test.answer", partition="eu")
    class Regional(msgspec.Struct):
        text: str = ""

    refused(
        "the partition of test.answer v1 \\[eu\\]", sent=lambda node: node.hub.ask(Question(), Regional, timeout=60)
    )


def test_a_message_of_a_partition_is_not_handled_by_a_v1_node():
    async def main(node, old):
        with pytest.raises(fw.NoRoute, match=r"Known: test\.question v1"):
            await node.hub.ask(European(), Answer)
        assert old.received == []

    with_v1(main, route_grace=0)


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned domain"])
def test_a_domain_is_refused(signed):
    ring = fw.KeyRing(
        [fw.DomainKey("sales", os.urandom(32))], {"sales": ["test.question"]}, unsigned=() if signed else ("sales",)
    )
    refused("V1 has no domains and no signatures, and it belongs to domain 'sales'", fw.BadSignature, keyring=ring)


def test_an_answer_of_a_domain_is_refused():
    ring = fw.KeyRing([fw.DomainKey("sales", os.urandom(32))], {"sales": ["test.answer"]})
    refused("an answer that it waits for belongs to domain 'sales'", fw.BadSignature, keyring=ring)


def test_changed_keys_do_not_take_a_v1_nodes_routes_away():
    ring = fw.KeyRing([fw.DomainKey("sales", os.urandom(32))], {"sales": ["test.question"]})

    async def main(node, _):
        with pytest.raises(fw.BadSignature):
            await node.hub.ask(Question(), Answer)
        node.use_keys(None)
        assert (await node.hub.ask(Question(), Answer)).text == "V1"
        node.use_keys(ring)
        with pytest.raises(fw.BadSignature):
            await node.hub.ask(Question(), Answer)

    with_v1(main, keyring=ring)


def test_a_tell_that_v1_cannot_carry_is_a_dead_letter_that_says_why():
    async def main(node, old):
        await node.hub.tell(Question(), to_node=next(iter(peers(node))))
        [letter] = node.dead_letters
        assert letter.reason == "bad_body"
        assert "V1 cannot carry its receiver node" in letter.detail
        assert old.received == []

    with_v1(main)


def test_a_body_of_several_frames_is_refused():
    message = Message(QUESTION, body_frames=(b"one", b"two"))
    with pytest.raises(fw.BadBody, match="V1 cannot carry a body of 2 frames; send one"):
        lowered(message, "tcp://old:1", {}, {}, lambda _: "")


def test_all_that_v1_cannot_carry_is_told_at_once():
    message = Message(
        QUESTION,
        partition=b"eu",
        receiver_node_identity=b"node-1",
        callback_receiver_identity=b"hub",
        callback_points=(MessageId(b"KINO.RCPTCONFIRM"), MessageId(ANSWER, 1, b"us")),
    )
    with pytest.raises(fw.BadBody) as failure:
        lowered(message, "tcp://old:1", {}, {}, lambda _: "")
    for what in ("its partition 'eu'", "receiver node 'node-1'", "a receipt", "partition of test.answer v1 [us]"):
        assert what in failure.value.detail


def test_an_empty_body_is_one_empty_frame_and_a_time_of_less_than_a_millisecond_is_one():
    frames = lowered(Message(QUESTION, body_frames=(), ttl_ticks=3), "tcp://old:1", {}, {}, lambda _: "")
    again = decode(frames)
    assert (again.body_frames, again.ttl_ticks) == ((b"",), 10_000)


# --- answers by correlation id


def test_a_second_ask_of_one_flow_is_refused_while_the_first_may_be_answered():
    async def main(node, old):
        first = node.hub.start(Question("1"), Answer, correlation_id=b"flow")
        await eventually(lambda: old.received)
        with pytest.raises(fw.BadBody, match=r"V1 has no callback key.*flow flow has an ask"):
            await node.hub.ask(Question("2"), Answer, correlation_id=b"flow")
        other = node.hub.start(Question("3"), Answer, correlation_id=b"another flow")
        await eventually(lambda: len(old.received) == 2)
        for each in old.received:
            flow, hub = each.correlation_id, node.hub.identity
            old.send(written(ANSWER, b"1.0", each.body, receiver=hub, correlation_id=flow))
        assert ((await first).text, (await other).text) == ("1", "3")

    with_v1(main, {QUESTION: lambda _: None})


def test_asks_of_one_flow_follow_one_another():
    async def main(node, _):
        @node.handler(Job)
        async def asks_twice(_, ctx):
            first = await ctx.ask(Question(), Answer)
            second = await ctx.ask(Question(), Answer)
            return Other(first.text + second.text)

        assert (await node.hub.ask(Job(), Other)).text == "V1V1"

    with_v1(main)


def asked(number, flow=b"flow", ttl=0, broadcast=False):
    return Message(
        QUESTION,
        correlation_id=flow,
        ttl_ticks=ttl * 10_000_000,
        distribution=Distribution(int(broadcast)),
        callback_receiver_identity=b"\x00hub",
        callback_receiver_node_identity=b"node",
        callback_key=number,
        callback_points=(MessageId(ANSWER),),
    )


def replied(flow=b"flow"):
    return Message(ANSWER, b"1.0", correlation_id=flow, receiver_identity=b"\x00hub", wire_version=1)


def test_an_ask_blocks_its_flow_until_it_is_answered_lost_or_long_over():
    now = [0.0]
    asks = V1Asks(b"node", {}, lambda: now[0])
    asks.add(asked(1), b"one")
    asks.add(asked(1), b"two")
    with pytest.raises(fw.BadBody):
        asks.add(asked(2), b"one")
    assert asks.answer(replied(), {}).callback_key == 1
    asks.add(asked(2, ttl=5), b"one")
    now[0] = 5 + v1_messages.LATE_S - 1
    with pytest.raises(fw.BadBody):
        asks.add(asked(3), b"one")
    now[0] += 2
    asks.add(asked(3), b"one")
    asks.lose(b"one")
    asks.add(asked(4), b"one")
    asks.remove(asked(4), b"one")
    asks.add(asked(5, broadcast=True), b"one")
    assert asks.answer(replied(), {}).callback_key == 5
    with pytest.raises(fw.BadBody):
        asks.add(asked(6), b"one")


def test_asks_are_bounded_and_the_oldest_makes_room(monkeypatch):
    monkeypatch.setattr(v1_messages, "MAX_ASKS", 2)
    asks = V1Asks(b"node", {}, lambda: 0.0)
    for number in range(3):
        asks.add(asked(number + 1, b"%d" % number), b"one")
    assert len(asks) == 2
    assert asks.answer(replied(b"0"), {}) is None
    assert asks.answer(replied(b"2"), {b"one": "tcp://one:1"}).routing == (RouterAddress("tcp://one:1", b"one"),)


# --- the rest of the node


def test_what_a_v1_node_does_not_read_waits_in_a_bounded_queue():
    async def flood(node, old):
        stopped = threading.Event()
        old.handlers[QUESTION] = lambda _: stopped.wait(20) and None
        try:
            started = [node.hub.start(Question("x" * 500_000), Answer, timeout=20) for _ in range(200)]
            await eventually(lambda: any(promise.done for promise in started))
            done = [promise for promise in started if promise.done]
            with pytest.raises(fw.Overloaded, match="messages already wait for V1 tcp://"):
                done[0].result()
            for promise in started:
                promise.cancel()
        finally:
            stopped.set()

    with_v1(flood, send_queue=5, send_overflow="reject")


def test_senders_wait_for_a_v1_node_that_is_slow_and_nothing_is_lost():
    async def main(node, old):
        stopped = threading.Event()
        old.handlers[QUESTION] = lambda message: (stopped.wait(20), (ANSWER, b"1.0", message.body))[1]
        asked = [f"{number}{'x' * 300_000}" for number in range(80)]
        started = [node.hub.start(Question(each), Answer, timeout=15) for each in asked]
        [name] = peers(node)
        await eventually(lambda: node._transport.traffic[name].waiting > 10)
        stopped.set()
        assert [(await promise).text for promise in started] == asked
        assert node._transport.traffic[name].waiting == 0

    with_v1(main, send_queue=10)


def test_the_oldest_of_too_many_is_dropped_where_that_is_wanted():
    async def main(node, old):
        stopped = threading.Event()
        old.handlers[QUESTION] = lambda message: (stopped.wait(20), (ANSWER, b"1.0", message.body))[1]
        try:
            started = [node.hub.start(Question("x" * 500_000), Answer, timeout=15) for _ in range(100)]
            await eventually(lambda: any(promise.done for promise in started))
            assert not started[-1].done
        finally:
            stopped.set()
        outcomes = Counter()
        for promise in started:
            try:
                outcomes[(await promise).text == "x" * 500_000] += 1
            except fw.Overloaded:
                outcomes["dropped"] += 1
        assert outcomes["dropped"] + outcomes[True] == 100

    with_v1(main, send_queue=5, send_overflow="drop_oldest")


def test_a_v1_caller_reaches_a_v1_node_through_a_framewire_node():
    async def main(node, _):
        with zmq.Context() as context, context.socket(zmq.DEALER) as caller:
            caller.linger = 0
            caller.connect(uri_of(node))
            points = [(ANSWER, b"1.0")]
            caller.send_multipart(
                written(QUESTION, b"1.0", text("hi"), correlation_id=b"V1", points=points, callback_receiver=b"hub")
            )
            await eventually(lambda: caller.poll(0))
            answer = Received(caller.recv_multipart())
        assert (answer.identity, answer.version, answer.body) == (ANSWER, b"1.0", text("V1"))
        assert (answer.receiver, answer.correlation_id) == (b"hub", b"V1")

    with_v1(main)


def test_a_v1_node_may_ask_over_the_connection_that_was_made_to_it():
    async def main(node, old):
        @node.handler(Job)
        async def done(job):
            return Other(f"job {job.number}")

        await node.hub.ask(Question(), Answer)
        job, points = msgspec.msgpack.encode({"number": 3}), [(b"test.other", b"1.0")]
        old.send(
            written(b"test.job", b"1.0", job, correlation_id=b"V1", points=points, callback_receiver=b"V1 hub")
        )
        await eventually(lambda: len(old.received) == 2)
        answer = old.received[1]
        assert (answer.identity, answer.receiver, answer.body) == (b"test.other", b"V1 hub", text("job 3"))

    with_v1(main, {QUESTION: said("V1"), b"test.other": lambda _: None})


def test_traffic_and_address_of_a_v1_node_are_known():
    async def main(node, old):
        await node.hub.ask(Question(), Answer)
        name = b"V1 " + old.uri.encode()
        assert node._transport.traffic[name].sent == 1
        assert node._transport.uri_of(name) == old.uri
        assert name.decode() in node.stats().traffic

    with_v1(main)


def test_an_ask_and_its_answer_are_recorded(tmp_path):
    async def main(node, old):
        await node.hub.ask(Question(), Answer)
        rows.append(b"V1 " + old.uri.encode())

    rows = []
    with_v1(main, capture=tmp_path)
    [name] = rows
    found = [(row["direction"], row["peer"], decode(row["frames"])) for row in recorded(tmp_path).to_pylist()]
    told = [(direction, peer, message.identity) for direction, peer, message in found]
    assert ("sent", name, QUESTION) in told
    assert ("received", name, ANSWER) in told
    keys = {message.callback_key for _, _, message in found}
    assert len(keys) == 1, "one flow, as V5 has it"


def test_nobody_else_can_be_called_like_a_v1_node():
    async def main(server):
        with V1Node({QUESTION: said("V1")}) as old:
            name = f"V1 {old.uri}"
            async with make_node(server, v1_nodes={old.uri: ["test.question"]}) as node:
                await eventually(lambda: handlers(node))
                async with make_node(server, identity=name) as liar:
                    await liar.host(Named("liar"))
                    await eventually(lambda: peers(liar))
                assert [(await node.hub.ask(Question(), Answer)).text for _ in range(3)] == ["V1"] * 3
                assert handlers(node) == 1

    run(served(main))


def test_a_framewire_node_can_be_a_v1_node_to_another():
    async def main():
        async with make_node() as old, make_node(v1_nodes={uri_of(old): ["test.question"]}) as node:
            await old.host(Named("framewire"))
            await eventually(lambda: handlers(node))
            assert (await node.hub.ask(Question(), Answer)).text == "framewire"
            with pytest.raises(fw.RemoteError, match="framewire does not like this"):
                await node.hub.ask(Question("fail"), Answer)

    run(main())


# --- settings


@pytest.mark.parametrize(
    ("listed", "match"),
    [
        ({"tcp://old": ["test.question"]}, "v1_nodes: 'tcp://old'; must be like"),
        ({"tcp://old:1": []}, "handles no message"),
        ({"tcp://old:1": "test.question"}, "is not a list of messages"),
        ({"tcp://old:1": ["test.question beta"]}, "map it with versions"),
        ({"tcp://old:1": ["a b c"]}, "is not like 'orders.place'"),
        ({"tcp://old:1": [European]}, "V1 has no partitions"),
        ({"tcp://old:1": [int]}, "int is not a message"),
        ({"tcp://old:1": [7]}, "neither text"),
        ({"tcp://old:1": ["a 1", "a 1.0"]}, "are both v1"),
        (["tcp://old:1"], "a mapping of addresses"),
    ],
)
def test_wrong_v1_nodes_are_told(listed, match):
    with pytest.raises(fw.ConfigError, match=match):
        fw.Node(v1_nodes=listed)


def test_v1_nodes_and_curve_exclude_each_other(tmp_path):
    curve = Curve(key=str(tmp_path / "key"), cluster=str(tmp_path / "cluster"), allowed=str(tmp_path))
    with pytest.raises(fw.ConfigError, match="V1 nodes have no CURVE"):
        fw.Node(v1_nodes={"tcp://old:1": ["a"]}, curve=curve)


def test_versions_as_text():
    assert v1_handled(["a", "b 2", "c 2.0", "d x"], {b"x": 9}) == {
        MessageId(b"a", 1): b"1.0",
        MessageId(b"b", 2): b"2",
        MessageId(b"c", 2): b"2.0",
        MessageId(b"d", 9): b"x",
    }
