"""Two makes of the same ledger: whatever is recorded, the same columns come out of both."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.capture.recording import NODE, ROOT, frames_of
from tests.node.running import until

from framewire.capture import ledger as ledgers
from framewire.capture.columns import SCHEMA, Block, Records, batch_of
from framewire.capture.ledger import COMPILED, PureLedger, open_ledger
from framewire.wire import Message, decode, encode

compiled = pytest.mark.skipif(not COMPILED, reason="there was no compiler")


class Limits:
    """Admits all, and keeps what was refused."""

    def __init__(self):
        self.refused = []
        self.ledger = None

    def admit(self, _):
        self.ledger.mark = self.ledger.put + 1_000_000
        return True

    def refuse(self, *what):
        self.refused.append(what)


def opened(*, whole=True):
    limits = Limits()
    limits.ledger = open_ledger(limits.admit, limits.refuse, whole=whole)
    return limits.ledger, limits


@pytest.fixture(params=[pytest.param(True, marks=compiled, id="compiled"), pytest.param(False, id="pure")])
def ledger(request):
    return opened(whole=request.param)[0]


def batches(ledger):
    """All that is there, as the batches that would be written."""
    found = []
    while (taken := ledger.take(None)) is not None:
        batch = batch_of(NODE, taken if isinstance(taken, Records) else Block(*taken))
        batch.validate(full=True)
        assert batch.schema.equals(SCHEMA)
        found.append(batch)
    return found


def rows(ledger):
    return [row for batch in batches(ledger) for row in batch.to_pylist()]


RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["sent", "received", "delivered", "dead"]),
        st.binary(max_size=40),
        st.lists(st.binary(max_size=80), max_size=40) | st.lists(st.just(b""), max_size=3).map(tuple),
        st.none() | st.text(max_size=12),
        st.integers(min_value=1, max_value=4_000_000_000 * 10**9),
    ),
    max_size=40,
)


@compiled
@given(RECORDS, st.integers(0, 40))
def test_both_makes_give_the_same_bytes(records, cut):
    made = []
    for whole in (True, False):
        ledger, _ = opened(whole=whole)
        written = []
        for part in (records[:cut], records[cut:]):
            for record in part:
                ledger.record(*record)
            written += [batch.serialize().to_pybytes() for batch in batches(ledger)]
        made.append(written)
    assert made[0] == made[1]


def test_a_record_has_all_its_columns(ledger):
    ledger.record("sent", b"peer", [b"a", b"", b"bc"], None, 1_700_000_000_123_456_789)
    ledger.record("dead", b"", (), "no_route", 1_700_000_000_123_457_000)
    batch = batches(ledger)[0]
    assert batch["at"].cast("int64").to_pylist() == [1_700_000_000_123_456, 1_700_000_000_123_457]
    assert batch["node"].to_pylist() == [NODE, NODE]
    assert batch["direction"].to_pylist() == ["sent", "dead"]
    assert batch["peer"].to_pylist() == [b"peer", b""]
    assert batch["reason"].to_pylist() == [None, "no_route"]
    assert batch["frames"].to_pylist() == [[b"a", b"", b"bc"], []]


def test_the_time_is_now_where_none_is_given(ledger):
    ledger.record("sent", b"peer", frames_of(1))
    after = opened(whole=False)[0]
    after.record("sent", b"peer", frames_of(1))
    one, other = (rows(each)[0]["at"] for each in (ledger, after))
    assert 0 <= (other - one).total_seconds() < 60


def test_frames_that_change_after_they_were_recorded_are_recorded_as_they_were(ledger):
    frames = [b"before"]
    ledger.record("sent", b"peer", frames)
    frames[0] = b"after"
    assert [row["frames"] for row in rows(ledger)] == [[b"before"]]


def test_what_was_taken_stays_as_it_is_while_more_is_recorded(ledger):
    def some(start):
        for number in range(start, start + 100):
            ledger.record("sent", b"peer", [b"%d" % number] * 20)
        return [[b"%d" % number] * 20 for number in range(start, start + 100)]

    expected, found = [], []
    for start in range(0, 1000, 100):
        expected.append(some(start))
        found.append(batches(ledger)[0])
        del found[:-2]  # so that memory is used again, too
        assert [batch["frames"].to_pylist() for batch in found] == expected[-2:]


@compiled
def test_memory_of_a_block_is_used_again_when_nobody_reads_it_any_more():
    ledger, _ = opened()

    def taken(number, spare):
        for _ in range(1000):
            ledger.record("sent", b"peer", [b"%d" % number] * 20)
        return Block(*ledger.take(spare))

    first = taken(1, None)
    second = taken(2, first)
    read = batch_of(NODE, second)
    third = taken(3, second)
    assert third.frames is first.frames
    fourth = taken(4, third)
    assert fourth.frames is not second.frames, "somebody reads that"
    assert read["frames"].to_pylist() == [[b"2"] * 20] * 1000
    assert batch_of(NODE, fourth)["frames"].to_pylist() == [[b"4"] * 20] * 1000


@compiled
@pytest.mark.parametrize("spare", [(), (b"x", b"x", b"x", b"x"), (bytearray(), 1), [bytearray(5000)] * 7, 7])
def test_what_is_no_spare_block_is_not_used(spare):
    ledger, _ = opened()
    for number in range(3):
        ledger.record("sent", b"peer", [b"%d" % number])
        assert batch_of(NODE, Block(*ledger.take(spare)))["frames"].to_pylist() == [[b"%d" % number]]


def test_many_records_come_out_in_their_order(ledger):
    for number in range(3000):
        ledger.record("sent", b"peer", [b"%d" % number, b"x" * 10_000])
    assert len(ledger) == 3000
    assert [int(row["frames"][0]) for row in rows(ledger)] == list(range(3000))
    assert len(ledger) == 0


def test_nothing_taken_from_nothing(ledger):
    assert ledger.take(None) is None


def test_all_weighs_at_least_what_its_frames_do(ledger):
    ledger.record("sent", b"peer", [b"", b"", b"x" * 100_000, b""])
    assert 100_000 <= ledger.put < 101_000


@pytest.mark.parametrize("whole", [pytest.param(True, marks=compiled), False])
def test_room_is_asked_for_past_the_mark_and_not_before(whole):
    asked = []
    ledger = open_ledger(lambda weight: asked.append(weight) or True, print, whole=whole)
    ledger.mark = 1000
    for _ in range(3):
        ledger.record("sent", b"peer", [b"x" * 400])
    weight = ledger.put // 3
    assert asked == [weight] * len([count for count in (1, 2, 3) if count * weight > 1000])


@pytest.mark.parametrize("whole", [pytest.param(True, marks=compiled), False])
def test_what_there_is_no_room_for_leaves_no_trace(whole):
    limits = Limits()
    ledger = open_ledger(lambda _: False, limits.refuse, whole=whole)
    ledger.record("sent", b"peer", frames_of(1))
    assert (len(ledger), ledger.put, ledger.take(None), limits.refused) == (0, 0, None, [])


@compiled
@pytest.mark.parametrize(
    "record",
    [
        ("sent", b"peer", [b"x", 7]),
        ("sent", b"peer", ["text"]),
        ("sent", "peer", [b"x"]),
        (b"sent", b"peer", [b"x"]),
        ("dead", b"peer", [b"x"], b"reason"),
    ],
    ids=repr,
)
def test_what_no_column_can_hold_is_refused_and_leaves_no_trace(record):
    ledger, limits = opened()
    ledger.record("sent", b"peer", [b"before"])
    weight = ledger.put
    ledger.record(*record)
    assert limits.refused == [(*record[:3], record[3] if len(record) > 3 else None)]
    assert (len(ledger), ledger.put) == (1, weight)
    ledger.record("sent", b"peer", [b"after"])
    assert [row["frames"] for row in rows(ledger)] == [[b"before"], [b"after"]]


@compiled
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), TypeError),
        (("sent", b"peer"), TypeError),
        (("sent", b"peer", [], None, 0, 1), TypeError),
        (("sent", b"peer", 7), TypeError),
        (("sent", b"peer", [], None, "now"), TypeError),
        (("sent", b"peer", [], None, 1 << 70), OverflowError),
    ],
)
def test_a_call_that_is_wrong_is_an_error(arguments, problem):
    ledger, _ = opened()
    with pytest.raises(problem):
        ledger.record(*arguments)
    assert (len(ledger), ledger.put) == (0, 0)


@compiled
def test_an_error_of_who_admits_reaches_who_records():
    def admit(_):
        raise RuntimeError("broken")

    ledger = open_ledger(admit, lambda *_: None, whole=True)
    with pytest.raises(RuntimeError, match="broken"):
        ledger.record("sent", b"peer", [b"x"])
    assert (len(ledger), ledger.put) == (0, 0)


@compiled
def test_frames_that_change_while_room_is_made_are_looked_at_again():
    frames = [b"x"]

    def admit(_):
        frames[:] = [b"other"] * 1000
        return True

    ledger = open_ledger(admit, lambda *_: None, whole=True)
    ledger.record("sent", b"peer", frames)
    assert [row["frames"] for row in rows(ledger)] == [[b"other"] * 1000]


@compiled
def test_a_ledger_that_nobody_needs_goes_with_all_that_is_in_it():
    class Owner:
        def __init__(self):
            self.ledger = open_ledger(self.admit, self.admit, whole=True)

        def admit(self, *_):
            return True

    owner = Owner()
    for _ in range(2000):
        owner.ledger.record("sent", b"peer", [b"x" * 10_000])
    alive = weakref.ref(owner)
    del owner
    gc.collect()
    assert alive() is None


@compiled
@given(RECORDS)
def test_a_block_is_the_same_in_lists(records):
    ledger, _ = opened()
    for record in records:
        ledger.record(*record)
    taken = ledger.take(None)
    if taken is not None:
        block = Block(*taken)
        assert batch_of(NODE, block.listed()).equals(batch_of(NODE, block))


@compiled
def test_what_no_offset_can_tell_is_refused():
    ledger, limits = opened()
    frame = bytes(256 * 1024 * 1024)
    ledger.record("sent", b"peer", [frame] * 8)
    assert len(limits.refused) == 1
    ledger.record("sent", b"peer", [b"x"])
    assert [row["frames"] for row in rows(ledger)] == [[b"x"]]


def test_nothing_is_lost_or_mixed_up_while_one_thread_adds_and_another_takes(ledger):
    count, found = 30_000, []
    done = threading.Event()

    def take():
        while not done.is_set() or len(ledger):
            found.extend(rows(ledger))

    thread = threading.Thread(target=take)
    thread.start()
    for number in range(count):
        ledger.record("sent", b"%d" % number, [b"%d" % number] * (number % 5))
    done.set()
    until(lambda: not thread.is_alive())
    assert [int(row["peer"]) for row in found] == list(range(count))
    assert all(row["frames"] == [row["peer"]] * (int(row["peer"]) % 5) for row in found)


def test_bodies_that_are_to_be_cut_wait_as_they_are():
    assert isinstance(opened(whole=False)[0], PureLedger)


@compiled
def test_a_build_of_another_edition_is_not_used(monkeypatch, caplog):
    monkeypatch.setattr(ledgers, "_EDITION", 0)
    assert ledgers._compiled() is None
    assert "of another version of framewire and is not used" in caplog.text


def test_the_pure_make_is_used_where_that_is_asked_for():
    program = "from framewire.capture import ledger; print(ledger.COMPILED)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"FRAMEWIRE_PURE": "1"},
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout == "False\n"


def several_frames(*body):
    return encode(Message(b"capture.several", body_frames=body, socket_identity=b"peer"))


def test_views_are_recorded_as_what_they_show(ledger):
    memory = bytearray(b"m" * 100_000)
    frames = several_frames(b"head", memoryview(memory), memoryview(b""), memoryview(b"small"))
    ledger.record("sent", b"peer", frames)
    ledger.record("sent", b"peer", frames_of(1))
    (batch,) = batches(ledger)
    first, second = batch["frames"].to_pylist()
    assert decode(first).body_frames == (b"head", bytes(memory), b"", b"small")
    assert second == frames_of(1)


def test_all_frames_of_a_body_of_several_weigh(ledger):
    before = ledger.put
    ledger.record("sent", b"peer", several_frames(b"head", memoryview(bytes(100_000)), b"x" * 100_000, b"small"))
    assert 200_000 <= ledger.put - before <= 205_000


@compiled
def test_a_view_that_is_none_any_more_is_refused():
    ledger, limits = opened()
    released = memoryview(b"gone")
    frames = [b"peer", b"", released]
    released.release()
    ledger.record("sent", b"peer", frames)
    assert len(limits.refused) == 1
    assert rows(ledger) == []
