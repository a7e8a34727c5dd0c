"""Messages written down as text: told apart, and read as they come. More of it, from files, is in tests/cli."""

import json

import pytest
from tests.wire.vectors import FOLDER, load

from framewire.wire.transcripts import Recording, Unreadable, read_lines, read_text

HEX = "# two messages\n0x0102\n-\nff fe\n\n\n00\n"
TWO = [[b"\1\2", b"", b"\xff\xfe"], [b"\0"]]


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.jsonl")))
def test_recorded_frames_are_read_from_a_text(name):
    found = list(read_text((FOLDER / f"{name}.jsonl").read_text()))
    assert found
    assert [each.frames for each in found] == [case["frames"] for case in load(name)]


@pytest.mark.parametrize(
    "content",
    [
        HEX,
        "\ufeff" + HEX,
        HEX.replace("\n", "\r\n"),
        "\n".join(json.dumps([frame.hex() for frame in frames]) for frames in TWO),
    ],
)
def test_json_and_hex_are_told_apart(content):
    assert [each.frames for each in read_text(content)] == TWO


def test_what_is_no_message_is_told_with_its_line_and_does_not_stop_the_rest():
    lines = [json.dumps({"frames": ["00"]}), "{broken", json.dumps({"frames": ["zz"]}), json.dumps(["01"])]
    first, second, third, last = read_text("\n".join(lines))
    assert (first.frames, last.frames) == ([b"\0"], [b"\1"])
    assert str(second).startswith("line 2: not JSON")
    assert str(third) == "line 3: frames[0]: 'zz' is not hex"
    assert list(read_text("00\nxyz\n01")) == [Unreadable("line 2", "'xyz' is not hex")]


@pytest.mark.parametrize("content", ["", "\n# only a remark\n\n"])
def test_nothing_is_read_from_nothing(content):
    assert list(read_text(content)) == []


def test_half_a_character_is_told_and_not_raised():
    assert list(read_text("\ud800")) == [Unreadable("line 1", "'?' is not hex")]


@pytest.mark.parametrize(("notation", "line"), [("jsonl", b'["00"]'), ("hex", b"00")])
def test_a_line_that_is_not_there_is_told_with_the_reason(notation, line):
    lines = [(1, line), (2, b""), (3, "it is too long"), (4, b""), (5, line)]
    assert list(read_lines(lines, str, notation)) == [
        Recording([b"\0"], None, "1"),
        Unreadable("3", "it is too long"),
        Recording([b"\0"], None, "5"),
    ]


def test_a_message_is_there_as_soon_as_its_last_line_is():
    def growing():
        yield 1, b"00"
        yield 2, b""
        raise AssertionError("more was read than was needed")

    assert next(read_lines(growing(), str)) == Recording([b"\0"], None, "1")
