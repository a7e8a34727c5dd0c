"""The live cluster as a drawing: arrows by what is sent, tones by what is dropped, and those who are gone."""

import re

import pytest
from tests.dashboard.looks import ask, handled, looked, seen, silent

from framewire.dashboard.layout import Places
from framewire.dashboard.live_graph import drawn_live
from framewire.dashboard.showing import address
from framewire.history import Edge, Traffic
from framewire.node.reports import WayStats


def draw(look, *picked, recorded=None):
    where = lambda **query: address("/topology", live=1, **query)  # noqa: E731 - one expression, used once
    return drawn_live(look, where, picked, recorded or {}, Places())


def edges(drawing):
    names = {node.key: node.name for node in drawing.nodes}
    return {(names[edge.from_], names[edge.to]): edge for edge in drawing.edges}


def two_looks(first, second, **others):
    """A sends to others; the numbers are those of both looks."""
    nodes = [seen("b", peers=["a", "c"]), seen("c", peers=["a", "b"])]
    return looked(
        [seen("a", uptime=1, traffic=first, peers=["b", "c"]), *nodes],
        [seen("a", uptime=2, traffic=second, peers=["b", "c"]), *nodes],
        **others,
    )


def test_an_arrow_is_as_wide_as_what_is_sent_a_second():
    found = edges(draw(two_looks({"b": (0,), "c": (0,)}, {"b": (100,), "c": (10,)})))
    assert found["a", "b"].width > 3 * found["a", "c"].width
    assert "100.0 a second, 100 sent in all, 0 dropped" in found["a", "b"].said


def test_those_who_only_know_each_other_have_a_thin_line():
    found = edges(draw(two_looks({"b": (0,)}, {"b": (9,)})))
    assert found["a", "b"].tone == ""
    assert found["b", "c"].tone == "faint"
    assert ("b", "a") not in found


@pytest.mark.parametrize(("dropped", "tone"), [(0, ""), (1, ""), (5, "warn"), (20, "bad")])
def test_an_arrow_has_the_tone_of_what_is_dropped(dropped, tone):
    found = edges(draw(two_looks({"b": (0, 0)}, {"b": (100, dropped)})))
    assert found["a", "b"].tone == tone
    assert f"{dropped} dropped" in found["a", "b"].said


def test_open_asks_are_told_with_the_oldest_and_its_message():
    nodes = [seen("a", pending=[ask("x v1", "b", 1.0), ask("y v1", "b", 7.0)]), seen("b")]
    said = edges(draw(looked(nodes)))["a", "b"].said
    assert said == "a → b: 2 open asks, the oldest y v1 for 7 s"


def test_an_arrow_tells_what_is_sent_by_message_and_how_long_answers_take():
    def node(uptime, sent):
        told = WayStats(node="b", message="x v1", sent=sent, p50=0.001, p95=0.0025)
        return seen("a", uptime=uptime, traffic={"b": (sent,)}, ways=[told])

    said = edges(draw(looked([node(1, 0), seen("b")], [node(2, 8), seen("b")])))["a", "b"].said
    assert said.endswith("0 dropped; x v1 8.0 a second, answered in 1 ms (p50), 2.5 ms (p95)")


def test_what_waits_for_a_peer_is_told():
    assert "7 waiting" in edges(draw(two_looks({"b": (1, 0, 0)}, {"b": (1, 0, 7)})))["a", "b"].said


def test_latency_is_told_by_message_where_the_lake_knows_it():
    def traffic(message, quick):
        return Traffic(message, 10, 10, 0, 0, 0, quick, quick * 2, quick * 3)

    recorded = {("a", "b"): Edge("a", "b", traffic(None, 1000.0), (traffic("x v1", 500.0),))}
    said = edges(draw(two_looks({"b": (0,)}, {"b": (1,)}), recorded=recorded))["a", "b"].said
    assert said.endswith("recorded: p50 1 ms, p95 2 ms, p99 3 ms; x v1 p50 500 µs, p95 1 ms, p99 1.5 ms")


def test_a_node_tells_what_it_handles_and_how_long_that_takes():
    look = looked(
        [seen("a", rates={"handled": 5.0})],
        handlers=[handled("a", "x v1", rate=5.0, took=0.002), handled("a", "y v1"), handled("b", "z v1", rate=1.0)],
    )
    [node] = draw(look).nodes
    assert node.said == "a: handles 5.0 a second, of which 0.0 fail; x v1 5.0 a second in 2 ms"


def test_a_node_that_fails_or_is_silent_is_marked():
    drawing = draw(looked([seen("a", rates={"failed": 0.1}), silent("b"), seen("c")]))
    assert [node.tone for node in drawing.nodes] == ["bad", "bad", ""]
    assert "does not answer" in drawing.nodes[1].said


def test_a_node_that_is_gone_stays_where_it_was_and_moves_nobody():
    everyone = [seen(name, peers=[other for other in "abcd" if other != name]) for name in "abcd"]
    before = {node.name: (node.x, node.y) for node in draw(looked(everyone)).nodes}
    left = [seen(name, peers=[other for other in "abc" if other != name]) for name in "abc"]
    drawing = draw(looked(left, missing=["d"]))
    assert {node.name: (node.x, node.y) for node in drawing.nodes} == before
    lost = next(node for node in drawing.nodes if node.name == "d")
    assert lost.tone == "gone"
    assert re.fullmatch(r"d: gone; last seen 12:00:00 UTC", lost.said)


def test_what_was_dropped_on_its_way_to_a_node_that_is_gone_is_drawn():
    found = edges(draw(two_looks({"d": (5, 0)}, {"d": (5, 5)}, missing=["d"])))
    assert found["a", "d"].tone == "bad"


def test_what_is_picked_is_marked_and_everything_leads_somewhere():
    look = two_looks({"b": (0,)}, {"b": (1,)})
    found = edges(draw(look, "a", "b"))
    assert [way for way, edge in found.items() if edge.picked] == [("a", "b")]
    assert found["a", "b"].href == "/topology?live=1&sender=a&receiver=b"
    assert [node.name for node in draw(look, "c").nodes if node.picked] == ["c"]


def test_of_a_large_cluster_so_many_are_drawn_and_the_others_counted():
    drawing = draw(looked([seen(f"n{number}") for number in range(45)], missing=["gone"]))
    assert (len(drawing.nodes), drawing.left_out) == (40, 6)
