"""How long captures are kept."""

import datetime as dt

import pytest
from tests.capture.recording import frames_of, parquet_files, recording
from tests.node.running import until

from framewire.capture import Place, prune, read
from framewire.capture.places import new_ulid, time_of_ulid
from framewire.capture.schema import segment_path

NOW = 1_800_000_000.0
DAY = 86_400.0


@pytest.fixture
def ten_days(tmp_path, monkeypatch):
    """A segment of a hundred bytes for each of ten days, the last of them today."""
    for age in range(9, -1, -1):
        began = NOW - age * DAY
        monkeypatch.setattr("time.time_ns", lambda began=began: int(began * 1e9))
        moment = dt.datetime.fromtimestamp(began, dt.UTC)
        path = tmp_path / segment_path(b"node-%d" % (age % 2), moment, new_ulid())
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * 100)
    monkeypatch.undo()
    return Place(tmp_path)


def ages(place):
    return [round((NOW - segment.began) / DAY) for segment in place.segments()]


def test_what_is_too_old_is_removed_whoever_recorded_it(ten_days):
    assert ages(ten_days) == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    removed = prune(ten_days, keep_seconds=3.5 * DAY, now=NOW)
    assert len(removed) == 6
    assert ages(ten_days) == [3, 2, 1, 0]


def test_the_oldest_go_first_where_there_is_too_much(ten_days):
    prune(ten_days, keep_bytes=250, now=NOW)
    assert ages(ten_days) == [1, 0]


def test_both_limits_hold(ten_days):
    prune(ten_days, keep_seconds=5.5 * DAY, keep_bytes=800, now=NOW)
    assert ages(ten_days) == [5, 4, 3, 2, 1, 0]


def test_nothing_is_removed_in_a_dry_run(ten_days):
    assert len(prune(ten_days, keep_bytes=0, dry_run=True)) == 10
    assert len(ages(ten_days)) == 10


def test_directories_go_with_their_last_segment(ten_days, tmp_path):
    prune(ten_days, keep_bytes=100)
    assert len(list(tmp_path.glob("recorder=*/date=*"))) == 1
    assert len(list(tmp_path.glob("recorder=*"))) == 1


def test_what_others_keep_there_is_left_alone(ten_days, tmp_path):
    for name in ("notes.txt", "_SUCCESS", ".open/some.arrows", "_delta_log/old.parquet"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    prune(ten_days, keep_bytes=0)
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert left == {"notes.txt", "_SUCCESS", ".open/some.arrows", "_delta_log/old.parquet"}


def test_a_recorder_removes_the_oldest_when_it_seals(tmp_path):
    with recording(tmp_path, seal_bytes=1024, keep_bytes=5000) as capture:
        for number in range(20):
            capture.record("sent", b"peer", frames_of(number, body=b"%-3000d" % number))
            until(lambda: capture.stats.segments == number + 1)  # noqa: B023 - called before the next round
    files = parquet_files(tmp_path)
    assert 0 < sum(file.stat().st_size for file in files) <= 5000
    assert 0 < len(files) < 20
    assert int(read(tmp_path)["frames"].to_pylist()[-1][2]) == 19


def test_a_recorder_removes_what_is_too_old_when_it_seals(tmp_path):
    old, new = tmp_path / "segment-01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet", tmp_path / f"segment-{new_ulid()}.parquet"
    for file in (old, new):
        file.write_bytes(b"x")
    with recording(tmp_path, keep_seconds=DAY) as capture:
        capture.record("sent", b"peer", frames_of(1))
    assert (old.exists(), new.exists()) == (False, True)
    assert len(parquet_files(tmp_path)) == 1


def test_names_sort_by_the_time_they_were_made():
    names = [new_ulid() for _ in range(100)]
    assert len(set(names)) == 100
    assert [name[:10] for name in names] == sorted(name[:10] for name in names)
    assert time_of_ulid("01ARZ3NDEKTSV4RRFFQ69G5FAV") == 1469922850.259
    assert time_of_ulid("segment") is None
