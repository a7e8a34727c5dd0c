"""How the messages of a flow are put together from what the tables tell of them."""

import pytest
from tests.spark.lake_rows import after, at_node, flow_id, make_lake, message_id, way

from framewire.spark.asking import open_lake
from framewire.spark.stories import matching, stories, tables_of_stories

FLOW, WORK = flow_id("told"), message_id(b"job.do")
BEGAN = {**FLOW, **WORK, "origin": b"a", "origin_name": "a", "outcome": "open", "started_at": after(0)}


@pytest.fixture
def tell(tmp_path):
    def told(**tables):
        lake = make_lake(tmp_path / "lake", flows=[BEGAN], **tables)
        with open_lake(str(lake), tables_of_stories) as connection:
            (story,) = stories(connection, "flow = ?", ["told"])
        return story

    return told


def hop(sent, received, sender="a", receiver="b", **more):
    times = {"sent_at": after(sent), "received_at": after(received)}
    return {**FLOW, **WORK, **way(sender, receiver), **times, **more}


def handling(received, at, node="b", source=b"a", **more):
    came = {"came_from": source, "received_at": None if received is None else after(received), "at": after(at)}
    return {**FLOW, **WORK, **at_node(node), **came, "receiver": b"\x01", "to_hub": False, **more}


def test_what_died_where_it_came_to_is_told_once_with_its_reason(tell):
    (leg,) = tell(
        hops=[hop(0, 2, fate="dead", fate_at=after(3))],
        messages=[{**FLOW, **WORK, **at_node("b"), "direction": "dead", "reason": "expired", "at": after(3)}],
    ).legs
    assert (leg.fate, leg.reason, leg.handed - leg.sent) == ("dead", "expired", 3000)


def test_what_never_left_its_node_is_told_there(tell):
    (leg,) = tell(handlings=[handling(None, 1, node="a", source=None)]).legs
    assert (leg.from_name, leg.to_name, leg.sent, leg.received) == ("a", "a", None, None)


def test_what_came_from_a_node_that_records_nothing_is_told_as_far_as_known(tell):
    (leg,) = tell(handlings=[handling(1, 2, source=b"\xfe\x01")]).legs
    assert (leg.from_name, leg.sent, leg.handed - leg.received) == ("0xfe01", None, 1000)


def test_messages_that_came_in_the_same_moment_are_each_handled_once(tell):
    legs = tell(hops=[hop(0, 2), hop(1, 2)], handlings=[handling(2, 3), handling(2, 5)]).legs
    assert [(leg.sent - legs[0].sent, leg.handed - legs[0].sent) for leg in legs] == [(0, 3000), (1000, 5000)]


def test_clocks_are_corrected_over_nodes_between(tell):
    story = tell(
        hops=[
            hop(0, 12, skew_us=10_000.0),
            hop(13, 35, sender="b", receiver="c", skew_us=20_000.0),
            hop(36, 8, sender="c", receiver="a", skew_us=None),
        ]
    )
    assert [(leg.sent - story.began, leg.received - story.began) for leg in story.legs] == [
        (0, 2000),
        (3000, 5000),
        (6000, 8000),
    ]


def test_what_was_sent_and_is_neither_there_nor_lost_yet_is_told(tell):
    def sent(at):
        return {**FLOW, **WORK, **at_node("a"), "direction": "sent", "peer": b"b", "at": after(at)}

    story = tell(
        hops=[hop(0, 2)],
        losses=[{**FLOW, **WORK, **way("a", "b"), "kind": "not_received", "at": after(5)}],
        messages=[sent(0), sent(5), sent(9)],
    )
    assert [(leg.sent - story.began, leg.to_name, leg.fate) for leg in story.legs] == [
        (0, "b", None),
        (5000, "b", "lost"),
        (9000, "b", None),
    ]


def test_a_flow_without_anything_but_its_row_has_no_legs(tell):
    assert tell().legs == []


def test_what_is_found_by_its_beginning_is_the_newest_first(tmp_path):
    flows = [{**BEGAN, **flow_id(f"told-{number}"), "started_at": after(number)} for number in range(5)]
    lake = make_lake(tmp_path / "lake", flows=flows)
    with open_lake(str(lake), tables_of_stories) as connection:
        assert [each["flow"] for each in matching(connection, "told", 2)] == ["told-4", "told-3"]
        assert [each["flow"] for each in matching(connection, "told-1", 2)] == ["told-1"]
        assert matching(connection, "other", 2) == []
