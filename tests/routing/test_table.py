from framewire.routing import Route, RoutingTable
from framewire.wire import MessageId

PLACE = MessageId(b"orders.place")
CANCEL = MessageId(b"orders.cancel")
A, B, C = (Route(b"\x01" + name) for name in (b"a", b"b", b"c"))
HUB = Route(b"\x00hub")
THERE = Route(b"\x01t", b"node-2")
THERE_TOO = Route(b"\x01u", b"node-2")


def table(*routes, message=PLACE):
    made = RoutingTable()
    for route in routes:
        made.add(message, route)
    return made


def turns(made, count, message=PLACE):
    return [made.next(message) for _ in range(count)]


def test_a_route_is_stored_once():
    made = table(A)
    assert made.add(PLACE, A) is False
    assert list(made.all(PLACE)) == [A]


def test_unicasts_go_round_all_routes_local_and_remote_alike():
    assert turns(table(A, THERE, B), 6) == [A, THERE, B, A, THERE, B]


def test_each_message_has_turns_of_its_own():
    made = table(A, B)
    made.add(CANCEL, A)
    made.add(CANCEL, B)
    assert turns(made, 1) == [A]
    assert turns(made, 2, CANCEL) == [A, B]
    assert turns(made, 1) == [B]


def test_a_newcomer_waits_until_all_others_have_had_their_turn():
    made = table(A, B)
    assert turns(made, 1) == [A]
    made.add(PLACE, C)
    assert turns(made, 4) == [B, A, C, B]


def test_removing_a_route_neither_skips_nor_repeats_another():
    made = table(A, B, C)
    assert turns(made, 2) == [A, B]
    made.remove(PLACE, A)
    assert turns(made, 3) == [C, B, C]


def test_a_removal_touches_only_that_route_and_message():
    made = table(A, B)
    made.add(CANCEL, A)
    assert made.remove(PLACE, A) is True
    assert list(made.all(PLACE)) == [B]
    assert list(made.all(CANCEL)) == [A]


def test_removing_what_is_not_there_is_told():
    assert table(A).remove(CANCEL, A) is False
    assert table(A).remove(PLACE, B) is False


def test_an_unknown_message_has_no_routes():
    made = table(A)
    assert made.next(CANCEL) is None
    assert made.next_here(CANCEL) is None
    assert list(made.all(CANCEL)) == []
    assert list(made.all_here(CANCEL)) == []


def test_routes_here_leave_other_nodes_out():
    made = table(A, THERE, B)
    assert list(made.all_here(PLACE)) == [A, B]
    assert [made.next_here(PLACE) for _ in range(3)] == [A, B, A]


def test_versions_and_partitions_are_messages_of_their_own():
    made = table(A)
    other = (MessageId(b"orders.place", 2), MessageId(b"orders.place", 1, b"eu"))
    assert [made.next(message) for message in other] == [None, None]
    assert made.alike(other[0]) == [PLACE]


def test_only_so_many_messages_that_are_alike_are_told():
    made = RoutingTable()
    for version in (2, 3, 4):
        made.add(MessageId(b"orders.place", version), A)
    assert made.alike(PLACE, 2) == [MessageId(b"orders.place", 2), MessageId(b"orders.place", 3)]


def test_a_hub_is_found_by_its_identity():
    made = RoutingTable()
    made.add_receiver(HUB)
    assert made.find(HUB.receiver) == HUB
    assert made.find(b"\x00other") is None


def test_an_actor_is_found_by_its_identity():
    assert table(A).find(A.receiver) == A


def test_removing_a_receiver_removes_everything_it_handles():
    made = table(A)
    made.add(CANCEL, A)
    made.remove_receiver(A)
    assert made.find(A.receiver) is None
    assert [made.next(PLACE), made.next(CANCEL)] == [None, None]
    assert made.routes == {}


def test_removing_a_node_removes_all_its_receivers_and_no_others():
    made = table(A, THERE, THERE_TOO)
    made.remove_node(b"node-2")
    assert list(made.all(PLACE)) == [A]
    assert made.find(THERE.receiver) is None
    assert not made.knows_node(b"node-2")


def test_a_node_stays_known_while_it_has_receivers_and_after():
    made = table(THERE, THERE_TOO)
    made.remove_receiver(THERE)
    assert made.nodes == (b"node-2",)
    assert list(made.all(PLACE)) == [THERE_TOO]


def test_removing_an_unknown_node_or_receiver_changes_nothing():
    made = table(A)
    made.remove_node(b"nobody")
    made.remove_receiver(B)
    assert made.routes == {A: frozenset({PLACE})}


def test_the_full_listing_has_hubs_and_actors():
    made = table(A, THERE)
    made.add_receiver(HUB)
    assert made.routes == {A: frozenset({PLACE}), THERE: frozenset({PLACE}), HUB: frozenset()}


def test_a_receiver_of_this_node_is_not_hidden_by_one_that_claims_its_identity():
    made = table(A)
    impostor = Route(A.receiver, b"node-2")
    made.add(PLACE, impostor)
    assert made.find(A.receiver) == A
    made.remove_node(b"node-2")
    assert made.find(A.receiver) == A


def test_a_receiver_that_moved_is_found_where_it_still_is():
    made = RoutingTable()
    old, new = Route(b"\x01x", b"node-1"), Route(b"\x01x", b"node-2")
    made.add(PLACE, old)
    made.add(PLACE, new)
    made.remove_node(b"node-2")
    assert made.find(b"\x01x") == old


def test_removals_are_counted_so_that_nobody_need_look_for_them():
    made = table(A, THERE)
    before = made.removals
    made.add(PLACE, B)
    assert made.removals == before
    made.remove(PLACE, THERE)
    assert made.removals > before
    before = made.removals
    made.remove(PLACE, THERE)
    assert made.removals == before, "nothing was there"
    made.remove_receiver(A)
    assert made.removals > before


def test_what_is_alike_is_found_without_a_look_at_anything_else():
    """Of 10,000 partitions only so many are listed as are asked for, and each version is among them."""
    made = RoutingTable()
    for number in range(10_000):
        made.add(MessageId(b"orders.place", 1, b"%d" % number), A)
    made.add(MessageId(b"orders.place", 2), A)
    made.add(MessageId(b"orders.other", 3), A)
    found = made.alike(MessageId(b"orders.place", 9), 3)
    assert found == [
        MessageId(b"orders.place", 1, b"0"),
        MessageId(b"orders.place", 2),
        MessageId(b"orders.place", 1, b"1"),
    ]
    assert made.alike(MessageId(b"orders.nothing")) == []
