"""Open segments become Parquet."""

import datetime as dt
import gc
import os
import weakref

import pyarrow.parquet as pq
import pytest
from tests.capture.recording import NODE, frames_of, parquet_files

from framewire.capture import Place, recover, sealing
from framewire.capture.columns import SCHEMA, Records, batch_of
from framewire.capture.sealing import Draft, seal
from framewire.capture.settings import CaptureSettings
from framewire.capture.spool import OpenSegment
from framewire.capture.writing import Sealer

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)


def a_batch(moments):
    records = Records()
    for number, moment in enumerate(moments):
        frames = frames_of(number)
        records.at.append(int(moment.timestamp() * 1_000_000) * 1000)
        records.directions.append("dead")
        records.peers.append(b"peer")
        records.reasons.append("no_route")
        records.frames.extend(frames)
        records.counts.append(len(frames))
    return batch_of(NODE, records)


def a_segment(path, *batches):
    """A segment of batches, each of which is the moments of its rows."""
    segment = OpenSegment.create(Place(path).spool, NODE)
    segment.append([a_batch(moments).serialize() for moments in batches])
    return segment


def a_draft(*batches):
    draft = Draft(NODE)
    for moments in batches:
        batch = a_batch(moments)
        draft.add(batch, batch.nbytes)
    draft.finish()
    return draft


def sealed(path):
    """The moments in each sealed file."""
    return [pq.ParquetFile(file).read()["at"].to_pylist() for file in parquet_files(path)]


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


@pytest.fixture(params=[1, 4 * 1024 * 1024], ids=["many pieces", "one piece"])
def pieces(request, monkeypatch):
    monkeypatch.setattr(sealing, "_PIECE", request.param)


@pytest.mark.usefixtures("pieces")
def test_a_draft_is_sealed_without_reading_the_segment(tmp_path, monkeypatch):
    batches = after(NOON, 1, 2), after(NOON, 2, 3), after(NOON, 4)
    expected, drafted = tmp_path / "expected", tmp_path / "drafted"
    seal(Place(expected), a_segment(expected, *batches))
    segment = a_segment(drafted, *batches)
    monkeypatch.setattr(OpenSegment, "reader", None)
    assert seal(Place(drafted), segment, a_draft(*batches)) == 5
    one, other = (pq.ParquetFile(parquet_files(path)[0]).read() for path in (expected, drafted))
    assert one.schema.equals(other.schema)
    assert one.equals(other)
    assert [file for file in drafted.rglob("*") if file.is_file()] == parquet_files(drafted)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([after(NOON, 5, 1), after(NOON, 7, 6)], [after(NOON, 1, 5, 6, 7)]),
        ([after(NOON, 5, 7), after(NOON, 1, 6)], [after(NOON, 1, 5, 6, 7)]),
        ([after(MIDNIGHT, -2, -1), after(MIDNIGHT, 0)], [after(MIDNIGHT, -2, -1), [MIDNIGHT]]),
        ([after(MIDNIGHT, -1, 1), after(MIDNIGHT, 2)], [after(MIDNIGHT, -1), after(MIDNIGHT, 1, 2)]),
    ],
    ids=["in a batch", "between batches", "midnight between", "midnight in a batch"],
)
def test_what_is_not_in_order_or_of_one_day_is_sealed_right_with_a_draft(tmp_path, batches, expected):
    seal(Place(tmp_path), a_segment(tmp_path, *batches), a_draft(*batches))
    assert sealed(tmp_path) == expected


def test_a_draft_that_fails_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sealing, "_PIECE", 1)
    batches = after(NOON, 1), after(NOON, 2), after(NOON, 3)
    real, calls = pq.ParquetWriter.write_table, []

    def out_of_memory(self, table, row_group_size):
        calls.append(table)
        if len(calls) == 2:
            raise MemoryError
        real(self, table, row_group_size)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", out_of_memory)
    draft = a_draft(*batches)
    monkeypatch.undo()
    assert seal(Place(tmp_path), a_segment(tmp_path, *batches), draft) == 3
    assert sealed(tmp_path) == [after(NOON, 1, 2, 3)]


def test_a_draft_of_nothing_leaves_no_file(tmp_path):
    assert seal(Place(tmp_path), a_segment(tmp_path), a_draft()) == 0
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_a_draft_keeps_no_more_than_it_needs(monkeypatch):
    draft = Draft(NODE)
    batch = a_batch(after(NOON, 1))
    draft.add(batch, batch.nbytes)
    assert not draft.settled
    monkeypatch.setattr(sealing, "_PIECE", 1)
    draft.add(batch, batch.nbytes)
    assert draft.settled


def test_few_drafts_wait_in_memory_however_slow_the_disk_is(tmp_path):
    sealer = Sealer(Place(tmp_path), CaptureSettings())
    drafts = []
    for number in range(10):
        draft = a_draft(after(NOON, number))
        sealer.seal(a_segment(tmp_path, after(NOON, number)), draft)
        drafts.append(weakref.ref(draft))
        del draft
    gc.collect()
    assert sum(draft() is not None for draft in drafts) == 1
    sealer.end()
    sealer.start()
    sealer.join(30)
    assert sorted(sealed(tmp_path)) == [after(NOON, number) for number in range(10)]
