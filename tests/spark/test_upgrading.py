"""A whole capture as V5: what was older is upgraded, what is V5 stays, what cannot be is kept apart."""

import datetime as dt

import pytest
from tests.spark.rows import mutations, plain, recorded

from framewire.capture.schema import SPARK_SCHEMA
from framewire.errors import UsageError, WireError
from framewire.spark import Upgraded, upgrade
from framewire.wire import decode as decode_one
from framewire.wire import encode as encode_one
from framewire.wire import upgrade as upgrade_one

AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)


def by_the_codec(frames):
    """(frames in the target, or None where refused; whether they were V5 already)"""
    try:
        message = decode_one(frames)
        return (frames, True) if message.wire_version == 5 else (encode_one(upgrade_one(message)), False)
    except (WireError, UsageError):
        return None, False


@pytest.fixture
def capture(spark, tmp_path):
    cases = [*recorded()[::3], *mutations(200, seed=6)]
    rows = [(AT, b"n%d" % at, "sent", b"peer", None, frames) for at, frames in enumerate(cases)]
    recorded_rows = spark.createDataFrame(rows, SPARK_SCHEMA)
    parts = recorded_rows.selectExpr("*", "'abcd' recorder", "'2026-01-02' date")
    parts.write.partitionBy("recorder", "date").parquet(str(tmp_path / "captures"))
    return str(tmp_path / "captures"), cases


def test_a_capture_is_upgraded_and_nothing_is_lost(spark, capture, tmp_path):
    source, cases = capture
    target = tmp_path / "new"
    found = upgrade(spark, source, str(target))
    expected = {b"n%d" % at: by_the_codec(frames) for at, frames in enumerate(cases)}
    rows = {bytes(row["node"]): plain_frames(row) for row in spark.read.parquet(str(target)).collect()}
    assert rows == {node: frames for node, (frames, _) in expected.items() if frames is not None}
    refused = spark.read.parquet(str(target / "_refused")).collect()
    assert {bytes(row["node"]): plain_frames(row) for row in refused} == {
        node: cases[int(node[1:])] for node, (frames, _) in expected.items() if frames is None
    }
    assert all(row["upgrade_error"] for row in refused)
    kept = sum(new for _, new in expected.values())
    assert found == Upgraded(kept=kept, upgraded=len(rows) - kept, refused=len(refused))
    assert (target / "recorder=abcd" / "date=2026-01-02").is_dir()
    row = spark.read.parquet(str(target)).first()
    assert plain(row)["at"].replace(tzinfo=dt.UTC) == AT


def plain_frames(row):
    return [bytes(frame) for frame in row["frames"]]


def test_a_target_that_exists_is_left_alone(spark, capture, tmp_path):
    source, _ = capture
    (tmp_path / "there").mkdir()
    with pytest.raises(UsageError, match=r"target: .* exists already; name a new directory"):
        upgrade(spark, source, str(tmp_path / "there"))


def test_a_source_that_is_no_capture_is_refused(spark, tmp_path):
    with pytest.raises(UsageError, match=r"source: .* cannot be read as a capture"):
        upgrade(spark, str(tmp_path / "nothing"), str(tmp_path / "new"))
    spark.range(1).write.parquet(str(tmp_path / "other"))
    with pytest.raises(UsageError, match=r"source: .* is not a capture; it has no at, node"):
        upgrade(spark, str(tmp_path / "other"), str(tmp_path / "new"))
