"""A lake over time: its files are put together, its old days are removed, and it tells how it is."""

import datetime as dt
import json
import shutil

import pytest
from tests.spark.lakes import PERIODS, Made, feed, run, segments

from framewire.errors import ConfigError, UsageError
from framewire.spark import compacting
from framewire.spark.compacting import compact
from framewire.spark.condition import condition
from framewire.spark.lake import Lake
from framewire.spark.pipeline import Pipeline
from framewire.spark.retention import Removed, prune
from framewire.spark.tables import LAYOUT, TABLES
from framewire.synth import Options, synthesise

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def grown(spark, tmp_path_factory):
    """A lake of two batches, over midnight."""
    directory = tmp_path_factory.mktemp("grown")
    begin = dt.datetime(2025, 1, 1, 23, 45, tzinfo=dt.UTC)
    synthesise(
        Options(messages=1500, nodes=3, segment_rows=100, duration=1800, start=begin, malformed=0.05), directory
    )
    parts, lake = segments(directory), directory / "lake"
    for some in (parts[::2], parts[1::2]):
        feed(directory, some, directory / "fed")
        run(spark, directory, lake, captures=directory / "fed", **PERIODS)
    return Made(directory, lake)


@pytest.fixture
def made(grown, tmp_path):
    shutil.copytree(grown.lake, tmp_path / "lake")
    return Made(grown.directory, tmp_path / "lake")


def batches(made):
    """How many batches the buckets of messages have."""
    return sorted(len(list(bucket.glob("batch=*"))) for bucket in (made.lake / "messages").glob("date=*/bucket=*"))


def test_compaction_puts_batches_together_and_changes_no_row(spark, made):
    before = made.contents()
    assert max(batches(made)) == 2
    assert compact(Lake.existing(spark, str(made.lake))) > 0
    assert max(batches(made)) == 1
    assert made.contents() == before
    assert compact(Lake.existing(spark, str(made.lake))) == 0


@pytest.mark.parametrize("moment", ["before it is moved", "while it is moved", "after it was moved"])
def test_a_compaction_that_is_killed_is_finished_by_the_next_one(spark, made, monkeypatch, moment):
    before = made.contents()
    lake = Lake.existing(spark, str(made.lake))
    move, remove = lake.files.move, lake.files.remove

    class Killed(BaseException):
        pass

    def dying(place, target):
        if "compact-" not in place:
            move(place, target)
            return
        if moment == "while it is moved":
            remove(target)
        elif moment == "after it was moved":
            move(place, target)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(lake.files, "move", dying)
        with pytest.raises(Killed):
            compact(lake)
    compacting.finish_compaction(Lake.existing(spark, str(made.lake)))
    assert made.contents() == before
    assert not (made.lake / "_state" / "compacting.json").exists()


@pytest.mark.long
def test_rows_of_a_compacted_lake_are_known_when_they_come_again(spark, made):
    before = made.contents()
    compact(Lake.existing(spark, str(made.lake)))
    # The account of captures names the place that the first two batches were read from.
    fed = made.directory / "fed"
    again = [path for path in segments(made.directory) if path.name.startswith("segment-")][:3]
    feed(made.directory, again, fed, name=lambda path: f"again-{path.name}")
    try:
        run(spark, made.directory, made.lake, captures=fed, **PERIODS)
    finally:
        for path in fed.rglob("again-*"):
            path.unlink()
    assert made.contents() == before


def test_only_old_days_of_the_named_tables_are_removed(made):
    now = dt.datetime(2025, 1, 4, 12, tzinfo=dt.UTC)
    keep = {"messages": dt.timedelta(days=2), "hops": dt.timedelta(days=30)}
    told = [Removed("messages", dt.date(2025, 1, 1))]
    assert prune(str(made.lake), keep, now=now, dry_run=True) == told
    assert (made.lake / "messages" / "date=2025-01-01").exists()
    assert prune(str(made.lake), keep, now=now) == told
    assert [path.name for path in (made.lake / "messages").iterdir()] == ["date=2025-01-02"]
    assert (made.lake / "hops" / "date=2025-01-01").exists()
    assert (made.lake / "flows" / "date=2025-01-01").exists()


def test_what_is_wrong_with_a_retention_is_told_at_once(made):
    with pytest.raises(ConfigError) as told:
        prune(str(made.lake), {"mesages": dt.timedelta(days=9), "hops": dt.timedelta(hours=1)})
    assert [problem.partition(":")[0] for problem in told.value.problems] == ["mesages", "hops"]


def test_a_lake_tells_how_it_is(made):
    found = condition(str(made.lake))
    assert (found.layout, found.format, found.batches, found.rows, found.late) == (LAYOUT, "parquet", 2, 1500, 0)
    assert found.newest.replace(tzinfo=None) == made.ask('select max("at") from {messages}')[0][0].replace(
        tzinfo=None
    )
    extents = {extent.table: extent for extent in found.tables}
    assert extents.keys() == TABLES.keys()
    messages = extents["messages"]
    files = [path for path in (made.lake / "messages").rglob("*.parquet") if not path.name.startswith(".")]
    assert (messages.files, messages.bytes) == (len(files), sum(path.stat().st_size for path in files))
    assert (messages.first, messages.last) == (dt.date(2025, 1, 1), dt.date(2025, 1, 2))


def test_what_is_no_lake_is_told(tmp_path):
    with pytest.raises(UsageError, match="is no lake"):
        condition(str(tmp_path))


@pytest.mark.parametrize(("layout", "advice"), [(LAYOUT + 1, "later one"), (LAYOUT - 1, "new lake")])
def test_a_lake_of_another_layout_is_refused_with_what_to_do(spark, tmp_path, layout, advice):
    lake = tmp_path / "lake"
    (lake / "_state").mkdir(parents=True)
    told = {"layout": layout, "bucket_us": 3_600_000_000, "horizon_us": 600_000_000, "format": "parquet"}
    (lake / "_state" / "lake.json").write_text(json.dumps(told))
    with pytest.raises(UsageError, match=advice):
        Lake.existing(spark, str(lake))
    with pytest.raises(UsageError, match=advice):
        Pipeline(str(tmp_path), str(lake), spark=spark).run()
