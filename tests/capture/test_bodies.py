"""Messages that are recorded without what they say."""

import hashlib
import json
from pathlib import Path

import pytest
from tests.capture.recording import frames_of, recording

from framewire.capture import cut_of, read
from framewire.capture.bodies import cut_body
from framewire.errors import WireError
from framewire.wire import Message, MessageId, RouterAddress, decode, encode

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
SECRET = b"the secret, in full"


def vectors():
    for file in sorted(VECTORS.glob("*.jsonl")):
        for number, line in enumerate(file.read_text().splitlines()):
            frames = json.loads(line).get("frames")
            if frames is not None:
                yield pytest.param([bytes.fromhex(frame) for frame in frames], id=f"{file.stem}-{number}")


def recorded(path, frames, **options):
    with recording(path, **options) as capture:
        capture.record("sent", b"peer", frames)
    return read(path)["frames"].to_pylist()[0]


def whole_message(version):
    message = Message(
        b"orders.place",
        b"1" if version == 1 else 1,
        body_frames=(SECRET,) if version == 1 else (SECRET, b"", b"short", SECRET * 3),
        correlation_id=b"flow",
        callback_points=(MessageId(b"orders.placed", b"1" if version == 1 else 1),),
        routing=(RouterAddress("tcp://127.0.0.1:7500", b"router"),),
        hops=1,
    )
    return encode(message, version)


@pytest.mark.parametrize("version", [1, 4, 5])
def test_a_body_that_is_left_out_leaves_its_length_and_hash(tmp_path, version):
    frames = whole_message(version)
    found = decode(recorded(tmp_path, frames, bodies="drop"))
    before = decode(frames)
    for kept, original in zip(found.body_frames, before.body_frames, strict=True):
        if original:
            cut = cut_of(kept)
            assert (cut.kept, cut.length, cut.sha256) == (
                b"",
                len(original),
                hashlib.sha256(original).hexdigest(),
            )
        else:
            assert kept == b""
    assert found.replace(body_frames=()) == before.replace(body_frames=())


def test_a_body_that_is_cut_keeps_its_beginning(tmp_path):
    found = decode(recorded(tmp_path, whole_message(5), bodies=10)).body_frames
    assert [cut_of(frame).kept if cut_of(frame) else frame for frame in found] == [
        SECRET[:10],
        b"",
        b"short",
        SECRET[:10],
    ]


def test_bodies_are_recorded_unless_told_otherwise(tmp_path):
    frames = whole_message(5)
    assert recorded(tmp_path, frames) == frames
    assert cut_of(decode(frames).body_frames[0]) is None


def test_frames_that_are_no_message_are_all_cut(tmp_path):
    found = recorded(tmp_path, [b"peer", b"", SECRET], bodies="drop")
    assert SECRET not in b"".join(found)
    assert [cut_of(frame).length if frame else 0 for frame in found] == [4, 0, len(SECRET)]


@pytest.mark.parametrize("frames", list(vectors()))
def test_every_recorded_message_stays_what_it_was_without_its_body(frames):
    cut = cut_body(frames, 0)
    try:
        before = decode(frames)
    except WireError:
        assert all(not frame or cut_of(frame) for frame in cut)
        return
    assert decode(cut).replace(body_frames=()) == before.replace(body_frames=())
    assert all(not frame or cut_of(frame) for frame in decode(cut).body_frames)


def test_no_byte_of_a_body_reaches_the_disk(tmp_path):
    secret = b"a secret that nobody may find on the disk"
    with recording(tmp_path, bodies="drop", batch_seconds=0.01) as capture:
        for _ in range(10):
            capture.record("sent", b"peer", frames_of(body=secret))
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or secret not in file.read_bytes()
