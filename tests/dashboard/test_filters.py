"""Filters are the query of an address: read field by field, and all that is wrong is told."""

import datetime as dt

import pytest

from framewire.dashboard.filters import WINDOW, Choice, Field, Query
from framewire.history import Window

FIELDS = (
    Field("node", "node"),
    Field("least", "at least", "number"),
    Field("kind", "kind", "choice", (Choice("", "any"), Choice("a", "a"))),
    *WINDOW,
)


def test_what_an_address_says_is_read():
    query = Query(FIELDS, {"node": "shop", "least": "2.5", "kind": "a", "since": "2026-03-01T12:00", "until": ""})
    assert query.problems == []
    assert (query.text("node"), query.number("least"), query.whole("least"), query.text("until")) == (
        "shop",
        2.5,
        2,
        None,
    )
    assert query.window == Window(dt.datetime(2026, 3, 1, 12))  # noqa: DTZ001 - as the lake
    assert query.key == (("kind", "a"), ("least", "2.5"), ("node", "shop"), ("since", "2026-03-01T12:00"))


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"colour": "red"}, "colour: no such filter; there are kind, least, node, since, until"),
        ({"least": "nan"}, "least: nan is no number from 0 on"),
        ({"least": "-1"}, "least: -1 is no number from 0 on"),
        ({"kind": "b"}, "kind: b is none of a"),
        ({"since": "noon"}, "since: noon is no time; write it like 2026-03-01T12:00"),
        ({"node": "x" * 500}, "node: longer than 400 characters"),
        ({"since": "2026-03-02", "until": "2026-03-01"}, "there is no time from"),
    ],
)
def test_what_is_wrong_is_told(told, problem):
    (found,) = Query(FIELDS, told).problems
    assert found.startswith(problem)


def test_several_mistakes_are_told_at_once():
    assert len(Query(FIELDS, {"colour": "red", "least": "x", "since": "y"}).problems) == 3
