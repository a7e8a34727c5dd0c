import pytest

from framewire.routing import Route, RoutingTable, routes_for
from framewire.wire import Distribution, MessageId

PLACE = MessageId(b"orders.place")
HERE = b"node-1"
THERE = b"node-2"
ACTOR, SECOND = Route(b"\x01a"), Route(b"\x01b")
FAR, FARTHER = Route(b"\x01f", THERE), Route(b"\x01g", THERE)
HUB, FAR_HUB = Route(b"\x00h"), Route(b"\x00f", THERE)


def decide(*routes, receivers=(), nodes=(), message=PLACE, broadcast=False, receiver=b"", node=b"", network=False):
    table = RoutingTable()
    for route in routes:
        table.add(PLACE, route)
    for route in receivers:
        table.add_receiver(route)
    for known in nodes:
        table.add_node(known)
    pattern = Distribution.BROADCAST if broadcast else Distribution.UNICAST
    return routes_for(table, HERE, message, pattern, receiver, node, from_network=network)


def test_a_unicast_takes_one_route():
    assert decide(ACTOR, SECOND, FAR) == (ACTOR,)


def test_a_message_that_nobody_handles_has_no_route():
    assert decide() == ()


def test_a_message_goes_to_another_node_where_none_here_handles_it():
    assert decide(FAR) == (FAR,)


def test_a_message_from_another_node_is_handled_here_if_it_can_be():
    assert decide(FAR, ACTOR, network=True) == (ACTOR,)


def test_a_message_from_another_node_travels_on_if_nobody_here_handles_it():
    assert decide(FAR, network=True) == (FAR,)


def test_a_broadcast_reaches_all_here_and_each_other_node_once():
    assert decide(ACTOR, FAR, SECOND, FARTHER, broadcast=True) == (ACTOR, SECOND, Route(b"", THERE))


def test_a_broadcast_from_another_node_stays_here():
    assert decide(ACTOR, FAR, SECOND, broadcast=True, network=True) == (ACTOR, SECOND)


def test_a_broadcast_ignores_a_receiver():
    assert decide(ACTOR, SECOND, broadcast=True, receiver=ACTOR.receiver) == (ACTOR, SECOND)


def test_a_receiver_gets_what_is_addressed_to_it():
    assert decide(ACTOR, SECOND, receiver=SECOND.receiver) == (SECOND,)


def test_a_receiver_on_another_node_is_found_by_its_identity():
    assert decide(ACTOR, FAR, receiver=FAR.receiver) == (FAR,)


def test_an_actor_does_not_get_what_it_does_not_handle():
    assert decide(ACTOR, message=MessageId(b"orders.cancel"), receiver=ACTOR.receiver) == ()


@pytest.mark.parametrize("hub", [HUB, FAR_HUB], ids=["here", "there"])
def test_a_hub_gets_whatever_is_addressed_to_it(hub):
    assert decide(receivers=[hub], receiver=hub.receiver) == (hub,)


def test_an_unknown_receiver_has_no_route():
    assert decide(ACTOR, receiver=b"\x01nobody") == ()


def test_a_message_for_this_node_stays_here():
    assert decide(FAR, ACTOR, node=HERE) == (ACTOR,)
    assert decide(FAR, node=HERE) == ()


def test_a_message_for_another_node_goes_there_whatever_it_handles():
    assert decide(ACTOR, nodes=[THERE], node=THERE) == (Route(b"", THERE),)


def test_a_message_for_a_receiver_on_another_node_keeps_its_receiver():
    assert decide(ACTOR, nodes=[THERE], node=THERE, receiver=b"\x01x") == (Route(b"\x01x", THERE),)


def test_a_message_for_an_unknown_node_has_no_route():
    assert decide(ACTOR, node=b"nobody") == ()


def test_a_receiver_that_is_elsewhere_is_not_looked_for_when_this_node_is_named():
    assert decide(FAR, receiver=FAR.receiver, node=HERE) == ()
    assert decide(ACTOR, receiver=ACTOR.receiver, node=HERE) == (ACTOR,)
