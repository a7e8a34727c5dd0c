"""Drawings: nodes stand apart and always at the same place, edges have the width and tone of their traffic."""

import datetime as dt
import math
from itertools import combinations

import pytest
from tests.history.known import make_known_lake

from framewire.dashboard.graph import drawn
from framewire.dashboard.layout import HIGH, WIDE, Places, placed
from framewire.dashboard.showing import address
from framewire.history import Edge, History, Node, Topology, Traffic, Window


@pytest.mark.parametrize("count", [1, 2, 3, 8, 20, 40])
def test_no_node_stands_upon_another_or_outside(count):
    names = [f"node-{number}" for number in range(count)]
    places = placed(names, dict.fromkeys(combinations(names[:10], 2), 1.0))
    assert set(places) == set(names)
    assert all(0 < x < WIDE and 0 < y < HIGH for x, y in places.values())
    assert all(math.dist(one, other) > 55 for one, other in combinations(places.values(), 2))


def test_the_same_cluster_looks_the_same_in_whatever_order_it_is_told():
    names = ["a", "b", "c", "d", "e"]
    edges = {("a", "b"): 1.0, ("b", "c"): 0.2, ("d", "e"): 0.7}
    assert placed(names, edges) == placed(names[::-1], dict(reversed(edges.items())))


def test_places_are_kept_until_who_is_there_or_who_knows_whom_is_another():
    places = Places()
    first = places.of(["a", "b", "c"], {("a", "b")})
    assert first == placed(["a", "b", "c"], {("a", "b"): 0.5})
    assert places.of(["c", "b", "a"], {("a", "b")}) is first
    for names, pairs in ((["a", "b", "c"], {("b", "c")}), (["a", "b"], {("a", "b")})):
        assert places.of(names, pairs) == placed(names, dict.fromkeys(pairs, 0.5))


def test_no_nodes_have_no_places():
    assert placed([], {}) == {}


def topology(**errors):
    def traffic(sent, failed):
        return Traffic(None, sent, sent, 0, 0, failed)

    names = ("a", "b", "c")
    nodes = tuple(Node(name, 100, 100, 100, 0) for name in names)
    edges = (
        Edge("a", "b", traffic(100, errors.get("ab", 0)), ()),
        Edge("b", "c", traffic(1, 0), ()),
        Edge("c", "c", traffic(50, 0), ()),
        Edge("c", "elsewhere", traffic(50, 0), ()),
    )
    return Topology(Window(), nodes, edges)


def draw(found, *picked):
    return drawn(found, lambda **query: address("/topology", **query), picked)


@pytest.mark.parametrize(("errors", "tone"), [(0, ""), (1, ""), (5, "warn"), (11, "bad")])
def test_an_edge_has_the_width_of_its_traffic_and_the_tone_of_its_trouble(errors, tone):
    busy, quiet = draw(topology(ab=errors)).edges
    assert busy.width > 4 * quiet.width
    assert (busy.tone, quiet.tone) == (tone, "")


def test_what_is_picked_is_marked_and_everything_leads_somewhere():
    drawing = draw(topology(), "a", "b")
    assert [edge.picked for edge in drawing.edges] == [True, False]
    assert drawing.edges[0].href == "/topology?sender=a&receiver=b"
    assert [node.picked for node in draw(topology(), "b").nodes] == [False, True, False]


def test_only_the_busiest_nodes_are_drawn_and_the_others_counted():
    nodes = tuple(Node(f"n{number}", 100 - number, 0, 0, 0) for number in range(60))
    drawing = draw(Topology(Window(), nodes, (), more_nodes=5))
    assert (len(drawing.nodes), drawing.left_out) == (40, 25)


def test_an_edge_tells_its_latency(tmp_path):
    with History(str(make_known_lake(tmp_path / "lake"))) as history:
        said = [edge.said for edge in draw(history.topology(Window(dt.datetime(2026, 3, 1, 9)))).edges]  # noqa: DTZ001 - as the lake
    assert any(each.startswith("shop → stock: 8 sent, 1 errors, 0 lost; p50 ") for each in said)
