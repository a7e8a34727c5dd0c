"""The bounded queue in front of an actor."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node.running import run

import framewire as fw
from framewire.node.mailbox import Mailbox, Refusal, together
from framewire.node.parcel import Parcel
from framewire.wire import MessageId

ID = MessageId(b"x")


class Recorded:
    """A mailbox with a note of what it called."""

    def __init__(self, limit=2, overflow="wait", **options):
        self.arrived = 0
        self.refused = []
        self.time = 0.0
        self.box = Mailbox(
            limit, overflow, now=lambda: self.time, arrived=self.arrive, refused=self.refuse, **options
        )

    def arrive(self):
        self.arrived += 1

    def refuse(self, parcel, _):
        self.refused.append(parcel.payload)

    def put(self, number, caller=b"caller", **fields):
        """Put a message that begins a flow, unless it has no caller."""
        return self.box.put(Parcel(ID, number, caller=caller, **fields))

    def drain(self):
        return [parcel.payload for parcel in iter(self.box.take, None)]


def test_parcels_come_out_in_the_order_they_went_in():
    recorded = Recorded(limit=5)
    for number in range(5):
        assert recorded.put(number) is None
    assert recorded.arrived == 5
    assert recorded.drain() == [0, 1, 2, 3, 4]
    assert recorded.box.take() is None


def test_a_full_mailbox_that_rejects_refuses_the_newcomer():
    recorded = Recorded(overflow="reject")
    taken = [recorded.put(number) for number in range(4)]
    assert taken[:2] == [None, None]
    assert all(isinstance(refusal, Refusal) and refusal.retry_after > 0 for refusal in taken[2:])
    assert recorded.drain() == [0, 1]


def test_a_full_mailbox_that_drops_the_oldest_takes_the_newcomer():
    recorded = Recorded(overflow="drop_oldest")
    assert [recorded.put(number) for number in range(4)] == [None] * 4
    assert recorded.refused == [0, 1]
    assert recorded.drain() == [2, 3]


def test_a_mailbox_stays_within_its_limit_even_if_dropping_sends_more():
    class Talkative(Recorded):
        def refuse(self, parcel, refusal):
            super().refuse(parcel, refusal)
            if len(self.refused) < 5:
                self.put(10 + len(self.refused))

    talkative = Talkative(overflow="drop_oldest")
    for number in range(3):
        talkative.put(number)
        assert len(talkative.box) <= 2


def test_senders_wait_outside_a_full_mailbox_and_come_in_one_by_one():
    async def main():
        recorded = Recorded(limit=1)
        recorded.put(0)
        rooms = [recorded.put(number) for number in (1, 2)]
        assert recorded.box.waiting == 2
        assert recorded.box.take().payload == 0
        assert [room.done() for room in rooms] == [True, False]
        assert recorded.drain() == [1, 2]
        assert recorded.box.waiting == 0

    run(main())


def test_a_sender_that_gave_up_is_passed_over_even_in_the_same_turn_of_the_loop():
    async def main():
        recorded = Recorded(limit=1)
        recorded.put(0)
        impatient, patient = recorded.put(1), recorded.put(2)
        impatient.cancel()
        assert recorded.drain() == [0, 2]
        assert patient.done()

    run(main())


def test_a_sender_that_gave_up_no_longer_waits():
    async def main():
        recorded = Recorded(limit=1)
        recorded.put(0)
        recorded.put(1).cancel()
        await asyncio.sleep(0)
        assert recorded.box.waiting == 0
        assert recorded.drain() == [0]

    run(main())


def test_only_so_many_messages_wait_outside_wherever_they_come_from():
    async def main():
        for source in (b"", b"peer"):
            recorded = Recorded(limit=2, most=2)
            rooms = [recorded.put(number, source=source, body_frames=(b"x",)) for number in range(6)]
            assert all(isinstance(refusal, Refusal) for refusal in rooms[4:])
            assert recorded.box.waiting == 2
            recorded.box.clear(fw.NodeStopped())

    run(main())


def test_clearing_takes_out_everything_and_tells_those_who_wait():
    async def main():
        recorded = Recorded(limit=1)
        recorded.put(0)
        waiting, gone = recorded.put(1), recorded.put(2)
        gone.cancel()
        left = recorded.box.clear(fw.NodeStopped("over"))
        assert [parcel.payload for parcel in left] == [0, 1]
        assert (len(recorded.box), recorded.box.waiting) == (0, 0)
        with pytest.raises(fw.NodeStopped, match="over"):
            await waiting

    run(main())


@pytest.mark.parametrize(
    ("limit", "overflow", "word"), [(0, "wait", "mailbox: 0"), (1, "burst", "overflow: 'burst'")]
)
def test_a_mailbox_that_cannot_be_is_refused(limit, overflow, word):
    with pytest.raises(fw.UsageError, match=word):
        Recorded(limit, overflow)


def futures(count):
    loop = asyncio.get_running_loop()
    return [loop.create_future() for _ in range(count)]


def test_rooms_together_are_done_when_all_are():
    async def main():
        first, second = rooms = futures(2)
        whole = together(rooms)
        first.set_result(None)
        await asyncio.sleep(0)
        assert not whole.done()
        second.set_result(None)
        await whole

    run(main())


def test_rooms_together_fail_as_one_of_them_does_but_wait_for_all():
    async def main():
        first, second = rooms = futures(2)
        whole = together(rooms)
        first.set_exception(fw.Overloaded("full"))
        await asyncio.sleep(0)
        assert not whole.done()
        second.set_result(None)
        with pytest.raises(fw.Overloaded):
            await whole

    run(main())


def test_cancelling_rooms_together_cancels_each():
    async def main():
        rooms = futures(3)
        together(rooms).cancel()
        await asyncio.sleep(0)
        assert all(room.cancelled() for room in rooms)

    run(main())


def test_rooms_of_others_neither_fail_nor_are_cancelled_with_the_one_who_waits():
    async def main():
        failing, open_room = futures(2)
        whole = together([failing], theirs=False)
        failing.set_exception(fw.Overloaded("full"))
        await whole
        together([open_room], theirs=False).cancel()
        await asyncio.sleep(0)
        assert not open_room.done()

    run(main())


def test_flows_under_way_go_before_those_that_begin_but_not_for_ever():
    recorded = Recorded(limit=100)
    for number in range(3):
        recorded.put(number)
    for number in range(10, 20):
        recorded.put(number, caller=None)
    assert recorded.drain() == [*range(10, 17), 0, *range(17, 20), 1, 2]


def test_a_flow_under_way_gets_its_place_in_a_full_mailbox_up_to_a_second_bound():
    recorded = Recorded(limit=2, most=6)
    taken = [recorded.put(number, caller=None) for number in range(8)]
    assert taken[:6] == [None] * 6
    assert all(isinstance(refusal, Refusal) for refusal in taken[6:])
    assert recorded.drain() == list(range(6))
    assert recorded.put(8, caller=None) is None


def test_a_flow_under_way_is_refused_beyond_a_bound_of_bytes():
    recorded = Recorded(limit=1, most_bytes=250)
    taken = [recorded.put(number, caller=None, body_frames=(bytes(100),)) for number in range(6)]
    assert taken[:4] == [None] * 4  # those up to the limit are not counted
    assert all(isinstance(refusal, Refusal) for refusal in taken[4:])
    recorded.drain()
    assert recorded.put(9, caller=None, body_frames=(bytes(100),)) is None


def test_callers_take_turns():
    async def main():
        recorded = Recorded(limit=8)
        recorded.box.use(1.0, {})  # it takes a second for each message, so all of it is ordered
        for number in range(6):
            recorded.put(number, caller=b"greedy")
        for number in range(10, 12):
            recorded.put(number, caller=b"modest")
        assert recorded.drain() == [0, 10, 1, 11, 2, 3, 4, 5]

    run(main())


def test_a_caller_with_less_than_its_share_is_let_into_a_full_mailbox():
    async def main():
        recorded = Recorded(limit=4)
        recorded.box.use(1.0, {})
        rooms = [recorded.put(number, caller=b"greedy") for number in range(6)]
        assert [room is None for room in rooms] == [True] * 4 + [False] * 2
        assert recorded.put(10, caller=b"modest") is None
        assert recorded.drain() == [0, 10, 1, 2, 3, 4, 5]

    run(main())


def test_the_oldest_message_of_the_caller_that_has_the_most_is_dropped():
    recorded = Recorded(limit=4, overflow="drop_oldest")
    recorded.box.use(1.0, {})
    for number in (0, 1, 2):
        recorded.put(number, caller=b"greedy")
    recorded.put(10, caller=b"modest")
    recorded.put(3, caller=b"greedy")
    assert recorded.refused == [0]
    assert sorted(recorded.drain()) == [1, 2, 3, 10]


def test_what_cannot_be_handled_in_time_is_refused_when_it_comes():
    recorded = Recorded(limit=100)
    recorded.box.use(0.1, {ID: 0.1})
    for number in range(5):
        assert recorded.put(number, deadline=10.0) is None
    refusal = recorded.put(5, deadline=0.5)
    assert isinstance(refusal, Refusal)
    assert "has 5 messages that come first: about 0.60 s, and 0.50 s are left" in refusal.detail
    assert 0.1 < refusal.retry_after < 0.6
    assert recorded.put(6, deadline=1.5) is None
    assert recorded.put(7, deadline=0.3, caller=None) is None  # goes before all that begin


def test_what_is_under_way_is_refused_when_it_comes_and_not_for_every_small_change_of_the_estimate():
    recorded = Recorded(limit=100)
    recorded.box.use(0.1, {})
    taken = [recorded.put(number, deadline=2.0, caller=None) for number in range(20)]
    assert taken[:16] == [None] * 16  # 16 x 0.1 s, with a quarter to spare
    assert all(isinstance(refusal, Refusal) for refusal in taken[16:])
    recorded.box.use(0.12, {})
    assert recorded.refused == []


def test_an_idle_worker_gets_a_message_whatever_was_estimated():
    recorded = Recorded(limit=100, idle=["worker"])
    recorded.box.use(30.0, {ID: 30.0})
    assert recorded.put(0, deadline=1.0) is None


def test_what_turns_out_to_come_too_late_is_refused_before_it_is():
    recorded = Recorded(limit=100)
    for number in range(20):
        recorded.put(number, deadline=1.0)
    recorded.box.use(0.1, {ID: 0.1})
    assert recorded.refused == list(range(9, 20))
    assert recorded.drain() == list(range(9))


def test_what_waits_outside_is_let_in_by_turns():
    async def main():
        recorded = Recorded(limit=2)
        recorded.box.use(1.0, {})
        for number in range(5):
            recorded.put(number, caller=b"greedy")
        recorded.put(10, caller=b"modest")
        rooms = [recorded.put(number, caller=b"modest") for number in (11, 12)]
        assert recorded.drain() == [0, 10, 1, 11, 2, 12, 3, 4]
        assert all(room.done() for room in rooms)

    run(main())


def test_messages_of_a_kind_are_taken_out_wherever_they_are():
    async def main():
        recorded = Recorded(limit=2)
        rooms = [recorded.put(number) for number in range(4)]
        recorded.put(10, caller=None)
        gone = recorded.box.remove(lambda parcel: parcel.payload in (1, 3, 10))
        assert sorted(parcel.payload for parcel in gone) == [1, 3, 10]
        await asyncio.sleep(0)
        assert rooms[3].cancelled()
        assert recorded.drain() == [0, 2]
        assert (len(recorded.box), recorded.box.waiting) == (0, 0)

    run(main())


def test_no_flow_begins_while_the_mailbox_is_closed_to_new_ones():
    async def main():
        recorded = Recorded(limit=4)
        recorded.put(0)
        recorded.box.close_to_new(True)
        room = recorded.put(1)
        recorded.put(10, caller=None)
        assert recorded.drain() == [10]
        assert not room.done()
        recorded.box.close_to_new(False)
        assert room.done()
        assert recorded.drain() == [0, 1]

    run(main())


def test_a_newcomer_does_not_overtake_what_its_caller_has_outside():
    async def main():
        recorded = Recorded(limit=4)
        for number in range(6):
            recorded.put(number, caller=b"greedy")
        for number in range(10, 14):
            recorded.put(number, caller=b"modest")
        for number in range(6, 9):
            recorded.put(number, caller=b"greedy")
        order = recorded.drain()
        assert [number for number in order if number < 10] == list(range(9))
        assert [number for number in order if number >= 10] == [10, 11, 12, 13]
        assert order.index(10) < 4

    run(main())


def test_a_sender_outside_whose_message_became_hopeless_is_told():
    async def main():
        recorded = Recorded(limit=1)
        recorded.put(0)
        room = recorded.put(1, deadline=1.0)
        recorded.box.use(2.0, {})
        assert recorded.refused == [1]
        with pytest.raises(fw.MessageError):
            await room

    run(main())


def test_a_caller_that_was_alone_takes_turns_as_soon_as_another_comes():
    async def main():
        recorded = Recorded(limit=40)
        rooms = [recorded.put(f"a{number}", b"a") for number in range(43)]
        assert sum(room is not None for room in rooms) == 3
        assert recorded.put("b", b"b") is None
        assert recorded.drain()[:2] == ["a0", "b"]

    run(main())


def test_a_caller_alone_fills_its_mailbox_and_waits_again_and_again():
    async def main():
        recorded = Recorded(limit=3)
        taken, number = [], 0
        for _ in range(50):
            while (room := recorded.put(number)) is None:
                number += 1
            number += 1
            assert len(recorded.box) == 3
            assert recorded.box.waiting == 1
            taken.append(recorded.box.take().payload)
            await asyncio.wait_for(room, 1)
        assert taken + recorded.drain() == list(range(number))

    run(main())


PUT = st.tuples(st.sampled_from([b"a", b"b", b"c", None]), st.integers(1, 30))
TAKE = st.tuples(st.just("take"), st.integers(1, 40))
ESTIMATE = st.tuples(st.just("estimate"), st.sampled_from([0.0, 1e-6, 0.02, 1.0]))


@given(st.integers(1, 20), st.lists(st.one_of(PUT, TAKE, ESTIMATE), max_size=40))
def test_whatever_comes_and_goes_each_callers_messages_come_out_once_and_in_order(limit, steps):
    async def main():
        recorded = Recorded(limit=limit)
        put, taken = {}, {}

        def take():
            parcel = recorded.box.take()
            if parcel is not None:
                taken.setdefault(parcel.caller, []).append(parcel.payload)
            return parcel

        for what, amount in steps:
            if what == "estimate":
                recorded.box.use(amount, {})
            elif what == "take":
                for _ in range(amount):
                    take()
            else:
                for _ in range(amount):
                    mine = put.setdefault(what, [])
                    mine.append(len(mine))
                    recorded.put(mine[-1], what)
            # A caller that has less than its share is let in beyond the limit, and what comes next is no share.
            begun = len(recorded.box) - len(recorded.box.under_way)
            assert begun <= 2 * limit + min(limit, 16)
        while take() is not None:
            pass
        assert not len(recorded.box)
        assert not recorded.box.waiting
        assert taken == put

    run(main())
