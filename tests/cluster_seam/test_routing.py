"""Which handler a message reaches, on which node, and what it looks like when it gets there."""

from collections import Counter

import msgspec
import pytest
from tests.cluster_seam.messages import Answer, Answerer, Question, answerers
from tests.node.running import eventually, run

import framewire as fw
from framewire.routing import Route
from framewire.testing import Cluster
from framewire.wire import MessageId

QUESTION = MessageId(b"seam.question")


def nodes_of(message: fw.Message) -> list[bytes]:
    """The routers that a message passed, in order."""
    return [router.identity for router in message.routing]


def test_unicast_takes_turns_over_local_and_remote_handlers_alike():
    async def scenario():
        async with Cluster(3) as cluster:
            await answerers(cluster, 0, 1, 2)
            by = [(await cluster[0].hub.ask(Question(), Answer)).by for _ in range(9)]
            assert by[:3] == by[3:6] == by[6:]
            assert sorted(by[:3]) == ["0", "1", "2"]

    run(scenario())


def test_turns_are_by_handler_and_not_by_node():
    async def scenario():
        async with Cluster(2) as cluster:
            await answerers(cluster, 0, 1, 1, 1)
            by = Counter([(await cluster[0].hub.ask(Question(), Answer)).by for _ in range(8)])
            assert by == {"0": 2, "1": 6}

    run(scenario())


def test_a_message_from_another_node_is_handled_where_it_arrives_if_it_can_be():
    async def scenario():
        async with Cluster(2) as cluster:
            here, there = await answerers(cluster, 0, 1)
            for number in range(10):
                await cluster[0].hub.ask(Question(number), Answer)
            assert sorted(m.hops for m in there.messages) == [1] * 5
            assert sorted(m.hops for m in here.messages) == [0] * 5

    run(scenario())


def test_a_message_from_another_node_is_passed_on_where_nobody_handles_it():
    async def scenario():
        async with Cluster(3) as cluster:
            [answerer] = await answerers(cluster, 2)
            stale = [(Route(b"\x01" + bytes(16)), (QUESTION,))]
            cluster[0].port.peer_lost(b"node-2")
            cluster[0].port.peer_registered(b"node-1", stale)
            assert (await cluster[0].hub.ask(Question(7), Answer, timeout=10)).number == 7
            [message] = answerer.messages
            assert (message.hops, nodes_of(message)) == (2, [b"node-0", b"node-1"])

    run(scenario())


def test_a_message_carries_one_hop_and_one_routing_entry_for_each_router_that_sent_it_away():
    async def scenario():
        async with Cluster(2) as cluster:
            [answerer] = await answerers(cluster, 1)
            await cluster[0].hub.ask(Question(), Answer)
            [message] = answerer.messages
            assert message.hops == 1
            assert [(router.uri, router.identity) for router in message.routing] == [("memory://node-0", b"node-0")]

    run(scenario())


def test_a_local_message_has_no_hops_and_no_routing_entries():
    async def scenario():
        async with Cluster(2) as cluster:
            [answerer] = await answerers(cluster, 0)
            await cluster[0].hub.ask(Question(), Answer)
            [message] = answerer.messages
            assert (message.hops, message.routing) == (0, ())

    run(scenario())


def test_a_broadcast_reaches_every_handler_on_every_node_once_each_destination_with_its_own_copy():
    async def scenario():
        async with Cluster(3) as cluster:
            actors = await answerers(cluster, 0, 0, 1, 1, 2)
            await cluster[0].hub.broadcast(Question(1))
            await cluster.settled()
            assert [len(actor.messages) for actor in actors] == [1, 1, 1, 1, 1]
            for actor in actors[:2]:
                assert (actor.messages[0].hops, actor.messages[0].routing) == (0, ())
            for actor in actors[2:]:
                assert actor.messages[0].hops == 1
                assert nodes_of(actor.messages[0]) == [b"node-0"]
            assert sum(cluster.journal.counts.values()) == 2

    run(scenario())


def test_a_broadcast_from_a_handler_reaches_other_nodes_too():
    async def scenario():
        async with Cluster(3) as cluster:

            @fw.message("seam.start")
            class Start(bytes):
                pass

            actors = await answerers(cluster, 0, 1, 2)

            @cluster[1].handler(Start)
            async def start(_: Start, ctx: fw.Context) -> None:
                await ctx.broadcast(Question(5))

            await cluster.settled()
            await cluster[0].hub.tell(Start())
            await cluster.settled()
            assert [len(actor.messages) for actor in actors] == [1, 1, 1]

    run(scenario())


def test_replies_to_a_broadcast_are_gathered_from_all_nodes():
    async def scenario():
        async with Cluster(3) as cluster:
            await answerers(cluster, 0, 1, 2, 2)
            gathered = await cluster[1].hub.gather(Question(3), Answer, timeout=10, stop_after=4)
            assert sorted(answer.by for answer in gathered) == ["0", "1", "2", "2"]
            assert gathered.errors == []

    run(scenario())


def test_a_broadcast_to_a_node_that_handles_it_no_longer_is_a_dead_letter_there():
    async def scenario():
        async with Cluster(2) as cluster:
            cluster[0].port.peer_registered(b"node-1", [(Route(b"\x01" + bytes(16)), (QUESTION,))])
            await cluster[0].hub.broadcast(Question())
            await cluster.settled()
            assert cluster[1].dead_letters.counts == {fw.Reason.NO_ROUTE: 1}
            assert len(cluster[0].dead_letters) == 0

    run(scenario())


def test_a_message_to_a_node_goes_there_whoever_else_handles_it():
    async def scenario():
        async with Cluster(3) as cluster:
            await answerers(cluster, 0, 1, 2)
            for index in (2, 2, 0, 1, 1):
                answer = await cluster[0].hub.ask(Question(), Answer, to_node=b"node-%d" % index)
                assert answer.by == str(index)

    run(scenario())


def test_a_message_to_an_actor_of_another_node_reaches_that_actor():
    async def scenario():
        async with Cluster(2) as cluster:
            first, second = Answerer("first"), Answerer("second")
            await cluster[1].host(first)
            address = await cluster[1].host(second)
            await cluster.settled()
            known = await cluster[0].hub.ask(Question(), Answer, to_actor=address.receiver)
            named = await cluster[0].hub.ask(Question(), Answer, to_actor=Route(address.receiver, b"node-1"))
            assert (known.by, named.by) == ("second", "second")
            assert first.messages == []

    run(scenario())


def test_local_actors_and_hubs_are_unknown_to_other_nodes():
    async def scenario():
        async with Cluster(1) as cluster:
            await cluster[0].host(Answerer("secret"), local=True)
            hub = await cluster[0].new_hub(local=True)
            await cluster.join()
            await cluster.settled()
            assert not cluster[1]._router.table.alike(QUESTION)
            assert cluster[1]._router.table.find(hub.identity) is None

    run(scenario())


def test_the_answer_comes_straight_from_the_tenth_actor_of_a_chain_over_three_nodes():
    async def scenario():
        async with Cluster(3) as cluster:
            steps = [fw.message(f"seam.step{n}")(type(f"Step{n}", (bytes,), {})) for n in range(10)]
            for n, step in enumerate(steps):
                following = steps[n + 1] if n < 9 else None

                @cluster[n % 3].handler(step)
                async def pass_on(_, ctx: fw.Context, n=n, following=following):
                    return Answer(n, ",".join(i.decode() for i in nodes_of(ctx.message))) if n == 9 else following()

            await cluster.settled()
            answer = await cluster[0].hub.ask(steps[0](), Answer, timeout=10)
            assert answer.number == 9
            # Step n runs on node n % 3, so each of the nine moves is away from the node before.
            assert answer.by == ",".join(f"node-{n % 3}" for n in range(9))
            assert cluster.journal.counts.total() == 9  # the tenth actor runs on the node that asked

    run(scenario())


def test_the_answer_goes_to_the_hub_that_asked_and_no_other():
    async def scenario():
        async with Cluster(2) as cluster:
            await answerers(cluster, 1)
            second = await cluster[0].new_hub()
            await cluster.settled()
            asked = [second.start(Question(n), Answer) for n in range(5)]
            asked += [cluster[0].hub.start(Question(n), Answer) for n in range(5)]
            assert [(await promise).number for promise in asked] == [*range(5), *range(5)]
            assert len(cluster[0].dead_letters) == 0

    run(scenario())


def test_any_node_tells_about_itself():
    async def scenario():
        async with Cluster(3) as cluster:
            for node in cluster:
                stats = await cluster[0].hub.ask(fw.NodeInfo(), fw.NodeStats, to_node=node.identity)
                assert stats.node.encode() == node.identity
                assert len(stats.peers) == 2

    run(scenario())


def test_messages_that_go_in_circles_are_stopped():
    async def scenario():
        async with Cluster(2, max_hops=8) as cluster:
            for node, other in ((0, 1), (1, 0)):
                claim = [(Route(b"\x01" + bytes(16)), (QUESTION,))]
                cluster[node].port.peer_registered(b"node-%d" % other, claim)
            with pytest.raises(fw.Unreachable, match="went in circles for 9 hops"):
                await cluster[0].hub.ask(Question(), Answer, timeout=10)
            dead = [node.dead_letters.counts[fw.Reason.UNREACHABLE] for node in cluster]
            assert sum(dead) == 1

    run(scenario())


def test_order_is_kept_between_one_sender_and_one_receiver():
    async def scenario():
        async with Cluster(2, limit=7) as cluster:
            seen = []

            @cluster[1].handler(Question)
            async def note(question: Question) -> None:
                seen.append(question.number)

            await cluster.settled()
            for number in range(200):
                await cluster[0].hub.tell(Question(number))
            await cluster.settled()
            assert seen == list(range(200))

    run(scenario())


def test_a_broadcast_to_one_node_reaches_all_of_its_handlers_and_nobody_else():
    @fw.message("seam.relay")
    class Relay(msgspec.Struct):
        pass

    class Relays(fw.Actor):
        @fw.handles(Relay)
        async def relay(self, _, ctx):
            await ctx.broadcast(Question(2), to_node=b"node-2")

    async def scenario():
        async with Cluster(3) as cluster:
            here, there, first, second = await answerers(cluster, 0, 1, 2, 2)
            await cluster[0].hub.broadcast(Question(1), to_node=b"node-2")
            await cluster[1].host(Relays())
            await cluster[1].hub.tell(Relay())
            await eventually(lambda: len(first.messages) == len(second.messages) == 2)
            await cluster[0].hub.broadcast(Question(3))
            await eventually(lambda: len(first.messages) == len(second.messages) == 3)
            await eventually(lambda: here.messages and there.messages)
            assert len(here.messages) == len(there.messages) == 1
            assert [message.receiver_node_identity for message in first.messages] == [b"node-2", b"node-2", b""]

    run(scenario())
