"""Which messages are recorded."""

import uuid

import pytest
from tests.capture.recording import NODE, frames_of, numbers, recording

from framewire.capture import in_sample, read
from framewire.wire import decode

FLOWS = [str(uuid.UUID(int=number)).encode() for number in range(4000)]


def record_all(path, messages, **options):
    with recording(path, **options) as capture:
        for direction, frames in messages:
            capture.record(direction, b"peer", frames)
    return capture.stats


def test_only_the_directions_that_were_asked_for_are_recorded(tmp_path):
    messages = [(direction, frames_of()) for direction in ("sent", "received", "delivered", "dead")]
    stats = record_all(tmp_path, messages, directions=["sent", "dead"])
    assert read(tmp_path)["direction"].to_pylist() == ["sent", "dead"]
    assert (stats.captured, stats.left_out, stats.dropped) == (2, 2, 0)


@pytest.mark.parametrize("version", [1, 4, 5])
def test_only_the_identities_that_were_asked_for_are_recorded(tmp_path, version):
    names = [b"orders.place", b"orders.cancel", b"order", b"stock.reserve", b"stock"]
    messages = [("sent", frames_of(number, identity=name, version=version)) for number, name in enumerate(names)]
    record_all(tmp_path, messages, identities=["orders.*", "stock"])
    assert numbers(tmp_path) == [0, 1, 4]


def test_frames_that_are_no_message_are_recorded_unless_identities_are_asked_for(tmp_path):
    nonsense = [("received", [b"peer", b"", b"nonsense"])]
    record_all(tmp_path / "sampled", nonsense, sample=0.0)
    record_all(tmp_path / "named", nonsense, identities=["nonsense"])
    assert read(tmp_path / "sampled")["frames"].to_pylist() == [[b"peer", b"", b"nonsense"]]
    assert not list(tmp_path.joinpath("named").rglob("*.parquet"))


@pytest.mark.parametrize("version", [1, 4, 5])
def test_a_flow_is_recorded_whole_and_by_all_nodes_alike(tmp_path, version):
    messages = [("sent", frames_of(flow=flow, version=version)) for flow in FLOWS for _ in range(2)]
    kept = []
    for node in (b"one", b"two"):
        record_all(tmp_path / node.decode(), messages, node=node, sample=0.25)
        frames = read(tmp_path / node.decode())["frames"].to_pylist()
        kept.append([decode(message).correlation_id for message in frames])
    assert sorted(kept[0]) == sorted(kept[1])
    assert all(kept[0].count(flow) == 2 for flow in kept[0][:20])
    assert 0.2 < len(kept[0]) / len(messages) < 0.3


def test_what_belongs_to_no_flow_is_always_recorded(tmp_path):
    record_all(tmp_path, [("sent", frames_of(1, flow=b"")), ("sent", frames_of(2))], sample=0.0)
    assert numbers(tmp_path) == [1]


def test_a_larger_sample_holds_the_smaller_one():
    small, large = ({flow for flow in FLOWS if in_sample(flow, share)} for share in (0.1, 0.4))
    assert small < large
    assert all(in_sample(flow, 1.0) for flow in FLOWS)
    assert not any(in_sample(flow, 0.0) for flow in FLOWS)


def test_the_recorder_is_named_in_every_row(tmp_path):
    record_all(tmp_path, [("sent", frames_of())])
    assert read(tmp_path)["node"].to_pylist() == [NODE]
