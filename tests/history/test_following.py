"""A lake that is written while it is asked, missing, or damaged."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.history.known import make_known_lake
from tests.spark.lake_rows import after, flow_id, make_lake

from framewire.errors import UsageError
from framewire.history import History


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def lake(tmp_path):
    return make_known_lake(tmp_path / "lake")


def add_flow(lake, name):
    """One more flow, moved into place when it is whole, as the pipeline does."""
    aside = lake.with_name("aside")
    make_lake(
        aside, flows=[{**flow_id(name), "outcome": "completed", "started_at": after(1), "ended_at": after(2)}]
    )
    for path in aside.rglob("*.parquet"):
        place = lake / path.relative_to(aside)
        place.parent.mkdir(parents=True, exist_ok=True)
        path.rename(place)


def test_what_a_pipeline_adds_is_seen_within_seconds(lake):
    clock = Clock()
    with History(str(lake), clock=clock) as history:
        assert history.summary().flows.all == 12
        add_flow(lake, "new")
        assert history.summary().flows.all == 12
        clock.now += 3
        assert history.summary().flows.all == 13


def test_files_that_were_replaced_meanwhile_do_no_harm(lake):
    with History(str(lake), clock=Clock()) as history:
        assert history.summary().flows.all == 12
        shutil.rmtree(lake / "flows")
        add_flow(lake, "only")
        assert [each.flow for each in history.flows().flows] == ["only"]


def test_a_lake_may_come_into_being_later(tmp_path):
    with History(str(tmp_path / "lake"), clock=Clock()) as history:
        with pytest.raises(UsageError, match="does not exist; make a lake with: framewire pipeline run"):
            history.summary()
        make_known_lake(tmp_path / "lake")
        assert history.summary().flows.all == 12


@pytest.mark.parametrize("content", [b"broken", b"PAR1" + bytes(100) + b"PAR1"])
@pytest.mark.parametrize("name", ["a.parquet", "zz.parquet"])
def test_a_damaged_file_is_told_once_and_clearly(lake, content, name):
    (lake / "flows" / "date=2026-03-01" / "bucket=08h00" / name).write_bytes(content)
    with History(str(lake)) as history, pytest.raises(UsageError) as told:
        history.flows()
    assert name in str(told.value)
    assert "framewire pipeline run" in str(told.value)
    assert "\n" not in str(told.value)
    assert "read_parquet" not in str(told.value)


def test_a_damaged_file_spoils_stories_as_clearly(lake):
    with History(str(lake)) as history:
        flow = history.flows(limit=1).flows[0]
        (lake / "hops" / "date=2026-03-01" / "bucket=08h00" / "zz.parquet").write_bytes(b"broken")
        with pytest.raises(UsageError, match=r"zz\.parquet"):
            history.story(flow)


def test_a_state_that_is_no_json_is_told(lake):
    (lake / "_state").mkdir()
    (lake / "_state" / "lake.json").write_text("{")
    with History(str(lake)) as history, pytest.raises(UsageError, match="cannot be read"):
        history.summary()


def test_many_threads_may_ask_while_the_lake_grows(lake):
    clock = Clock()
    meet = threading.Barrier(4)
    with History(str(lake), clock=clock) as history, ThreadPoolExecutor(4) as threads:

        def ask(number):
            meet.wait(30)
            seen = []
            for turn in range(5):
                if number == 0:
                    add_flow(lake, f"new {turn}")
                    clock.now += 3
                seen.append(history.summary().flows.all)
                assert len(history.stories(history.failed_flows().flows)) == 3
            return seen

        for seen in threads.map(ask, range(4)):
            assert seen == sorted(seen)
        assert history.summary().flows.all == 17


def test_what_is_opened_anew_is_closed_again(lake, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    clock = Clock()
    with History(str(lake), clock=clock) as history:
        for turn in range(3):
            add_flow(lake, f"new {turn}")
            clock.now += 3
            assert history.summary().flows.all == 13 + turn
            assert len(list(tmp_path.glob("framewire-*"))) == 1
    assert list(tmp_path.glob("framewire-*")) == []


def test_a_closed_history_says_so(lake):
    history = History(str(lake))
    history.close()
    with pytest.raises(UsageError, match="is closed"):
        history.summary()


def test_a_lake_that_is_named_by_a_uri_answers_too(lake):
    with History(f"file://{lake}") as elsewhere, History(str(lake)) as here:
        assert elsewhere.summary() == here.summary()
        assert elsewhere.topology() == here.topology()
        flows = here.failed_flows().flows
        assert elsewhere.stories(flows) == here.stories(flows)
        assert elsewhere.recorded(flows[0]) == here.recorded(flows[0])


def test_several_may_ask_a_lake_that_is_elsewhere(lake):
    with History(f"file://{lake}") as history, ThreadPoolExecutor(4) as threads:
        assert {told.flows.all for told in threads.map(lambda _: history.summary(), range(8))} == {12}
