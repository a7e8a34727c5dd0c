"""One flow in the terminal and as JSON."""

import datetime as dt
import json

import pytest
from click.testing import CliRunner
from tests.spark.lake_rows import BEGIN, after, at_node, flow_id, make_lake, message_id
from tests.spark.storied import FLOW, SKEW, make_storied_lake

from framewire.cli import main

NEXT_DAY = BEGIN + dt.timedelta(days=1)


@pytest.fixture
def lake(tmp_path):
    return make_storied_lake(tmp_path / "lake")


def show(*arguments, monkeypatch=None):
    if monkeypatch is not None:
        monkeypatch.setenv("COLUMNS", "140")
    return CliRunner().invoke(main, ["flow", *map(str, arguments)])


def story(lake, wanted=FLOW):
    done = show(wanted, "--lake", lake, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_messages_are_told_in_order_by_the_clock_of_the_origin(lake):
    told = [
        (leg["message"], leg["from"], leg["to"], leg["sent_us"], leg["received_us"]) for leg in story(lake)["legs"]
    ]
    assert told == [
        ("stock.reserve v1", "shop", "stock", 0, 5000),
        ("mail.send v1", "stock", "shop", 14_000, None),
        ("audit.note v1", "stock", "stock", None, None),
        ("stock.reserved v1", "stock", "shop", 16_000, 21_000),
    ]


def test_each_message_has_its_fate(lake):
    fates = {leg["message"]: (leg["fate"], leg["reason"], leg["to_hub"]) for leg in story(lake)["legs"]}
    assert fates == {
        "stock.reserve v1": ("delivered", None, False),
        "mail.send v1": ("lost", None, False),
        "audit.note v1": ("dead", "no_route", False),
        "stock.reserved v1": ("delivered", None, True),
    }


def test_waiting_and_working_are_told_apart(lake):
    leg = story(lake)["legs"][0]
    assert (leg["received_us"], leg["handed_us"], leg["done_us"]) == (5000, 6000, 16_000)


def test_the_beginning_of_an_id_is_enough(lake):
    assert story(lake, FLOW[:6])["flow"] == FLOW


def test_the_waterfall_shows_way_work_fate_and_the_slowest_step(lake, monkeypatch):
    done = show(FLOW, "--lake", lake, monkeypatch=monkeypatch)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    (asked,) = [line for line in lines if "stock.reserve v1" in line and "shop → stock" in line]
    assert "5.0 ms" in asked
    assert "10.0 ms" in asked
    assert "handled" in asked
    assert asked.index("─") < asked.index("█")
    (answered,) = [line for line in lines if "reached the hub" in line]
    assert answered.index("─") > asked.index("─")
    assert any("never received" in line for line in lines)
    assert any("dead: no_route" in line for line in lines)
    assert "slowest step: 16.0 ms until stock.reserve v1 on stock was delivered" in done.output


def test_nothing_recorded_can_do_anything_to_the_terminal(tmp_path, monkeypatch):
    nasty = "a\x1b]0;title\x07\x9b2J\u202e[bold]"
    lake = make_storied_lake(tmp_path / "lake", exception=nasty, exception_text=nasty, outcome="failed")
    ways = {"from_name": nasty, "to_name": nasty, "from_node": b"x", "to_node": b"y"}
    lost = {**flow_id(FLOW), **ways, "kind": "not_received", "message": nasty, "at": after(1), "filed": NEXT_DAY}
    make_lake(lake, losses=[lost])
    done = show(FLOW, "--lake", lake, monkeypatch=monkeypatch)
    assert done.exit_code == 0, done.output
    assert not set("\x1b\x07\x9b\u202e") & set(done.output)
    assert "[bold]" in done.output


def test_of_a_long_flow_the_first_messages_are_shown(lake, monkeypatch):
    done = show(FLOW, "--lake", lake, "--limit", 1, monkeypatch=monkeypatch)
    assert "stock.reserved v1" not in done.output
    assert "3 more" in done.output


def test_several_flows_that_begin_so_are_listed(lake):
    make_lake(lake, flows=[{**flow_id("3f2a9"), "filed": NEXT_DAY}])
    done = show("3f2a", "--lake", lake)
    assert done.exit_code == 2
    assert "several flows begin with 3f2a" in done.output
    assert FLOW in done.output


def test_a_whole_id_is_that_flow_even_if_others_begin_with_it(lake):
    make_lake(lake, flows=[{**flow_id(FLOW + "-2"), "filed": NEXT_DAY}])
    assert story(lake)["flow"] == FLOW


def test_an_unknown_flow_is_told_with_what_to_do(lake):
    done = show("nope", "--lake", lake)
    assert done.exit_code == 2
    assert "no flow of" in done.output
    assert "framewire query" in done.output


def test_only_the_days_of_a_flow_are_looked_at(lake):
    long_ago = lake / "hops" / "date=2025-01-01" / "bucket=08h00"
    long_ago.mkdir(parents=True)
    (long_ago / "part.parquet").write_bytes(b"broken")
    assert len(story(lake)["legs"]) == 4


def test_a_lake_may_be_named_by_a_uri(lake):
    assert story(f"file://{lake}") == story(lake)


# --- steps of traced messages


def make_traced_lake(directory):
    """The same flow, whose question was traced: stock's clock is ahead, and the rows lie in no order."""
    lake = make_storied_lake(directory)
    reserve = message_id(b"stock.reserve")
    steps = (
        ("stock", 6 + SKEW, "routed", "to 01ff"),
        ("shop", 0, "received", "from a hub of this node"),
        ("stock", 5 + SKEW, "received", "from node shop"),
        ("shop", 0.5, "routed", "to node \x1b[31mstock"),
    )
    rows = [
        {**flow_id(FLOW), **at_node(node), **reserve, "at": after(at), "step": step, "detail": detail}
        for node, at, step, detail in steps
    ]
    make_lake(lake, traces=rows)
    return lake


def test_the_steps_of_traced_messages_are_told_by_the_clock_of_the_origin(tmp_path):
    told = story(make_traced_lake(tmp_path / "lake"))["trace"]
    assert [(step["at_us"], step["node"], step["step"], step["detail"]) for step in told] == [
        (0, "shop", "received", "from a hub of this node"),
        (500, "shop", "routed", "to node \x1b[31mstock"),
        (5000, "stock", "received", "from node shop"),
        (6000, "stock", "routed", "to 01ff"),
    ]
    assert {step["message"] for step in told} == {"stock.reserve v1"}


def test_the_steps_of_traced_messages_are_shown_below_the_waterfall(tmp_path, monkeypatch):
    done = show(FLOW, "--lake", make_traced_lake(tmp_path / "lake"), monkeypatch=monkeypatch)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    slowest = next(number for number, line in enumerate(lines) if line.startswith("slowest step"))
    shown = [line.split() for line in lines[slowest + 1 :] if line.strip().startswith("+")]
    assert shown[0] == [
        "+0",
        "µs",
        "shop",
        "received",
        "from",
        "a",
        "hub",
        "of",
        "this",
        "node",
        "stock.reserve",
        "v1",
    ]
    assert shown[2][:5] == ["+5.0", "ms", "stock", "received", "from"]
    assert "\x1b" not in done.output, "nothing recorded can do anything to the terminal"


def test_only_so_many_steps_are_shown(tmp_path, monkeypatch):
    done = show(FLOW, "--lake", make_traced_lake(tmp_path / "lake"), "--limit", 3, monkeypatch=monkeypatch)
    assert "… 1 more; --limit shows them" in done.output


def test_a_flow_that_was_not_traced_has_no_steps(lake, monkeypatch):
    assert story(lake)["trace"] == []
    assert "traced" not in show(FLOW, "--lake", lake, monkeypatch=monkeypatch).output
