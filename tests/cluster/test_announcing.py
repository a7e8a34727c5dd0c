"""What a node tells the others of itself, over real sockets."""

import asyncio

import pytest
from tests.cluster.clustering import Named, acquainted, handled_by, handlers, make_node, peers, served
from tests.node.messages import Answer, Job, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster import service
from framewire.wire import Message, decode, encode

QUESTION, JOB = fw.MessageId(b"test.question"), fw.MessageId(b"test.job")
SALES = {"sales": ["test.*"]}


def between(main, **options):
    async def with_nodes(server):
        async with make_node(server, **options) as one, make_node(server, **options) as two:
            await acquainted(one, two)
            await main(one, two)

    run(served(with_nodes))


def overheard(node):
    """What a node says from now on: names and bodies."""
    said = []
    say = node._transport._announcer._say_to_all

    def note(frames):
        message = decode(frames)
        said.append((message.message_id, service.parse(message)))
        say(frames)

    node._transport._announcer._say_to_all = note
    return said


def believe(node, other, *messages, receiver=b"\x01ghost"):
    """Let a node believe that another has an actor which it has not."""
    node._router.peer_registered(other.identity, [(fw.Route(receiver), messages)])


def test_a_node_that_is_sent_what_it_does_not_handle_says_so_and_is_not_sent_it_again():
    async def main(one, two):
        believe(one, two, QUESTION, JOB)
        believe(one, two, QUESTION, receiver=b"\x01another ghost")
        assert handlers(one) == 2
        await one.hub.tell(Question())
        await handled_by(0, one)
        await one.host(Named("one"))
        assert {(await one.hub.ask(Question(), Answer)).text for _ in range(4)} == {"one"}
        assert len(list(one._router.table.all(JOB))) == 1, "that it does not handle this has not been seen"

    between(main, route_grace=0.1)


def test_an_actor_that_is_addressed_in_vain_is_forgotten_alone():
    async def main(one, two):
        real = await two.host(Named("two"))
        believe(one, two, QUESTION)
        await handled_by(2, one)
        ghost = fw.Route(b"\x01ghost", two.identity)
        with pytest.raises(fw.NoRoute):
            await one.hub.ask(Question(), Answer, to_actor=ghost)
        await handled_by(1, one)
        assert one._router.table.find(b"\x01ghost") is None
        assert one._router.table.find(real.receiver)

    between(main, route_grace=0.1)


def test_what_others_handle_is_not_taken_off_because_an_actor_is_addressed_in_vain():
    """Whoever knows a message could otherwise have kino forget its handlers, again and again."""

    async def main(one, two):
        await two.host(Named("two"))
        await handled_by(1, one)
        said = overheard(two)
        believe(one, two, QUESTION)
        with pytest.raises(fw.NoRoute):
            await one.hub.ask(Question(), Answer, to_actor=fw.Route(b"\x01ghost", two.identity))
        await eventually(lambda: one._router.table.find(b"\x01ghost") is None)
        assert service.UNREGISTER_MESSAGE_ROUTE not in [name for name, _ in said]

    between(main, route_grace=0.1)


def test_an_actor_that_is_addressed_in_vain_is_forgotten_where_others_sign_and_its_messages_are_of_no_domain():
    async def main(one, two):
        await two.host(Named("two"))
        await handled_by(1, one)
        believe(one, two, QUESTION)
        with pytest.raises(fw.NoRoute):
            await one.hub.ask(Question(), Answer, to_actor=fw.Route(b"\x01ghost", two.identity))
        await handled_by(1, one)
        assert one._router.table.find(b"\x01ghost") is None

    between(main, route_grace=0.1, keyring=fw.KeyRing([fw.DomainKey("sales", b"x" * 32)], {"sales": ["sales.*"]}))


def test_a_broadcast_that_nobody_here_handles_is_not_sent_here_again():
    async def main(one, two):
        believe(one, two, JOB)
        await one.hub.broadcast(Job())
        await eventually(lambda: not list(one._router.table.all(JOB)))

    between(main)


def test_a_message_for_another_node_that_is_not_known_says_nothing_about_the_actors_here():
    async def main(one, two):
        await two.host(Named("two"))
        await handled_by(1, one)
        said = overheard(two)
        lost = Message(b"test.question", receiver_node_identity=b"nobody", hops=1)
        one._transport.send(two.identity, encode(lost))
        await eventually(lambda: two.dead_letters.counts["no_route"])
        assert service.UNREGISTER_MESSAGE_ROUTE not in [name for name, _ in said]
        assert (await one.hub.ask(Question(), Answer)).text == "two"

    between(main, route_grace=0.1)


def test_what_comes_again_and_again_in_vain_is_not_answered_each_time():
    async def main(one, two):
        said = overheard(two)
        for _ in range(50):
            one._transport.send(two.identity, encode(Message(b"test.job", hops=1)))
        await eventually(lambda: two.dead_letters.counts["no_route"] == 50)
        names = [name for name, _ in said]
        assert names.count(service.UNREGISTER_MESSAGE_ROUTE) == 1
        assert names.count(service.DISCOVER_MESSAGE_ROUTE) == 1

    between(main, route_grace=0.1, heartbeat=30.0)


def test_what_was_withdrawn_and_registered_again_can_be_withdrawn_at_once():
    async def main(_, two):
        said = overheard(two)
        registration = (fw.Route(b"\x01actor"), (JOB,))
        for _ in range(3):
            two._transport.announce([registration])
            two._transport.withdraw([registration])
        names = [name for name, _ in said]
        assert names == [service.REGISTER_EXTERNAL_ROUTE, service.UNREGISTER_MESSAGE_ROUTE] * 3
        await asyncio.sleep(0)

    between(main, heartbeat=30.0)


def test_an_actor_without_handlers_is_not_told_of_because_kino_would_refuse_the_rest():
    class Idle(fw.Actor):
        pass

    async def main(one, two):
        said = overheard(two)
        idle = await two.host(Idle())
        route = await two.host(Named("two"))
        two._transport._announcer.introduce()
        await handled_by(1, one)
        told = [entry for name, body in said if name == service.REGISTER_EXTERNAL_ROUTE for entry in body.routes]
        assert route.receiver in {entry.receiver_identity for entry in told}
        assert idle.receiver not in {entry.receiver_identity for entry in told}
        assert all(entry.contracts for entry in told if entry.receiver_identity[0] == 1)

    between(main)


def test_a_hub_can_be_taken_back_in_a_domain_that_the_message_is_not_of():
    async def main(one, two):
        hub = await two.new_hub()
        await eventually(lambda: one._router.table.find(hub.identity))
        two._transport._announcer._unregister_in("sales", [(fw.Route(hub.identity), (fw.MessageId(b"other"),))])
        await eventually(lambda: one._router.table.find(hub.identity) is None)

    between(main, keyring=fw.KeyRing([fw.DomainKey("sales", b"x" * 32)], SALES))


def test_a_hub_is_told_of_and_taken_back_in_every_domain():
    async def main(one, two):
        hub = await two.new_hub()
        await eventually(lambda: one._router.table.find(hub.identity))
        said = overheard(two)
        two._transport.withdraw([(fw.Route(hub.identity), (QUESTION,))])
        await eventually(lambda: one._router.table.find(hub.identity) is None)
        assert [name for name, _ in said] == [service.UNREGISTER_MESSAGE_ROUTE] * 2
        assert two.identity in peers(one)

    between(main, keyring=fw.KeyRing([fw.DomainKey("sales", b"x" * 32)], SALES))


def test_whoever_introduces_itself_also_tells_what_it_has_no_longer():
    async def main(one, two):
        route = await two.host(Named("two"))
        await handled_by(1, one)
        await two.unhost(route)
        await handled_by(0, one)
        said = overheard(two)
        two._transport._announcer.introduce()
        names = [name for name, _ in said]
        assert names == [
            service.UNREGISTER_MESSAGE_ROUTE,
            service.REGISTER_EXTERNAL_ROUTE,
            service.REQUEST_CLUSTER_ROUTES,
        ]
        [entry] = said[0][1].routes
        assert (entry.receiver_identity, list(entry.actors)) == (b"", [route.receiver])

    between(main)


def test_an_actor_that_leaves_is_taken_off_without_its_identity_and_the_others_are_announced_again():
    async def main(one, two):
        stays = await two.host(Named("stays"))
        leaves = await two.host(Named("leaves"))
        await handled_by(2, one)
        said = overheard(two)
        await two.unhost(leaves)
        (first, taken_off), (second, registered) = said
        assert (first, second) == (service.UNREGISTER_MESSAGE_ROUTE, service.REGISTER_EXTERNAL_ROUTE)
        [entry] = taken_off.routes
        assert (entry.receiver_identity, list(entry.actors)) == (b"", [leaves.receiver])
        [entry] = registered.routes
        assert entry.receiver_identity == stays.receiver
        assert [service.message_id(contract) for contract in entry.contracts] == [QUESTION]
        await handled_by(1, one)
        assert one._router.table.find(stays.receiver)
        assert one._router.table.find(leaves.receiver) is None

    between(main)


def test_actors_that_leave_together_are_in_one_entry():
    async def main(one, two):
        routes = [await two.host(Named(name)) for name in "abc"]
        await handled_by(3, one)
        said = overheard(two)
        two._router.retire()
        [taken_off] = [body for name, body in said if name == service.UNREGISTER_MESSAGE_ROUTE]
        [entry] = [entry for entry in taken_off.routes if service.contract(QUESTION) in entry.contracts]
        assert list(entry.actors) == [route.receiver for route in routes]
        assert {entry.receiver_identity for entry in taken_off.routes} == {b""}
        assert service.REGISTER_EXTERNAL_ROUTE not in [name for name, _ in said]
        await handled_by(0, one)

    between(main)


def test_a_node_that_missed_that_an_actor_left_hears_it_with_those_that_still_handle_its_messages():
    """Without an unregistration: kino would forget those, too, until they are announced again."""

    async def main(one, two):
        stays, leaves = await two.host(Named("stays")), await two.host(Named("leaves"))
        await handled_by(2, one)
        await two.unhost(leaves)
        await handled_by(1, one)
        believe(one, two, QUESTION, receiver=leaves.receiver)
        assert handlers(one) == 2
        said = overheard(two)
        two._transport._announcer.introduce()
        await handled_by(1, one)
        assert one._router.table.find(stays.receiver)
        assert service.UNREGISTER_MESSAGE_ROUTE not in [name for name, _ in said]

    between(main)


def test_what_kino_takes_off_without_an_identity_is_taken_off_of_all_actors():
    async def main(one, two):
        for name in "ab":
            await two.host(Named(name))
        await handled_by(2, one)
        entry = service.body("RouteRegistration", receiver_identity=b"", contracts=[service.contract(QUESTION)])
        said = service.service_message(
            service.UNREGISTER_MESSAGE_ROUTE, uri=two.uri, node_identity=two.identity, routes=[entry]
        )
        one._transport._hear(encode(said))
        await handled_by(0, one)
        assert two.identity in peers(one)

    between(main)


def test_nobody_can_be_announced_by_the_field_that_names_actors_that_left():
    async def main(one, two):
        entry = service.body(
            "RouteRegistration",
            receiver_identity=b"",
            contracts=[service.contract(QUESTION)],
            actors=[b"\x01stolen"],
        )
        health = service.body("Health", uri=two.uri, interval=service.time_span(60))
        said = service.service_message(
            service.REGISTER_EXTERNAL_ROUTE, uri=two.uri, node_identity=b"new", routes=[entry], health=health
        )
        one._transport._hear(encode(said))
        await eventually(lambda: b"new" in peers(one))
        assert one._router.table.find(b"\x01stolen") is None

    between(main)


def test_the_last_thousand_that_are_gone_are_remembered():
    async def main(_, two):
        announcer = two._transport._announcer
        gone = [(fw.Route(b"\x01%d" % number), (JOB,)) for number in range(1500)]
        announcer.unregister(gone)
        assert list(announcer._withdrawn.items()) == gone[500:]
        await asyncio.sleep(0)

    between(main)


def test_many_peers_are_told_a_few_in_each_turn_in_order_and_all_at_once_of_the_end(monkeypatch):
    monkeypatch.setattr("framewire.cluster.announcing._STRAIGHT_AT_ONCE", 2)

    async def main(server):
        async with make_node(server) as node:
            announcer, told = node._transport._announcer, []
            announcer._send = lambda peer, frames: told.append((peer, frames[-6]))
            names = [b"peer %d" % number for number in range(5)]
            for name in names:
                announcer.include(name)
            announcer.ask_node(b"first")
            announcer.discover(QUESTION, b"")
            assert [peer for peer, _ in told] == [*names[:2], *names[:2]]
            announcer.forget(names[3])
            await eventually(lambda: len(told) == 8)
            asked = [service.REQUEST_NODE_ROUTES.identity, service.DISCOVER_MESSAGE_ROUTE.identity]
            for name in names:
                assert [message for peer, message in told if peer == name] == (asked if name != names[3] else [])
            told.clear()
            announcer.leave()
            assert [peer for peer, _ in told] == [name for name in names if name != names[3]]

    run(served(main))
