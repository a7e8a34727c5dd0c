"""A lake that the pipeline has made from made-up captures, held against the truth about them."""

import sys
from subprocess import run

import duckdb
import pytest

from framewire.history import OUTCOMES, FlowSearch, History
from framewire.report import gathered, report_page
from framewire.synth import Options, synthesise

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


class Truth:
    def __init__(self, directory):
        self.directory = directory

    def ask(self, query):
        for path in (self.directory / "truth").glob("*.parquet"):
            query = query.replace(f"<{path.stem}>", f"'{path}'")
        return duckdb.sql(query).fetchall()


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    directory = tmp_path_factory.mktemp("real")
    faults = {"loss": 0.02, "malformed": 0.02, "tampered": 0.05}
    synthesise(Options(messages=8000, nodes=4, segment_rows=2000, seed=3, duration=5400, **faults), directory)
    arguments = [
        "--captures",
        directory / "captures",
        "--lake",
        directory / "lake",
        "--lost-after",
        "0s",
        "--quiet",
    ]
    keys = ["--keys", directory / "truth" / "keys.toml"]
    command = [sys.executable, "-m", "framewire", "pipeline", "run", *arguments, *keys]
    done = run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    return Truth(directory)


@pytest.fixture
def history(truth):
    with History(str(truth.directory / "lake")) as opened:
        yield opened


def test_flows_ended_as_they_really_did(truth, history):
    told = dict(truth.ask("select outcome, count(*) from <flows> group by 1"))
    flows = history.summary().flows
    assert {name: flows.of(name) for name in OUTCOMES if flows.of(name)} == told
    for outcome, number in told.items():
        assert len(history.flows(FlowSearch(outcomes=(outcome,)), limit=10_000).flows) == number
    assert sum(point.flows.all for point in history.outcomes().points) == flows.all


def test_what_went_wrong_is_counted_as_it_really_was(truth, history):
    counted = {name: truth.ask(f"select count(*) from <{name}>")[0][0] for name in ("losses", "dead", "malformed")}  # noqa: S608
    told = history.summary()
    assert {"losses": told.lost, "dead": told.dead, "malformed": told.quarantined} == counted
    assert len(history.losses(limit=10_000).rows) == counted["losses"]
    assert sum(group.letters for group in history.dead_groups().rows) == counted["dead"]
    assert sum(group.rows for group in history.quarantine_groups().rows) == counted["malformed"]


def test_edges_carry_what_was_really_sent(truth, history):
    sent = "select from_node::varchar, to_node::varchar, sum(sent)::bigint from <edges> group by all"
    drawn = history.topology()
    assert {(edge.sender, edge.receiver, edge.traffic.sent) for edge in drawn.edges} == set(truth.ask(sent))
    assert len(drawn.nodes) == 4
    arrived = sum(point.hops for point in history.latency().points)
    assert arrived == sum(edge.traffic.received for edge in drawn.edges)


def test_each_message_of_a_flow_is_found(truth, history):
    for flow in history.failed_flows(limit=3).flows:
        (rows,) = truth.ask(f"select rows from <flows> where correlation_id = '{flow.flow}'::blob")[0]  # noqa: S608
        assert len(history.recorded(flow).messages) == rows
        assert history.story(flow).legs


def test_a_report_on_it_has_all_parts(history):
    text = report_page(gathered(history), title="Real")
    assert text.count("<section") == 11
    assert len(text.encode()) < 500_000
