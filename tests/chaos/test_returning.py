"""Coming back: all that a node has is known again, however it is heard of first."""

from tests.chaos.liars import lying
from tests.cluster.clustering import Named, acquainted, between, handled_by, handlers, make_node, peers, served
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

from framewire.cluster import service
from framewire.cluster.returning import Returning


class Voice:
    """Notes whom a node asks, and over which way."""

    def __init__(self):
        self.asked = []

    def ask_node(self, peer):
        self.asked.append(("all", peer))

    def ask_straight(self, peer):
        self.asked.append(("straight", peer))


class World:
    """A voice, and ways that are found and dropped."""

    def __init__(self, patience=60.0):
        self.voice = Voice()
        self.asked = self.voice.asked
        self.ways = []
        self.returning = Returning(
            self.voice,
            patience,
            find=lambda peer, uri: self.ways.append(("find", peer, uri)),
            drop=lambda peer, _: self.ways.append(("drop", peer)),
        )


def test_a_node_that_was_missed_and_tells_of_a_part_of_what_it_has_is_asked_for_all():
    async def main():
        world = World()
        world.returning.told(b"new")
        assert world.asked == []
        world.returning.fell_silent(b"lost")
        world.returning.told(b"lost")
        world.returning.told(b"lost")
        assert world.asked == [("all", b"lost")]

    run(main())


def test_a_node_that_lives_while_the_way_to_it_is_broken_is_asked_over_that_way_until_it_tells():
    async def main():
        world = World(0.01)
        world.returning.was_cut_off(b"far", "tcp://far:1")
        await eventually(lambda: len(world.asked) >= 3)
        found, dropped = ("find", b"far", "tcp://far:1"), ("drop", b"far")
        assert world.ways[:5] == [found, dropped, found, dropped, found]
        assert set(world.asked) == {("straight", b"far")}
        world.returning.told(b"far")
        asked = len(world.asked)
        world.returning.was_cut_off(b"other", "tcp://other:1")
        await eventually(lambda: world.asked.count(("straight", b"other")) >= 3)
        assert world.asked.count(("straight", b"far")) == asked
        world.returning.close()

    run(main())


def test_a_node_that_is_cut_off_and_falls_silent_or_leaves_is_not_asked_any_more():
    async def main():
        world = World()
        for end in (world.returning.left, world.returning.fell_silent):
            world.returning.was_cut_off(b"far", "tcp://far:1")
            end(b"far")
            assert world.ways[-1] == ("drop", b"far")
            assert not world.returning._cut_off
        world.returning.was_cut_off(b"far", "tcp://far:1")
        assert world.asked == 2 * [("straight", b"far")], "that it is silent is known already"

    run(main())


def test_only_so_many_are_remembered(monkeypatch):
    monkeypatch.setattr("framewire.cluster.returning._MOST", 2)

    async def main():
        world = World()
        for number in range(5):
            world.returning.fell_silent(b"%d" % number)
        for number in range(5):
            world.returning.told(b"%d" % number)
        assert world.asked == [("all", b"3"), ("all", b"4")]

    run(main())


async def at_peace(*nodes):
    """Wait until nobody tells of itself any more, but for the next regular time."""
    await eventually(lambda: all(len(node._transport._discovery._timers) == 1 for node in nodes))


def test_a_node_to_which_the_way_was_broken_while_it_lived_is_known_again_when_the_way_is_right():
    async def main(one, two, actor, _):
        transport = one._transport
        await at_peace(one, two)
        assert (await one.hub.ask(Question("who"), Answer)).text == actor.name
        transport._cut_off(two.identity)  # what the links say when nothing passes for too long
        assert two.identity not in peers(one)
        await eventually(lambda: handlers(one) == 1)
        assert (await one.hub.ask(Question("who"), Answer)).text == actor.name

    between(main)


def test_a_node_that_was_missed_and_is_first_heard_of_by_its_hub_is_known_with_all_that_it_has():
    async def main(server):
        with lying() as other:
            async with make_node([server, other]) as one, make_node(server) as two:
                await two.host(Named("two"))
                await acquainted(one, two)
                await handled_by(1, one)
                await eventually(lambda: other.is_heard_by(1))
                await at_peace(one, two)
                health = one._transport._places[two.identity][1]
                announcer, asked = one._transport._announcer, []
                ask = announcer.ask_node
                announcer.ask_node = lambda peer: (asked.append(peer), ask(peer))
                one._transport._lost(two.identity)
                assert handlers(one) == 0
                other.say(
                    service.REGISTER_EXTERNAL_ROUTE,
                    uri=two.uri,
                    node_identity=two.identity,
                    routes=[service.body("RouteRegistration", receiver_identity=two.hub.identity)],
                    health=service.body("Health", uri=health, interval=service.time_span(0.2)),
                )
                await handled_by(1, one)
                assert asked == [two.identity]

    run(served(main))
