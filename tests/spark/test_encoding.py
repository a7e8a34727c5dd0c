"""Rows become V5 frames again, byte for byte as ``wire.upgrade`` and ``wire.encode`` write them."""

from functools import reduce

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from tests.spark.rows import drawn, mutations, recorded, table
from tests.wire.strategies import canonical_frames, odd_frames

from framewire.errors import UsageError, WireError
from framewire.spark import decode, encode
from framewire.wire import Message, MessageId, upgrade
from framewire.wire import decode as decode_one
from framewire.wire import encode as encode_one

VERSIONS = {b"beta": 7, b"": 3}


def by_the_codec(frames, versions=None):
    """The upgraded frames, or the field or reason to blame."""
    try:
        return encode_one(upgrade(decode_one(frames), versions))
    except WireError as problem:
        return problem.reason
    except UsageError as problem:
        return str(problem).partition(":")[0]


def by_spark(spark, cases, versions=None):
    encoded = encode(decode(table(spark, cases), versions=versions)).select("row", "frames", "encode_error")
    found = [None] * len(cases)
    for row, frames, error in encoded.collect():
        assert (frames is None) == (error is not None)
        found[row] = error.partition(":")[0] if error else [bytes(frame) for frame in frames]
    return found


def test_upgrading_is_what_the_codec_does_byte_for_byte(spark):
    cases = [*recorded(), *drawn(canonical_frames, 150), *drawn(odd_frames, 100), *mutations(1500, seed=5)]
    for frames, found in zip(cases, by_spark(spark, cases), strict=True):
        assert found == by_the_codec(frames)


def test_a_mapping_of_versions_is_obeyed(spark):
    cases = [
        encode_one(Message(b"x", version=version, callback_points=(MessageId(b"a", point),), wire_version=1), 1)
        for version in (b"1.0", b"beta", b"other")
        for point in (b"2", b"", b"other")
    ]
    found = by_spark(spark, cases, VERSIONS)
    assert found == [by_the_codec(frames, VERSIONS) for frames in cases]
    assert "version" in found
    assert "callback_points" in found


def test_a_row_that_was_changed_is_written_as_it_is_now(spark):
    decoded = decode(table(spark, [encode_one(Message(b"old", body_frames=(b"1", b"2")))]))
    row = encode(decoded.withColumn("identity", F.lit(bytearray(b"new")))).first()
    assert decode_one([bytes(frame) for frame in row["frames"]]) == Message(b"new", body_frames=(b"1", b"2"))


REFUSED = {
    "version: is not a number from 0 to 65535": ("version", "65536"),
    "hops: does not fit the 16 bits": ("hops", "65536"),
    "trace_options: does not fit the 16 bits": ("trace_options", "-1L"),
    "distribution: is neither 0 nor 1": ("distribution", "2"),
    "domain: is null": ("domain", "cast(null as string)"),
    "wire_version: is no wire format": ("wire_version", "9"),
    "body_frames: holds a null": ("body_frames", "array(cast(null as binary))"),
    "body_frames: more frames than a 16-bit offset can reach": ("body_frames", "array_repeat(x'', 65536)"),
    "callback_points: holds a null": (
        "callback_points",
        "array(named_struct('identity', cast(null as binary), 'version', 1, 'partition', x''))",
    ),
    "callback_points: the version is not a number": (
        "callback_points",
        "array(named_struct('identity', x'', 'version', 65536, 'partition', x''))",
    ),
    "routing: holds a null": ("routing", "array(named_struct('uri', cast(null as string), 'identity', x''))"),
}


def test_a_row_that_cannot_be_written_gets_an_error_and_no_frames(spark):
    decoded = decode(table(spark, [encode_one(Message(b"x"))])).cache()
    try:
        changed = {text: decoded.withColumn(column, F.expr(value)) for text, (column, value) in REFUSED.items()}
        tables = [
            encode(one).select("frames", "encode_error", F.lit(text).alias("text")) for text, one in changed.items()
        ]
        rows = reduce(DataFrame.union, tables).collect()
    finally:
        decoded.unpersist()
    assert len(rows) == len(REFUSED)
    for row in rows:
        assert row["frames"] is None
        assert row["encode_error"].startswith(row["text"])


def test_a_table_that_was_not_decoded_is_refused(spark):
    with pytest.raises(UsageError, match=r"columns: the table has no identity, .*; decode\(\) adds them"):
        encode(table(spark, []))


def test_no_python_runs_in_the_plan(spark):
    assert "Python" not in encode(decode(table(spark, [])))._jdf.queryExecution().executedPlan().toString()


def test_bodies_of_several_frames_are_read_and_written_frame_by_frame(spark):
    bodies = [(b"a", b"", b"\xff\x80\x00"), (), (b"",), (b"\xc3", b"\xa9"), tuple(bytes([n]) for n in range(200))]
    cases = [encode_one(Message(b"several", body_frames=body)) for body in bodies]
    decoded = decode(table(spark, cases)).orderBy("row")
    rows = decoded.select("body", "body_frames", "error").collect()
    assert [tuple(bytes(frame) for frame in row["body_frames"]) for row in rows] == bodies
    assert [bytes(row["body"]) for row in rows] == [b"".join(body) for body in bodies]
    assert by_spark(spark, cases) == cases
