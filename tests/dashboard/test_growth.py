"""Counters: how fast they grow between looks, on the clock of whoever counts."""

import pytest

from framewire.dashboard.growth import Growth, Lines

OF = ("node", "sent")


def rates(*told):
    """The rate at each look; None stands for a look at which nothing was told."""
    growth = Growth()
    found = []
    for each in told:
        growth.look_again()
        found.append(None if each is None else growth.rate(OF, *each))
    return found


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([(100, 1.0)], [0.0]),
        ([(100, 1.0), (150, 3.0)], [0.0, 25.0]),
        ([(100, 1.0), (100, 3.0), (101, 3.5)], [0.0, 0.0, 2.0]),
    ],
)
def test_a_rate_is_the_growth_between_two_looks_on_the_nodes_own_clock(told, expected):
    assert rates(*told) == expected


def test_a_node_that_was_started_again_counts_from_nothing():
    assert rates((100, 50.0), (30, 2.0), (40, 4.0)) == [0.0, 0.0, 5.0]


def test_a_node_that_was_started_again_and_did_more_at_once_has_no_false_rate():
    assert rates((100, 50.0), (300, 2.0)) == [0.0, 0.0]


def test_what_was_not_told_of_at_the_last_look_begins_anew():
    assert rates((100, 1.0), None, (200, 5.0)) == [0.0, None, 0.0]


def test_a_line_holds_the_last_values_only():
    lines = Lines()
    for value in range(200):
        lines.add(OF, float(value))
    assert lines.of(*OF) == tuple(map(float, range(110, 200)))


def test_of_too_many_lines_those_are_dropped_that_were_not_told_of_for_longest():
    lines = Lines()
    for number in range(5001):
        lines.add((str(number),), 1.0)
        lines.add(("told all the time",), 1.0)
    assert lines.of("0") == ()
    assert lines.of("5000") == (1.0,)
    assert len(lines.of("told all the time")) == 90


def test_a_line_on_which_nothing_has_been_for_long_is_forgotten():
    lines = Lines()
    lines.add(OF, 1.0)
    lines.add(("quiet",), 0.0)
    lines.forget_quiet()
    assert OF in lines
    assert ("quiet",) not in lines
