"""What goes from node to node, made of what nodes count."""

import pytest
from tests.dashboard.looks import looked, seen, silent

from framewire.dashboard.sendings import Sendings
from framewire.node.reports import WayStats


def sending(*looks, missing=()):
    [found] = looked(*looks, missing=missing).sendings
    return found


def test_a_way_has_the_rate_of_the_last_two_looks_and_all_that_was_ever_sent():
    found = sending(
        [seen("a", uptime=10, traffic={"b": (100, 2, 3)}), seen("b")],
        [seen("a", uptime=12, traffic={"b": (150, 2, 5)}), seen("b")],
    )
    assert (found.sender, found.receiver) == ("a", "b")
    assert (found.sent, found.dropped, found.waiting, found.rate) == (150, 2, 5, 25.0)


def test_what_was_sent_before_anybody_looked_is_not_lately():
    found = sending([seen("a", traffic={"b": (100,)}), seen("b")])
    assert (found.sent, found.rate, found.lately) == (100, 0.0, False)


def test_a_way_on_which_nothing_had_gone_before_begins_at_nothing():
    found = sending([seen("a", uptime=1), seen("b")], [seen("a", uptime=3, traffic={"b": (100,)}), seen("b")])
    assert (found.rate, found.lately) == (50.0, True)


def test_trouble_is_the_part_of_the_last_minutes_that_was_dropped_and_not_what_was_before():
    before = [seen("a", uptime=1, traffic={"b": (100, 100)}), seen("b")]
    assert sending(before).trouble == 0.0
    after = [seen("a", uptime=3, traffic={"b": (175, 125)}), seen("b")]
    assert sending(before, after).trouble == pytest.approx(0.25)


def test_trouble_is_over_when_it_was_long_ago():
    looks = [[seen("a", uptime=at, traffic={"b": (at, min(at, 2))}), seen("b")] for at in range(1, 100)]
    assert sending(*looks[:5]).trouble > 0
    assert sending(*looks).trouble == 0.0


def test_what_goes_to_a_node_that_is_gone_is_told_of():
    assert sending([seen("a", traffic={"b": (1, 1)})], missing=["b"]).dropped == 1


def test_what_goes_to_those_who_only_look_or_are_made_up_is_not():
    assert looked([seen("a", traffic={"framewire-cli-1": (5,), "a": (5,)}), seen("b")]).sendings == ()


def test_a_node_that_does_not_answer_or_does_not_count_has_no_ways():
    assert looked([silent("a"), seen("b")]).sendings == ()


def test_a_way_is_told_by_message_the_busiest_first():
    def way(message, sent, node="b", **times):
        return WayStats(node=node, message=message, sent=sent, **times)

    found = sending(
        [seen("a", uptime=10, traffic={"b": (100,)}, ways=[way("x v1", 90), way("y v1", 10)]), seen("b")],
        [
            seen(
                "a",
                uptime=12,
                traffic={"b": (150,)},
                ways=[way("x v1", 100), way("y v1", 50, p50=0.001, p95=0.002), way("z v1", 9, node="c")],
            ),
            seen("b"),
        ],
    )
    assert [(each.message, each.sent, each.rate) for each in found.messages] == [
        ("y v1", 50, 20.0),
        ("x v1", 100, 5.0),
    ]
    assert (found.messages[0].p50, found.messages[0].p95) == (0.001, 0.002)


def test_a_way_has_a_line_of_the_last_minutes():
    sendings = Sendings()
    for at in range(1, 5):
        sendings.look([seen("a", uptime=at, traffic={"b": (at * at,)})], {"a", "b"})
    assert sendings.line("a", "b") == (3.0, 5.0, 7.0)
    assert sendings.line("b", "a") == ()
