"""The format framewire: rows of Spark, in batches and streams, into a live cluster."""

import shutil

import pytest
from pyspark.errors import PySparkException
from tests.spark.living import living_cluster

from framewire.spark.source import MessageSink

COLUMNS = "identity string, version int, body binary, correlation_id binary"


@pytest.fixture(scope="module")
def sinking(spark):
    spark.dataSource.register(MessageSink)
    return spark


@pytest.fixture
def cluster():
    with living_cluster() as alive:
        yield alive


def rows(*bodies, identity="replay.work"):
    return [(identity, 1, body, b"flow " + body) for body in bodies]


def write(df, uri, **options):
    writer = df.write.format("framewire").mode("append").option("rendezvous", uri)
    writer.options(**options).save()


def test_rows_become_messages_with_their_ids(sinking, cluster):
    uri, worker = cluster
    bodies = [b"%d" % number for number in range(20)]
    write(sinking.createDataFrame(rows(*bodies), COLUMNS).repartition(2), uri)
    assert sorted(worker.got) == sorted((body, b"flow " + body) for body in bodies)


def test_a_batch_that_is_written_again_is_not_sent_again(sinking, cluster, tmp_path):
    uri, worker = cluster
    ledger = str(tmp_path / "ledger")
    same = sinking.createDataFrame(rows(b"one", b"one", b"two"), COLUMNS).coalesce(1)
    write(same, uri, ledger=ledger, batch="monday")
    write(same, uri, ledger=ledger, batch="monday")
    assert worker.bodies == [b"one", b"one", b"two"]
    write(same, uri, ledger=ledger, batch="tuesday")
    assert len(worker.got) == 6


def test_of_a_batch_that_failed_only_the_rest_is_sent_again(sinking, cluster, tmp_path):
    uri, worker = cluster
    told = {"ledger": str(tmp_path / "ledger"), "batch": "b"}
    mixed = sinking.createDataFrame(rows(b"one", b"two") + rows(b"x", identity="replay.nobody"), COLUMNS).coalesce(
        1
    )
    with pytest.raises(PySparkException) as failed:
        write(mixed, uri, **told)
    assert "2 confirmed, 1 failed (NoRoute 1)" in str(failed.value)
    assert "only what failed is sent again" in str(failed.value)
    with pytest.raises(PySparkException, match="0 confirmed, 2 skipped, 1 failed"):
        write(mixed, uri, **told)
    assert worker.bodies == [b"one", b"two"]


def test_failures_may_be_tolerated(sinking, cluster):
    uri, worker = cluster
    mixed = rows(b"one") + rows(b"x", identity="KINO.UNREGNODE")
    write(sinking.createDataFrame(mixed, COLUMNS), uri, onfailure="log")
    assert worker.bodies == [b"one"]


def test_all_that_is_wrong_is_told_at_once(sinking):
    df = sinking.createDataFrame([(1.5, "b")], "identity double, correlation_id string")
    with pytest.raises(PySparkException) as wrong:
        df.write.format("framewire").mode("append").options(speed="2", rate="fast", ledger="l").save()
    for problem in (
        "speed: no such option; there are rendezvous:",
        "rate: 'fast' is not a number",
        "identity: the column is double; must be binary or string",
        "body: no such column",
        "ledger and batch",
        "rendezvous or peers: one of them must be given",
    ):
        assert problem in str(wrong.value)


def test_messages_cannot_be_overwritten(sinking):
    df = sinking.createDataFrame(rows(b"one"), COLUMNS)
    with pytest.raises(PySparkException, match="messages cannot be taken back"):
        df.write.format("framewire").mode("overwrite").option("rendezvous", "tcp://127.0.0.1:9").save()


def test_a_stream_sends_each_batch_once_even_if_spark_runs_it_again(sinking, cluster, tmp_path):
    uri, worker = cluster
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    source.mkdir()
    stream = sinking.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(source))

    def run():
        writer = stream.writeStream.format("framewire").option("checkpointLocation", str(checkpoint))
        writer = writer.options(rendezvous=uri, ledger=str(tmp_path / "ledger"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(60)
        query.stop()

    for body in (b"one", b"two"):
        sinking.createDataFrame(rows(body), COLUMNS).coalesce(1).write.mode("append").parquet(str(source))
    run()
    assert sorted(worker.bodies) == [b"one", b"two"]

    # A driver that dies between the end of a batch and Spark's note of it leaves this behind.
    commits = checkpoint / "commits"
    for file in (commits / "1", commits / ".1.crc"):
        file.unlink()
    run()
    assert sorted(worker.bodies) == [b"one", b"two"]

    shutil.rmtree(tmp_path / "ledger")
    for file in (commits / "1", commits / ".1.crc"):
        file.unlink()
    run()
    assert len(worker.got) == 3, "without the ledger it would have been sent again"


def test_rows_with_frames_become_bodies_of_several_frames(sinking, cluster):
    uri, worker = cluster
    schema = "identity string, body binary, body_frames array<binary>"
    sent = [[b"a", b"\xff\x00", b""], None, [b"one"], []]
    found = [("replay.work", b"" if frames else b"plain", frames) for frames in sent]
    write(sinking.createDataFrame(found, schema).coalesce(1), uri)
    assert worker.frames == [(b"a", b"\xff\x00", b""), (b"plain",), (b"one",), ()]


def test_rows_may_have_frames_alone_and_what_is_wrong_with_them_is_told(sinking, cluster):
    uri, worker = cluster
    rows = [("replay.work", [b"a", b"b"]), ("replay.work", [b"a", None])]
    df = sinking.createDataFrame(rows, "identity string, body_frames array<binary>").coalesce(1)
    with pytest.raises(Exception, match=r"replay\.work: body_frames holds a null"):
        write(df, uri)
    assert worker.frames == [(b"a", b"b")]
    numbers = sinking.createDataFrame([("replay.work", [1])], "identity string, body_frames array<int>")
    with pytest.raises(Exception, match="body_frames: the column is array<int>; must be array<binary>"):
        write(numbers, uri)
