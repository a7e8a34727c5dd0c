"""What a node knows of routes, asked by message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.clustering import Named, acquainted, handled_by, make_node, served, uri_of
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster import route_requests as routes
from framewire.cluster import service
from framewire.node.payloads import type_of
from framewire.routing import Route
from framewire.wire import encode

QUESTION = fw.MessageId(b"test.question")


def between(main):
    """Run a test on two nodes that know each other, each with an actor, and the second with a local one, too."""

    async def with_nodes(server):
        async with make_node(server) as one, make_node(server) as two:
            here = await one.host(Named("one"))
            there = await two.host(Named("two"))
            hidden = await two.host(Named("hidden"), local=True)
            await acquainted(one, two)
            await handled_by(2, one)
            await handled_by(3, two)
            await main(one, two, here.receiver, there.receiver, hidden.receiver)

    run(served(with_nodes))


@pytest.mark.parametrize("kind", routes.Kind)
def test_a_node_tells_who_handles_a_message_here_and_elsewhere(kind):
    async def main(one, two, here, there, hidden):
        asked = routes.RequestMessageRoutes(QUESTION, kind)
        found = await one.hub.ask(asked, routes.MessageRoutes, to_node=two.identity)
        external, internal = kind != routes.Kind.INTERNAL, kind != routes.Kind.EXTERNAL
        assert found.message == QUESTION
        assert found.external == ((routes.NodeActors(one.identity, (here,)),) if external else ())
        assert found.internal == (routes.NodeActors(two.identity, (there, hidden)) if internal else None)

    between(main)


def test_a_message_that_nobody_handles_has_no_routes():
    async def main(one, two, *_):
        asked = routes.RequestMessageRoutes(fw.MessageId(b"no.such", 7, b"eu"))
        found = await one.hub.ask(asked, routes.MessageRoutes, to_node=two.identity)
        assert found == routes.MessageRoutes(fw.MessageId(b"no.such", 7, b"eu"))

    between(main)


def test_a_node_tells_which_others_it_knows_and_what_they_have():
    async def main(one, two, _, there, __):
        found = await one.hub.ask(routes.RequestExternalRoutes(), routes.ExternalRoutes, to_node=one.identity)
        [known] = found.nodes
        assert (known.node, known.uri, known.hubs) == (two.identity, uri_of(two), (two.hub.identity,))
        assert routes.Handled(QUESTION, (there,)) in known.messages

    between(main)


def test_only_so_many_routes_are_told(monkeypatch):
    monkeypatch.setattr(routes, "_MAX_TOLD", 3000)
    monkeypatch.setattr(routes, "_SLICE", 100)

    async def main(one, two, *_):
        told = fw.MessageId(b"made.up")
        for number in range(5000):
            two._router.table.add(fw.MessageId(b"made.up.%d" % number), Route(b"\1x", b"made up"))
            two._router.table.add(told, Route(b"\1%d" % number, b"made up"))
        asked = routes.RequestExternalRoutes()
        found = (await one.hub.ask(asked, routes.ExternalRoutes, to_node=two.identity)).nodes
        assert [known.node for known in found] == [one.identity, b"made up"]
        assert 1000 < sum(len(handled.actors) for known in found for handled in known.messages) <= 3000
        asked = routes.RequestMessageRoutes(told)
        (found,) = (await one.hub.ask(asked, routes.MessageRoutes, to_node=two.identity)).external
        assert len(found.actors) == 3000

    between(main)


def test_a_node_tells_what_it_has_itself_local_or_not():
    async def main(one, two, _, there, hidden):
        secret = await two.new_hub(local=True)
        found = await one.hub.ask(routes.RequestInternalRoutes(), routes.InternalRoutes, to_node=two.identity)
        assert set(found.hubs) == {routes.Hub(two.hub.identity), routes.Hub(secret.identity, local=True)}
        assert routes.Handled(QUESTION, (there, hidden)) in found.messages

    between(main)


def test_a_question_that_names_no_node_is_answered_by_the_node_that_asks_and_by_no_other():
    async def main(one, two, *_):
        for asker in (one, two):
            asked = routes.RequestMessageRoutes(QUESTION, routes.Kind.INTERNAL)
            for _ in range(4):
                found = await asker.hub.ask(asked, routes.MessageRoutes)
                assert found.internal.node == asker.identity
            found = await asker.hub.gather(routes.RequestExternalRoutes(), routes.ExternalRoutes, timeout=0.5)
            assert len(found) == 1

    between(main)


ASKED = (routes.RequestMessageRoutes, routes.RequestExternalRoutes, routes.RequestInternalRoutes)


def test_nobody_is_told_that_a_node_answers_them_and_who_tells_so_is_not_believed():
    async def main(one, two, *_):
        asked = [type_of(each).message_id for each in ASKED]
        assert not [route for route, handled in two.port.registrations if set(handled) & set(asked)]
        contracts = [service.contract(message) for message in (*asked, fw.MessageId(b"test.other"))]
        entry = service.body("RouteRegistration", receiver_identity=b"\x01old", contracts=contracts)
        health = service.body("Health", uri="", interval=service.time_span(60))
        said = service.service_message(
            service.REGISTER_EXTERNAL_ROUTE, uri=uri_of(two), node_identity=b"older", routes=[entry], health=health
        )
        one._transport._hear(encode(said))
        await eventually(lambda: list(one._router.table.all(fw.MessageId(b"test.other"))))
        for message in asked:
            assert [route.node for route in one._router.table.all(message)] == [b""]

    between(main)


def test_a_question_of_another_node_that_is_for_no_node_in_particular_is_not_answered():
    async def main(one, two, *_):
        table = one._router.table
        message = type_of(routes.RequestInternalRoutes).message_id
        [here] = table.all(message)
        table.remove(message, here)
        table.add(message, fw.Route(b"\x01stale", two.identity))
        with pytest.raises(fw.RemoteError, match=r"KINO.REQINTROUTES v1 is asked of one node"):
            await one.hub.ask(routes.RequestInternalRoutes(), routes.InternalRoutes)

    between(main)


def test_a_kind_of_routes_that_there_is_not_is_a_bad_body():
    kind = type_of(routes.RequestMessageRoutes)
    with pytest.raises(fw.BadBody, match="7 is not a valid Kind"):
        kind.decode(b"\x0a\x00\x10\x07")


IDS = st.builds(fw.MessageId, st.binary(max_size=5), st.integers(0, 0xFFFF), st.binary(max_size=5))
ACTORS = st.lists(st.binary(max_size=5), max_size=3).map(tuple)
HANDLED = st.lists(st.builds(routes.Handled, IDS, ACTORS), max_size=3).map(tuple)
ON_NODES = st.builds(routes.NodeActors, st.binary(max_size=5), ACTORS)
KNOWN = st.builds(routes.NodeRoutes, st.binary(max_size=5), st.text(max_size=5), ACTORS, HANDLED)
ANY = st.one_of(
    st.builds(routes.RequestMessageRoutes, IDS, st.sampled_from(routes.Kind)),
    st.builds(routes.MessageRoutes, IDS, st.lists(ON_NODES, max_size=3).map(tuple), st.none() | ON_NODES),
    st.just(routes.RequestExternalRoutes()),
    st.builds(routes.ExternalRoutes, st.lists(KNOWN, max_size=3).map(tuple)),
    st.just(routes.RequestInternalRoutes()),
    st.builds(
        routes.InternalRoutes,
        st.lists(st.builds(routes.Hub, st.binary(max_size=5), st.booleans()), max_size=3).map(tuple),
        HANDLED,
    ),
)


@given(ANY)
def test_what_is_written_is_read(payload):
    kind = type_of(type(payload))
    assert kind.decode(kind.encode(payload)) == payload
