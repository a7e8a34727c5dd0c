"""What is written is read back, whoever wrote it and however they laid it out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.building import Watched, laid_out, laid_out_v1
from tests.wire.strategies import (
    canonical_frames,
    i64,
    layouts,
    messages,
    raw,
    v1_layouts,
    v1_messages,
    versioned_messages,
)

from framewire.wire import Message, MessageId, RouterAddress, decode, encode, layout, peek

FULL = Message(
    b"orders.place",
    version=2,
    partition=b"eu",
    callback_points=(MessageId(b"orders.placed", 1, b"eu"), MessageId(b"orders.refused", 3)),
    routing=(RouterAddress("tcp://10.0.0.1:7400", b"n1"), RouterAddress("tcp://10.0.0.2:7400", b"n2")),
    body_frames=(b"first", b"second"),
    socket_identity=b"socket",
)


@given(messages)
def test_a_message_of_any_format_comes_back_as_it_was(message):
    assert decode(encode(message, message.wire_version)) == message


@given(v1_messages(ttl_ticks=i64))
def test_a_v1_message_whose_ttl_counts_ticks_comes_back_as_it_was(message):
    assert decode(encode(message, 1, ttl_unit="ticks"), ttl_unit="ticks") == message


@given(versioned_messages())
def test_the_unit_of_the_ttl_means_nothing_to_versioned_formats(message):
    version = message.wire_version
    frames = encode(message, version, ttl_unit="ms")
    assert encode(message, version, ttl_unit="ticks") == frames
    assert decode(frames, ttl_unit="ticks") == message


@given(v1_messages())
def test_a_v1_ttl_in_milliseconds_is_ten_thousand_ticks_each(message):
    frames = encode(message, 1)
    assert int.from_bytes(frames[-3], "little", signed=True) * 10_000 == message.ttl_ticks


@given(canonical_frames)
def test_canonical_frames_come_back_byte_by_byte(frames):
    message = decode(frames)
    assert encode(message, message.wire_version) == frames


@given(versioned_messages())
def test_we_write_what_the_format_prescribes(message):
    assert encode(message, message.wire_version) == laid_out(message)


@given(v1_messages())
def test_we_write_v1_as_the_format_prescribes(message):
    assert encode(message, 1) == laid_out_v1(message)


@given(versioned_messages(), layouts)
def test_sections_are_read_wherever_they_lie_and_unknown_frames_are_skipped(message, odd):
    read = decode(laid_out(message, **odd))
    # Frames left over at the top may look like an envelope; what they look like is another test's matter.
    assert read.replace(socket_identity=message.socket_identity) == message


@given(v1_messages(), v1_layouts)
def test_v1_sections_are_read_wherever_they_lie(message, odd):
    read = decode(laid_out_v1(message, **odd))
    assert read.replace(socket_identity=message.socket_identity) == message


@given(messages.map(lambda message: message.replace(socket_identity=None)))
def test_a_message_without_its_envelope_has_no_socket_identity_and_gets_none(message):
    frames = encode(message, message.wire_version)
    with_envelope = encode(message.replace(socket_identity=b"s"), message.wire_version)
    assert [b"s", b"", *frames] == with_envelope
    assert decode(frames).socket_identity is None


@given(messages, raw.filter(bool))
def test_a_frame_put_on_top_of_the_envelope_hides_the_socket_identity_and_nothing_else(message, identity):
    frames = encode(message.replace(socket_identity=identity), message.wire_version)
    assert decode([b"on top", *frames]) == message.replace(socket_identity=None)


@given(messages, st.lists(raw, max_size=5))
def test_any_number_of_leading_frames_changes_nothing_below(message, leading):
    frames = encode(message, message.wire_version)
    read = decode([*leading, *frames])
    assert read.replace(socket_identity=message.socket_identity) == message


@pytest.mark.parametrize("trailer", [b"\x05\x00", b"\x05\x00\x00\x00"])
def test_a_v5_version_frame_has_two_or_four_bytes(trailer):
    assert decode(laid_out(FULL, trailer=trailer)) == FULL


@pytest.mark.parametrize("trailer", [b"\x04\x00", b"\x04\x00\x00\x00"])
def test_a_v4_version_frame_has_two_or_four_bytes(trailer):
    assert decode(laid_out(FULL.replace(wire_version=4), trailer=trailer)).wire_version == 4


def test_v5_writes_two_bytes_of_version_and_v4_four():
    assert encode(FULL)[-1] == b"\x05\x00"
    assert encode(FULL, 4)[-1] == b"\x04\x00\x00\x00"


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_a_body_has_any_number_of_frames_the_first_of_them_lowest(count):
    body = tuple(b"%d" % number for number in range(count))
    frames = encode(FULL.replace(body_frames=body))
    assert frames[2 : 2 + count] == list(reversed(body))
    assert decode(frames).body_frames == body


def test_a_section_without_entries_has_offset_zero_and_keeps_its_frames_per_entry():
    frames = encode(Message(b"bare", body_frames=()))
    assert frames[-12] == bytes([0, 0, 0, 0, 3, 0, 0, 0])
    assert frames[-13] == bytes([0, 0, 0, 0, 2, 0, 0, 0])
    assert frames[-2] == bytes(8)


def test_a_v1_section_without_entries_has_empty_frames():
    frames = encode(Message(b"bare", version=b"1.0", wire_version=1), 1)
    assert [frames[-5], frames[-6], frames[-13], frames[-14]] == [b"", b"", b"", b""]


def test_v1_counts_and_offsets_written_out_as_zero_read_as_none():
    frames = encode(Message(b"bare", version=b"1.0", wire_version=1), 1)
    for place in (5, 6, 13, 14):
        frames[-place] = bytes(4)
    assert decode(frames) == Message(b"bare", version=b"1.0", wire_version=1)


def test_lanes_that_the_format_does_not_define_are_ignored():
    frames = laid_out(FULL)
    for place, used in ((2, 4), (5, 4), (12, 6)):
        frames[-place] = frames[-place][:used].ljust(8, b"\xff")
    assert decode(frames) == FULL


def test_unknown_trace_bits_are_kept():
    message = FULL.replace(trace_options=0xFFFE)
    assert decode(encode(message)).trace_options == 0xFFFE


def test_frames_may_come_in_any_sequence():
    assert decode(tuple(encode(FULL))) == FULL
    assert peek(tuple(encode(FULL))).identity == FULL.identity


@given(messages)
def test_peeking_shows_the_selectors_that_decoding_does(message):
    selectors = peek(encode(message, message.wire_version))
    for name in layout.SELECTORS:
        assert getattr(selectors, name) == getattr(message, name)
    assert selectors.message_id == message.message_id


@given(messages)
def test_peeking_touches_only_the_selectors_and_what_tells_the_format(message):
    frames = Watched(encode(message, message.wire_version))
    peek(frames)
    selectors = {8, 9, 10, 11} if message.wire_version == 1 else {5, 6, 7, 8, 9, 11}
    assert selectors <= set(frames.reads) <= selectors | {1, 2}
    assert len(frames.reads) <= len(selectors) + 3


@pytest.mark.parametrize(
    "message",
    [
        Message(b"body below", body_frames=(b"", b"top"), socket_identity=None),
        Message(b"one of each", body_frames=(b"top",), routing=(RouterAddress("", b"n"),), socket_identity=None),
        Message(b"only fixed frames", body_frames=(), socket_identity=None),
    ],
)
def test_an_empty_frame_that_the_message_itself_uses_is_no_envelope(message):
    frames = encode(message)
    frames[-16], frames[-17] = bytes(8), b""
    assert frames[1] in (b"", bytes(8))
    assert decode(frames).socket_identity is None


def test_an_envelope_needs_two_frames_above_the_message():
    frames = encode(Message(b"m", body_frames=(b"",), socket_identity=None))
    assert decode([b"one", *frames]).socket_identity is None
    assert decode([b"one", b"", *frames]).socket_identity == b"one"
