"""The queue between a node and the disk: bounded, and honest about what it refused."""

import threading

import pytest
from tests.capture.recording import NODE, frames_of

from framewire.capture import ledger
from framewire.capture.columns import batch_of
from framewire.capture.settings import CaptureSettings
from framewire.capture.waiting import Waiting


@pytest.fixture(autouse=True, params=["compiled", "pure"])
def _make(request, monkeypatch):
    """All of it with both makes of the ledger."""
    if request.param == "pure":
        monkeypatch.setattr(ledger, "_CompiledLedger", None)
    elif not ledger.COMPILED:
        pytest.skip("there was no compiler")


def rows(taken):
    return batch_of(NODE, taken).to_pylist()


def filled(count, **options):
    waiting = Waiting(CaptureSettings(**options))
    record = waiting.taker()
    for number in range(count):
        record("sent", b"peer", frames_of(number))
    return waiting, record


def test_records_come_out_as_they_went_in():
    waiting, record = filled(2)
    first = rows(waiting.take())
    record("sent", b"peer", frames_of(2))
    record("dead", b"other", [b"a", b"bc"], "no_route")
    rest = rows(waiting.take())
    assert waiting.take() is None
    assert [row["frames"] for row in first + rest] == [*map(frames_of, range(3)), [b"a", b"bc"]]
    assert [(row["direction"], row["peer"], row["reason"]) for row in rest] == [
        ("sent", b"peer", None),
        ("dead", b"other", "no_route"),
    ]
    assert first[0]["at"] <= first[1]["at"]


def test_many_records_come_out_in_their_order_too():
    waiting, _ = filled(5000)
    found = []
    while (taken := waiting.take()) is not None:
        found += [row["frames"] for row in rows(taken)]
    assert found == [frames_of(number) for number in range(5000)]


def test_no_more_records_wait_than_may():
    waiting, _ = filled(500, queue_records=100)
    assert (len(waiting), waiting.dropped) == (100, 400)


def test_what_the_writer_has_in_hand_still_takes_room():
    waiting, record = filled(60, queue_records=100)
    waiting.take()
    for _ in range(41):
        record("sent", b"peer", frames_of())
    assert (len(waiting), waiting.dropped) == (100, 1)
    waiting.written()
    record("sent", b"peer", frames_of())
    assert (len(waiting), waiting.dropped) == (41, 1)


@pytest.mark.parametrize("where", [2, -1, 10])
def test_large_messages_do_not_take_more_memory_than_they_may(where):
    waiting = Waiting(CaptureSettings(queue_bytes=1_000_000))
    record = waiting.taker()
    frames = frames_of() + [b""] * 20  # so many that all of them are looked at
    frames[where] = b"x" * 100_000
    for _ in range(50):
        record("sent", b"peer", frames)
    assert len(waiting) in (8, 9)
    assert waiting.dropped == 50 - len(waiting)


def test_the_body_of_an_ordinary_message_counts():
    waiting = Waiting(CaptureSettings(queue_bytes=1_000_000))
    record = waiting.taker()
    for version in (1, 5) * 25:
        record("sent", b"peer", frames_of(body=b"x" * 100_000, version=version))
    assert len(waiting) in (8, 9)


def test_a_message_that_is_larger_than_all_the_room_has_it_to_itself():
    waiting = Waiting(CaptureSettings(queue_bytes=100_000))
    record = waiting.taker()
    for _ in range(3):
        record("sent", b"peer", frames_of(body=b"x" * 500_000))
    assert (len(waiting), waiting.dropped) == (1, 2)
    waiting.take()
    waiting.written()
    record("sent", b"peer", frames_of(body=b"x" * 500_000))
    assert (len(waiting), waiting.dropped) == (1, 2)


def test_a_node_that_waits_goes_on_when_there_is_room():
    waiting, record = filled(10, queue_records=10, on_full="wait")
    went_on = threading.Event()

    def one_more():
        record("sent", b"peer", frames_of())
        went_on.set()

    thread = threading.Thread(target=one_more)
    thread.start()
    assert not went_on.wait(0.05)
    waiting.take()
    waiting.written()
    assert went_on.wait(10)
    thread.join()
    assert (len(waiting), waiting.dropped) == (1, 0)


def test_a_node_that_has_waited_in_vain_does_not_wait_for_every_message():
    waiting, record = filled(10, queue_records=10, on_full="wait", wait_limit=0.5)
    for _ in range(1000):
        record("sent", b"peer", frames_of())
    assert waiting.dropped == 1000
    waiting.take()
    waiting.written()
    record("sent", b"peer", frames_of())
    assert (len(waiting), waiting.dropped) == (1, 1000)


def test_room_is_given_back_for_what_was_written_and_not_for_the_rest():
    waiting, record = filled(60, queue_records=100)
    for _ in range(5):
        waiting.take()
        for number in range(40):
            record("sent", b"peer", frames_of(number))
        waiting.written()
        assert len(waiting) == 40
        waiting.take()
        waiting.written()
        for number in range(60):
            record("sent", b"peer", frames_of(number))
    assert (len(waiting), waiting.dropped) == (60, 0)


@pytest.mark.parametrize("_make", ["compiled"], indirect=True)
def test_memory_of_what_nobody_reads_any_more_is_used_again():
    waiting, record = filled(1000)
    blocks = []
    for _ in range(20):
        blocks.append(waiting.take())
        waiting.written()
        waiting.reuse(blocks[-1:])
        for number in range(1000):
            record("sent", b"peer", frames_of(number))
    assert len({id(block.frames) for block in blocks}) == 2  # one is filled while the other is read


def test_what_comes_after_the_end_is_refused_and_counted():
    waiting, record = filled(10, on_full="wait")
    waiting.close()
    record("sent", b"peer", frames_of())
    assert (len(waiting), waiting.dropped) == (10, 1)


def test_the_writer_is_woken_before_there_is_no_room():
    waiting, _ = filled(60, queue_records=100)
    assert waiting.wake.is_set()
    assert waiting.dropped == 0
