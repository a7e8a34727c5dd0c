"""How many routing entries travel with a message, which are dropped, and who is told."""

import logging

import msgspec
import pytest
from tests.cluster_seam.messages import Answer, Question, answerers
from tests.node.running import eventually, run

import framewire as fw
from framewire.node.parcel import MAX_ROUTERS, kept_routers
from framewire.routing import Route
from framewire.testing import Cluster
from framewire.wire import Message, MessageId, RouterAddress, encode

LONG = tuple(RouterAddress(f"memory://{number}", b"router-%d" % number) for number in range(300))


@fw.message("entries.ball")
class Ball(msgspec.Struct):
    left: int


@fw.message("entries.out")
class Out(msgspec.Struct):
    pass


class Player(fw.Actor):
    """Passes the ball to the other node until it has been passed often enough."""

    def __init__(self, other: bytes) -> None:
        self.other = other
        self.messages: list[fw.Message] = []

    @fw.handles(Ball)
    async def take(self, ball: Ball, ctx: fw.Context):
        self.messages.append(ctx.message)
        if not ball.left:
            await ctx.reply(Out())
            return
        await ctx.forward(Ball(ball.left - 1), to_node=self.other)


def stranger(**fields):
    """A question that has passed 300 routers."""
    return encode(Message(b"seam.question", 1, body_frames=(b"\x81\xa6number\x00",), routing=LONG, **fields))


@pytest.mark.parametrize("count", [0, 1, 254, 255])
def test_up_to_255_entries_are_kept_as_they_are(count):
    assert kept_routers(LONG[:count]) == LONG[:count]


@pytest.mark.parametrize("count", [256, 300])
def test_of_more_the_first_and_the_newest_are_kept(count):
    kept = kept_routers(LONG[:count])
    assert len(kept) == MAX_ROUTERS
    assert kept == (LONG[0], *LONG[count - 254 : count])


def test_a_flow_that_goes_on_keeps_the_entry_of_its_first_router_and_the_rest_is_counted(caplog):
    passes = 300

    async def scenario():
        async with Cluster(3) as cluster:
            asker, *players = cluster
            hosted = [Player(players[1].identity), Player(players[0].identity)]
            for node, player in zip(players, hosted, strict=True):
                await node.host(player)
            await cluster.settled()
            await asker.hub.ask(Ball(passes), Out, timeout=60)
            last = max((player.messages[-1] for player in hosted), key=lambda message: len(message.routing))
            assert len(last.routing) == MAX_ROUTERS + 1
            assert last.routing[0].identity == asker.identity, "the first router"
            assert {router.identity for router in last.routing[1:]} == {node.identity for node in players}
            dropped = [node.stats().totals["entries_dropped"] for node in cluster]
            assert dropped[0] == 0
            assert sum(dropped) == passes + 1 - MAX_ROUTERS

    with caplog.at_level(logging.WARNING, "framewire.node"):
        run(scenario(), timeout=90)
    lines = [record.getMessage() for record in caplog.records if "routing entries" in record.getMessage()]
    assert 1 <= len(lines) <= 2, "once a minute for each node"
    assert "entries.ball v1 of flow" in lines[0]
    assert "passed more than 255 routers: 1 of its 256 routing entries are dropped" in lines[0]


def test_what_is_passed_on_untouched_has_no_more_entries_either_and_keeps_the_first():
    async def scenario():
        async with Cluster(3) as cluster:
            [answerer] = await answerers(cluster, 2)
            stale = [(Route(b"\x01" + bytes(16)), (MessageId(b"seam.question"),))]
            cluster[0].port.peer_lost(b"node-2")
            cluster[0].port.peer_registered(b"node-1", stale)
            cluster[1].port.receive(b"node-0", stranger(hops=3, ttl_ticks=10**9))
            await eventually(lambda: answerer.messages)
            [message] = answerer.messages
            own = cluster[1].identity
            assert [router.identity for router in message.routing[:-1]] == [
                router.identity for router in kept_routers(LONG)
            ]
            assert (message.routing[-1].identity, message.hops) == (own, 4)
            assert 0 < message.ttl_ticks <= 10**9
            assert cluster[1].stats().totals["entries_dropped"] == 45

    run(scenario())


def test_each_message_of_a_kind_is_counted():
    async def scenario():
        async with Cluster(3) as cluster:
            await answerers(cluster, 1)
            hub = cluster[0].hub
            for count in range(1, 4):
                asked = encode(
                    Message(
                        b"seam.question",
                        1,
                        body_frames=(b"\x81\xa6number\x00",),
                        routing=LONG,
                        hops=3,
                        callback_receiver_identity=hub.identity,
                        callback_receiver_node_identity=cluster[0].identity,
                        callback_key=count,
                        callback_points=(MessageId(b"seam.answer"),),
                    )
                )
                cluster[1].port.receive(b"node-2", asked)
                await eventually(lambda count=count: cluster[1].stats().totals["entries_dropped"] == 45 * count)

    run(scenario())


def test_a_traced_message_tells_that_its_entries_were_dropped():
    async def scenario():
        async with Cluster(3) as cluster:
            [answerer] = await answerers(cluster, 2)
            steps = []
            cluster[1].on_trace(steps.append)
            cluster[1].port.receive(b"node-0", stranger(hops=3, trace_options=1))
            await eventually(lambda: answerer.messages)
            told = [step.detail for step in steps if step.step == "shortened"]
            assert told == ["45 of its 300 routing entries are dropped, from the second on"]

    run(scenario())


def test_nothing_is_dropped_of_usual_messages():
    async def scenario():
        async with Cluster(2) as cluster:
            await answerers(cluster, 1)
            await cluster[0].hub.ask(Question(), Answer)
            assert [node.stats().totals["entries_dropped"] for node in cluster] == [0, 0]

    run(scenario())
