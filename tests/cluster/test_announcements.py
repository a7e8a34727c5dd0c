"""How much strangers may announce: everything has a bound, and is taken in bit by bit."""

import asyncio
import contextlib
import threading

import msgspec
import pytest
from fuzz import forging, zmtp
from tests.cluster.clustering import Named, acquainted, handled_by, make_node, peers, uri_of
from tests.cluster.strangers import MODES, Cluster, attacked, intruder
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run, until

import framewire as fw
from framewire.cluster import discovery, service
from framewire.wire import decode


@fw.message("open.question")
class OpenQuestion(msgspec.Struct):
    """Of no domain."""


NOBODY = "tcp://127.0.0.1:9"
MANY = 100_000


def told(name, count, *, start=0):
    """An announcement of a node with an actor that handles so many messages."""
    messages = [b"made.up.%d" % number for number in range(start, start + count)]
    return forging.announcement(name, NOBODY, routes=[(b"\1actor of " + name, messages)])


@contextlib.asynccontextmanager
async def a_node(**options):
    async with make_node(**options) as node:
        with await asyncio.to_thread(zmtp.connect, uri_of(node), b"DEALER", b"stranger") as stranger:
            yield node, stranger, node._transport._discovery


async def taken_in(node, heard, count=1):
    """Wait until so many bad messages are counted, and nothing waits."""
    await eventually(lambda: node.dead_letters.counts.total() >= count and not heard.is_behind)


def test_one_node_announces_only_so_many_messages(monkeypatch):
    monkeypatch.setattr(discovery, "_MAX_ROUTES_OF_NODE", 3000)

    async def main():
        async with a_node() as (node, stranger, heard):
            stranger.send(told(b"made up", 10_000))
            await taken_in(node, heard)
            assert 3000 <= node._router.table.routes_of(b"made up") < 4000
            (letter,) = node.dead_letters
            assert "node made up has more than 3000 messages and receivers" in letter.detail

    run(main())


def test_nodes_that_nobody_vouches_for_announce_only_so_many_messages_together(monkeypatch):
    monkeypatch.setattr(discovery, "_MAX_UNSIGNED_ROUTES", 3000)

    async def main():
        async with a_node() as (node, stranger, heard):
            table = node._router.table
            for number in range(10):
                stranger.send(told(b"made up %d" % number, 1000))
            await taken_in(node, heard, 6)
            assert sum(map(table.routes_of, table.nodes)) < 4500
            stranger.send(forging.farewell(b"made up 0", NOBODY))
            await eventually(lambda: b"made up 0" not in peers(node))
            assert heard._unsigned_total == sum(map(table.routes_of, table.nodes))

    run(main())


def test_announcing_the_same_again_takes_no_more_room(monkeypatch):
    monkeypatch.setattr(discovery, "_MAX_ROUTES_OF_NODE", 3000)

    async def main():
        async with a_node() as (node, stranger, heard):
            for _ in range(10):
                stranger.send(told(b"honest", 2000))
            stranger.send(told(b"other", 1))
            await eventually(lambda: b"other" in peers(node) and not heard.is_behind)
            assert node._router.table.routes_of(b"honest") == 2001
            assert not node.dead_letters.counts

    run(main())


def test_a_member_that_signs_is_heard_where_strangers_have_announced_all_that_they_may(monkeypatch, tmp_path):
    monkeypatch.setattr(discovery, "_MAX_UNSIGNED_ROUTES", 100)
    cluster = Cluster("signed", tmp_path)

    async def main():
        async with a_node(**cluster.node_options) as (node, stranger, heard):
            stranger.send(told(b"made up", 1000))
            await taken_in(node, heard)
            async with make_node(peers=[uri_of(node)], **cluster.node_options) as member:
                await member.host(Named("member"))
                await handled_by(1, node)
                assert (await node.hub.ask(Question(), Answer)).text == "member"

    run(main())


LONG = {
    "message": lambda: forging.announcement(b"made up", NOBODY, routes=[(b"\1x", [b"m" * 1025])]),
    "receiver": lambda: forging.announcement(b"made up", NOBODY, routes=[(b"\1" * 256, [b"m"])]),
    "node": lambda: forging.announcement(b"n" * 256, NOBODY),
    "address": lambda: forging.announcement(b"made up", f"tcp://{'h' * 600}:1"),
}


@pytest.mark.parametrize("what", LONG)
def test_names_that_are_too_long_are_refused(what):
    async def main():
        async with a_node() as (node, stranger, heard):
            stranger.send(LONG[what]())
            await taken_in(node, heard)
            assert node.dead_letters.counts == {fw.Reason.MALFORMED: 1}
            assert all(node._router.table.routes_of(peer) == 0 for peer in peers(node))

    run(main())


def test_a_service_message_that_is_too_large_is_not_even_read():
    async def main():
        async with a_node() as (node, stranger, heard):
            frames = told(b"made up", 1)
            frames[2] = b"x" * (5 << 20)
            await asyncio.to_thread(stranger.send, frames)
            await taken_in(node, heard)
            assert node.dead_letters.counts == {fw.Reason.OVERSIZED: 1}

    run(main())


def test_only_so_much_waits_to_be_taken_in(monkeypatch):
    monkeypatch.setattr(discovery, "_MAX_WAITING", 3)

    async def main():
        async with a_node() as (node, stranger, heard):
            heard._is_busy = True  # nothing is taken in for now
            for number in range(10):
                stranger.send(told(b"made up %d" % number, 1))
            await eventually(lambda: node.dead_letters.counts[fw.Reason.THROTTLED] == 7)
            assert heard._waiting_bytes == sum(size for *_, size in heard._waiting)
            heard._is_busy = False
            heard._work()
            await eventually(lambda: len(peers(node)) == 3 and not heard.is_behind)
            assert heard._waiting_bytes == 0

    run(main())


def test_what_is_announced_is_taken_in_bit_by_bit_and_in_order(monkeypatch):
    monkeypatch.setattr(discovery, "_SLICE_S", 0.0)  # one slice a turn

    async def main():
        async with a_node() as (node, stranger, heard):
            loop, turns, parts = asyncio.get_running_loop(), 0, []
            registered = node.port.peer_registered

            def turn():
                nonlocal turns, ticking
                turns += 1
                ticking = loop.call_soon(turn)

            def noted(peer, registrations):
                registrations = list(registrations)
                if registrations:
                    parts.append((turns, sum(len(messages) for _, messages in registrations)))
                registered(peer, registrations)

            ticking = loop.call_soon(turn)
            monkeypatch.setattr(node.port, "peer_registered", noted)
            stranger.send(told(b"made up", 20_000))
            stranger.send(forging.farewell(b"made up", NOBODY))
            await eventually(lambda: len(parts) >= 40 and not heard.is_behind)
            ticking.cancel()
            assert b"made up" not in peers(node), "the farewell came after"
            assert sum(count for _, count in parts) == 20_000
            assert max(count for _, count in parts) <= 500
            assert len({turn for turn, _ in parts}) == len(parts), "others have their turn in between"

    run(main())


def test_what_waits_of_a_node_that_is_gone_meanwhile_is_not_taken_in(monkeypatch):
    monkeypatch.setattr(discovery, "_SLICE_S", 0.0)

    async def main():
        async with a_node() as (node, stranger, heard):
            stranger.send(told(b"made up", 20_000))
            await eventually(lambda: node._router.table.routes_of(b"made up") > 1000)
            assert heard.is_behind
            node._transport._gone(b"made up", "the test says so")
            await eventually(lambda: not heard.is_behind)
            assert b"made up" not in peers(node)
            assert heard._unsigned_total == 0

    run(main())


def test_a_node_with_very_many_messages_announces_them_in_parts_and_is_known_whole():
    async def main():
        async with make_node() as node, make_node(peers=[uri_of(node)]) as other:
            await acquainted(node, other)
            said = []
            say = other._transport._announcer._say_to_all
            other._transport._announcer._say_to_all = lambda frames: (said.append(frames), say(frames))
            routes = [(fw.Route(b"\1many"), tuple(fw.MessageId(b"many.%d" % number) for number in range(9000)))]
            other._transport._announcer.register(routes)
            await eventually(lambda: node._router.table.routes_of(other.identity) > 9000)
            assert sum(b"\1many" in frames[2] for frames in said) == 5
            other._transport._announcer.unregister(routes)
            await eventually(lambda: node._router.table.routes_of(other.identity) < 100)

    run(main())


def test_a_long_announcement_that_is_repeated_is_known_again_until_something_is_forgotten(monkeypatch):
    async def main():
        async with a_node() as (node, stranger, heard):
            registered, messages, times = node.port.peer_registered, [], 0

            def noted(peer, registrations):
                registrations = list(registrations)
                if peer == b"made up":
                    messages.extend(message for _, handled in registrations for message in handled)
                registered(peer, registrations)

            async def again(*said):
                nonlocal times
                times += 1
                messages.clear()
                for frames in said:
                    stranger.send(frames)
                stranger.send(told(b"last %d" % times, 1))
                await eventually(lambda: b"last %d" % times in peers(node) and not heard.is_behind)
                assert node._router.table.routes_of(b"made up") == 2001
                return len(messages)

            monkeypatch.setattr(node.port, "peer_registered", noted)
            assert await again(told(b"made up", 2000)) == 2000
            assert await again(told(b"made up", 2000)) == 0, "it is all there"
            gone = forging.withdrawal(b"made up", NOBODY, [(b"\1actor of made up", [b"made.up.7"])])
            assert await again(gone, told(b"made up", 2000)) == 2000, "one of them was withdrawn"
            assert await again(told(b"made up", 2000)) == 0
            assert await again(forging.farewell(b"made up", NOBODY), told(b"made up", 2000)) == 2000
            assert len(heard._applied) == 1

    run(main())


def test_how_many_long_announcements_are_known_again_is_bounded(monkeypatch):
    monkeypatch.setattr(discovery, "_MAX_APPLIED", 3)

    async def main():
        async with a_node() as (node, stranger, heard):
            for number in range(10):
                stranger.send(told(b"made up", 500, start=500 * number))
            stranger.send(told(b"last", 1))
            await eventually(lambda: b"last" in peers(node) and not heard.is_behind)
            assert 1 <= len(heard._applied) <= 3
            assert node._router.table.routes_of(b"made up") == 5001

    run(main())


def test_what_a_node_repeats_is_written_once():
    async def main():
        async with make_node() as node:
            announcer, said = node._transport._announcer, []
            announcer._say_to_all = said.append
            await node.host(Named("one"))
            said.clear()
            announcer.introduce()
            announcer.introduce()
            first, second = said[: len(said) // 2], said[len(said) // 2 :]
            assert [frames[2] for frames in first] == [frames[2] for frames in second]
            assert first[0][2] is second[0][2], "the same bytes"
            await node.host(Named("two"))
            said.clear()
            announcer.introduce()
            assert said[0][2] != first[0][2]

    run(main())


def test_a_question_for_one_of_many_partitions_is_answered_with_that_one():
    async def main():
        async with a_node() as (node, stranger, heard):

            @node.handler(OpenQuestion, partitions=[f"{number}" for number in range(10_000)])
            async def handle(_):
                pass

            said = []
            node._transport._announcer._say_to_all = said.append
            wanted = fw.MessageId(b"open.question", 1, b"77")
            stranger.send(forging.asks_for_routes(b"made up", NOBODY, b"open.question", partition=b"77"))
            await eventually(lambda: said and not heard._owed)
            [told] = [service.parse(decode(frames)) for frames in said if b"open.question" in frames[2]]
            assert [service.message_id(one) for route in told.routes for one in route.contracts] == [wanted]

    run(main())


@pytest.mark.parametrize("mode", MODES)
def test_the_same_question_about_a_route_is_answered_ten_times_a_second(mode, tmp_path):
    cluster = Cluster(mode, tmp_path)

    async def main():
        async with make_node(**cluster.node_options) as node:
            heard = node._transport._discovery

            @node.handler(OpenQuestion)
            async def handle(_): ...

            with intruder(mode, uri_of(node)) as stranger:
                if stranger is None:
                    return
                answers = []
                node._transport._announcer.register_in = lambda *what: answers.append(what)
                for number in range(1000):
                    stranger.send(forging.asks_for_routes(b"made up %d" % number, NOBODY, b"open.question"))
                    stranger.send(forging.asks_for_routes(b"made up", NOBODY, b"nobody.handles.%d" % number))
                stranger.send(told(b"last", 1))
                await eventually(lambda: b"last" in peers(node) and not heard._owed)
                assert 2 <= len(answers) < 100
                assert len(heard._answered) == 1

    run(main())


@pytest.mark.parametrize("mode", MODES)
def test_a_stranger_that_offers_to_handle_messages_of_no_domain_is_sent_them(mode, tmp_path):
    cluster = Cluster(mode, tmp_path)

    async def main():
        async with make_node(**cluster.node_options) as node:
            with zmtp.Listener() as there:
                try:
                    stranger = await asyncio.to_thread(zmtp.connect, uri_of(node), b"DEALER", b"stranger")
                except ConnectionError:
                    assert mode == "curve"
                    return
                with stranger:
                    stranger.send(
                        forging.announcement(b"made up", there.uri, routes=[(b"\1x", [b"open.question"])])
                    )
                    await eventually(lambda: b"made up" in peers(node))
                    await node.hub.tell(OpenQuestion())
                    with await asyncio.to_thread(there.accept, b"ROUTER", b"made up") as sent:
                        assert b"open.question" in await asyncio.to_thread(sent.receive)

    run(main())


PIECE = 2 * 500
"""Routes that may be gone after one turn of the event loop: it ends with a slice, and the next begins with one."""


async def shrinking(node, name, until_gone):
    """Wait until a node's routes are gone; the most that went in one turn of the event loop."""
    table, most = node._router.table, 0
    before = table.routes_of(name)
    async with asyncio.timeout(20):
        while not until_gone():
            await asyncio.sleep(0)
            now = table.routes_of(name)
            most, before = max(most, before - now), now
    return most


@pytest.mark.parametrize("how", ["leaves", "moves", "withdraws", "withdraws from all", "falls silent"])
def test_thousands_of_routes_are_forgotten_bit_by_bit(monkeypatch, how):
    monkeypatch.setattr(discovery, "_SLICE_S", 0.0)  # one slice a turn
    monkeypatch.setattr("framewire.cluster.transport._SLICE_S", 0.0)
    many = 10_000
    receivers = [b"\1%d" % number for number in range(many)]

    async def main():
        async with a_node() as (node, stranger, heard):
            table = node._router.table
            stranger.send(forging.announcement(b"made up", NOBODY, routes=[(each, [b"x"]) for each in receivers]))
            stranger.send(forging.announcement(b"other", NOBODY, routes=[(b"\1other", [b"x"])]))
            await eventually(lambda: table.routes_of(b"made up") == 2 * many and not heard.is_behind, 30)
            if how == "leaves":
                stranger.send(forging.farewell(b"made up", NOBODY))
            elif how == "moves":
                stranger.send(forging.announcement(b"made up", "tcp://127.0.0.1:10"))
            elif how == "withdraws":
                gone = [(each, [b"x"]) for each in receivers]
                stranger.send(forging.withdrawal(b"made up", NOBODY, gone))
            elif how == "withdraws from all":
                stranger.send(forging.withdrawal(b"made up", NOBODY, [(b"", [b"x"])]))
            else:
                node._transport._lost(b"made up")
            most = await shrinking(node, b"made up", lambda: not table.routes_of(b"made up"))
            if how != "withdraws from all":  # these are gone in one pass
                assert most <= PIECE
            await eventually(lambda: not heard.is_behind and not node._transport._silent)
            assert (b"made up" in peers(node)) == (how not in {"leaves", "falls silent"})
            assert [route.receiver for route in table.all(fw.MessageId(b"x"))] == [b"\1other"]

    run(main(), timeout=60)


def test_receivers_are_compared_with_those_of_members_bit_by_bit(monkeypatch, tmp_path):
    monkeypatch.setattr(discovery, "_SLICE_S", 0.0)  # one slice a turn
    cluster = Cluster("signed", tmp_path)

    async def main():
        async with (
            a_node(**cluster.node_options) as (node, stranger, heard),
            make_node(peers=[uri_of(node)], **cluster.node_options) as member,
        ):
            await member.host(Named("member"))
            await handled_by(1, node)
            taken = next(iter(node._router.table.all(fw.MessageId(b"test.question")))).receiver
            claimed = [(b"\1%d" % number, []) for number in range(50_000)]
            stranger.send(forging.announcement(b"made up", NOBODY, routes=[*claimed, (taken, [])]))
            async with asyncio.timeout(20):
                while not heard.is_behind:  # noqa: ASYNC110 - each turn counts, so nothing may wait meanwhile
                    await asyncio.sleep(0)
            turns = 0
            while heard.is_behind:
                await asyncio.sleep(0)
                turns += 1
            assert turns >= 90
            assert node.dead_letters.counts == {fw.Reason.BAD_SIGNATURE: 1}
            assert b"made up" not in peers(node)

    run(main(), timeout=60)


@pytest.mark.parametrize("mode", MODES)
def test_a_million_messages_and_thousands_of_nodes_take_bounded_memory_and_asks_go_on(mode, tmp_path):
    cluster = Cluster(mode, tmp_path)
    flood = [told(b"made up", MANY, start=start) for start in range(0, 1_000_000, MANY)]
    flood += [told(b"made up %d" % number, 10) for number in range(4000)]

    def attack(uri):
        try:
            with zmtp.connect(uri, b"DEALER", b"stranger") as stranger:
                for frames in flood:
                    stranger.send(frames)
                until(ended.is_set)
        except (ConnectionError, TimeoutError):
            return

    ended = threading.Event()
    with attacked("node", cluster) as target:

        async def main():
            async with make_node(peers=[target.uri], misses=50, **cluster.node_options) as node:
                await handled_by(1, node)
                before = target.memory
                attacker = threading.Thread(target=attack, args=[target.uri])
                attacker.start()
                try:
                    for _ in range(100):
                        assert (await node.hub.ask(Question(), Answer, timeout=10)).text == "attacked"
                        await asyncio.sleep(0.01)
                finally:
                    ended.set()
                    await asyncio.to_thread(attacker.join, 20)
                return target.memory - before

        assert run(main(), timeout=60) < 200 << 20
        assert target.is_alive


@pytest.mark.parametrize("mode", MODES)
def test_asks_go_on_while_strangers_withdraw_what_they_have_announced_by_the_thousands(mode, tmp_path):
    """Where each withdrawal looked at the whole table, or at all receivers of a message, this took minutes."""
    cluster = Cluster(mode, tmp_path)
    flood = []
    for number in range(4):
        name = b"made up %d" % number
        same = [(b"\1%d.%d" % (number, actor), [b"made.up"]) for actor in range(20_000)]
        flood += [forging.announcement(name, NOBODY, routes=same), told(name + b" too", 40_000)]
    for number in range(4):
        name = b"made up %d" % number
        gone = [(b"\1%d.%d" % (number, actor), [b"made.up"]) for actor in range(0, 20_000, 2)]
        flood += [
            forging.withdrawal(name, NOBODY, gone),
            forging.withdrawal(name, NOBODY, [(b"", [b"made.up"] * 500)]),
        ]
        flood += [frames for _ in range(20) for frames in (told(b"little", 1), forging.farewell(b"little", NOBODY))]
        flood += [forging.farewell(name, NOBODY), told(name + b" too", 1), forging.farewell(name + b" too", NOBODY)]

    def attack(uri):
        with contextlib.suppress(ConnectionError), zmtp.connect(uri, b"DEALER", b"stranger") as stranger:
            for frames in flood:
                stranger.send(frames)
            stranger.send(told(b"last", 1))
            until(ended.is_set, 60)

    ended = threading.Event()
    with attacked("node", cluster) as target:

        async def main():
            async with make_node(peers=[target.uri], misses=50, **cluster.node_options) as node:
                await handled_by(1, node)
                attacker = threading.Thread(target=attack, args=[target.uri])
                attacker.start()
                try:
                    for _ in range(300):
                        assert (await node.hub.ask(Question(), Answer, timeout=10)).text == "attacked"
                        await asyncio.sleep(0.01)
                finally:
                    ended.set()
                    await asyncio.to_thread(attacker.join, 20)

        run(main(), timeout=60)
        assert target.is_alive
