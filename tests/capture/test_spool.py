"""Open segments: files that are worth reading wherever they end."""

import os

import pytest
from tests.capture.recording import NODE, frames_of

from framewire.capture import Place, recover
from framewire.capture.columns import Records, batch_of
from framewire.capture.spool import OpenSegment, SpoolReader, abandoned, open_segments


def batch(*said):
    records = Records()
    for number in said:
        frames = frames_of(number)
        records.at.append(1_700_000_000_000_000_000 + number)
        records.directions.append("sent")
        records.peers.append(b"peer")
        records.reasons.append(None)
        records.frames.extend(frames)
        records.counts.append(len(frames))
    return batch_of(NODE, records).serialize()


@pytest.fixture
def segment(tmp_path):
    made = OpenSegment.create(tmp_path / ".open", NODE)
    yield made
    made.close()


def rows(path):
    with path.open("rb") as file:
        reader = SpoolReader(file)
        return sum(found.num_rows for found in reader.read())


def test_a_segment_that_ends_anywhere_has_all_batches_before_its_end(segment, tmp_path):
    ends = {segment.size: 0}
    for number in range(3):
        segment.append([batch(number, number)])
        ends[segment.size] = 2 * (number + 1)
    content = segment.path.read_bytes()
    cut = tmp_path / "cut.arrows"
    for size in range(len(content) + 1):
        cut.write_bytes(content[:size])
        whole = max((rows for end, rows in ends.items() if end <= size), default=0)
        assert rows(cut) == whole, size


def test_a_reader_gets_each_batch_once_while_a_segment_grows(segment):
    with segment.path.open("rb") as file:
        reader = SpoolReader(file)
        assert reader.read() == []
        segment.append([batch(1), batch(2)])
        assert [found.num_rows for found in reader.read()] == [1, 1]
        segment.append([batch(3)])
        assert [found.num_rows for found in reader.read()] == [1]
        assert reader.read() == []
        assert reader.node == NODE


def test_a_write_that_fails_half_way_leaves_no_trace(segment, monkeypatch):
    segment.append([batch(1)])
    real = os.pwritev

    def full(descriptor, pieces, at):
        if at > segment.size:
            raise OSError(28, "No space left on device")
        return real(descriptor, [pieces[0][: len(pieces[0]) // 2]], at)

    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(OSError, match="No space left"):
        segment.append([batch(2)])
    assert segment.path.stat().st_size == segment.size
    monkeypatch.undo()
    segment.append([batch(3)])
    assert rows(segment.path) == 2


def test_writes_that_the_system_takes_bit_by_bit_are_whole_in_the_end(segment, monkeypatch):
    real = os.pwritev

    def some(descriptor, pieces, at):
        joined = b"".join(pieces)
        return real(descriptor, [joined[: min(len(joined), 7)]], at)

    monkeypatch.setattr(os, "pwritev", some)
    segment.append([batch(1), b"", batch(2), batch(3)])
    assert rows(segment.path) == 3
    assert segment.path.stat().st_size == segment.size


def test_any_number_of_batches_is_written(segment):
    segment.append([batch(number) for number in range(3000)])
    assert rows(segment.path) == 3000


def test_a_segment_is_not_abandoned_while_its_writer_lives(segment, tmp_path):
    assert list(abandoned(tmp_path / ".open")) == []
    assert open_segments(tmp_path / ".open") == [segment.path]


def test_a_segment_that_was_left_belongs_to_the_first_who_finds_it(tmp_path):
    OpenSegment.create(tmp_path / ".open", NODE).close()
    mine = list(abandoned(tmp_path / ".open"))
    assert len(mine) == 1
    assert list(abandoned(tmp_path / ".open")) == []
    mine[0].close()


@pytest.mark.parametrize("content", [b"", b"\xff\xff\xff\xff", b"\0" * 100, b"nonsense" * 100], ids=len)
def test_what_never_became_a_segment_is_removed(tmp_path, content):
    spool = tmp_path / ".open"
    spool.mkdir()
    (spool / "01ARZ3NDEKTSV4RRFFQ69G5FAV.arrows").write_bytes(content)
    assert [(found.messages, found.problem) for found in recover(Place(tmp_path))] == [(0, "")]
    assert list(spool.iterdir()) == []
    assert Place(tmp_path).segments() == []
