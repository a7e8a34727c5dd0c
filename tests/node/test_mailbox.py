"""The bounded queue in front of an actor."""

import asyncio

import pytest
from tests.node.running import run

import framewire as fw
from framewire.node.mailbox import Mailbox, together
from framewire.node.parcel import Parcel
from framewire.wire import MessageId

ID = MessageId(b"x")


class Recorded:
    """A mailbox with a note of what it called."""

    def __init__(self, limit=2, overflow="wait"):
        self.arrived = 0
        self.refused = []
        self.box = Mailbox(limit, overflow, arrived=self.arrive, refused=self.refuse)

    def arrive(self):
        self.arrived += 1

    def refuse(self, parcel):
        self.refused.append(parcel.payload)

    def put(self, number, source=b""):
        return self.box.put(Parcel(ID, number, source=source))

    def drain(self):
        return [parcel.payload for parcel in iter(self.box.take, None)]


def test_parcels_come_out_in_the_order_they_went_in():
    recorded = Recorded(limit=5)
    for number in range(5):
        assert recorded.put(number) is True
    assert recorded.arrived == 5
    assert recorded.drain() == [0, 1, 2, 3, 4]
    assert recorded.box.take() is None


def test_a_full_mailbox_that_rejects_refuses_the_newcomer():
    recorded = Recorded(overflow="reject")
    assert [recorded.put(number) for number in range(4)] == [True, True, False, False]
    assert recorded.refused == [2, 3]
    assert recorded.drain() == [0, 1]


def test_a_full_mailbox_that_drops_the_oldest_takes_the_newcomer():
    recorded = Recorded(overflow="drop_oldest")
    assert [recorded.put(number) for number in range(4)] == [True] * 4
    assert recorded.refused == [0, 1]
    assert recorded.drain() == [2, 3]


def test_a_mailbox_stays_within_its_limit_even_if_dropping_sends_more():
    class Talkative(Recorded):
        def refuse(self, parcel):
            super().refuse(parcel)
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


def test_only_so_many_parcels_of_other_nodes_wait_outside():
    async def main():
        recorded = Recorded(limit=2)
        rooms = [recorded.put(number, source=b"peer") for number in range(6)]
        assert recorded.refused == [4, 5]
        assert rooms[4:] == [False, False]
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
