"""What Spark is made to do for a batch: captures are read once, rows are shuffled once, and code is made once."""

import datetime as dt
import re
import secrets

import pytest
from tests.spark.lakes import PERIODS, feed, run, segments

from framewire.capture.schema import SPARK_SCHEMA
from framewire.security import DomainKey, KeyRing
from framewire.spark.arriving import arriving
from framewire.spark.flows import flows
from framewire.spark.passages import in_contexts, passages
from framewire.spark.periods import Periods
from framewire.spark.tables import TABLES
from framewire.spark.totals import edges
from framewire.spark.transfers import hops, transfers
from framewire.synth import Options, synthesise

NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def read(spark, tmp_path_factory):
    """Tables that are files, and empty: what is looked at is what Spark would do with them."""
    root = tmp_path_factory.mktemp("empty")

    def table(name, schema):
        place = str(root / name)
        spark.createDataFrame([], schema).write.mode("overwrite").parquet(place)
        return spark.read.schema(schema).parquet(place)

    return table


@pytest.fixture(scope="module")
def events(read):
    rows = in_contexts(read("messages", TABLES["messages"].schema), Periods(), {1})
    return transfers(passages(rows, NOW))


def plan(df):
    return df._jdf.queryExecution().executedPlan().toString()


def count(df, step):
    return len(re.findall(rf"(?<![A-Za-z]){step} ", plan(df)))


def columns_read(df):
    leaves = df._jdf.queryExecution().sparkPlan().collectLeaves()
    return [set(leaves.apply(number).schema().fieldNames()) for number in range(leaves.size())]


def test_captures_are_read_once_and_stay_where_they_are(read):
    keys = KeyRing([DomainKey("shop", secrets.token_bytes(32))], identities={"shop": ["*"]})
    made = arriving(read("captures", SPARK_SCHEMA), keys, NOW)
    assert (count(made, "FileScan"), count(made, "Exchange"), count(made, "Sort")) == (1, 0, 0)
    assert "Python" not in plan(made)


def test_messages_are_shuffled_once_and_without_their_bodies(events):
    assert (count(events, "FileScan"), count(events, "Exchange"), count(events, "Sort")) == (1, 1, 5)
    (read,) = columns_read(events)
    assert read >= {"strand", "at", "exception"}
    assert not read & {"body", "signature", "frames", "callback_points", "routing"}
    assert "Python" not in plan(events)


def test_tables_of_flows_and_hops_shuffle_nothing_again(spark, events):
    clocks = spark.createDataFrame([], "context long, node binary, ahead_us double")
    skews = spark.createDataFrame([], "context long, from_node binary, to_node binary, skew_us double")
    assert count(flows(events, clocks, Periods()), "Exchange") == 1
    assert count(hops(events, skews, Periods()), "Exchange") == 1


def test_hours_are_added_up_from_the_columns_that_they_need(read):
    tables = [read(name, TABLES[name].schema) for name in ("hops", "losses")]
    made = edges(*tables, Periods())
    assert count(made, "Exchange") == 1
    assert all(read >= {"from_node"} for read in columns_read(made))
    assert all(not read & {"flow", "correlation_id", "skew_us"} for read in columns_read(made))


def test_a_batch_makes_hardly_any_code_that_the_one_before_has_made(spark, tmp_path):
    made = tmp_path / "made"
    synthesise(Options(messages=900, nodes=2, segment_rows=30, duration=3000), made)
    classes = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    parts, grown = segments(made), []
    for number in range(3):
        feed(made, parts[number::5], tmp_path / "captures")
        before = classes.getCount()
        run(spark, made, tmp_path / "lake", captures=tmp_path / "captures", **PERIODS)
        grown.append(classes.getCount() - before)
    # The second finds tables where the first found none, and the times of the last that were read. What looks both
    # ahead and back, or at a whole group, too, does so in either order, and names its code after it.
    assert grown[0] > 0
    assert grown[2] <= 8
