"""However captures come in, the tables are the same: in pieces, out of order, twice, or read by one that dies."""

import contextlib
import datetime as dt
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.lakes import PERIODS, Made, feed, run, segments

from framewire.errors import ConfigError, UsageError, WireError
from framewire.spark.periods import Periods
from framewire.spark.pipeline import Pipeline
from framewire.spark.tables import TABLES
from framewire.synth import Options, synthesise
from framewire.wire import Message, decode, encode

pytestmark = pytest.mark.timeout(900)
MINUTE = 60_000_000
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Forty minutes across buckets of half an hour and over midnight, with troubles."""
    made = tmp_path_factory.mktemp("traffic")
    faults = {"loss": 0.03, "malformed": 0.02, "tampered": 0.03, "duplicates": 0.05}
    begin = dt.datetime(2025, 1, 1, 23, 25, tzinfo=dt.UTC)
    synthesise(Options(messages=3000, nodes=3, segment_rows=120, duration=2400, start=begin, **faults), made)
    for segment in segments(made):
        add_steps(segment)
    return made


def add_steps(segment):
    """Let a segment have a trace step for one in ten of its rows, as a node records them."""
    rows = pq.read_table(segment)
    steps = [
        row | {"direction": "trace", "peer": b"", "reason": None, "frames": frames}
        for row in rows.to_pylist()[::10]
        if (frames := step_of(row["frames"])) is not None
    ]
    added = pa.Table.from_pylist(steps, rows.schema.remove_metadata())
    pq.write_table(pa.concat_tables([rows.replace_schema_metadata(), added]).sort_by("at"), segment)


def step_of(frames):
    try:
        message = decode(frames)
    except WireError:
        return None
    told = (b"routed", b"to node 1")
    return encode(Message(message.identity, 1, b"", told, message.correlation_id, trace_options=1))


@pytest.fixture(scope="module")
def expected(spark, directory):
    """What is in a lake that got everything at once."""
    run(spark, directory, directory / "lake", **PERIODS)
    made = Made(directory, directory / "lake")
    contents = made.contents()
    assert all(contents.values())
    assert made.ask("select distinct step, detail from {traces}") == [("routed", "to node 1")]
    assert made.ask("select count(*) from {messages} where direction = 'trace'") == [(0,)]
    assert made.ask("select count(distinct bucket || date) >= 3 from {messages}") == [(True,)]
    return contents


def assert_same(contents, expected):
    assert {name: len(rows) for name, rows in contents.items()} == {name: len(r) for name, r in expected.items()}
    assert contents == expected


def began(segment):
    return pq.read_table(segment, columns=["at"])["at"][0].as_py()


def files(folder):
    return {path.name for path in folder.iterdir()}


def in_pieces(spark, directory, tmp_path, pieces):
    captures, lake = tmp_path / "captures", tmp_path / "lake"
    for piece in pieces:
        piece(captures)
        run(spark, directory, lake, captures=captures, **PERIODS)
    return Made(directory, lake).contents()


def test_pieces_out_of_order_and_twice_make_the_same_tables(spark, directory, expected, tmp_path):
    parts = segments(directory)
    random.Random(4).shuffle(parts)  # noqa: S311 - the same order every time
    third = len(parts) // 3
    pieces = [
        lambda to: feed(directory, parts[:third], to),
        lambda to: feed(directory, parts[third - 5 :], to, name=lambda path: f"again-{path.name}"),
    ]
    assert_same(in_pieces(spark, directory, tmp_path, pieces), expected)


def test_what_new_rows_do_not_matter_to_stays_as_it_is(spark, directory, expected, tmp_path):
    captures, lake = tmp_path / "captures", tmp_path / "lake"
    late = [path for path in segments(directory) if began(path) > dt.datetime(2025, 1, 1, 23, 45, tzinfo=dt.UTC)]
    feed(directory, [path for path in segments(directory) if path not in late], captures)
    run(spark, directory, lake, captures=captures, **PERIODS)
    before = files(lake / "flows" / "date=2025-01-01" / "bucket=23h00")
    feed(directory, late, captures)
    run(spark, directory, lake, captures=captures, **PERIODS)
    assert late
    assert before == files(lake / "flows" / "date=2025-01-01" / "bucket=23h00")
    assert_same(Made(directory, lake).contents(), expected)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_fifty_pieces_make_the_same_tables(spark, directory, expected, tmp_path):
    parts = sorted(segments(directory), key=lambda path: path.stat().st_mtime_ns)
    size = -(-len(parts) // 50)
    pieces = [lambda to, part=parts[at : at + size]: feed(directory, part, to) for at in range(0, len(parts), size)]
    assert_same(in_pieces(spark, directory, tmp_path, pieces), expected)


@contextlib.contextmanager
def process(directory, lake, captures, files):
    command = [sys.executable, "-m", "tests.spark.pipeline_process", directory, lake, captures, files]
    started = subprocess.Popen(
        list(map(str, command)),
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def wait_for(condition, deadline=300.0):
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


def killed_and_finished(spark, directory, tmp_path, moments, *, least):
    """Kill a pipeline whenever one of the moments has come, and let another finish its work."""
    lake, captures = tmp_path / "lake", directory / "captures"
    kills = 0
    for moment in moments:
        began = time.monotonic()
        with process(directory, lake, captures, 10) as started:
            wait_for(lambda moment=moment, began=began: moment(lake, began) or started.poll() is not None)
            kills += started.poll() is None
    assert kills >= least, "it was done before it could be killed"
    run(spark, directory, lake, **PERIODS)
    return Made(directory, lake).contents()


def half_moved(lake, _):
    """The first batch is in messages, and its flows are being written."""
    return (lake / "_staging" / "flows").exists()


@pytest.mark.long
def test_a_pipeline_that_is_killed_and_started_again_makes_the_same_tables(spark, directory, expected, tmp_path):
    assert_same(killed_and_finished(spark, directory, tmp_path, [half_moved], least=1), expected)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_pipeline_that_is_killed_at_random_makes_the_same_tables(spark, directory, expected, tmp_path):
    rng = random.Random(2)  # noqa: S311 - the same moments every time

    def after(seconds):
        return lambda lake, began: lake.exists() and time.monotonic() > began + seconds

    moments = [after(rng.uniform(8, 25)) for _ in range(8)]
    assert_same(killed_and_finished(spark, directory, tmp_path, moments, least=3), expected)


@pytest.mark.long
def test_rows_that_are_too_late_are_counted_and_kept_apart(spark, directory, tmp_path):
    captures, lake = tmp_path / "captures", tmp_path / "lake"
    parts = segments(directory)
    early = [path for path in parts if "date=2025-01-01" in path.as_posix()]
    feed(directory, [path for path in parts if path not in early], captures)
    first = run(spark, directory, lake, captures=captures, **{**PERIODS, "late": "1m"})
    made = Made(directory, lake)
    before = {name: rows for name, rows in made.contents().items() if name != "quarantine"}
    feed(directory, early, captures)
    second = run(spark, directory, lake, captures=captures, **{**PERIODS, "late": "1m"})
    assert first.late == 0
    assert 0 < second.late == second.rows
    assert {name: rows for name, rows in made.contents().items() if name != "quarantine"} == before
    assert made.ask("select count(*) from {quarantine} where error = 'late'") == [(second.late,)]


@pytest.mark.long
def test_a_lake_of_orc_holds_the_same_rows(spark, directory, expected, tmp_path):
    run(spark, directory, tmp_path / "lake", format="orc", **PERIODS)
    for name, table in TABLES.items():
        place = f"{tmp_path}/lake/{name}"
        rows = spark.read.schema(table.schema).option("basePath", place).orc(place)
        assert rows.count() == len(expected[name]), name


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_a_flow_of_a_million_messages_is_one_flow(spark, tmp_path):
    synthesise(Options(messages=3_100_000, nodes=4, giant_flow=1_000_000, seed=11), tmp_path)
    run(spark, tmp_path, tmp_path / "lake")
    made = Made(tmp_path, tmp_path / "lake")
    columns = "correlation_id, outcome, messages, hops, rows"
    assert made.differences(f"select {columns} from {{flows}}", f"select {columns} from <flows>") == ([], [])  # noqa: S608
    assert made.ask("select max(messages) >= 1000000, max(len(path)) from {flows}") == [(True, 1000)]


@pytest.mark.long
def test_traffic_in_one_partition_makes_true_tables(spark, tmp_path):
    synthesise(Options(messages=60_000, nodes=4, hot_partition=0.9, seed=12), tmp_path)
    run(spark, tmp_path, tmp_path / "lake")
    made = Made(tmp_path, tmp_path / "lake")
    for table, columns in {
        "flows": "correlation_id, outcome, messages",
        "edges": "from_node, to_node, sent",
    }.items():
        mine, told = f"select {columns} from {{{table}}}", f"select {columns} from <{table}>"  # noqa: S608
        assert made.differences(mine, told) == ([], [])


def test_every_wrong_option_is_told_at_once(spark, tmp_path):
    with pytest.raises(ConfigError) as told:
        Pipeline("captures", str(tmp_path), late="soon", lost_after="never", files_per_batch=0, spark=spark)
    assert [problem.partition(":")[0] for problem in told.value.problems] == [
        "late",
        "lost_after",
        "files_per_batch",
    ]


def test_a_run_takes_what_the_lake_began_with(spark, directory, expected):  # noqa: ARG001 - it is made by then
    again = Pipeline(str(directory / "captures"), str(directory / "lake"), spark=spark)
    assert again.lake.periods == Periods(30 * MINUTE, 10 * MINUTE)


def test_a_lake_does_not_change_its_buckets(spark, directory, expected):  # noqa: ARG001 - it is made by then
    with pytest.raises(UsageError, match="began with other settings"):
        run(spark, directory, directory / "lake", bucket="15m")


def test_captures_that_are_not_there_are_told(spark, tmp_path):
    with pytest.raises(UsageError, match="captures"):
        Pipeline(str(tmp_path / "nowhere"), str(tmp_path / "lake"), spark=spark).run()
