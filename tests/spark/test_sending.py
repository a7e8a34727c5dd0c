"""Recorded messages into a live cluster, without Spark."""

import time

import pytest
from tests.node.running import framewire_threads
from tests.spark.living import living_cluster

from framewire.capture.bodies import cut_body
from framewire.errors import ConfigError, Unreachable
from framewire.spark.sending import Outgoing, Sender, Target, refusal
from framewire.wire import Message, MessageId, decode, encode

WORK = MessageId(b"replay.work")


@pytest.fixture
def cluster():
    before = framewire_threads()
    with living_cluster() as alive:
        yield alive
    assert framewire_threads() <= before


def work(number, **options):
    return Outgoing(WORK, b"%d" % number, b"flow-%d" % number, **options)


def test_messages_are_confirmed_and_keep_their_order_and_ids(cluster):
    uri, worker = cluster
    with Sender(Target(rendezvous=(uri,))) as sender:
        for number in range(300):
            sender.send(work(number))
    assert (sender.tally.confirmed, sender.tally.failed) == (300, 0)
    assert worker.got == [(b"%d" % number, b"flow-%d" % number) for number in range(300)]


def test_version_and_partition_decide_who_gets_it(cluster):
    uri, worker = cluster
    with Sender(Target(rendezvous=(uri,))) as sender:
        sender.send(Outgoing(MessageId(b"replay.note", 2, b"eu"), b"there", None))
    assert worker.bodies == [b"there"]


def test_a_message_without_an_id_gets_a_new_one(cluster):
    uri, worker = cluster
    with Sender(Target(rendezvous=(uri,))) as sender:
        sender.send(Outgoing(WORK, b"one", None))
        sender.send(Outgoing(WORK, b"two", None))
    ids = {flow for _, flow in worker.got}
    assert len(ids) == 2
    assert b"" not in ids


def test_a_message_of_no_flow_is_confirmed_as_well(cluster):
    uri, worker = cluster
    with Sender(Target(rendezvous=(uri,))) as sender:
        sender.send(Outgoing(WORK, b"one", b""))
    assert sender.tally.confirmed == 1
    assert worker.got == [(b"one", b"")]


def test_what_nobody_handles_is_counted_with_its_reason(cluster):
    uri, worker = cluster
    with Sender(Target(rendezvous=(uri,))) as sender:
        sender.send(Outgoing(MessageId(b"replay.unknown"), b"x", None))
        sender.send(work(1))
    assert (sender.tally.confirmed, sender.tally.failed) == (1, 1)
    assert sender.tally.reasons == {"NoRoute": 1}
    assert "replay.unknown v1" in sender.tally.examples[0]
    assert worker.bodies == [b"1"]


def test_without_receipts_messages_are_told_and_the_dead_are_counted(cluster):
    uri, worker = cluster
    with Sender(Target(rendezvous=(uri,), receipts=False)) as sender:
        sender.send(work(1))
        sender.send(Outgoing(MessageId(b"replay.unknown"), b"x", None))
    worker.wait_for(1)
    assert (sender.tally.told, sender.tally.confirmed) == (1, 0)
    assert sender.tally.reasons == {"no_route": 1}


def test_a_broadcast_is_told(cluster):
    uri, worker = cluster
    with Sender(Target(rendezvous=(uri,))) as sender:
        sender.send(work(1, broadcast=True))
    worker.wait_for(1)
    assert (sender.tally.told, sender.tally.failed) == (1, 0)


def test_what_is_through_is_told_to_whoever_wants_to_know(cluster):
    uri, _ = cluster
    through = []
    with Sender(Target(rendezvous=(uri,))) as sender:
        for number in (1, 2):
            sender.send(work(number), lambda number=number: through.append(number))
        sender.send(Outgoing(MessageId(b"replay.unknown"), b"x", None), lambda: through.append("never"))
    assert through == [1, 2]


def test_what_is_through_is_told_even_if_sending_is_interrupted(cluster):
    uri, worker = cluster
    through = []

    def interrupted():
        with Sender(Target(rendezvous=(uri,))) as sender:
            sender.send(work(1), lambda: through.append(1))
            (promise, *_) = sender._awaited[0] if sender._awaited else (None,)
            if promise is not None:
                promise.result(20)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert through == [1]
    assert worker.bodies == [b"1"]


def test_no_more_than_the_rate_is_sent(cluster, monkeypatch):
    uri, _ = cluster
    slept = []
    now = [100.0]
    with Sender(Target(rendezvous=(uri,), rate=4), now=lambda: now[0]) as sender:

        def sleep(seconds):
            slept.append(seconds)
            now[0] += seconds

        monkeypatch.setattr(time, "sleep", sleep)
        for number in range(5):
            sender.send(work(number))
        monkeypatch.undo()
    assert slept == [0.25] * 4


def test_where_nobody_is_found_nothing_is_sent_and_it_is_told():
    with pytest.raises(Unreachable, match=r"no node was found through tcp://127\.0\.0\.1:9 in 0\.3 s"):
        Sender(Target(rendezvous=("tcp://127.0.0.1:9",), timeout=0.3)).__enter__()


def test_all_that_is_wrong_with_a_target_is_told_at_once():
    with pytest.raises(ConfigError) as wrong:
        Target(timeout=0, rate=-1)
    assert len(wrong.value.problems) == 3


def test_what_was_recorded_in_part_is_refused():
    frames = cut_body(encode(Message(b"replay.work", body_frames=(b"x" * 100,))), 10)
    assert refusal(b"replay.work", decode(frames).body_frames[0], None) == "its body was cut when it was recorded"


@pytest.mark.parametrize("state", ["invalid", "unknown_domain"])
def test_what_was_not_genuine_is_refused(state):
    assert "would sign it anew" in refusal(b"replay.work", b"x", state)


def test_service_messages_are_refused():
    assert "service message" in refusal(b"KINO.UNREGNODE", b"x", None)
    assert refusal(b"KINOTICKETS.BUY", b"x", "valid") is None


def test_digests_tell_messages_apart():
    messages = [
        Outgoing(WORK, b"a", b"b"),
        Outgoing(WORK, b"ab", b""),
        Outgoing(WORK, b"b", b"a"),
        Outgoing(MessageId(b"replay.work", 2), b"a", b"b"),
        Outgoing(MessageId(b"replay.work", 1, b"p"), b"a", b"b"),
    ]
    assert len({message.digest for message in messages}) == len(messages)
    assert messages[0].digest == Outgoing(WORK, b"a", b"b").digest


def test_a_body_of_several_frames_arrives_in_its_frames(cluster):
    uri, worker = cluster
    sent = [(b"a", b"", b"c" * 100_000), (b"ac", b""), (b"one",), ()]
    with Sender(Target(rendezvous=(uri,))) as sender:
        for frames in sent:
            sender.send(Outgoing(WORK, b"".join(frames), b"flow", body_frames=frames))
        sender.send(Outgoing(WORK, b"plain", b"flow"))
    assert sender.tally.confirmed == 5
    assert worker.frames == [*sent, (b"plain",)]


def test_a_body_of_too_many_frames_fails_and_is_counted(cluster):
    uri, worker = cluster
    with Sender(Target(rendezvous=(uri,))) as sender:
        sender.send(Outgoing(WORK, b"", b"flow", body_frames=(b"",) * 9000))
        sender.send(work(1))
    assert (sender.tally.confirmed, dict(sender.tally.reasons)) == (1, {"UsageError": 1})
    assert "replay.work v1: a body has at most 8192 frames" in sender.tally.examples[0]
    assert worker.bodies == [b"1"]


def test_a_body_of_which_any_frame_was_cut_is_refused():
    frames = cut_body(encode(Message(b"replay.work", body_frames=(b"secret" * 9, b"x"))), 10)
    body = decode(frames)
    assert refusal(b"replay.work", body.body, None, body.body_frames) == "its body was cut when it was recorded"
    assert refusal(b"replay.work", b"xy", None, (b"x", b"y")) is None


def test_the_same_bytes_in_other_frames_are_another_message():
    bodies = [None, (b"a", b"b"), (b"ab", b""), (b"", b"ab"), (b"ab",)]
    assert len({Outgoing(WORK, b"ab", b"flow", body_frames=frames).digest for frames in bodies}) == len(bodies)
