"""What is pasted is read as ``framewire inspect`` reads a file."""

import json
from pathlib import Path

import pytest

from framewire.cli.recordings import Recording, read
from framewire.dashboard.pasting import pasted

VECTORS = sorted((Path(__file__).parents[1] / "data" / "vectors").glob("*.jsonl"))


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_recorded_frames_are_read_as_the_command_reads_them(path):
    recorded = [tuple(each.frames) for each in read(str(path)) if isinstance(each, Recording)]
    assert recorded
    assert [each.frames for each in pasted(path.read_text())] == recorded


def test_hex_is_read_as_the_command_reads_it(tmp_path):
    content = "# two messages\n0x0102\n-\nff fe\n\n\n00\n"
    (tmp_path / "hex").write_text(content)
    frames = [each.frames for each in pasted(content)]
    assert frames == [(b"\1\2", b"", b"\xff\xfe"), (b"\0",)]
    assert frames == [tuple(each.frames) for each in read(str(tmp_path / "hex"))]


def test_what_is_no_message_is_told_and_does_not_stop_the_rest():
    lines = [json.dumps({"frames": ["00"]}), "{broken", json.dumps({"frames": ["zz"]}), json.dumps(["01"])]
    first, second, third, last = pasted("\n".join(lines))
    assert (first.frames, last.frames) == ((b"\0",), (b"\1",))
    assert second.problem.startswith("not JSON")
    assert third.problem == "frames[0]: 'zz' is not hex: two digits a byte, - for an empty frame"
    (wrong,) = pasted("00\nxyz\n01")
    assert wrong.problem.startswith("line 2: 'xyz' is not hex")


def test_nothing_is_read_from_nothing():
    assert list(pasted("")) == []
    assert list(pasted("\n# only a remark\n\n")) == []
