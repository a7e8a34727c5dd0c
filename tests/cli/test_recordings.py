import io
import json
import sys

import pytest
from tests.cli.zmtp_bytes import READY, greeting, on_the_wire

from framewire.cli import recordings
from framewire.cli.recordings import Recording, Unreadable, read

FRAMES = [b"sock", b"", b"\x05\x00"]
HEX = [frame.hex() for frame in FRAMES]
HEX_TEXT = "736f636b\n-\n0500\n"


@pytest.fixture
def written(tmp_path):
    def write(content):
        path = tmp_path / "recording"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def frames_of(path, kind="auto"):
    return [item.frames for item in read(path, kind) if isinstance(item, Recording)]


def problems_of(path, kind="auto"):
    return [str(item).removeprefix(path) for item in read(path, kind) if isinstance(item, Unreadable)]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("jsonl", json.dumps({"name": "one", "frames": HEX, "other": [1, {}]})),
        ("jsonl", json.dumps(HEX)),
        ("jsonl", "\n \n" + json.dumps(HEX) + "\r\n\n"),
        ("jsonl", b"\xef\xbb\xbf" + json.dumps(HEX).encode()),
        ("hex", HEX_TEXT),
        ("hex", '\r\n# a remark\r\n0x736F636B\r\n""\r\n05 00'),
        ("zmtp", on_the_wire(FRAMES)),
        ("zmtp", greeting() + READY + on_the_wire(FRAMES)),
    ],
)
def test_every_kind_of_recording_is_read_and_told_apart(written, kind, content):
    path = written(content)
    assert frames_of(path) == [FRAMES]
    assert frames_of(path, kind) == [FRAMES]
    assert problems_of(path) == []


def test_the_standard_input_is_read_as_a_file_is(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(HEX_TEXT.encode())))
    assert list(read("-")) == [Recording(FRAMES, None, "<stdin>:1")]


def test_names_and_places_are_kept(written):
    path = written(json.dumps({"name": "one", "frames": []}) + "\n\n" + json.dumps(HEX))
    assert list(read(path)) == [Recording([], "one", f"{path}:1"), Recording(FRAMES, None, f"{path}:3")]


def test_messages_in_hex_are_parted_by_empty_lines_and_know_their_first_line(written):
    path = written(f"\n{HEX_TEXT}\n\n{HEX_TEXT}")
    assert [(item.frames, item.place) for item in read(path)] == [
        (FRAMES, f"{path}:2"),
        (FRAMES, f"{path}:7"),
    ]


def test_messages_on_the_wire_know_their_offset(written):
    path = written(greeting() + on_the_wire(FRAMES))
    assert [item.place for item in read(path)] == [f"{path}: byte 64"]


@pytest.mark.parametrize("content", ["", "\n\n", "# only a remark\n"])
def test_an_empty_recording_holds_nothing(written, content):
    assert list(read(written(content))) == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not JSON: Input data was truncated"),
        ("5", "not a recorded message: Expected `object | array`, got `int`"),
        ("{}", "not a recorded message: Object missing required field `frames`"),
        ('{"frames": 5}', "not a recorded message: Expected `array`, got `int` - at `$.frames`"),
        ('["00", 7]', "not a recorded message: Expected `str`, got `int` - at `$[1]`"),
        ('["00", "zz"]', "frames[1]: 'zz' is not hex"),
        ('["000"]', "frames[0]: '000' is an odd number of digits"),
        (json.dumps(["z" * 500]), f"frames[0]: '{'z' * 23}…' is not hex"),
        (r'["\u001b[2J"]', r"frames[0]: '\x1b[2J' is not hex"),
        (b'["\xff"]', "the JSON is not UTF-8"),
        ('{"frames": [], "deep": ' + "[" * 100_000, "the JSON is nested too deeply"),
    ],
)
def test_a_bad_line_of_json_is_told_and_the_rest_still_read(written, line, told):
    good = json.dumps(HEX).encode()
    path = written(good + b"\n" + (line if isinstance(line, bytes) else line.encode()) + b"\n" + good)
    assert problems_of(path) == [f":2: {told}"]
    assert frames_of(path) == [FRAMES, FRAMES]


def test_a_bad_line_of_hex_spoils_its_message_only(written):
    path = written(f"{HEX_TEXT}\n00\nnope\nworse\n\n{HEX_TEXT}")
    assert problems_of(path) == [":6: 'nope' is not hex"]
    assert frames_of(path) == [FRAMES, FRAMES]


@pytest.mark.parametrize("content", [f'["{"0" * 200}"]\n', f"{'0' * 200}\n\n"])
def test_a_line_beyond_the_limit_is_told_and_skipped(written, monkeypatch, content):
    monkeypatch.setattr(recordings, "LONGEST_LINE", 64)
    rest = '["0500"]\n' if content.startswith("[") else "0500\n"
    path = written(rest + ("\n" if "[" not in content else "") + content + rest)
    assert [problem.partition(": ")[2] for problem in problems_of(path)] == ["a line longer than 64 bytes"]
    assert frames_of(path) == [[b"\x05\x00"]] * 2


def test_what_stops_being_zmtp_is_told_after_the_messages_before_it(written):
    path = written(on_the_wire(FRAMES) + b"\x99")
    assert frames_of(path) == [FRAMES]
    assert problems_of(path) == [": byte 12: 0x99 cannot start a ZMTP frame"]


def test_what_is_none_of_the_kinds_is_told_as_such(written):
    path = written(b"\x89PNG\r\n")
    assert problems_of(path) == [": is neither JSON lines, nor hex, nor ZMTP; name it with --input"]


def test_a_file_that_cannot_be_opened_is_told(tmp_path):
    assert problems_of(str(tmp_path)) == [": Is a directory"]
    assert problems_of(str(tmp_path / "none")) == [": No such file or directory"]


def test_messages_are_read_as_they_come():
    class Live(io.RawIOBase):
        """A pipe that is never at its end: reading on for more than was asked would raise."""

        sent = iter([b'["00"]\n', b'["01"]\n'])

        def readable(self):
            return True

        def readinto(self, buffer):
            piece = next(self.sent)
            buffer[: len(piece)] = piece
            return len(piece)

    stream = recordings._read(io.BufferedReader(Live()), "pipe", "auto")
    assert next(stream) == Recording([b"\x00"], None, "pipe:1")
    assert next(stream) == Recording([b"\x01"], None, "pipe:2")
