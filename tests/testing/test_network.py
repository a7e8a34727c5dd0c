import asyncio
import math

import pytest
from tests.node.running import run
from tests.testing.ports import ACTOR, PING, NotedPort, connected, letter, quiet

import framewire as fw
from framewire.routing import Route
from framewire.testing import Fate, Faults, ManualClock, MemoryNetwork, MemoryTransport
from framewire.wire import MessageId, decode

OTHER = MessageId(b"kit.other")


def pair(scenario, **options):
    """Run a scenario with a network, the transport of one node, and the port of another."""

    async def main():
        network = MemoryNetwork(**options)
        here, there = NotedPort("here"), NotedPort("there")
        transport, _ = await connected(network, here, there)
        await scenario(network, transport, there)

    run(main())


# --- messages


def test_a_message_arrives_later_and_as_it_was_sent():
    async def scenario(network, transport, there):
        frames = letter(1)
        assert transport.send(b"there", frames) is None
        frames.append(b"changed by its sender afterwards")
        assert there.received == []
        await quiet(network)
        assert there.received == [(b"here", letter(1))]

    pair(scenario)


def test_order_is_kept():
    async def scenario(network, transport, there):
        for number in range(500):
            transport.send(b"there", letter(number))
        await quiet(network)
        assert there.numbers == list(range(500))
        assert network.journal.counts == {Fate.PASSED: 500}

    pair(scenario)


def test_a_peer_that_never_was_is_unreachable():
    async def scenario(_, transport, __):
        with pytest.raises(fw.Unreachable, match="nobody-i-know is not known"):
            transport.send(b"nobody-i-know", letter(1))

    pair(scenario)


def test_a_transport_that_is_not_started_reaches_nobody():
    transport = MemoryTransport(MemoryNetwork())
    transport.announce([(ACTOR, (PING,))])
    transport.withdraw([(ACTOR, (PING,))])
    transport.discover(PING, b"")
    with pytest.raises(fw.Unreachable, match="not connected"):
        transport.send(b"there", letter(1))


def test_bad_settings_are_told_all_at_once():
    with pytest.raises(fw.ConfigError) as caught:
        MemoryNetwork(limit=0, lost_after=-1, keep=-1)
    assert len(caught.value.problems) == 3


# --- room


def test_a_full_link_makes_senders_wait_and_lets_them_in_in_order():
    async def scenario(network, transport, there):
        rooms = [transport.send(b"there", letter(number)) for number in range(5)]
        assert [room is None for room in rooms] == [True, True, False, False, False]
        async with asyncio.timeout(5):
            await asyncio.gather(*rooms[2:])
        await quiet(network)
        assert there.numbers == [0, 1, 2, 3, 4]

    pair(scenario, limit=2)


def test_a_sender_that_gives_up_waiting_has_sent_nothing():
    async def scenario(network, transport, there):
        transport.send(b"there", letter(0))
        cancelled, failed, last = (transport.send(b"there", letter(number)) for number in (1, 2, 3))
        cancelled.cancel()
        failed.set_exception(RuntimeError("no patience"))
        failed.exception()
        async with asyncio.timeout(5):
            await last
        await quiet(network)
        assert there.numbers == [0, 3]

    pair(scenario, limit=1)


def test_those_who_wait_for_a_node_that_dies_wait_no_longer():
    async def scenario(network, transport, _):
        transport.send(b"there", letter(0))
        room = transport.send(b"there", letter(1))
        network.kill(b"there")
        async with asyncio.timeout(5):
            await room
        assert network.journal.counts == {Fate.PASSED: 1, Fate.LOST: 2}

    pair(scenario, limit=1)


# --- faults


def test_dropped_messages_do_not_arrive_and_are_on_record():
    async def scenario(network, transport, there):
        for number in range(200):
            transport.send(b"there", letter(number))
        await quiet(network)
        lost = [record.number - 1 for record in network.journal.of(Fate.DROPPED)]
        assert 20 < len(lost) < 100
        assert there.numbers == [number for number in range(200) if number not in lost]

    pair(scenario, faults=Faults(seed=1, drop=0.3))


def test_duplicated_messages_arrive_twice_in_a_row():
    async def scenario(network, transport, there):
        for number in range(100):
            transport.send(b"there", letter(number))
        await quiet(network)
        twice = [record.number - 1 for record in network.journal.of(Fate.DUPLICATED)]
        assert 10 < len(twice) < 50
        assert there.numbers == sorted([*range(100), *twice])

    pair(scenario, faults=Faults(seed=1, duplicate=0.3))


def test_delayed_messages_arrive_in_their_time_and_in_order():
    clock = ManualClock()

    async def scenario(network, transport, there):
        for number in range(20):
            transport.send(b"there", letter(number))
        await clock.advance(0.9)
        assert there.numbers == []
        assert network.link(b"here", b"there").under_way == 20
        await clock.advance(2.2)
        assert there.numbers == list(range(20))
        assert network.journal.counts == {Fate.DELAYED: 20}

    pair(scenario, clock=clock, faults=Faults(seed=1, delay=(1.0, 3.0)))


def test_reordered_messages_overtake_others_and_none_is_lost():
    async def scenario(network, transport, there):
        for number in range(100):
            transport.send(b"there", letter(number))
        await quiet(network)
        assert there.numbers != list(range(100))
        assert sorted(there.numbers) == list(range(100))
        assert network.journal.of("reordered")[0].detail.startswith("ahead of ")

    pair(scenario, faults=Faults(seed=1, reorder=0.3))


def test_a_message_that_is_alone_has_none_to_overtake():
    async def scenario(network, transport, there):
        transport.send(b"there", letter(1))
        await quiet(network)
        assert there.numbers == [1]
        assert network.journal.counts == {Fate.PASSED: 1}

    pair(scenario, faults=Faults(reorder=1.0))


def test_corrupted_messages_arrive_with_one_bit_flipped():
    async def scenario(network, transport, there):
        transport.send(b"there", letter(7))
        await quiet(network)
        [(_, frames)] = there.received
        changed = [pair for pair in zip(letter(7), frames, strict=True) if pair[0] != pair[1]]
        assert len(changed) == 1
        [record] = network.journal.of(Fate.CORRUPTED)
        assert record.message == PING

    pair(scenario, faults=Faults(seed=3, corrupt=1.0))


def test_faults_may_come_and_go_and_differ_from_link_to_link():
    async def scenario(network, transport, there):
        network.disturb(Faults(drop=1.0), receiver=b"there")
        transport.send(b"there", letter(1))
        network.disturb(Faults(drop=1.0), sender=b"there")
        network.disturb(Faults(), sender=b"here", receiver=b"there")
        transport.send(b"there", letter(2))
        network.disturb(Faults(drop=1.0))
        transport.send(b"there", letter(3))
        network.disturb(Faults())
        transport.send(b"there", letter(4))
        await quiet(network)
        assert there.numbers == [2, 4]

    pair(scenario)


def test_faults_for_a_node_hold_for_those_who_join_later():
    async def scenario(network, _, there):
        network.disturb(Faults(drop=1.0), sender=b"late")
        late = MemoryTransport(network)
        await late.start(NotedPort("late"))
        late.send(b"there", letter(1))
        await quiet(network)
        assert there.numbers == []

    pair(scenario)


def test_the_same_seed_does_the_same_to_every_message():
    def storm(seed):
        found = []

        async def scenario(network, transport, there):
            for number in range(100):
                transport.send(b"there", letter(number))
                if number % 10 == 0:
                    await quiet(network)
            await quiet(network)
            found.append((network.journal.counts, [str(r) for r in network.journal], there.received))

        faults = Faults(seed=seed, drop=0.1, duplicate=0.1, reorder=0.2, corrupt=0.1)
        pair(scenario, faults=faults, clock=ManualClock())
        return found[0]

    assert storm(5) == storm(5)
    assert storm(5) != storm(6)


def test_an_interceptor_sees_and_changes_messages():
    async def scenario(network, transport, there):
        seen = []

        def tamper(sender, receiver, frames):
            seen.append((sender, receiver))
            number = int(decode(frames).body)
            return None if number == 2 else letter(30) if number == 3 else frames

        network.intercept(tamper)
        for number in (1, 2, 3):
            transport.send(b"there", letter(number))
        await quiet(network)
        assert there.numbers == [1, 30]
        assert seen == [(b"here", b"there")] * 3
        assert [record.number for record in network.journal.of(Fate.ALTERED)] == [2, 3]

    pair(scenario)


def test_the_journal_is_bounded_and_readable():
    async def scenario(network, transport, __):
        for number in range(10):
            transport.send(b"there", letter(number))
        transport.send(b"there", [b"not", b"a", b"message"])
        await quiet(network)
        assert len(network.journal) == 3
        assert network.journal.counts == {Fate.PASSED: 11}
        lines = str(network.journal).splitlines()
        assert lines[0] == "0.000 here → there #9: kit.ping v1 (flow flow): passed"
        assert lines[-1] == "0.000 here → there #11: no message: passed"

    pair(scenario, keep=3, clock=ManualClock())


def test_a_node_that_raises_is_noted_and_the_network_goes_on():
    async def scenario(network, transport, there):
        received, there.receive = there.receive, lambda *_: 1 / 0
        transport.send(b"there", letter(1))
        await quiet(network)
        there.receive = received
        transport.send(b"there", letter(2))
        await quiet(network)
        assert there.numbers == [2]
        assert [type(failure) for failure in network.failures] == [ZeroDivisionError]

    pair(scenario)


# --- who knows what


def test_joining_tells_and_learns():
    async def scenario():
        network = MemoryNetwork()
        first, second = NotedPort("first", (ACTOR, (PING,))), NotedPort("second")
        await MemoryTransport(network).start(first)
        await MemoryTransport(network).start(second)
        assert first.heard == second.heard == []
        await quiet(network)
        assert first.heard == [("registered", b"second")]
        assert second.heard == [("registered", b"first", (ACTOR, (PING,)))]
        assert network.members == (b"first", b"second")

    run(scenario())


def test_two_nodes_of_one_name_cannot_be():
    async def scenario():
        network = MemoryNetwork()
        await MemoryTransport(network).start(NotedPort("same"))
        with pytest.raises(fw.UsageError, match="same is already connected"):
            await MemoryTransport(network).start(NotedPort("same"))

    run(scenario())


def test_announcing_withdrawing_and_leaving_reach_all_others():
    async def scenario():
        network = MemoryNetwork()
        ports = [NotedPort(name) for name in "abc"]
        transports = await connected(network, *ports)
        transports[0].announce([(ACTOR, (PING, OTHER))])
        transports[0].withdraw([(ACTOR, (OTHER,))])
        transports[0].send(b"b", letter(1))
        await transports[0].stop()
        await quiet(network)
        for port in ports[1:]:
            assert [what for what, *_ in port.heard] == ["registered", "unregistered", "lost"]
        assert ports[0].heard == []
        assert ports[1].numbers == [1]
        with pytest.raises(fw.Unreachable, match="is gone"):
            transports[1].send(b"a", letter(1))
        with pytest.raises(fw.Unreachable, match="not connected"):
            transports[0].send(b"b", letter(1))
        await transports[0].stop()

    run(scenario())


def test_a_goodbye_is_the_last_word_even_where_messages_overtake():
    async def scenario(network, transport, there):
        heard = []
        there.receive = lambda *_: heard.append("message")
        there.peer_lost = lambda _: heard.append("goodbye")
        for number in range(50):
            transport.send(b"there", letter(number))
        await transport.stop()
        await quiet(network)
        assert heard == ["message"] * 50 + ["goodbye"]

    pair(scenario, faults=Faults(reorder=1.0))


def test_discovering_is_answered_by_those_who_handle_the_message_or_have_the_receiver():
    async def scenario():
        network = MemoryNetwork()
        hub = Route(b"\x00hub")
        ports = [NotedPort("a"), NotedPort("b", (ACTOR, (PING,))), NotedPort("c", (hub, ()))]
        transports = await connected(network, *ports)
        transports[0].discover(PING, b"")
        await quiet(network)
        assert ports[0].heard == [("registered", b"b", (ACTOR, (PING,)))]
        transports[0].discover(OTHER, hub.receiver)
        await quiet(network)
        assert ports[0].heard[1:] == [("registered", b"c", (hub, ()))]

    run(scenario())


# --- partitions and deaths


def test_a_partition_cuts_both_ways_and_spares_the_rest():
    async def scenario():
        network = MemoryNetwork()
        ports = [NotedPort(name) for name in "abc"]
        a, b, c = await connected(network, *ports)
        a.send(b"b", letter(0))
        network.partition([b"a"], [b"b"], lost_after=math.inf)
        a.send(b"b", letter(1))
        b.send(b"a", letter(2))
        a.send(b"c", letter(3))
        c.send(b"b", letter(4))
        await quiet(network)
        assert [port.numbers for port in ports] == [[], [4], [3]]
        assert [port.heard for port in ports] == [[], [], []]
        assert network.journal.counts[Fate.CUT_OFF] == 3

    run(scenario())


def test_a_partition_is_noticed_after_a_while():
    async def scenario():
        clock = ManualClock()
        network = MemoryNetwork(clock=clock, lost_after=5.0)
        ports = [NotedPort(name) for name in "abc"]
        await connected(network, *ports)
        network.partition([b"a"], [b"b", b"c"])
        await clock.advance(4.9)
        assert ports[0].heard == []
        await clock.advance(0.2)
        assert sorted(ports[0].heard) == [("lost", b"b"), ("lost", b"c")]
        assert ports[1].heard == [("lost", b"a")]

    run(scenario())


def test_healing_tells_what_changed_meanwhile():
    async def scenario():
        network = MemoryNetwork(lost_after=math.inf)
        here, there = NotedPort("here", (ACTOR, (PING, OTHER)), (Route(b"\x00hub"), ())), NotedPort("there")
        transport, _ = await connected(network, here, there)
        network.partition([b"here"], [b"there"])
        new = Route(b"\x01new")
        here.registrations = [(ACTOR, (PING,)), (new, (PING,))]
        transport.announce([(new, (PING,))])
        network.heal()
        await quiet(network)
        gone, now = there.heard
        assert gone == ("unregistered", b"here", (Route(b"\x00hub"), ()), (ACTOR, (OTHER,)))
        assert now == ("registered", b"here", (ACTOR, (PING,)), (new, (PING,)))
        transport.send(b"there", letter(1))
        await quiet(network)
        assert there.numbers == [1]

    run(scenario())


def test_a_node_that_left_during_a_partition_is_missed_when_it_heals():
    async def scenario():
        network = MemoryNetwork(lost_after=math.inf)
        here, there = NotedPort("here", (ACTOR, (PING,))), NotedPort("there")
        transport, _ = await connected(network, here, there)
        network.partition([b"here"], [b"there"])
        await transport.stop()
        assert there.heard == []
        network.heal()
        await quiet(network)
        assert there.heard == [("lost", b"here")]

    run(scenario())


def test_a_node_cannot_be_cut_off_from_itself():
    with pytest.raises(fw.UsageError, match="b: in both groups"):
        MemoryNetwork().partition([b"a", b"b"], [b"b"])


def test_a_killed_node_is_missed_after_a_while():
    async def scenario():
        clock = ManualClock()
        network = MemoryNetwork(clock=clock, lost_after=3.0)
        here, there = NotedPort("here", (ACTOR, (PING,))), NotedPort("there", (ACTOR, (PING,)))
        transport, other = await connected(network, here, there)
        transport.send(b"there", letter(1))
        network.kill(b"here")
        assert other.send(b"here", letter(2)) is None
        await clock.advance(2.9)
        assert there.heard == []
        assert there.numbers == []
        await clock.advance(0.2)
        assert there.heard == [("lost", b"here")]
        assert network.journal.counts == {Fate.PASSED: 1, Fate.LOST: 2}
        with pytest.raises(fw.UsageError, match="no such node"):
            network.kill(b"here")

    run(scenario())


def test_a_killed_node_may_be_back_before_it_was_missed():
    async def scenario():
        network = MemoryNetwork(lost_after=math.inf)
        here, there = NotedPort("here", (ACTOR, (PING,))), NotedPort("there")
        await connected(network, here, there)
        network.kill(b"here")
        await MemoryTransport(network).start(NotedPort("here", (Route(b"\x01new"), (PING,))))
        await quiet(network)
        assert there.heard == [("lost", b"here"), ("registered", b"here", (Route(b"\x01new"), (PING,)))]

    run(scenario())


@pytest.mark.parametrize("seconds", [-1.0, math.nan])
def test_nobody_notices_before_it_happens(seconds):
    async def scenario(network, _, __):
        with pytest.raises(fw.UsageError, match="lost_after"):
            network.kill(b"here", lost_after=seconds)

    pair(scenario)
