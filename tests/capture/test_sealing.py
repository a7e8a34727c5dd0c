"""Open segments become Parquet."""

import datetime as dt
import os

import pyarrow.parquet as pq
import pytest
from tests.capture.recording import NODE, frames_of, parquet_files

from framewire.capture import Place, recover
from framewire.capture.columns import SCHEMA, Records, batch_of
from framewire.capture.sealing import seal
from framewire.capture.spool import OpenSegment

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)


def a_segment(path, moments):
    records = Records()
    for number, moment in enumerate(moments):
        frames = frames_of(number)
        records.at.append(int(moment.timestamp() * 1_000_000) * 1000)
        records.directions.append("dead")
        records.peers.append(b"peer")
        records.reasons.append("no_route")
        records.frames.extend(frames)
        records.counts.append(len(frames))
    segment = OpenSegment.create(Place(path).spool, NODE)
    segment.append([batch_of(NODE, records).serialize()])
    return segment


def after(moment, *milliseconds):
    return [moment + dt.timedelta(milliseconds=count) for count in milliseconds]


def test_a_sealed_segment_has_the_columns_of_the_schema(tmp_path):
    assert seal(Place(tmp_path), a_segment(tmp_path, [NOON])) == 1
    (file,) = parquet_files(tmp_path)
    assert file.relative_to(tmp_path).parts[:2] == (f"recorder={NODE.hex()}", "date=2026-03-01")
    table = pq.ParquetFile(file).read()
    assert table.schema.equals(SCHEMA)
    assert table.to_pylist() == [
        {
            "at": NOON,
            "node": NODE,
            "direction": "dead",
            "peer": b"peer",
            "reason": "no_route",
            "frames": frames_of(0),
        }
    ]
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"


def test_rows_are_sorted_by_time_where_the_clock_was_set_back(tmp_path):
    seal(Place(tmp_path), a_segment(tmp_path, after(NOON, 5, 7, 1, 1, 6)))
    table = pq.ParquetFile(parquet_files(tmp_path)[0]).read()
    assert table["at"].to_pylist() == after(NOON, 1, 1, 5, 6, 7)
    assert table["frames"].to_pylist() == [frames_of(number) for number in (2, 3, 0, 4, 1)]


def test_a_segment_over_midnight_becomes_a_file_for_each_day(tmp_path):
    seal(Place(tmp_path), a_segment(tmp_path, after(MIDNIGHT, -2, -1, 0, 1, 2)))
    found = {file.parent.name: pq.ParquetFile(file).metadata.num_rows for file in parquet_files(tmp_path)}
    assert found == {"date=2026-03-01": 2, "date=2026-03-02": 3}


def test_nothing_but_the_sealed_file_remains(tmp_path):
    seal(Place(tmp_path), a_segment(tmp_path, [NOON]))
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == parquet_files(tmp_path)


def test_sealing_again_after_a_crash_doubles_nothing(tmp_path, monkeypatch):
    segment = a_segment(tmp_path, after(NOON, 1, 2, 3))
    # Killed after the file was moved into place and before the open segment was removed.
    monkeypatch.setattr(OpenSegment, "remove", OpenSegment.close)
    seal(Place(tmp_path), segment)
    monkeypatch.undo()
    assert [found.messages for found in recover(Place(tmp_path))] == [3]
    assert [pq.ParquetFile(file).metadata.num_rows for file in parquet_files(tmp_path)] == [3]


def test_a_crash_while_the_file_is_moved_leaves_nothing_that_a_reader_sees(tmp_path, monkeypatch):
    segment = a_segment(tmp_path, [NOON])

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        seal(Place(tmp_path), segment)
    segment.close()
    assert Place(tmp_path).segments() == []
    assert list(tmp_path.rglob("*.parquet")) == []
    monkeypatch.undo()
    assert [found.messages for found in recover(Place(tmp_path))] == [1]
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == parquet_files(tmp_path)


def test_a_segment_whose_name_was_removed_is_sealed_all_the_same(tmp_path):
    segment = a_segment(tmp_path, [NOON])
    segment.path.unlink()
    assert seal(Place(tmp_path), segment) == 1
    assert len(parquet_files(tmp_path)) == 1
