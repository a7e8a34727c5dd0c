"""Spark's decoder against the Python codec: the same fields, or the same reason, for any frames at all."""

import pytest
from pyspark.sql import functions as F  # noqa: N812
from tests.spark.rows import differences, drawn, mutations, plain, recorded, table
from tests.wire.building import lanes, setting
from tests.wire.strategies import broken_frames, canonical_frames, odd_frames, random_frames, v1_messages
from tests.wire.test_malformed import V1, V5

from framewire.errors import ConfigError, UsageError
from framewire.spark import decode
from framewire.spark.columns import DECODED
from framewire.spark.sessions import set_for_now
from framewire.wire import Message, MessageId, encode


def assert_agreement(spark, cases, **options):
    decoded = decode(table(spark, cases), **options).collect()
    assert len(decoded) == len(cases)
    assert differences(decoded, cases, **options) == []


def test_the_recorded_messages_read_the_same(spark):
    assert_agreement(spark, recorded())


def test_thousands_of_mutations_read_the_same(spark):
    cases = mutations(6000)
    decoded = decode(table(spark, cases)).collect()
    assert differences(decoded, cases) == []
    reasons = {row["error"] for row in decoded}
    assert reasons == {
        None,
        "too_few_frames",
        "unknown_version",
        "bad_integer",
        "bad_divisor",
        "bad_offset",
        "bad_distribution",
        "bad_text",
    }


def test_what_hypothesis_makes_reads_the_same(spark):
    strategies = (canonical_frames, odd_frames, broken_frames(), random_frames)
    assert_agreement(spark, [frames for strategy in strategies for frames in drawn(strategy, 250)])


def test_a_v1_ttl_in_ticks_reads_the_same(spark):
    messages = drawn(v1_messages().map(lambda message: encode(message, 1)), 100)
    assert_agreement(spark, [*messages, *mutations(500, seed=2)], ttl_unit="ticks")


TEXTS = [
    b"plain",
    "Grüße, 世界 🎉".encode(),
    b"\x00",
    b"\xc0\x80",  # overlong
    b"\xc1\xbf",
    b"\xe0\x9f\xbf",
    b"\xe0\xa0\x80",
    b"\xed\x9f\xbf",
    b"\xed\xa0\x80",  # a surrogate
    b"\xed\xbf\xbf",
    b"\xee\x80\x80",
    b"\xf0\x8f\xbf\xbf",
    b"\xf0\x90\x80\x80",
    b"\xf4\x8f\xbf\xbf",
    b"\xf4\x90\x80\x80",  # beyond the last character
    b"\xf5\x80\x80\x80",
    b"\xff",
    b"\x80",
    b"\xc3",  # cut
    b"\xe2\x82",
    b"\xf0\x9f\x8e",
    b"a\xe2\x28\xa1",
    b"\xef\xbb\xbfmark",
]


def test_text_is_checked_as_python_does(spark):
    cases = [setting(V5, n15=text) for text in TEXTS] + [setting(V5, n27=text) for text in TEXTS]
    cases += [setting(V1, n21=text) for text in TEXTS]
    assert_agreement(spark, cases)


def test_every_two_bytes_that_could_begin_a_character_are_checked_as_python_does(spark):
    pairs = [bytes([first, second]) for first in range(0x80, 0x100) for second in range(0x70, 0xD0, 3)]
    cases = [setting(V5, n15=pair + ending) for pair in pairs for ending in (b"", b"\x80", b"\x80\x80")]
    assert_agreement(spark, cases)


VERSIONS = [b"1", b"0", b"1.0", b"65535.0", b"65536", b"99999", b"100000", b"01", b"1.00", b"1.", b"", b"1.0\n"]
VERSIONS += [b" 1", b"-1", b"+1", b"1.1", b"\xd9\xa1", b"\xff", b"1\n.0", b"beta"]


def v1_with(version):
    points = (MessageId(b"a", version),)
    return encode(Message(b"x", version=version, callback_points=points, wire_version=1), 1)


def test_v1_versions_are_numbers_where_upgrade_would_make_them_numbers(spark):
    assert_agreement(spark, [v1_with(version) for version in VERSIONS])


def test_a_mapping_gives_numbers_to_other_v1_versions_and_wins_over_the_rule(spark):
    assert_agreement(spark, [v1_with(version) for version in VERSIONS], versions={b"beta": 7, b"1.0": 9, b"": 0})


def test_extreme_numbers_read_the_same(spark):
    extremes = [0, 1, -1, 2**63 - 1, -(2**63), 255, 256, 0x0102030405060708, -0x0102030405060708]
    cases = [encode(Message(b"x", ttl_ticks=number, callback_key=number)) for number in extremes]
    wide = Message(b"x", version=b"1", wire_version=1)
    cases += [encode(Message(b"x", version=size, hops=size, trace_options=size)) for size in (255, 256, 65535)]
    cases += [encode(wide.replace(hops=size, trace_options=size), 1) for size in (-(2**31), -1, 2**31 - 1)]
    assert_agreement(spark, cases)


def test_thousands_of_frames_read_the_same(spark):
    crowded = [b"\x01\x00"] * (10_000 - 17) + V5[-17:]
    crowded = setting(crowded, n12=lanes(18, 3327, 3), n13=lanes(18, 4991, 2), n2=lanes(18, 9983))
    cases = [crowded, setting(crowded, n9000=b"\xff"), [b""] * 70_000, [b"x"] * 5000 + V5]
    assert_agreement(spark, cases)


@pytest.mark.parametrize(
    ("frames", "error"),
    [
        (None, "too_few_frames"),
        ([], "too_few_frames"),
        ([None], "too_few_frames"),
        ([None] * 40, "too_few_frames"),
        (setting(V5, n6=None), "too_few_frames"),
        (setting(V5, n1=None), "too_few_frames"),
        (setting(V5, n19=None), "too_few_frames"),
    ],
    ids=["no array", "no frames", "one null", "nulls", "an identity", "a format", "an entry"],
)
def test_a_null_is_a_frame_that_is_missing(spark, frames, error):
    (row,) = decode(table(spark, [frames])).collect()
    assert plain(row) == {"error": error}


def test_a_null_in_a_file_is_a_frame_that_is_missing(spark, tmp_path):
    cases = [V5, *(setting(V5, **{f"n{place}": None}) for place in range(1, len(V5) + 1)), [], None]
    table(spark, cases).write.parquet(str(tmp_path / "frames"))
    rows = decode(spark.read.parquet(str(tmp_path / "frames"))).orderBy("row").collect()
    assert [row["error"] for row in rows] == [None] + ["too_few_frames"] * (len(V5) + 2)


def test_it_reads_the_same_where_spark_compiles_nothing(spark):
    plainly = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
    with set_for_now(spark, plainly):
        assert_agreement(spark, [*recorded()[:50], *mutations(300, seed=5)])
        (row,) = decode(table(spark, [setting(V5, n6=None)])).collect()
    assert plain(row) == {"error": "too_few_frames"}


def test_the_columns_are_those_that_are_promised(spark):
    decoded = decode(table(spark, [V5]))
    assert decoded.columns == ["row", "frames", *DECODED]
    assert {field.name: field.dataType.simpleString() for field in decoded.schema[2:]} == dict(DECODED)
    assert set(Message.__struct_fields__) | {"version_raw", "body", "error"} == set(DECODED)


def test_columns_with_odd_names_are_kept(spark):
    odd = table(spark, [V5]).select(F.col("row").alias("a.b"), F.col("frames").alias("raw frames"))
    decoded = decode(odd, frames="raw frames")
    assert decoded.columns[:2] == ["a.b", "raw frames"]
    assert decoded.first()["a.b"] == 0


def test_a_clash_of_names_is_refused_with_all_names(spark):
    clashing = table(spark, [V5]).withColumn("Identity", F.lit(1)).withColumn("error", F.lit(1))
    with pytest.raises(UsageError, match=r"columns: the table already has identity, error"):
        decode(clashing)


def test_a_column_that_is_missing_or_holds_no_frames_is_refused(spark):
    with pytest.raises(UsageError, match=r"frames: there is no column 'raw'; there are row, frames"):
        decode(table(spark, [V5]), frames="raw")
    with pytest.raises(UsageError, match=r"frames: the column 'row' is int; frames are array<binary>"):
        decode(table(spark, [V5]), frames="row")


def test_an_unknown_unit_and_bad_versions_are_refused(spark):
    with pytest.raises(UsageError, match=r"ttl_unit: 's' is neither"):
        decode(table(spark, [V5]), ttl_unit="s")
    with pytest.raises(ConfigError, match=r"(?s)'text' is not bytes.*b'beta': 65536 is not a whole number"):
        decode(table(spark, [V5]), versions={"text": 1, b"beta": 65536})


def test_a_filter_on_what_was_decoded_does_not_blow_up_the_plan(spark):
    decoded = decode(table(spark, [V5, V5[1:], [b"socket", b"", *V5], []]))
    kept = decoded.where("error is null and hops >= 0 and identity is not null and size(routing) = 2")
    assert len(kept._jdf.queryExecution().optimizedPlan().toString()) < 100_000
    assert kept.count() == 2


def test_filters_on_other_columns_are_left_to_the_files(spark, tmp_path):
    table(spark, [V5, V5]).selectExpr("*", "row AS day", "row AS node").write.partitionBy("day").parquet(
        str(tmp_path / "frames")
    )
    decoded = decode(spark.read.parquet(str(tmp_path / "frames")))
    kept = decoded.where("day = 1 and node = 1 and error is null and hops >= 0")
    scan = kept._jdf.queryExecution().executedPlan().toString().partition("FileScan")[2]
    assert "PartitionFilters: [isnotnull(day" in scan
    assert "PushedFilters: [IsNotNull(node), EqualTo(node,1)]" in scan
    assert kept.count() == 1


def test_no_python_runs_in_the_plan(spark):
    plan = decode(table(spark, [V5]))._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in plan
    assert "Arrow" not in plan


def test_no_method_is_too_large_for_the_jvm_to_compile(spark, tmp_path, capsys):
    table(spark, [V5]).write.parquet(str(tmp_path / "frames"))
    decode(spark.read.parquet(str(tmp_path / "frames"))).explain("codegen")
    sizes = [int(text.split(";")[0]) for text in capsys.readouterr().out.split("maxMethodCodeSize:")[1:]]
    assert sizes
    assert max(sizes) < 8000


def test_it_works_with_ansi_mode_off(spark):
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert_agreement(spark, [*recorded(), *mutations(500, seed=3)])
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_a_stream_reads_the_same(spark, tmp_path):
    cases = [*recorded()[:100], *mutations(300, seed=4)]
    table(spark, cases).write.parquet(str(tmp_path / "in"))
    stream = decode(spark.readStream.schema("row int, frames array<binary>").parquet(str(tmp_path / "in")))
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert query.awaitTermination(100)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert len(rows) == len(cases)
    assert differences(rows, cases) == []
