"""Disks that are full, read-only or slow: messaging goes on, what is lost is counted, recording goes on after."""

import contextlib
import os
import resource
import shutil
import subprocess
import threading

import msgspec
import pytest
from tests.capture.recording import frames_of, numbers, recording
from tests.node.running import run, until

import framewire as fw
from framewire.capture import read

QUICK = {"batch_seconds": 0.02, "seal_seconds": 0.2}


@fw.message("disk.ping")
class Ping(msgspec.Struct):
    pass


@fw.message("disk.pong")
class Pong(msgspec.Struct):
    pass


class Echo(fw.Actor):
    @fw.handles(Ping)
    async def answer(self, _: Ping) -> Pong:
        return Pong()


@pytest.fixture
def disk(tmp_path):
    """A filesystem of two megabytes."""
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None:
        pytest.skip("only root can mount a small filesystem; test_a_limit_on_files... shows the same without")
    path = tmp_path / "disk"
    path.mkdir()
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=2m", "framewire-test", str(path)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"this machine lets nobody mount: {done.stderr.decode().strip()}")
    yield path
    subprocess.run([shutil.which("umount"), "--lazy", str(path)], check=True)


def remount(path, how):
    subprocess.run([shutil.which("mount"), "-o", f"remount,{how}", str(path)], check=True)


@contextlib.contextmanager
def limit_on_files(size):
    """No file of this process may become larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def record_until(capture, condition, start=0):
    """Record numbers until something is true; the next number."""
    number = start

    def some_more():
        nonlocal number
        for _ in range(20):
            capture.record("sent", b"peer", frames_of(number, body=b"%0500d" % number))
            number += 1
        return condition()

    until(some_more)
    return number


def accounted(capture, path, recorded):
    """Each message is either on disk, or counted as dropped."""
    assert capture.stats.waiting == 0
    assert capture.captured + capture.dropped == recorded
    found = numbers(path, open_segments=True)
    assert len(found) == capture.captured
    assert len(set(found)) == len(found)
    return found


def test_a_full_disk_loses_only_what_is_counted_and_recording_goes_on_after(disk, caplog):
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * 1_950_000)
    with recording(disk / "captures", queue_records=300, **QUICK) as capture:
        count = record_until(capture, lambda: capture.dropped > 100 and capture.stats.problem)
        assert "No space left on device" in capture.stats.problem
        before = capture.captured
        ballast.unlink()
        until(lambda: capture.captured > before and capture.stats.problem is None)
        last = record_until(capture, lambda: capture.captured > before + 500, count)
    found = accounted(capture, disk / "captures", last)
    assert last - 1 in found
    assert "cannot write: [Errno 28] No space left on device; trying again" in caplog.text


def test_a_limit_on_files_loses_only_what_is_counted_and_recording_goes_on_after(tmp_path):
    with recording(tmp_path, queue_records=300, batch_seconds=0.02, seal_seconds=60) as capture:
        with limit_on_files(200_000):
            count = record_until(capture, lambda: capture.dropped > 100 and capture.stats.problem)
            assert "File too large" in capture.stats.problem
        before = capture.captured
        last = record_until(capture, lambda: capture.captured > before + 500, count)
    accounted(capture, tmp_path, last)
    assert capture.stats.problem is None


def test_a_read_only_disk_loses_only_what_is_counted_and_recording_goes_on_after(disk):
    remount(disk, "ro")
    with recording(disk / "captures", queue_records=300, **QUICK) as capture:
        count = record_until(capture, lambda: capture.dropped > 100 and capture.stats.problem)
        assert "Read-only file system" in capture.stats.problem
        assert capture.captured == 0
        remount(disk, "rw")
        last = record_until(capture, lambda: capture.captured > 500, count)
    found = accounted(capture, disk / "captures", last)
    # What was recorded first was kept until the disk was back.
    assert found[:300] == list(range(300))


def test_a_path_that_is_a_file_is_told_and_stops_nobody(tmp_path):
    target = tmp_path / "captures"
    target.write_text("not a directory")

    async def main():
        capture = fw.Capture(target, **QUICK)
        async with fw.Node(capture=capture, signals=False) as node:
            await node.host(Echo())
            await node.hub.ask(Ping(), Pong)
            until(lambda: capture.stats.problem)
        assert (capture.captured, capture.dropped) == (0, 2)

    run(main())


def test_messages_go_on_while_the_disk_is_full(disk):
    (disk / "ballast").write_bytes(b"x" * (2 * 1024 * 1024 - 8192))

    async def main():
        capture = fw.Capture(disk / "captures", queue_records=10, **QUICK)
        async with fw.Node(capture=capture, signals=False) as node:
            await node.host(Echo())
            for _ in range(200):
                await node.hub.ask(Ping(), Pong, timeout=5)
            assert node.stats().capture_dropped > 0

    run(main())


def test_the_log_is_not_flooded(tmp_path, caplog):
    target = tmp_path / "captures"
    target.write_text("not a directory")
    with recording(target, queue_records=10, batch_seconds=0.001) as capture:
        record_until(capture, lambda: capture.dropped > 5000)
    assert 1 <= caplog.text.count("cannot write") <= 20


class SlowDisk:
    """Writes wait at a gate."""

    def __init__(self, monkeypatch):
        self.gate = threading.Event()
        self.reached = threading.Event()
        self._real = os.pwritev
        monkeypatch.setattr(os, "pwritev", self._write)

    def _write(self, *arguments):
        self.reached.set()
        self.gate.wait(20)
        return self._real(*arguments)


def test_a_slow_disk_does_not_hold_up_the_node(tmp_path, monkeypatch):
    slow = SlowDisk(monkeypatch)
    with recording(tmp_path, queue_records=100, batch_seconds=0.01) as capture:
        capture.record("sent", b"peer", frames_of(0))
        assert slow.reached.wait(10)
        for number in range(1, 1000):
            capture.record("sent", b"peer", frames_of(number))
        assert capture.dropped > 0
        slow.gate.set()
    accounted(capture, tmp_path, 1000)


def test_a_node_that_waits_for_a_slow_disk_loses_nothing(tmp_path, monkeypatch):
    slow = SlowDisk(monkeypatch)
    with recording(tmp_path, queue_records=100, batch_seconds=0.01, on_full="wait") as capture:
        opener = threading.Timer(0.2, slow.gate.set)
        opener.start()
        for number in range(1000):
            capture.record("sent", b"peer", frames_of(number))
        opener.join()
    assert accounted(capture, tmp_path, 1000) == list(range(1000))


def test_what_cannot_be_written_before_the_end_is_counted(tmp_path, caplog):
    target = tmp_path / "captures"
    target.write_text("not a directory")
    with recording(target) as capture:
        for number in range(5000):
            capture.record("sent", b"peer", frames_of(number))
    assert (capture.captured, capture.dropped, capture.stats.waiting) == (0, 5000, 0)
    assert "5000 messages could not be written before the end" in caplog.text


def test_a_segment_that_was_cut_short_by_a_full_disk_reads_well(disk):
    (disk / "ballast").write_bytes(b"x" * 1_800_000)
    with recording(disk / "captures", queue_records=300, batch_seconds=0.02, seal_seconds=60) as capture:
        record_until(capture, lambda: capture.dropped > 100 and capture.stats.problem)
        assert read(disk / "captures", open_segments=True).num_rows == capture.captured
