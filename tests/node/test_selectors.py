"""Where a message goes for every combination of its selectors, as the table in docs/wire.md says.

The table is read from the page. Each combination of distribution, receiver identity, receiver node and origin must
be in exactly one row. Both ``routes_for`` and a running node, with all of its shortcuts, must do what it says.
"""

import asyncio
import itertools
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.node.messages import Answer, Job, Question
from tests.node.running import eventually, run
from tests.node.transports import Recording

import framewire as fw
from framewire.node.parcel import Callback, Parcel
from framewire.routing import Route, RoutingTable, routes_for
from framewire.wire import Distribution, Message, MessageId, RouterAddress, encode

PAGE = Path(__file__).parents[2] / "docs" / "wire.md"
HERE, OTHER, THIRD, UNKNOWN = b"this-node", b"other-node", b"third-node", b"unknown-node"
QUESTION = MessageId(b"test.question")
POINTS = (MessageId(b"test.answer"),)
FAR_ACTOR, FARTHER_ACTOR, FAR_HUB = Route(b"\x01far", OTHER), Route(b"\x01farther", THIRD), Route(b"\x00far", OTHER)
NODES = {"none": b"", "this node": HERE, "another that is known": OTHER, "another that is not known": UNKNOWN}
RECEIVERS = ("none", "hub here", "hub there", "actor here", "actor there", "idle actor", "nobody")
COMBINATIONS = list(itertools.product(Distribution, RECEIVERS, NODES, ("sent here", "from another node")))


def rows():
    page = PAGE.read_text()
    [section] = re.findall(r"^### What the selectors select\n(.*?)^\*\*", page, re.DOTALL | re.MULTILINE)
    lines = [line for line in section.splitlines() if line.startswith("|")]
    header, _, *cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(header, row, strict=True)) for row in cells]


def row_of(distribution, receiver, node):
    told = {
        "distribution": distribution.name.lower(),
        "receiver identity": "none" if receiver == "none" else "set",
        "receiver node": node,
    }
    [row] = [row for row in rows() if all(row[column] in (value, "any") for column, value in told.items())]
    return row


class World:
    """What one node knows: its own receivers, and those of two others."""

    def __init__(self, hub, handlers, bystander):
        self.handlers = handlers
        """The actors of this node that handle the message."""
        self.receivers = {
            "none": b"",
            "hub here": hub.receiver,
            "hub there": FAR_HUB.receiver,
            "actor here": handlers[0].receiver if handlers else b"\x01gone",
            "actor there": FAR_ACTOR.receiver,
            "idle actor": bystander.receiver,
            "nobody": b"\x01nobody",
        }
        self.routes = {"hub here": hub, "hub there": FAR_HUB, "actor there": FAR_ACTOR}
        if handlers:
            self.routes["actor here"] = handlers[0]

    def choices(self, outcome, receiver, node, distribution):
        """The sets of routes that a cell of the table allows, of which a message takes one."""
        everyone = [*self.handlers, FAR_ACTOR, FARTHER_ACTOR]
        addressed = self.routes.get(receiver)
        unicast = distribution == Distribution.UNICAST
        there = Route(self.receivers[receiver] if unicast else b"", NODES[node])
        return {
            "the next of all handlers": [{route} for route in everyone],
            "the next handler of this node": [{route} for route in self.handlers],
            "the next handler of this node, else the next of all handlers": [
                {route} for route in self.handlers or everyone
            ],
            "that receiver, wherever it is": [{addressed}] if addressed else [],
            "that receiver, if it is on this node": [{addressed}] if addressed and not addressed.node else [],
            "that node": [{there}],
            "all handlers of this node": [set(self.handlers)] if self.handlers else [],
            "all handlers of this node, and each other node that has one": [
                {*self.handlers, Route(b"", OTHER), Route(b"", THIRD)}
            ],
            "no route": [],
        }[outcome] or [set()]


def test_the_table_has_every_combination_once_and_no_row_is_idle():
    used = [row_of(distribution, receiver, node) for distribution, receiver, node, _ in COMBINATIONS]
    assert all(row in used for row in rows())


@pytest.mark.parametrize("local", [2, 0], ids=["handlers here", "handlers elsewhere only"])
@pytest.mark.parametrize("origin", ["sent here", "from another node"])
def test_the_decision_is_what_the_page_says(local, origin):
    hub, bystander = Route(b"\x00hub"), Route(b"\x01bystander")
    handlers = [Route(b"\x01%d" % number) for number in range(local)]
    for distribution, receiver, node in itertools.product(Distribution, RECEIVERS, NODES):
        table = RoutingTable()
        table.add_receiver(hub)
        table.add_receiver(FAR_HUB)
        table.add(MessageId(b"test.job"), bystander)
        for route in (*handlers, FAR_ACTOR, FARTHER_ACTOR):
            table.add(QUESTION, route)
        world = World(hub, handlers, bystander)
        choices = world.choices(row_of(distribution, receiver, node)[origin], receiver, node, distribution)
        # As often as it takes for all of them to have had their turn.
        taken = [
            routes_for(
                table,
                HERE,
                QUESTION,
                distribution,
                world.receivers[receiver],
                NODES[node],
                from_network=origin == "from another node",
            )
            for _ in choices
        ]
        told = (distribution.name, receiver, node)
        assert all(len(set(routes)) == len(routes) for routes in taken), told
        assert [set(routes) for routes in taken] in (choices, choices[::-1]), told


class Handler(fw.Actor):
    def __init__(self, name, seen):
        self.name = name
        self.seen = seen

    @fw.handles(Question)
    async def take(self, _):
        self.seen.append(self.name)


class Bystander(fw.Actor):
    @fw.handles(Job)
    async def take(self, _):
        raise AssertionError("nothing is sent that it handles")


class Away(Recording):
    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def send(self, peer, _):
        self.seen.append(peer)


class Running:
    """A running node, and where its messages have gone."""

    def __init__(self, node, seen, world):
        self.node, self.seen, self.world = node, seen, world
        node.dead_letters.listen(self._died)

    def _died(self, letter):
        # A hub of this node that has asked nothing says so of whatever it gets.
        reasons = {"unknown_reply": "hub here", "no_route": "no route"}
        self.seen.append(reasons[letter.reason])

    def names(self, routes):
        hub = self.world.routes["hub here"]
        named = {route: f"actor {number}" for number, route in enumerate(self.world.handlers)} | {hub: "hub here"}
        return Counter(named.get(route, route.node) for route in routes) or Counter(["no route"])

    async def check(self, told, choices, times, send):
        """Send a message, and see that it takes one of the ways that it may take, as often as it was sent."""
        self.seen.clear()
        send()
        allowed = [self.names(routes) for routes in choices]
        size = allowed[0].total() * times
        await eventually(lambda: len(self.seen) >= size)
        await asyncio.sleep(0)
        assert len(self.seen) == size, (told, self.seen)
        if len(allowed) == 1:
            assert Counter(self.seen) == Counter(dict.fromkeys(allowed[0], times)), told
        else:
            assert all(any(name in each for each in allowed) for name in self.seen), (told, self.seen)


async def running(local, main):
    seen = []
    node = fw.Node(identity=HERE, transport=Away(seen), route_grace=0, signals=False)
    async with node:
        handlers = [await node.host(Handler(f"actor {number}", seen)) for number in range(local)]
        bystander = await node.host(Bystander())
        node.port.peer_registered(OTHER, [(Route(FAR_ACTOR.receiver), (QUESTION,)), (Route(FAR_HUB.receiver), ())])
        node.port.peer_registered(THIRD, [(Route(FARTHER_ACTOR.receiver), (QUESTION,))])
        world = World(Route(node.hub.identity), handlers, bystander)
        await main(Running(node, seen, world))


@pytest.mark.parametrize("local", [2, 0], ids=["handlers here", "handlers elsewhere only"])
@pytest.mark.parametrize("asked", [False, True], ids=["told", "with a callback"])
@pytest.mark.parametrize("traced", [0, 1], ids=["", "traced"])
def test_a_running_node_sends_messages_where_the_page_says(local, asked, traced):
    async def main(world):
        node, receivers = world.node, world.world.receivers
        for distribution, receiver, name, origin in COMBINATIONS:
            told = (distribution.name, receiver, name, origin)
            outcome = row_of(distribution, receiver, name)[origin]
            choices = world.world.choices(outcome, receiver, name, distribution)
            selectors = {"receiver": receivers[receiver], "receiver_node": NODES[name]}
            if origin == "sent here":

                def send(selectors=selectors, distribution=distribution):
                    callback = Callback(b"\x00asker", OTHER, 7, POINTS) if asked else None
                    made = Parcel(QUESTION, Question(), correlation_id=b"flow", callback=callback, **selectors)
                    made.distribution, made.trace_options = distribution, traced
                    node._router.send(made)

                await world.check(told, choices, 1, send)
                continue
            message = Message(
                b"test.question",
                body_frames=(b"\x80",),
                correlation_id=b"flow",
                distribution=distribution,
                trace_options=traced,
                receiver_identity=receivers[receiver],
                receiver_node_identity=NODES[name],
                callback_receiver_identity=b"\x00asker" if asked else b"",
                callback_receiver_node_identity=OTHER if asked else b"",
                callback_key=7 if asked else 0,
                callback_points=POINTS if asked else (),
                routing=(RouterAddress("memory://sender", b"sender"),),
                hops=1,
            )
            frames = encode(message)
            # The first is read whole, those after it are known by their likeness, alone and in a run.
            for _ in range(2):
                await world.check(told, choices, 1, lambda frames=frames: node.port.receive(b"sender", [*frames]))
            run_of = [[*frames] for _ in range(3)]
            await world.check(told, choices, 3, lambda run_of=run_of: node.port.receive_alike(b"sender", run_of))

    run(running(local, main))


@pytest.mark.parametrize("local", [2, 0], ids=["handlers here", "handlers elsewhere only"])
def test_what_a_hub_sends_goes_where_the_page_says(local):
    async def main(world):
        hub, receivers = world.node.hub, world.world.receivers
        for distribution, receiver, name in itertools.product(Distribution, RECEIVERS, NODES):
            broadcast = distribution == Distribution.BROADCAST
            if broadcast and receiver != "none":
                continue  # no hub can be told to
            to_node = NODES[name] or None
            outcome = row_of(distribution, receiver, name)["sent here"]
            choices = world.world.choices(outcome, receiver, name, distribution)
            if broadcast:
                sending = [hub.broadcast(Question(), to_node=to_node) for _ in range(2)]
            else:
                to_actor = receivers[receiver] or None
                sending = [hub.tell(Question(), to_node=to_node, to_actor=to_actor) for _ in range(2)]
            for each in sending:
                task = asyncio.ensure_future(each)
                await world.check((distribution.name, receiver, name), choices, 1, lambda: None)
                await task

    run(running(local, main))


def test_a_gathering_of_one_node_collects_the_answers_of_all_of_its_handlers():
    class Answers(fw.Actor):
        @fw.handles(Question)
        async def take(self, _):
            return Answer("here")

    async def main():
        async with fw.Node(identity=HERE, signals=False) as node:
            for _ in range(3):
                await node.host(Answers())
            found = await node.hub.gather(Question(), Answer, to_node=HERE, stop_after=3)
            assert [answer.text for answer in found] == ["here"] * 3
            with pytest.raises(fw.NoRoute, match="to every handler of node unknown-node"):
                await node.hub.gather(Question(), Answer, to_node=UNKNOWN)

    run(main())


def test_a_broadcast_that_nobody_handles_does_not_disown_the_receiver_that_it_ignores():
    class Withdrawing(Recording):
        def withdraw(self, registrations, _=None):
            self.diary += registrations

    async def main():
        transport = Withdrawing()
        async with fw.Node(identity=HERE, transport=transport, signals=False) as node:
            message = Message(
                b"test.question",
                body_frames=(b"\x80",),
                distribution=Distribution.BROADCAST,
                receiver_identity=node.hub.identity,
                receiver_node_identity=HERE,
                hops=1,
            )
            node.port.receive(b"sender", encode(message))
            assert transport.diary[-1] == (Route(b""), (QUESTION,))

    run(main())


def test_a_node_is_named_by_bytes():
    class Broadcasts(fw.Actor):
        @fw.handles(Job)
        async def take(self, _, ctx):
            await ctx.broadcast(Question(), to_node="text")

    async def main():
        async with fw.Node(identity=HERE, signals=False) as node:
            with pytest.raises(fw.UsageError, match="to_node: 'text' is not bytes"):
                await node.hub.broadcast(Question(), to_node="text")
            await node.host(Broadcasts())
            with pytest.raises(fw.RemoteError, match="to_node: 'text' is not bytes"):
                await node.hub.ask(Job(), Answer)

    run(main())
