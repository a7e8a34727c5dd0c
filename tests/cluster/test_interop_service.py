"""The service messages of kino's protocol, in both directions, with a peer that shares no code with framewire."""

from tests.cluster.clustering import acquainted, peers
from tests.cluster.interop import DOT_NET, Echo, Host, OurEcho, OurReply, Reply, answer, node_at, recorded, together
from tests.cluster.kino_peer import KinoRendezvous, living
from tests.cluster.kino_wire import Letter, chunk, contract, fields
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster.route_requests import (
    ExternalRoutes,
    Handled,
    Hub,
    InternalRoutes,
    Kind,
    MessageRoutes,
    NodeActors,
    RequestExternalRoutes,
    RequestInternalRoutes,
    RequestMessageRoutes,
)


def believe(kino, node, receiver, *messages):
    """Let kino believe that a node has a receiver which it has not."""
    kino.table.register(node.identity, kino.table.nodes[node.identity], [(receiver, messages)])


def test_kino_hears_of_actors_that_come_and_go_and_of_a_node_that_leaves():
    async def main(node, _, kino):
        route = await node.host(Host())
        await eventually(lambda: any(name == b"KINO.REGEXTROUTE" for name, _ in kino.heard))
        await node.unhost(route)
        await eventually(lambda: any(name == b"KINO.UNREGMSGROUTE" for name, _ in kino.heard))
        assert kino.table.nodes[node.identity].hubs == {node.hub.identity}
        await node.stop()
        await eventually(lambda: node.identity not in kino.table.nodes)

    together(main)


def test_framewire_forgets_a_kino_node_that_leaves():
    async def main(node, _, kino):
        kino.leave()
        await eventually(lambda: kino.identity not in peers(node))
        assert not list(node._router.table.all(fw.MessageId(b"kino.echo")))

    together(main)


def test_a_route_that_framewire_lacks_is_found_by_asking_kino():
    async def main(node, _, kino):
        node._router.table.remove_node(kino.identity)
        assert await node.hub.ask(Echo(b"abc"), Reply) == b"cba"

    together(main)


def test_framewire_nodes_meet_at_a_kino_rendezvous():
    async def main():
        server = KinoRendezvous()
        async with living(server), node_at(server) as one, node_at(server) as two:
            await acquainted(one, two)
            await two.host(Host())
            assert await one.hub.ask(OurEcho(b"abc"), OurReply) == b"cba"

    run(main())


def test_what_kino_sends_in_vain_is_unregistered_and_kino_hears_it():
    async def main(node, _, kino):
        believe(kino, node, b"\x01ghost", b"no.such")
        kino.post(node.identity, Letter(b"no.such"))
        await eventually(lambda: b"no.such" not in kino.table.handled_by(node.identity))
        [said] = [said for name, said in kino.heard if name == b"KINO.UNREGMSGROUTE"]
        assert dict(said)[2] == node.identity
        assert fields(dict(said)[3])[0] == (1, b""), "no actor in particular"
        assert b"fw.echo" in kino.table.handled_by(node.identity)

    together(main)


def test_a_hub_that_kino_addresses_in_vain_is_unregistered():
    async def main(node, _, kino):
        believe(kino, node, b"\x00gone")
        kino.post(node.identity, Letter(b"some.reply", receiver=b"\x00gone", receiver_node=node.identity))
        await eventually(lambda: b"\x00gone" not in kino.table.nodes[node.identity].hubs)
        assert node.hub.identity in kino.table.nodes[node.identity].hubs

    together(main)


def test_what_framewire_sends_to_kino_in_vain_is_unregistered_and_framewire_hears_it():
    async def main(node, _, kino):
        del kino.handlers[b"kino.echo"]
        await node.hub.tell(Echo(b"in vain"))
        await eventually(lambda: not list(node._router.table.all(fw.MessageId(b"kino.echo"))))
        assert list(node._router.table.all(fw.MessageId(b"both.news")))
        assert kino.identity in peers(node)

    together(main)


def test_the_unregistration_that_a_live_dot_net_node_wrote_removes_what_it_names():
    [frames] = recorded("rendezvous PUB", "KINO.UNREGMSGROUTE")
    [(_, route)] = [field for field in fields(Letter.read(frames).body) if field[0] == 3]
    wanted = dict(fields(dict(fields(route))[2]))[2]

    async def main(node, *_):
        there = fw.Route(b"\x01there")
        node.port.peer_registered(DOT_NET, [(there, (fw.MessageId(wanted), fw.MessageId(b"NET.ECHO")))])
        node._transport._hear(frames)
        assert not list(node._router.table.all(fw.MessageId(wanted)))
        assert list(node._router.table.all(fw.MessageId(b"NET.ECHO")))

    together(main)


def test_framewire_asks_kino_what_it_knows_of_routes():
    async def main(node, _, kino):
        there = {"to_node": kino.identity}
        found = await node.hub.ask(RequestMessageRoutes(fw.MessageId(b"kino.echo")), MessageRoutes, **there)
        assert found == MessageRoutes(fw.MessageId(b"kino.echo"), (), NodeActors(kino.identity, (kino.actor,)))
        only = RequestMessageRoutes(fw.MessageId(b"fw.echo"), Kind.EXTERNAL)
        found = await node.hub.ask(only, MessageRoutes, **there)
        assert [known.node for known in found.external] == [node.identity]
        assert found.internal is None
        [known] = (await node.hub.ask(RequestExternalRoutes(), ExternalRoutes, **there)).nodes
        assert (known.node, known.uri, known.hubs) == (node.identity, node.uri, (node.hub.identity,))
        assert b"fw.echo" in {handled.message.identity for handled in known.messages}
        inside = await node.hub.ask(RequestInternalRoutes(), InternalRoutes, **there)
        assert inside.hubs == (Hub(kino.hub),)
        assert Handled(fw.MessageId(b"kino.echo"), (kino.actor,)) in inside.messages

    together(main)


def test_kino_asks_framewire_what_it_knows_of_routes():
    async def main(node, _, kino):
        async def asked(name, body=b""):
            key = kino.ask(node.identity, b"KINO.REQ" + name, body, b"KINO." + name, receiver_node=node.identity)
            reply = await answer(kino, key)
            assert reply.identity == b"KINO." + name
            return fields(reply.body)

        await node.host(Host(), local=True)
        said = dict(await asked(b"MSGROUTES", chunk(1, contract(b"kino.echo"))))
        assert dict(fields(said[2])) == {1: kino.identity, 2: kino.actor}
        assert 3 not in said
        said = dict(await asked(b"MSGROUTES", chunk(1, contract(b"fw.echo")) + b"\x10\x01"))
        assert [tag for tag, _ in fields(said[3])] == [1, 2, 2], "this node and two actors, one of them local"
        [(_, known)] = await asked(b"EXTROUTES")
        first = dict(reversed(fields(known)))
        assert (first[1], first[2].decode(), first[3]) == (kino.identity, kino.uri, kino.hub)
        handled = {dict(fields(dict(reversed(fields(one)))[1]))[2] for tag, one in fields(known) if tag == 4}
        assert handled == set(kino.handlers)
        said = await asked(b"INTROUTES")
        assert [fields(hub) for tag, hub in said if tag == 1] == [[(1, node.hub.identity)]]
        actors = {dict(fields(fields(one)[0][1]))[2]: len(fields(one)) - 1 for tag, one in said if tag == 2}
        assert actors[b"fw.echo"] == 2

    together(main)


def test_a_hub_of_kino_that_asks_its_own_node_about_routes_is_answered_by_that_node_alone():
    async def main(node, _, kino):
        for _ in range(3):
            reply = await answer(kino, kino.ask_any(b"KINO.REQINTROUTES", b"", b"KINO.INTROUTES"))
            assert chunk(1, chunk(1, kino.hub)) in reply.body
        assert not [message for message in kino.table.handled_by(node.identity) if message.startswith(b"KINO.")]

    together(main)


def test_a_leader_that_a_kino_server_names_is_used():
    async def main():
        follower, leader = KinoRendezvous(), KinoRendezvous()
        follower.leader = leader
        async with living(follower, leader), node_at(follower) as one, node_at(leader) as two:
            await acquainted(one, two)
            await two.host(Host())
            assert await one.hub.ask(OurEcho(b"abc"), OurReply) == b"cba"
            assert len(one._transport._ways.servers) == 2

    run(main())


def test_a_server_that_does_not_lead_any_more_is_kept_for_when_it_does():
    async def main():
        first, second = KinoRendezvous(), KinoRendezvous()
        first.leader = second
        async with living(first, second), node_at(first) as one, node_at(first) as two:
            await acquainted(one, two)
            first.leader, second.leader = None, first
            await two.host(Host())
            assert await one.hub.ask(OurEcho(b"abc"), OurReply) == b"cba"

    run(main())


def test_framewire_goes_where_a_kino_server_sends_it():
    async def main():
        old, new = KinoRendezvous(), KinoRendezvous()
        async with living(old, new), node_at(old) as one, node_at(new) as two:

            def moved():
                old.reconfigure(new)
                return one._transport._ways.servers == ((new.unicast, new.broadcast),)

            await eventually(moved)
            await acquainted(one, two)

    run(main())


def test_service_messages_that_concern_only_their_sender_do_no_harm():
    async def main(node, _, kino):
        await answer(kino, kino.ask(node.identity, b"fw.echo", b"abc", b"fw.reply"))  # for kino's first is alone
        kino.post(node.identity, Letter(b"KINO.UNREGUNREACHABLENODE", chunk(1, kino.identity)))
        kino.say(b"KINO.UNREGUNREACHABLENODE", chunk(1, kino.identity))
        kino.say(b"KINO.PONG", b"")
        kino.post(node.identity, Letter(b"KINO.PING"))
        reply = await answer(kino, kino.ask(node.identity, b"fw.echo", b"abc", b"fw.reply"))
        assert reply.body == b"cba"
        assert kino.identity in peers(node)
        assert not node.dead_letters.counts["no_route"]

    together(main)
