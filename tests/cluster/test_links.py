"""The way to a peer: what waits, what is refused, what is told when the peer is gone."""

import asyncio
import contextlib

import pytest
import zmq
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster.links import Links
from framewire.cluster.pace import make_context
from framewire.cluster.settings import ClusterSettings

PEER = b"peer"


class Ways:
    """Links under test, and peers for them."""

    def __init__(self, **settings):
        self.context = zmq.Context()
        self.undelivered = []
        self.lost = []
        bounds = {name: settings.pop(name) for name in ("max_queued", "max_queued_bytes") if name in settings}
        self.links = Links(
            self.context,
            ClusterSettings(**settings),
            **bounds,
            lost=self.lost.append,
            undelivered=lambda frames, error: self.undelivered.append((frames[-1], type(error))),
        )
        self._peers = []

    def peer(self, identity=PEER, uri="inproc://peer"):
        """A node's front socket that takes in one message and then waits to be read."""
        front = self.context.socket(zmq.ROUTER)
        front.setsockopt(zmq.ROUTING_ID, identity)
        front.setsockopt(zmq.RCVHWM, 1)
        front.bind(uri)
        self.links.learn(identity, front.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0"))
        self._peers.append(front)
        return front

    def send(self, body, identity=PEER):
        return self.links.send(identity, [b"", b"", body])

    async def fill(self):
        """Send until the way and the queue are full; how many messages that took."""
        await eventually(lambda: self.send(b"0") is None and not self.links.queued)
        sent = 1
        while self.links.queued < 2:
            assert self.send(b"%d" % sent) is None
            sent += 1
            for _ in range(3):
                await asyncio.sleep(0)  # what was gathered in this turn leaves, if there is room for it
        return sent

    def close(self):
        self.links.close(0)
        self.context.destroy(0)


@contextlib.asynccontextmanager
async def ways(**settings):
    opened = Ways(**({"send_queue": 2, "heartbeat": 0.02, "misses": 3} | settings))
    try:
        yield opened
    finally:
        opened.close()


async def read(front, count):
    """The bodies that a peer finds, in order."""
    bodies = []

    def found():
        while front.poll(0):
            bodies.append(front.recv_multipart()[-1])
        return len(bodies) >= count

    await eventually(found)
    return bodies


def test_messages_arrive_in_order():
    async def main():
        async with ways(send_queue=100) as opened:
            peer = opened.peer()
            for number in range(50):
                opened.send(b"%d" % number)
            assert await read(peer, 50) == [b"%d" % number for number in range(50)]

    run(main())


def test_what_is_sent_in_one_turn_of_the_event_loop_leaves_together_but_for_the_first():
    async def main():
        async with ways(send_queue=100) as opened:
            peer = opened.peer()
            await eventually(lambda: opened.send(b"there?") is None and not opened.links.queued)
            await read(peer, 1)
            while peer.poll(0):
                peer.recv_multipart()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            for number in range(5):
                opened.send(b"%d" % number)
            assert opened.links.queued == 4
            assert peer.poll(1000)
            assert peer.recv_multipart()[-1] == b"0"
            assert not peer.poll(0)
            assert await read(peer, 4) == [b"1", b"2", b"3", b"4"]

    run(main())


def test_a_long_turn_does_not_hold_everything_back():
    async def main():
        async with ways(send_queue=1000) as opened:
            peer = opened.peer()
            peer.setsockopt(zmq.RCVHWM, 1000)
            await eventually(lambda: opened.send(b"there?") is None and not opened.links.queued)
            for number in range(200):
                opened.send(b"%d" % number)
            assert opened.links.queued <= 64
            assert (await read(peer, 201))[-200:] == [b"%d" % number for number in range(200)]

    run(main())


def test_a_sender_waits_for_a_peer_that_does_not_read():
    async def main():
        async with ways(send_overflow="wait") as opened:
            peer = opened.peer()
            count = await opened.fill()
            rooms = [opened.send(b"late"), opened.send(b"later")]
            assert not any(room.done() for room in rooms)
            assert (await read(peer, count + 2))[-3:] == [b"%d" % (count - 1), b"late", b"later"]
            await asyncio.gather(*rooms)

    run(main())


def test_only_so_many_senders_may_wait():
    async def main():
        async with ways(send_overflow="wait") as opened:
            opened.peer()
            await opened.fill()
            rooms = [opened.send(b"late") for _ in range(18)]
            with pytest.raises(fw.Overloaded, match="20 messages already wait for node peer"):
                opened.send(b"too late")
            opened.links.forget(PEER, "the test is over")
            await asyncio.gather(*rooms)

    run(main())


@pytest.mark.parametrize(
    ("bounds", "waiting"), [({"max_queued": 7}, 7), ({"max_queued_bytes": 4 * (len(PEER) + 4)}, 6)]
)
def test_what_waits_for_a_peer_is_bounded_by_count_and_by_bytes(bounds, waiting):
    async def main():
        async with ways(send_overflow="wait", **bounds) as opened:
            peer = opened.peer()
            count = await opened.fill()
            rooms = [opened.send(b"late") for _ in range(waiting - 2)]
            with pytest.raises(fw.Overloaded, match=f"{waiting} messages already wait for node peer"):
                opened.send(b"more")
            await read(peer, count + len(rooms))
            await asyncio.gather(*rooms)
            assert opened.send(b"more") is None  # and what has left counts no more
            await read(peer, 1)

    run(main())


def test_a_full_queue_may_refuse():
    async def main():
        async with ways(send_overflow="reject") as opened:
            peer = opened.peer()
            count = await opened.fill()
            with pytest.raises(fw.Overloaded, match="2 messages already wait for node peer"):
                opened.send(b"refused")
            assert b"refused" not in await read(peer, count)
            assert opened.undelivered == []

    run(main())


def test_a_full_queue_may_drop_the_oldest_and_tell():
    async def main():
        async with ways(send_overflow="drop_oldest") as opened:
            peer = opened.peer()
            count = await opened.fill()
            assert opened.send(b"newest") is None
            assert opened.undelivered == [(b"%d" % (count - 2), fw.Overloaded)]
            assert (await read(peer, count))[-2:] == [b"%d" % (count - 1), b"newest"]

    run(main())


@pytest.mark.parametrize("give_up", [lambda room: room.cancel(), lambda room: room.set_exception(fw.Overloaded())])
def test_what_its_sender_gave_up_is_not_sent(give_up):
    async def main():
        async with ways() as opened:
            peer = opened.peer()
            count = await opened.fill()
            given_up, kept = opened.send(b"given up"), opened.send(b"kept")
            give_up(given_up)
            assert (await read(peer, count + 1))[-2:] == [b"%d" % (count - 1), b"kept"]
            await kept
            if not given_up.cancelled():
                given_up.exception()

    run(main())


def test_everything_that_waits_for_a_peer_that_is_gone_is_told_of():
    async def main():
        async with ways() as opened:
            opened.peer()
            count = await opened.fill()
            room, given_up = opened.send(b"waiting"), opened.send(b"given up")
            given_up.cancel()
            opened.links.forget(PEER, "it has left")
            await room
            waiting = [b"%d" % (count - 2), b"%d" % (count - 1), b"waiting"]
            assert opened.undelivered == [(body, fw.Unreachable) for body in waiting]
            with pytest.raises(fw.Unreachable, match="nobody knows where node peer is"):
                opened.send(b"after")

    run(main())


def test_what_waits_when_the_node_stops_is_told_of():
    async def main():
        async with ways() as opened:
            opened.peer()
            count = await opened.fill()
            room = opened.send(b"waiting")
            opened.links.close(0)
            await room
            assert [body for body, _ in opened.undelivered] == [
                b"%d" % (count - 2),
                b"%d" % (count - 1),
                b"waiting",
            ]

    async def twice():
        await main()

    run(twice())


def test_messages_wait_for_a_peer_that_is_just_starting(tmp_path):
    uri = f"ipc://{tmp_path}/peer"

    async def main():
        async with ways(heartbeat=10.0) as opened:
            opened.links.learn(PEER, uri)
            assert opened.send(b"early") is None
            await asyncio.sleep(0.01)
            assert await read(opened.peer(uri=uri), 1) == [b"early"]
            assert opened.lost == []

    run(main())


def test_a_peer_that_cannot_be_reached_is_lost_after_its_misses(tmp_path):
    async def main():
        async with ways() as opened:
            opened.links.learn(PEER, f"ipc://{tmp_path}/nobody")
            opened.send(b"in vain")
            await eventually(lambda: opened.lost)
            assert opened.lost == [PEER]

    run(main())


def test_an_address_that_is_none_is_unreachable():
    async def main():
        async with ways() as opened:
            opened.links.learn(PEER, "nowhere")
            with pytest.raises(fw.Unreachable, match="node peer at nowhere"):
                opened.send(b"in vain")

    run(main())


def test_a_message_never_reaches_a_node_that_has_taken_anothers_place(tmp_path):
    uri = f"ipc://{tmp_path}/place"

    async def main():
        async with ways(send_queue=10) as opened:
            old = opened.peer(b"old", uri)
            opened.send(b"to old", b"old")
            assert await read(old, 1) == [b"to old"]
            old.close(0)
            new = opened.peer(b"new", uri)
            await eventually(lambda: opened.send(b"to old again", b"old") is None and opened.links.queued)
            opened.send(b"to new", b"new")
            assert await read(new, 1) == [b"to new"]

            def is_lost():
                # What was only gathered may still have gone to the connection that is just ending.
                if not opened.links.queued:
                    opened.send(b"to old again", b"old")
                return opened.lost

            await eventually(is_lost)
            assert opened.lost == [b"old"]
            opened.links.forget(b"old", "it is lost")
            opened.send(b"to new again", b"new")
            assert await read(new, 1) == [b"to new again"]

    run(main())


def test_what_is_sent_to_a_peer_that_was_let_go_of_and_is_known_again_at_once_arrives(tmp_path):
    async def main():
        async with ways(send_queue=10, heartbeat=1) as opened:
            peer = opened.peer(uri=f"ipc://{tmp_path}/peer")
            for number in range(50):
                opened.links.learn(PEER, f"ipc://{tmp_path}/peer")
                opened.send(b"number %d" % number)
                arrived = []
                while b"number %d" % number not in arrived:  # there may be pings, too
                    arrived += await read(peer, 1)
                opened.links.forget(PEER, "nobody knows why")
            assert opened.undelivered == []

    run(main())


def test_a_name_counts_only_at_the_address_where_it_was_announced(tmp_path):
    async def main():
        async with ways(send_queue=10, heartbeat=1) as opened:
            peer = opened.peer(uri=f"ipc://{tmp_path}/peer")
            opened.send(b"first")
            assert await read(peer, 1) == [b"first"]
            thief = opened.peer(uri=f"ipc://{tmp_path}/thief")  # calls itself like the peer
            opened.links.learn(PEER, f"ipc://{tmp_path}/peer")
            opened.links.learn(b"made up", f"ipc://{tmp_path}/thief")
            opened.send(b"to nobody", b"made up")
            for number in range(20):
                opened.send(b"%d" % number)
                assert await read(peer, 1) == [b"%d" % number]
            await eventually(lambda: opened.lost == [b"made up"])
            assert not thief.poll(0)

    run(main())


def test_what_is_sent_to_a_peer_that_has_moved_arrives_there_and_no_longer_at_its_old_address(tmp_path):
    async def main():
        async with ways(send_queue=10, heartbeat=1) as opened:
            before = opened.peer(uri=f"ipc://{tmp_path}/before")
            opened.send(b"first")
            assert await read(before, 1) == [b"first"]
            after = opened.peer(uri=f"ipc://{tmp_path}/after")
            opened.links.forget(PEER, "it has moved")
            opened.links.learn(PEER, f"ipc://{tmp_path}/after")
            opened.send(b"second")
            assert await read(after, 1) == [b"second"]
            assert not before.poll(0)

    run(main())


def test_many_peers_each_have_a_socket_and_all_are_closed(tmp_path):
    async def main():
        context, _ = make_context()
        made = Links(context, ClusterSettings(), lost=lambda _: None, undelivered=lambda *_: None)
        for number in range(1100):  # libzmq has 1023 sockets unless it is told otherwise
            made.learn(b"%d" % number, f"ipc://{tmp_path}/{number}")
            made.send(b"%d" % number, [b"", b"", b"x"])
        made.close(0)
        with pytest.raises(fw.Unreachable, match="this node is stopping"):
            made.send(b"1", [b"", b"", b"x"])
        context.destroy(0)

    run(main())


def test_two_names_for_one_place_do_without_each_others_connection(tmp_path):
    async def main():
        async with ways(send_queue=10, heartbeat=1) as opened:
            peer = opened.peer(uri=f"ipc://{tmp_path}/peer")
            opened.send(b"first")
            assert await read(peer, 1) == [b"first"]
            opened.links.learn(b"impostor", f"ipc://{tmp_path}/peer")
            opened.send(b"nobody's", b"impostor")
            opened.links.forget(PEER, "nobody knows why")
            opened.links.learn(PEER, f"ipc://{tmp_path}/peer")
            opened.send(b"second")
            assert await read(peer, 1) == [b"second"]
            opened.links.forget(b"impostor", "it is nobody")
            opened.send(b"third")
            assert await read(peer, 1) == [b"third"]

    run(main())


def test_each_connection_to_a_peer_begins_with_the_introduction(tmp_path):
    async def main():
        async with ways(send_queue=1000, heartbeat=5.0) as opened:
            opened.links._introduction = lambda identity: [identity, b"", b"introduction"]
            for life in range(3):  # each has the same address, and is connected to anew
                peer = opened.peer(uri=f"ipc://{tmp_path}/peer")
                peer.setsockopt(zmq.RCVHWM, 1000)

                def arrived(peer=peer, life=life):
                    opened.send(b"%d" % life)
                    return peer.poll(0)

                await eventually(arrived)
                first, *_ = await read(peer, 2)
                assert first == b"introduction"
                peer.close(0)
            assert opened.links.traffic[PEER].dropped == 0

    run(main())


def test_a_peer_that_understands_no_introduction_is_sent_messages_alone(tmp_path):
    async def main():
        async with ways(send_queue=100) as opened:
            peer = opened.peer(uri=f"ipc://{tmp_path}/peer")
            opened.send(b"1")
            assert await read(peer, 1) == [b"1"]
            opened.links._introduction = lambda identity: [identity, b"", b"introduction"]
            opened.links.introduce(PEER)
            opened.send(b"2")
            assert await read(peer, 2) == [b"introduction", b"2"], "it has announced since that it does"
            assert opened.links.traffic[PEER].sent == 2

    run(main())
