"""Each question, on a lake whose figures are known."""

import datetime as dt

import pytest
from tests.history.known import EXCEPTION, HOUR, PAY, RESERVE, RESERVED, began, flow_name, naive
from tests.spark.lake_rows import after, flow_id, make_lake

from framewire.errors import UsageError
from framewire.history import FlowSearch, History, Outcomes, Window

LAST_HOUR = Window(naive(2 * HOUR), naive(3 * HOUR))


def test_the_period_is_from_the_first_flow_to_the_end_of_the_last(history):
    ended = naive(began(2, 3) + 15) + dt.timedelta(microseconds=1)
    assert history.period() == Window(naive(began(0, 0)), ended)


def test_the_summary_counts_flows_messages_and_what_went_wrong(history):
    told = history.summary()
    assert told.flows == Outcomes(completed=8, failed=1, expired=1, dead=1, open=1)
    assert (told.flows.all, told.flows.wrong) == (12, 3)
    assert (told.rows, told.nodes) == (43, 3)
    assert (told.sent, told.lost) == (22, 1)
    assert (told.delivered, told.failed) == (12, 1)
    assert (told.dead, told.quarantined, told.refused) == (1, 1, 1)
    assert told.signatures == {"unsigned": 24, "valid": 18, "invalid": 1}


def test_durations_are_those_of_completed_flows(history):
    assert history.summary().p50_us == 13_000
    assert history.summary().p99_us == pytest.approx(14_930)


def test_a_summary_of_some_time_counts_only_that(history):
    told = history.summary(LAST_HOUR)
    assert told.flows == Outcomes(completed=1, expired=1, dead=1, open=1)
    assert (told.first, told.rows, told.quarantined) == (naive(began(2, 0)), 15, 0)


def test_edges_tell_their_traffic_and_exact_percentiles(history):
    drawn = history.topology()
    (there, back) = drawn.edges
    assert (there.sender, there.receiver, back.sender, back.receiver) == ("shop", "stock", "stock", "shop")
    traffic = there.traffic
    assert (traffic.sent, traffic.received, traffic.failed, traffic.errors, traffic.lost) == (12, 12, 1, 1, 0)
    assert (traffic.p50_us, traffic.p95_us, traffic.p99_us) == (2500, 4000, 4000)
    assert drawn.exact
    assert back.traffic.loss_rate == 1 / 10
    assert [(each.message, each.sent) for each in back.messages] == [
        (RESERVED["message"], 9),
        (EXCEPTION["message"], 1),
    ]


def test_nodes_that_only_recorded_something_are_there_too(history):
    nodes = {
        node.name: (node.sent, node.received, node.delivered, node.failed) for node in history.topology().nodes
    }
    assert nodes == {"stock": (10, 12, 12, 1), "shop": (12, 9, 0, 0), "till": (0, 0, 0, 0)}


def test_a_topology_of_some_time_is_that_of_its_hours(history):
    quarter_past = Window(naive(HOUR + 900_000), naive(HOUR + 1_000_000))
    drawn = history.topology(quarter_past)
    assert drawn.window == Window(naive(HOUR), naive(2 * HOUR))
    assert [(edge.traffic.sent, edge.traffic.failed) for edge in drawn.edges] == [(4, 1), (4, 0)]


def test_the_busiest_nodes_are_drawn_and_the_others_counted(history):
    drawn = history.topology(limit=1)
    assert [node.name for node in drawn.nodes] == ["stock"]
    assert (drawn.more_nodes, drawn.more_edges, drawn.edges) == (2, 2, ())


def test_percentiles_of_too_many_hops_are_told_from_the_hours(history, monkeypatch):
    monkeypatch.setattr("framewire.history.topology.EXACT_UP_TO", 10)
    drawn = history.topology()
    assert not drawn.exact
    assert drawn.edges[0].traffic.p95_us == pytest.approx(3850)


def test_latency_over_time_has_points_without_traffic(history):
    course = history.latency()
    assert course.step == dt.timedelta(minutes=2)
    assert 24 <= len(course.points) <= 96
    assert sum(point.hops for point in course.points) == 21
    quiet = [point for point in course.points if not point.hops]
    assert quiet[0].p50_us is None
    (first,) = [point for point in course.points if point.at == naive(240_000)]
    assert (first.hops, first.p50_us, first.p99_us) == (2, 1000, 1000)


def test_hops_that_their_senders_dated_before_all_flows_are_told(tmp_path):
    hops = [{"sent_at": after(at), "latency_us": 1.0} for at in (-5000, 5000)]
    flows = [{**flow_id("one"), "started_at": after(0), "ended_at": after(1)}]
    make_lake(tmp_path / "lake", hops=hops, flows=flows)
    with History(str(tmp_path / "lake")) as history:
        assert sum(point.hops for point in history.latency().points) == 2


@pytest.mark.parametrize(
    ("asked", "hops"),
    [
        ({"sender": "shop"}, 12),
        ({"sender": "stock", "receiver": "shop"}, 9),
        ({"node": "stock"}, 21),
        ({"node": "till"}, 0),
        ({"message": EXCEPTION["message"]}, 1),
    ],
)
def test_latency_can_be_that_of_an_edge_a_node_or_a_message(history, asked, hops):
    assert sum(point.hops for point in history.latency(**asked).points) == hops


def test_latency_of_very_many_hops_is_estimated(history, monkeypatch):
    monkeypatch.setattr("framewire.history.courses.EXACT_UP_TO", 10)
    course = history.latency()
    assert not course.exact
    assert course.points[0].p50_us == pytest.approx(1000)


def test_outcomes_over_time_add_up(history):
    course = history.outcomes()
    assert sum(point.flows.all for point in course.points) == 12
    (bad,) = [point for point in course.points if point.flows.failed]
    assert bad.at <= naive(began(1, 3)) < bad.at + course.step


def test_outcomes_of_a_window_are_those_of_flows_that_began_in_it(history):
    assert sum(point.flows.all for point in history.outcomes(LAST_HOUR).points) == 4


@pytest.mark.parametrize(
    ("search", "found"),
    [
        (FlowSearch(beginning="13aa"), [(1, 3)]),
        (FlowSearch(outcomes=("expired", "dead")), [(2, 2), (2, 1)]),
        (FlowSearch(least_us=500_000), [(2, 2), (2, 1)]),
        (FlowSearch(least_us=400_000, most_us=600_000), [(2, 2)]),
        (FlowSearch(window=LAST_HOUR, outcomes=("completed",)), [(2, 0)]),
        (FlowSearch(sender="stock", receiver="shop", along=EXCEPTION["message"]), [(1, 3)]),
        (FlowSearch(message="till"), []),
        (FlowSearch(node="till"), []),
        (FlowSearch(beginning="' or true --"), []),
    ],
)
def test_flows_are_found_by_what_all_conditions_say(history, search, found):
    assert [each.flow for each in history.flows(search).flows] == [flow_name(*place) for place in found]


@pytest.mark.parametrize(
    "search", [FlowSearch(message="reserve"), FlowSearch(node="stock"), FlowSearch(node="shop")]
)
def test_messages_and_nodes_on_the_way_count(history, search):
    assert len(history.flows(search).flows) == 12


def test_a_page_of_flows_says_whether_there_are_more(history):
    page = history.flows(order="slowest", limit=2)
    assert [each.flow for each in page.flows] == [flow_name(2, 1), flow_name(2, 2)]
    assert page.more
    assert not history.flows(order="slowest", limit=2, offset=10).more


def test_flows_that_went_wrong_are_listed_the_newest_first(history):
    assert [each.outcome for each in history.failed_flows().flows] == ["dead", "expired", "failed"]


@pytest.mark.parametrize(
    ("problem", "ask"),
    [
        ("no outcome is 'lost'", lambda _: FlowSearch(outcomes=("lost",))),
        ("no order is 'random'", lambda history: history.flows(order="random")),
        ("limit: 0 is not from 1 to", lambda history: history.flows(limit=0)),
        ("limit: 1,000,000 is not", lambda history: history.losses(limit=1_000_000)),
    ],
)
def test_what_cannot_be_asked_is_told(history, problem, ask):
    with pytest.raises(UsageError, match=problem):
        ask(history)


def test_a_flow_is_told_message_by_message(history):
    flow = history.flow(flow_name(1, 3))
    assert flow is not None
    story = history.story(flow)
    assert [(leg.message, leg.failed) for leg in story.legs] == [
        (RESERVE["message"], True),
        (EXCEPTION["message"], False),
    ]


def test_an_unknown_flow_is_none(history):
    assert history.flow("13aa") is None


def test_several_stories_come_at_once(history):
    flows = history.failed_flows().flows
    assert set(history.stories(flows)) == {flow.flow for flow in flows}
    assert history.stories(()) == {}


def test_messages_of_a_flow_come_with_all_their_fields(history):
    told = history.recorded(history.flow(flow_name(2, 2)))
    assert [(each.node, each.direction) for each in told.messages] == [
        ("shop", "sent"),
        ("stock", "received"),
        ("stock", "delivered"),
        ("stock", "dead"),
    ]
    sent, *_, dead = told.messages
    assert (sent.peer_name, sent.frames, sent.routing[0]["uri"]) == (
        "stock",
        (b"stock", b"", b"one", b"two"),
        "tcp://10.0.0.1:7000",
    )
    assert (dead.reason, dead.message) == ("no_route", PAY["message"])


def test_bodies_can_be_left_where_they_are(history):
    (first, *_) = history.recorded(history.flow(flow_name(2, 2)), bodies=False).messages
    assert (first.body, first.frames) == (None, None)


def test_of_the_messages_of_a_flow_the_first_are_told(history):
    told = history.recorded(history.flow(flow_name(2, 2)), limit=1)
    assert (len(told.messages), told.more) == (1, True)


def test_losses_are_listed_and_counted(history):
    (loss,) = history.losses().rows
    assert (loss.kind, loss.sender, loss.message, loss.flow) == (
        "not_received",
        "stock",
        RESERVED["message"],
        flow_name(2, 1),
    )
    assert history.losses(node="till").rows == ()
    (group,) = history.loss_groups().rows
    assert (group.sender, group.receiver, group.losses) == ("stock", "shop", 1)


def test_dead_letters_are_listed_and_counted_by_reason(history):
    (letter,) = history.dead_letters(reason="no_route").rows
    assert (letter.node, letter.message) == ("stock", PAY["message"])
    assert history.dead_letters(reason="expired").rows == ()
    (group,) = history.dead_groups().rows
    assert (group.reason, group.letters, group.nodes, group.commonest) == ("no_route", 1, 1, PAY["message"])


def test_what_is_in_quarantine_is_there_as_it_was_recorded(history):
    (row,) = history.quarantine().rows
    assert (row.node, row.peer_name, row.error, row.frames) == (
        "till",
        "shop",
        "too_few_frames",
        (b"x", b"\xff\x00"),
    )
    assert history.quarantine(error="late").rows == ()
    assert history.quarantine_groups().rows[0].rows == 1


def test_signatures_are_told_by_domain_state_and_node(history):
    told = [(each.domain, each.state, each.node, each.rows) for each in history.audit().rows]
    assert told == [
        ("", "unsigned", "shop", 24),
        ("payments", "valid", "stock", 18),
        ("payments", "invalid", "till", 1),
    ]
    assert [each.node for each in history.audit(state="invalid").rows] == ["till"]
    assert [(each.state, each.rows, each.nodes) for each in history.audit_groups().rows] == [
        ("unsigned", 24, 1),
        ("valid", 18, 1),
        ("invalid", 1, 1),
    ]


def test_formats_are_told_by_message_and_by_day(history):
    assert [(each.wire_version, each.rows) for each in history.adoption().rows] == [(5, 36), (4, 7), (1, 2)]
    assert history.adoption(Window(naive(48 * HOUR))).rows == ()
    days = history.format_days().rows
    assert [(each.day, each.wire_version, each.rows) for each in days] == [
        (dt.date(2026, 3, 1), 1, 2),
        (dt.date(2026, 3, 1), 4, 7),
        (dt.date(2026, 3, 1), 5, 36),
    ]


def test_handlers_tell_what_they_got_and_how_long_they_took(history):
    (handler,) = history.handlers().rows
    assert (handler.node, handler.delivered, handler.failed, handler.p50_us) == ("stock", 12, 1, 10_000)
    assert handler.failure_rate == 1 / 12


def test_handling_times_of_too_many_messages_are_told_from_the_hours(history, monkeypatch):
    monkeypatch.setattr("framewire.history.accounts.EXACT_UP_TO", 10)
    (handler,) = history.handlers().rows
    assert (handler.p50_us, handler.p99_us) == (10_000, None)


QUESTIONS = (
    "summary", "topology", "latency", "outcomes", "flows", "slowest_flows", "failed_flows", "losses", "loss_groups",
    "dead_letters", "dead_groups", "quarantine", "quarantine_groups", "audit", "audit_groups", "adoption",
    "format_days", "handlers",
)  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_lake_without_rows_has_empty_answers(tmp_path, question):
    (tmp_path / "lake" / "messages").mkdir(parents=True)
    with History(str(tmp_path / "lake")) as history:
        told = getattr(history, question)()
    for name in ("points", "nodes", "edges", "flows", "rows"):
        assert not getattr(told, name, ()) or question == "summary"


def test_the_summary_of_a_lake_without_rows_is_all_zeros(tmp_path):
    (tmp_path / "lake" / "messages").mkdir(parents=True)
    with History(str(tmp_path / "lake")) as history:
        told = history.summary()
    assert (told.first, told.flows.all, told.rows, told.p50_us) == (None, 0, 0, None)


def test_a_window_beside_all_that_happened_is_empty(history):
    assert history.latency(Window(naive(48 * HOUR))).points == ()
    assert history.outcomes(Window(until=naive(-HOUR))).points == ()


def test_a_lake_without_flows_still_has_a_period(tmp_path):
    at = naive(5).replace(tzinfo=dt.UTC)
    make_lake(tmp_path / "lake", messages=[{"at": at, "direction": "sent"}])
    with History(str(tmp_path / "lake")) as history:
        assert history.period().since == naive(5)
