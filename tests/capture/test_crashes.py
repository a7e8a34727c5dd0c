"""Processes that are killed: all but the last moment is there, and no reader ever stumbles."""

import random
import signal
import time

import msgspec
import pyarrow.dataset as ds
import pytest
from tests.capture.recording import frames_of, parquet_files, recording, recording_process, spooled
from tests.node.running import until

from framewire.capture import Place, read, recover
from framewire.wire import decode

# A message waits 0.2 s at most, in a process that gets the processor when it wants it. Here it may have to wait for
# that, too.
PATIENCE = 1.0


def counted(path, **options):
    """The numbers that the process told itself and that are on disk."""
    found = []
    for frames in read(path, nodes=[b"doomed"], directions=["delivered"], **options)["frames"].to_pylist():
        message = decode(frames)
        if message.identity == b"process.number":
            found.append(msgspec.msgpack.decode(message.body)["number"])
    return found


def killed_after(path, seconds, **options):
    """Let a node record for a while, kill it, and tell which numbers were old enough to be safe."""
    with recording_process(path, **options) as process:
        process.stdout.readline()  # it has begun
        deadline = time.monotonic() + seconds
        told = []
        while time.monotonic() < deadline:
            told.append(process.stdout.readline())
        killed = time.time()
        process.send_signal(signal.SIGKILL)
        told += process.stdout.readlines()
    whole = [line.split() for line in told if line.endswith(b"\n")]
    return [int(number) for number, at in whole if float(at) < killed - PATIENCE]


def check(path, safe):
    if not path.exists():
        assert not safe, "killed before it wrote anything, and yet too late for that"
        return
    found = counted(path)
    assert found == list(range(len(found))), "a gap, or something twice"
    assert not safe or len(found) > safe[-1], "older messages are missing"
    assert spooled(path) == []
    # What any other reader would see: every file that is there is whole.
    if parquet_files(path):
        assert ds.dataset(path, format="parquet").to_table().num_rows >= len(found)


@pytest.mark.parametrize("seconds", [0.05, 1.7, 2.6])
def test_a_kill_loses_only_the_last_moment(tmp_path, seconds):
    safe = killed_after(tmp_path, seconds, seal_seconds=0.4)
    assert len(spooled(tmp_path)) <= 2
    assert all(not found.problem for found in recover(Place(tmp_path)))
    check(tmp_path, safe)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_kills_at_random_moments_lose_only_the_last_moment(tmp_path):
    chance = random.Random(5)  # noqa: S311 - any moment will do
    for life in range(20):
        path = tmp_path / str(life)
        safe = killed_after(path, chance.uniform(0, 2.5), seal_seconds=chance.choice([0.05, 0.3, 5]))
        for _ in recover(Place(path)):
            pass
        check(path, safe)


def test_the_next_node_that_records_there_seals_what_was_left(tmp_path):
    safe = killed_after(tmp_path, 1.5, seal_seconds=60)
    assert parquet_files(tmp_path) == []
    assert len(spooled(tmp_path)) == 1
    before = counted(tmp_path, open_segments=True)
    with recording(tmp_path, node=b"next") as capture:
        until(lambda: capture.stats.segments == 1)
        capture.record("sent", b"peer", frames_of(1))
    assert counted(tmp_path) == before
    check(tmp_path, safe)


def test_a_node_that_lives_is_left_alone(tmp_path):
    with recording(tmp_path, seal_seconds=60) as living:
        living.record("sent", b"peer", frames_of(1))
        until(lambda: living.captured == 1)
        assert list(recover(Place(tmp_path))) == []
        with recording(tmp_path, node=b"next"):
            pass
        assert len(spooled(tmp_path)) == 1
    assert read(tmp_path).num_rows == 1
