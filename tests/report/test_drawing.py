"""Where things are in pictures."""

import datetime as dt
import re
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.history.known import flow_name

from framewire.history import ALWAYS, Edge, Node, Topology, Traffic
from framewire.report import most_to_see, topology_svg, waterfall_svg
from framewire.report.axes import time_marks, value_scale
from framewire.report.layout import ring_order
from framewire.report.markup import written
from framewire.report.network import topology_picture
from framewire.report.palette import DARK, LIGHT, trouble
from framewire.spark.legs import Leg, Story

MORNING = dt.datetime(2026, 3, 1, 8, 17, 3)  # noqa: DTZ001 - as the lake's times


@given(st.lists(st.floats(min_value=0.5, max_value=1e12), min_size=1))
def test_every_value_lies_inside_its_scale(values):
    scale = value_scale(values)
    assert all(0 <= scale.place(value) <= 1 for value in values)
    assert 2 <= len(scale.marks) <= 16
    assert scale.marks[-1] >= max(values) * 0.99


def test_larger_values_lie_higher():
    for values in ([1.0, 2.0, 3.0], [1.0, 100.0, 10_000.0]):
        places = [value_scale(values).place(value) for value in values]
        assert places == sorted(set(places))


def test_values_far_apart_are_shown_by_their_logarithm():
    assert value_scale([1.0, 100.0]).logarithmic
    assert not value_scale([50.0, 100.0]).logarithmic


@given(st.integers(min_value=1, max_value=5 * 365 * 86_400 * 1000))
def test_marks_of_time_are_few_and_inside(milliseconds):
    last = MORNING + dt.timedelta(milliseconds=milliseconds)
    marks = time_marks(MORNING, last)
    assert len(marks) <= 9
    assert all(MORNING <= at <= last for at, _ in marks)


def test_days_are_named_where_they_change():
    marks = time_marks(MORNING, MORNING + dt.timedelta(hours=30))
    assert [text for _, text in marks] == ["1 Mar 12:00", "18:00", "2 Mar", "06:00", "12:00"]


def test_nodes_that_talk_stand_side_by_side():
    weights = {frozenset("ac"): 9.0, frozenset("bd"): 9.0, frozenset("cb"): 1.0}
    order = ring_order(["a", "b", "c", "d"], weights, first="a")
    assert order[0] == "a"
    neighbours = {frozenset(pair) for pair in zip(order, [*order[1:], order[0]], strict=True)}
    assert {frozenset("ac"), frozenset("bd")} <= neighbours


@given(st.permutations(["a", "b", "c", "d", "e"]))
def test_the_order_of_the_input_does_not_matter(names):
    weights = {frozenset("ae"): 3.0, frozenset("bd"): 3.0, frozenset("ce"): 2.0, frozenset("ab"): 1.0}
    assert ring_order(names, weights, "c") == ring_order(sorted(names), weights, "c")


def made_topology(nodes):
    names = [f"node-{number:02}" for number in range(nodes)]
    edges = [
        Edge(one, other, Traffic(None, 100 - place, 90, 0, 0, place, 10.0, 20.0, 30.0), ())
        for place, (one, other) in enumerate(pairwise(names))
    ]
    return Topology(ALWAYS, tuple(Node(name, 10, 10, 10, 0) for name in names), tuple(edges))


@pytest.mark.parametrize("nodes", [1, 2, 4, 20, 60])
def test_a_topology_of_any_size_is_drawn_inside_its_picture(nodes):
    svg = written(topology_picture(made_topology(nodes)))
    height = float(re.search(r'viewBox="0 0 760 ([\d.]+)"', svg)[1])
    circles = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
    assert len(circles) == min(nodes, 20)
    assert all(0 < float(x) < 760 and 0 < float(y) < height for x, y in circles)


def test_edges_are_as_wide_as_their_traffic_and_marked_by_what_went_wrong():
    edges = (
        Edge("a", "b", Traffic(None, 100, 100, 0, 0, 0), ()),
        Edge("b", "c", Traffic(None, 25, 20, 5, 0, 0), ()),
    )
    nodes = tuple(Node(name, 1, 1, 1, 0) for name in "abc")
    svg = written(topology_picture(Topology(ALWAYS, nodes, edges)))
    wide, narrow = (
        float(re.search(rf'stroke-width="([\d.]+)" class="edge edge-{kind}"', svg)[1]) for kind in ("calm", "much")
    )
    assert wide > narrow
    assert "25 · 5 ✗" in svg


def test_no_label_of_an_edge_covers_another():
    names = "abcd"
    edges = [
        Edge(one, other, Traffic(None, 1000, 1000, 0, 0, 100), ())
        for one in names
        for other in names
        if one != other
    ]
    svg = written(topology_picture(Topology(ALWAYS, tuple(Node(name, 1, 1, 1, 0) for name in names), tuple(edges))))
    grounds = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="16" rx="8"', svg)
    boxes = [tuple(map(float, each)) for each in grounds]
    assert len(boxes) == 12
    for (x1, y1, w1), (x2, y2, w2) in combinations(boxes, 2):
        assert x1 + w1 <= x2 + 0.1 or x2 + w2 <= x1 + 0.1 or abs(y1 - y2) >= 15.9


@pytest.mark.parametrize(
    ("rate", "kind"), [(0, "calm"), (0.01, "calm"), (0.011, "some"), (0.1, "some"), (0.2, "much"), (2, "much")]
)
def test_trouble_has_three_degrees(rate, kind):
    assert trouble(rate) == kind


def contrast(one, other):
    """How far apart two colours are in brightness, as the guidelines for accessible content reckon it."""

    def brightness(colour):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dim, bright = sorted((brightness(one), brightness(other)))
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["ink", "soft", "accent", "good", "warning", "failed", "dead"])
def test_text_can_be_read_on_its_ground(colours, name):
    assert contrast(colours[name], colours["paper"]) >= 4.5


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["completed", "expired", "calm", "some", "much", "way", "work"])
def test_what_is_drawn_stands_out_from_its_ground(colours, name):
    assert contrast(colours[name], colours["paper"]) >= 2.5


def test_light_and_dark_have_the_same_colours():
    assert LIGHT.keys() == DARK.keys()


def a_leg(number, **facts):
    return Leg(f"m{number}", b"m", b"", 1, b"a", "a", b"b", "b", facts.pop("fate", "delivered"), **facts)


def a_story(legs, left_out=0):
    return Story({"flow": "f", "outcome": None, "started_at": None, "duration_us": 1}, legs, left_out)


def test_of_a_long_flow_the_first_messages_are_drawn_and_the_others_counted():
    svg = waterfall_svg(a_story([a_leg(number, sent=float(number)) for number in range(100)], left_out=7))
    assert ">m29<" in svg
    assert ">m30<" not in svg
    assert "… and 77 more" in svg


@pytest.mark.parametrize(
    ("leg", "told"),
    [
        ({"fate": "lost", "sent": 1.0}, "✗ never received"),
        ({"fate": "vanished", "sent": 1.0, "received": 2.0}, "✗ never delivered"),
        ({"fate": "dead", "handed": 2.0, "reason": "no_route"}, "✗ dead: no_route"),
        ({"fate": "sent", "sent": 1.0, "received": 2.0}, "· passed on"),
        ({"fate": None, "sent": 1.0}, "? not known yet"),
        ({"handed": 2.0, "done": 3.0, "failed": True}, "✗ its handler raised"),
        ({"handed": 2.0, "to_hub": True}, "✓ reached the hub"),
        ({"handed": 2.0, "done": 3.0}, "· handled"),
    ],
)
def test_each_fate_has_a_sign_and_words(leg, told):
    assert told in waterfall_svg(a_story([a_leg(0, **leg)]))


def test_waiting_and_working_lie_where_they_happened():
    svg = waterfall_svg(a_story([a_leg(0, sent=0.0, received=100.0, handed=200.0, done=400.0)]))
    way = re.search(r'<line x1="([\d.]+)" x2="([\d.]+)"[^>]*class="bar-way"', svg)
    work = re.search(r'<rect x="([\d.]+)"[^>]*width="([\d.]+)"[^>]*class="bar-work"', svg)
    length = float(work[1]) + float(work[2]) - float(way[1])
    assert float(way[2]) - float(way[1]) == pytest.approx(length / 4, rel=0.01)
    assert float(work[2]) == pytest.approx(length / 2, rel=0.01)


def test_the_flow_with_most_to_see_has_many_bars_that_are_no_dots():
    dots = a_story(
        [a_leg(n, sent=float(n), received=n + 1.0) for n in range(9)] + [a_leg(9, sent=9.0, received=9e6)]
    )
    bars = a_story([a_leg(n, sent=n * 10.0, received=n * 10 + 10.0) for n in range(4)])
    assert most_to_see([dots, bars, a_story([])]) is bars
    assert most_to_see([]) is None


def test_pictures_stand_alone(facts):
    for svg in (topology_svg(facts.topology), waterfall_svg(facts.stories[flow_name(1, 3)])):
        assert svg.startswith("<svg ")
        assert "prefers-color-scheme: dark" in svg
        assert "<title" in svg
