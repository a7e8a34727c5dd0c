"""Messages to record, recorders to record them with, and a node in a process of its own that can be killed."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

from framewire.capture import Capture, read
from framewire.wire import Message, decode, encode

NODE = b"node-a"
ROOT = Path(__file__).parents[2]


def frames_of(number=0, *, identity=b"capture.note", flow=b"flow", body=None, version=5):
    """The frames of a message that says a number."""
    content = b"%d" % number if body is None else body
    about = b"1" if version == 1 else 1
    return encode(Message(identity, about, correlation_id=flow, body_frames=(content,)), version)


@contextlib.contextmanager
def recording(path, node=NODE, **options):
    """A recorder at work."""
    capture = Capture(path, **options)
    capture.open(node)
    try:
        yield capture
    finally:
        capture.close()


def numbers(path, **options):
    """What the recorded messages say, in their order."""
    return [int(decode(frames).body) for frames in read(path, **options)["frames"].to_pylist()]


def parquet_files(path):
    return sorted(Path(path).glob("recorder=*/date=*/segment-*.parquet"))


def spooled(path):
    return sorted(Path(path, ".open").glob("*"))


@contextlib.contextmanager
def recording_process(path, **options):
    """A node in a process of its own that records as fast as it can, telling of every message."""
    command = [
        sys.executable,
        str(Path(__file__).with_name("recording_process.py")),
        str(path),
        json.dumps(options),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()
