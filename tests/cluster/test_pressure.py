"""A peer that does not read: what waits for it, what is refused, what is dropped."""

import asyncio
import contextlib
from collections import Counter

import pytest
from tests.cluster.clustering import between
from tests.node.messages import Done, Job, Other
from tests.node.running import eventually

import framewire as fw

QUEUE = 500


def flooded(main, **options):
    """Run a test on two nodes of which the second does not read, and the way to it is full."""

    async def with_nodes(one, two, *_):
        numbers = []

        @two.handler(Job)
        async def note(job):
            numbers.append(job.number)

        await eventually(lambda: list(one._router.table.all(fw.MessageId(b"test.job"))))
        await one.hub.send(Job(-1))
        two._transport._front._busy = True  # as if it were in the middle of something
        sent = 0
        links = one._transport._links
        while links.queued < QUEUE:
            await one.hub.tell(Job(sent))
            sent += 1
            if links.queued == QUEUE:
                with contextlib.suppress(AssertionError):  # it may only be a moment's crowd
                    await eventually(lambda: links.queued < QUEUE, 0.3)
        await main(one, sent)
        two._transport._front._busy = False
        two._transport._front._look_again()
        last = sent if options["send_overflow"] != "reject" else sent - 1
        await eventually(lambda: numbers[-1] == last)
        missing = {"wait": 0, "reject": 0, "drop_oldest": 1}[options["send_overflow"]]
        assert len(numbers) == last + 2 - missing
        assert numbers == sorted(numbers)

    between(with_nodes, send_queue=QUEUE, mailbox=100_000, **options)


def test_a_teller_waits_for_a_peer_that_does_not_read():
    async def main(one, sent):
        telling = asyncio.create_task(one.hub.tell(Job(sent)))
        done, _ = await asyncio.wait([telling], timeout=0.1)
        assert not done

    flooded(main, send_overflow="wait")


def test_what_a_peer_that_does_not_read_has_no_room_for_is_overloaded():
    async def main(one, sent):
        with pytest.raises(fw.Overloaded, match=f"{QUEUE} messages already wait for node"):
            await one.hub.send(Job(sent), timeout=10)
        assert one.dead_letters.counts["overloaded"] == 1

    flooded(main, send_overflow="reject")


def test_the_oldest_of_too_many_messages_to_a_peer_is_a_dead_letter():
    async def main(one, sent):
        await one.hub.tell(Job(sent))
        assert one.dead_letters.counts["overloaded"] == 1

    flooded(main, send_overflow="drop_oldest")


@pytest.mark.parametrize("copies", [1, 3])
def test_twenty_thousand_asks_at_once_are_all_answered_between_nodes_as_on_one(copies):
    async def main(one, two, *_):
        @two.handler(Job)
        async def there(job):
            return [Other(str(job.number)) for _ in range(copies)]

        @one.handler(Other)
        async def back(other):
            return Done(int(other.text))

        await eventually(lambda: list(one._router.table.all(fw.MessageId(b"test.job"))))
        await eventually(lambda: list(two._router.table.all(fw.MessageId(b"test.other"))))
        promises = [one.hub.start(Job(number), Done, timeout=600) for number in range(20_000)]
        ended = await asyncio.gather(*promises, return_exceptions=True)
        assert Counter(type(each).__name__ for each in ended) == {"Done": 20_000}

    between(main, timeout=60)
