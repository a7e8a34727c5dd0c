"""Reading captures, with our reader and with those of others, while they are written."""

import datetime as dt
import threading

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.capture.recording import NODE, frames_of, numbers, parquet_files, recording
from tests.node.running import until

import framewire as fw
from framewire.capture import Follower, batches, read
from framewire.capture.contents import Contents
from framewire.wire import MessageId

QUICK = {"batch_seconds": 0.01, "seal_seconds": 0.05}


def with_pyarrow(path):
    return ds.dataset(path, format="parquet").to_table(columns=["at", "frames"]).num_rows


def with_duckdb(path):
    query = """SELECT count(*), count("at"), sum(len(frames)) FROM read_parquet(?)"""
    with duckdb.connect() as connection:
        return connection.execute(query, [f"{path}/**/*.parquet"]).fetchone()[0]


def with_ours(path):
    return read(path, open_segments=True).num_rows


@pytest.mark.parametrize("count_rows", [with_pyarrow, with_duckdb, with_ours])
def test_no_reader_stumbles_while_segments_are_sealed(tmp_path, count_rows):
    with recording(tmp_path, **QUICK) as capture:
        capture.record("sent", b"peer", frames_of(0))
        until(lambda: parquet_files(tmp_path))
        done = threading.Event()

        def record():
            while not done.wait(0.001):
                capture.record("sent", b"peer", frames_of(1))

        thread = threading.Thread(target=record)
        thread.start()
        try:
            seen = [count_rows(tmp_path)]
            until(lambda: seen.append(count_rows(tmp_path)) or capture.stats.segments > 15)
        finally:
            done.set()
            thread.join()
    assert seen == sorted(seen), "rows that were there are gone"
    assert count_rows(tmp_path) == capture.captured


def test_rows_are_found_by_time_node_direction_and_reason(tmp_path):
    with recording(tmp_path, node=b"one") as one, recording(tmp_path, node=b"two") as two:
        one.record("sent", b"peer", frames_of(1))
        two.record("received", b"peer", frames_of(2))
        two.record("dead", b"peer", frames_of(3), "no_route")
    middle = read(tmp_path)["at"].to_pylist()[1]
    assert numbers(tmp_path, nodes=[b"two"]) == [2, 3]
    assert numbers(tmp_path, directions=["sent", "dead"]) == [1, 3]
    assert numbers(tmp_path, reasons=["no_route"]) == [3]
    assert numbers(tmp_path, since=middle) == [2, 3]
    assert numbers(tmp_path, until=middle) == [1]
    assert numbers(tmp_path, nodes=[b"two"], directions=["sent"]) == []


def test_a_time_without_a_zone_is_refused(tmp_path):
    with pytest.raises(fw.UsageError, match="since"):
        read(tmp_path, since=dt.datetime(2026, 3, 1))  # noqa: DTZ001 - that is the point


def test_a_place_that_is_not_there_is_told(tmp_path):
    with pytest.raises(fw.UsageError, match="no such directory of captures"):
        read(tmp_path / "nowhere")


def test_one_file_can_be_read_alone(tmp_path):
    with recording(tmp_path) as capture:
        capture.record("sent", b"peer", frames_of(4))
    assert numbers(parquet_files(tmp_path)[0]) == [4]


def test_a_parquet_file_that_is_no_capture_is_told(tmp_path):
    pq.write_table(pa.table({"at": [1]}), tmp_path / "other.parquet")
    with pytest.raises(fw.UsageError, match=r"other\.parquet is no capture: it has no column 'direction'"):
        list(batches(tmp_path))


def test_a_segment_that_is_removed_while_it_is_read_is_left_out(tmp_path):
    with recording(tmp_path, seal_bytes=1024) as capture:
        for number in range(2):
            capture.record("sent", b"peer", frames_of(number, body=b"%-5000d" % number))
            until(lambda: capture.stats.segments == number + 1)  # noqa: B023 - called before the next round
    found = batches(tmp_path)
    assert next(found).num_rows == 1
    parquet_files(tmp_path)[1].unlink()
    assert list(found) == []


def said(found):
    return [int(bytes(frames[2])) for batch in found for frames in batch["frames"].to_pylist()]


def test_a_follower_sees_each_message_once_open_or_sealed(tmp_path):
    with recording(tmp_path, **QUICK) as capture, Follower(tmp_path) as follower:
        found = []
        for number in range(300):
            capture.record("sent", b"peer", frames_of(number))
            if number % 10 == 0:
                until(lambda: capture.captured > number)  # noqa: B023 - same
                found += said(follower.poll())
        until(lambda: capture.captured == 300)
        found += said(follower.poll())
        assert sorted(found) == list(range(300))
        assert capture.stats.segments > 1


def test_a_follower_tells_the_past_newest_first_and_never_again(tmp_path):
    with recording(tmp_path, batch_seconds=0.01, seal_seconds=60) as capture:
        capture.record("sent", b"peer", frames_of(1))
        until(lambda: capture.captured == 1)
        with Follower(tmp_path) as follower:
            assert said(follower.recent()) == [1]
            assert said(follower.poll()) == []
            capture.record("sent", b"peer", frames_of(2))
            until(lambda: capture.captured == 2)
            assert said(follower.poll()) == [2]
    with Follower(tmp_path) as follower:
        next(follower.recent())
        assert said(follower.poll()) == []


def test_contents_are_counted_by_node_direction_reason_and_message(tmp_path):
    with recording(tmp_path) as capture:
        for version in (1, 4, 5):
            capture.record("sent", b"peer", frames_of(version=version))
        capture.record("dead", b"peer", [b"peer", b"", b"nonsense"], "malformed")
        capture.record("dead", b"peer", [], "malformed")
        capture.record("received", b"peer", [b"x" * 20] * 20)
    contents = Contents()
    contents.add(batches(tmp_path))
    assert contents.messages == 6
    assert contents.nodes == {NODE: 6}
    assert contents.directions == {"sent": 3, "dead": 2, "received": 1}
    assert contents.reasons == {"malformed": 2}
    assert contents.message_ids == {
        MessageId(b"capture.note", b"1"): 1,
        MessageId(b"capture.note", 1): 2,
        None: 3,
    }


def test_frames_that_are_all_empty_have_contents_too(tmp_path):
    with recording(tmp_path) as capture:
        capture.record("dead", b"peer", [], "malformed")
    contents = Contents()
    contents.add(batches(tmp_path))
    assert contents.message_ids == {None: 1}
