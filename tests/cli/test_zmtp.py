import io

import pytest
from tests.cli.zmtp_bytes import PING, READY, greeting, on_the_wire

from framewire.cli import zmtp

SHORT = [b"id", b"", b"body"]
LONG = [b"x" * 255, b"y" * 256, b"z" * 70_000]


def messages(raw):
    return list(zmtp.messages(io.BytesIO(raw)))


def problem(raw):
    with pytest.raises(zmtp.NotZmtp) as raised:
        messages(raw)
    return raised.value


def test_frames_of_every_size_are_put_together_to_messages():
    raw = on_the_wire(SHORT) + on_the_wire(LONG)
    assert messages(raw) == [(0, SHORT), (len(on_the_wire(SHORT)), LONG)]


def test_greeting_and_commands_are_skipped():
    raw = greeting() + READY + on_the_wire(SHORT) + PING + on_the_wire(LONG)
    assert [frames for _, frames in messages(raw)] == [SHORT, LONG]


def test_long_commands_are_skipped():
    assert messages(b"\x06" + (300).to_bytes(8, "big") + bytes(300) + on_the_wire(SHORT)) == [(309, SHORT)]


def test_recordings_of_two_connections_can_follow_one_another():
    raw = (greeting() + READY + on_the_wire(SHORT)) * 2
    assert [frames for _, frames in messages(raw)] == [SHORT, SHORT]


def test_nothing_holds_no_messages():
    assert messages(b"") == []


@pytest.mark.parametrize("flags", [0x05, 0x07, 0x08, 0x41, 0x80])
def test_bytes_that_cannot_be_flags_are_an_error_with_their_offset(flags):
    fault = problem(on_the_wire([b"ok"]) + bytes([flags, 0]))
    assert (fault.offset, fault.problem) == (4, f"0x{flags:02x} cannot start a ZMTP frame")


def test_a_size_beyond_the_limit_is_refused_without_reading_on():
    class NeverReadFar(io.BytesIO):
        def read(self, size=-1):
            assert size is not None
            assert 0 <= size <= 8
            return super().read(size)

    with pytest.raises(zmtp.NotZmtp, match="larger than"):
        list(zmtp.messages(NeverReadFar(b"\x02" + b"\xff" * 8)))


def test_frames_that_add_up_beyond_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr(zmtp, "LARGEST_MESSAGE", 10)
    assert messages(on_the_wire([b"12345", b"12345"]))
    assert "larger than 10 bytes" in problem(on_the_wire([b"12345", b"123456"])).problem


def test_endless_empty_frames_are_refused(monkeypatch):
    monkeypatch.setattr(zmtp, "MOST_FRAMES", 3)
    assert messages(on_the_wire([b""] * 3))
    assert "3 frames" in problem(b"\x01\x00" * 4).problem


def test_a_size_beyond_the_input_takes_no_more_memory_than_the_input():
    fault = problem(b"\x02" + (1 << 30).to_bytes(8, "big") + b"abc")
    assert fault.problem == "the input ends inside a frame: 3 bytes of 1073741824"


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"\x00", "inside a frame's size: 0 bytes of 1"),
        (b"\x02\x00\x00", "inside a frame's size: 2 bytes of 8"),
        (b"\x01\x00", "after 1 frames of a message that has more"),
        (greeting()[:30], "inside a greeting: 29 bytes of 63"),
    ],
)
def test_an_input_that_stops_short_says_where(raw, told):
    assert problem(raw).problem.endswith(told)


def test_a_greeting_inside_a_message_is_an_error():
    assert problem(b"\x01\x00" + greeting()).offset == 2


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (greeting(major=1), "speaks ZMTP 1"),
        (greeting(mechanism=b"CURVE"), "secured with 'CURVE'"),
        (greeting(mechanism=b"\x1b[2J"), r"secured with '\x1b[2J'"),
        (b"\xff" * 64, "no greeting follows"),
    ],
)
def test_a_connection_that_cannot_be_read_says_why(raw, told):
    assert told in problem(raw).problem
