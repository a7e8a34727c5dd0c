"""Every way in which frames are not a message: which word, which field, which frame, and in which order."""

import copy
import pickle
import struct

import pytest
from tests.wire.building import Watched, lanes, setting

from framewire.errors import FramewireError
from framewire.wire import Message, MessageId, RouterAddress, WireError, decode, encode, layout_of, peek

V5 = encode(
    Message(
        b"orders.place",
        callback_points=(MessageId(b"a"), MessageId(b"b")),  # n-18 to n-23
        routing=(
            RouterAddress("tcp://10.0.0.1:7400", b"n1"),
            RouterAddress("tcp://10.0.0.2:7400", b"n2"),
        ),  # to n-27
        body_frames=(b"body",),  # n-28
        domain="shop",
        socket_identity=None,
    )
)
V1 = encode(
    Message(
        b"orders.place",
        version=b"1.0",
        callback_points=(MessageId(b"a", b"1.0"), MessageId(b"b", b"1.0")),  # n-16 to n-19
        routing=(RouterAddress("tcp://10.0.0.1:7400", b"n1"),),  # n-20 and n-21
        body_frames=(b"body",),
        socket_identity=None,
        wire_version=1,
    ),
    1,
)
assert len(V5) == 28
assert len(V1) == 21

NOT_TEXT = b"\xff\xfe"


def i32(number):
    return struct.pack("<i", number)


def i64(number):
    return struct.pack("<q", number)


def fault(frames, read=decode, **options):
    """The error as (reason, field, frame)."""
    with pytest.raises(WireError) as caught:
        read(frames, **options)
    return caught.value.reason, caught.value.field, caught.value.frame


# Telling the formats apart.


@pytest.mark.parametrize("read", [decode, peek, layout_of])
@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b"\x05\x00"],
        [b"", b"body"],
        V1[-14:],
        [b"x"] * 14,
        V5[-16:],
        setting(V5, n1=b"\x04\x00\x00\x00")[-16:],
    ],
    ids=["none", "one", "two", "v1 less one", "no format", "v5 less one", "v4 less one"],
)
def test_too_few_frames(read, frames):
    assert fault(frames, read) == ("too_few_frames", "frames", None)


@pytest.mark.parametrize("read", [decode, peek, layout_of])
@pytest.mark.parametrize("count", [2, 3, 15, 28])
@pytest.mark.parametrize(
    "trailer",
    [b"\x06\x00", b"\x01\x00", b"\x00\x05", b"\x09\x00\x00\x00", b"\x00\x00\x00\x05", b"\x05\x00\x01\x00"],
)
def test_a_version_number_that_nobody_knows_however_many_frames_there_are(read, count, trailer):
    assert fault(setting(V5, n1=trailer)[-count:], read) == ("unknown_version", "wire_version", 1)


@pytest.mark.parametrize("read", [decode, peek, layout_of])
@pytest.mark.parametrize("trailer", [b"", b"\x05", b"\x05\x00\x00", b"\x05\x00\x00\x00\x00"])
def test_neither_a_version_number_nor_a_v1_message(read, trailer):
    assert fault(setting(V5, n1=trailer), read) == ("unknown_version", "wire_version", 1)
    assert fault(setting(V5, n1=trailer)[-15:], read) == ("unknown_version", "wire_version", 1)
    assert fault(setting(V5, n1=trailer)[-14:], read) == ("too_few_frames", "frames", None)


def test_the_fewest_frames_of_every_format():
    assert decode(encode(Message(b"m", body_frames=(), socket_identity=None))).identity == b"m"
    old = Message(b"m", version=b"", socket_identity=None, wire_version=1)
    assert len(encode(old, 1)) == 15
    assert decode(encode(old, 1)) == old


def test_an_empty_frame_above_the_last_makes_it_v1_whatever_the_last_one_says():
    assert decode(setting(V1, n1=b"\x05\x00")).wire_version == 1


# Fixed-width fields.

V5_SIZES = {
    2: ("body_descriptor", 8),
    3: ("ttl", 8),
    5: ("trace_and_distribution", 8),
    7: ("version", 2),
    12: ("callback_descriptor", 8),
    13: ("routing_descriptor", 8),
    16: ("callback_key", 8),
}
V1_SIZES = {
    3: ("ttl", 8),
    5: ("callback_offset", 4),
    6: ("callback_count", 4),
    8: ("distribution", 4),
    12: ("trace_options", 8),
    13: ("routing_offset", 4),
    14: ("routing_count", 4),
    15: ("hops", 4),
}
V1_OPTIONAL = {5, 6, 13, 14}


@pytest.mark.parametrize("frame", V5_SIZES)
@pytest.mark.parametrize("change", [-1, 1, 8])
def test_a_fixed_width_frame_of_another_size(frame, change):
    field, size = V5_SIZES[frame]
    assert fault(setting(V5, **{f"n{frame}": bytes(size + change)})) == ("bad_integer", field, frame)


@pytest.mark.parametrize("frame", [frame for frame in V5_SIZES if frame != 2])
def test_an_empty_frame_is_not_a_number(frame):
    assert fault(setting(V5, **{f"n{frame}": b""})) == ("bad_integer", V5_SIZES[frame][0], frame)


@pytest.mark.parametrize("frame", V1_SIZES)
@pytest.mark.parametrize("change", [-1, 1, 8])
def test_a_fixed_width_frame_of_v1_of_another_size(frame, change):
    field, size = V1_SIZES[frame]
    assert fault(setting(V1, **{f"n{frame}": bytes(size + change)})) == ("bad_integer", field, frame)


@pytest.mark.parametrize("frame", sorted(set(V1_SIZES) - V1_OPTIONAL))
def test_only_counts_and_offsets_of_v1_may_be_empty(frame):
    assert fault(setting(V1, **{f"n{frame}": b""})) == ("bad_integer", V1_SIZES[frame][0], frame)


def test_empty_counts_of_v1_are_none():
    message = decode(setting(V1, n6=b"", n14=b""))
    assert (message.callback_points, message.routing) == ((), ())


@pytest.mark.parametrize("milliseconds", [2**63 // 10_000 + 1, -(2**63) // 10_000 - 1, 2**63 - 1, -(2**63)])
def test_milliseconds_that_do_not_fit_as_ticks(milliseconds):
    frames = setting(V1, n3=i64(milliseconds))
    assert fault(frames) == ("bad_integer", "ttl", 3)
    assert decode(frames, ttl_unit="ticks").ttl_ticks == milliseconds


@pytest.mark.parametrize("milliseconds", [2**63 // 10_000, -(2**63 // 10_000)])
def test_the_most_milliseconds_that_fit_as_ticks(milliseconds):
    assert decode(setting(V1, n3=i64(milliseconds))).ttl_ticks == milliseconds * 10_000


# Frames per entry.


@pytest.mark.parametrize("step", [0, 1, 2])
def test_callback_entries_of_fewer_frames_than_defined(step):
    assert fault(setting(V5, n12=lanes(18, 2, step))) == ("bad_divisor", "callback_descriptor", 12)


@pytest.mark.parametrize("step", [0, 1])
def test_routing_entries_of_fewer_frames_than_defined(step):
    assert fault(setting(V5, n13=lanes(24, 2, step, 0))) == ("bad_divisor", "routing_descriptor", 13)


def test_frames_per_entry_mean_nothing_without_entries():
    message = decode(setting(V5, n12=lanes(0, 0, 0), n13=lanes(0, 0, 0, 0)))
    assert (message.callback_points, message.routing) == ((), ())


# Places.


@pytest.mark.parametrize(
    ("frames", "field", "frame"),
    [
        (setting(V5, n12=lanes(17, 2, 3)), "callback_descriptor", 12),
        (setting(V5, n12=lanes(0, 2, 3)), "callback_descriptor", 12),
        (setting(V5, n12=lanes(24, 2, 3)), "callback_descriptor", 12),
        (setting(V5, n12=lanes(18, 4, 3)), "callback_descriptor", 12),
        (setting(V5, n12=lanes(18, 2, 6)), "callback_descriptor", 12),
        (setting(V5, n12=lanes(0xFFFF, 0xFFFF, 0xFFFF)), "callback_descriptor", 12),
        (setting(V5, n13=lanes(17, 2, 2)), "routing_descriptor", 13),
        (setting(V5, n13=lanes(26, 2, 2)), "routing_descriptor", 13),
        (setting(V5, n13=lanes(24, 3, 2)), "routing_descriptor", 13),
        (setting(V5, n2=lanes(17, 1)), "body_descriptor", 2),
        (setting(V5, n2=lanes(0, 1)), "body_descriptor", 2),
        (setting(V5, n2=lanes(29, 1)), "body_descriptor", 2),
        (setting(V5, n2=lanes(28, 2)), "body_descriptor", 2),
        (setting(V5, n2=lanes(0xFFFF, 0xFFFF)), "body_descriptor", 2),
        (setting(V1, n5=i32(15)), "callback_offset", 5),
        (setting(V1, n5=b""), "callback_offset", 5),
        (setting(V1, n5=i32(-16)), "callback_offset", 5),
        (setting(V1, n5=i32(19)), "callback_offset", 5),
        (setting(V1, n6=i32(4)), "callback_offset", 5),
        (setting(V1, n6=i32(2**31 - 1)), "callback_offset", 5),
        (setting(V1, n6=i32(-1)), "callback_count", 6),
        (setting(V1, n6=i32(-(2**31))), "callback_count", 6),
        (setting(V1, n13=i32(15)), "routing_offset", 13),
        (setting(V1, n13=i32(21)), "routing_offset", 13),
        (setting(V1, n14=i32(2)), "routing_offset", 13),
        (setting(V1, n14=i32(-1)), "routing_count", 14),
    ],
)
def test_a_section_outside_the_message_or_over_the_fixed_frames(frames, field, frame):
    assert fault(frames) == ("bad_offset", field, frame)


def test_a_section_may_touch_the_first_and_the_last_frame():
    assert decode(setting(V5, n12=lanes(18, 1, 11))).callback_points == (MessageId(b"a"),)
    assert decode(setting(V5, n2=lanes(18, 11))).body_frames[0] == b"a"
    assert decode(setting(V5, n2=lanes(18, 11))).body_frames[10] == b"body"


def test_offsets_mean_nothing_without_entries():
    frames = setting(V5, n12=lanes(3, 0, 3), n13=lanes(0xFFFF, 0, 2), n2=lanes(1, 0))
    message = decode(frames)
    assert (message.callback_points, message.routing, message.body_frames) == ((), (), ())
    old = decode(setting(V1, n5=i32(-1), n6=b"", n13=i32(2**31 - 1), n14=i32(0)))
    assert (old.callback_points, old.routing) == ((), ())


# What entries and texts hold.


@pytest.mark.parametrize("frame", [19, 22])
@pytest.mark.parametrize("raw", [b"", b"\x01", b"\x01\x00\x00"])
def test_the_version_of_a_callback_entry_has_two_bytes(frame, raw):
    assert fault(setting(V5, **{f"n{frame}": raw})) == ("bad_integer", "callback_points", frame)


@pytest.mark.parametrize("read", [decode, peek])
@pytest.mark.parametrize("number", [2, 3, 0x7FFF, 0xFFFF])
def test_a_distribution_that_is_neither_unicast_nor_broadcast(read, number):
    assert fault(setting(V5, n5=lanes(0, number)), read) == ("bad_distribution", "trace_and_distribution", 5)
    assert fault(setting(V1, n8=i32(number)), read) == ("bad_distribution", "distribution", 8)
    assert fault(setting(V1, n8=i32(-number)), read) == ("bad_distribution", "distribution", 8)


@pytest.mark.parametrize("raw", [NOT_TEXT, b"cut \xc3", b"\xed\xa0\x80", b"\xc0\x80"])
def test_a_domain_that_is_not_utf8(raw):
    assert fault(setting(V5, n15=raw)) == ("bad_text", "domain", 15)


@pytest.mark.parametrize("frame", [25, 27])
def test_a_uri_that_is_not_utf8(frame):
    assert fault(setting(V5, **{f"n{frame}": NOT_TEXT})) == ("bad_text", "routing", frame)


def test_a_v1_uri_that_is_not_utf8():
    assert fault(setting(V1, n21=NOT_TEXT)) == ("bad_text", "routing", 21)


def test_bytes_that_are_not_text_are_welcome_everywhere_else():
    raw = {f"n{frame}": NOT_TEXT for frame in (4, 6, 8, 9, 10, 11, 14, 17, 18, 20, 24, 28)}
    assert decode(setting(V5, **raw)).identity == NOT_TEXT


# The order of the checks.

V5_FAULTS = [
    ("unknown_version", "wire_version", {"n1": b"\x09\x00"}),
    ("bad_integer", "ttl", {"n3": b""}),
    ("bad_integer", "callback_key", {"n16": b""}),
    ("bad_divisor", "routing_descriptor", {"n13": lanes(24, 2, 1)}),
    ("bad_offset", "callback_descriptor", {"n12": lanes(1, 2, 3)}),
    ("bad_offset", "body_descriptor", {"n2": lanes(1, 1)}),
    ("bad_integer", "callback_points", {"n19": b""}),
    ("bad_distribution", "trace_and_distribution", {"n5": lanes(0, 2)}),
    ("bad_text", "domain", {"n15": NOT_TEXT}),
    ("bad_text", "routing", {"n25": NOT_TEXT}),
]
V1_FAULTS = [
    ("bad_integer", "hops", {"n15": b""}),
    ("bad_integer", "ttl", {"n3": i64(2**62)}),
    ("bad_offset", "callback_count", {"n6": i32(-1)}),
    ("bad_offset", "routing_offset", {"n13": i32(1)}),
    ("bad_distribution", "distribution", {"n8": i32(2)}),
    ("bad_text", "routing", {"n21": NOT_TEXT}),
]


def pairs(faults):
    """Every two faults that can be in one message and that both show without the other."""
    for number, first in enumerate(faults):
        for second in faults[number + 1 :]:
            hidden = second[1] == "callback_points" and first[1] == "callback_descriptor"
            hidden |= second[1] == "routing" and first[1] in ("routing_descriptor", "routing_offset")
            if not hidden:
                yield pytest.param(first, second, id=f"{'-'.join(first[:2])}, {'-'.join(second[:2])}")


@pytest.mark.parametrize(("first", "second"), [*pairs(V5_FAULTS)])
def test_the_earlier_of_two_faults_is_reported(first, second):
    assert fault(setting(V5, **second[2]))[:2] == second[:2]
    assert fault(setting(V5, **second[2], **first[2]))[:2] == first[:2]


@pytest.mark.parametrize(("first", "second"), [*pairs(V1_FAULTS)])
def test_the_earlier_of_two_faults_is_reported_in_v1(first, second):
    assert fault(setting(V1, **second[2]))[:2] == second[:2]
    assert fault(setting(V1, **second[2], **first[2]))[:2] == first[:2]


def test_a_divisor_is_checked_before_any_offset():
    # The callback section is checked first among the offsets, yet the routing divisor comes before it.
    frames = setting(V5, n12=lanes(1, 2, 3), n13=lanes(24, 2, 0))
    assert fault(frames)[0] == "bad_divisor"


def test_peeking_overlooks_what_a_router_does_not_need():
    for place in (3, 12, 13, 15, 16):
        assert peek(setting(V5, **{f"n{place}": NOT_TEXT})) == peek(V5)
    assert peek(setting(V1, n15=b"", n3=b"")) == peek(V1)


@pytest.mark.parametrize(("place", "field"), [(5, "trace_and_distribution"), (7, "version")])
def test_peeking_notices_a_selector_of_the_wrong_size(place, field):
    assert fault(setting(V5, **{f"n{place}": b"x"}), peek) == ("bad_integer", field, place)


def test_peeking_notices_a_v1_distribution_of_the_wrong_size():
    assert fault(setting(V1, n8=b""), peek) == ("bad_integer", "distribution", 8)


# The error itself.


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        ([], "too_few_frames: frames: 0 where at least 15 are needed"),
        (V5[-3:], "too_few_frames: frames: 3 where at least 17 are needed"),
        (setting(V5, n1=b"\x09\x00"), "unknown_version: wire_version (frame n-1): this is version 9"),
        (setting(V5, n7=b"1"), "bad_integer: version (frame n-7): 1 bytes where 2 are needed"),
        (
            setting(V5, n12=lanes(18, 2, 2)),
            (
                "bad_divisor: callback_descriptor (frame n-12): "
                "callback_step 2 frames per entry where at least 3 are needed"
            ),
        ),
        (
            setting(V5, n2=lanes(28, 2)),
            (
                "bad_offset: body_descriptor (frame n-2): "
                "body_offset n-28 to n-29 does not lie above n-17 in 28 frames"
            ),
        ),
        (
            setting(V5, n5=lanes(0, 7)),
            (
                "bad_distribution: trace_and_distribution (frame n-5): "
                "distribution 7 is neither unicast (0) nor broadcast (1)"
            ),
        ),
        (setting(V5, n25=NOT_TEXT), "bad_text: routing (frame n-25): the uri is not UTF-8"),
    ],
)
def test_the_error_reads_as_a_sentence(frames, text):
    with pytest.raises(WireError) as caught:
        decode(frames)
    assert str(caught.value) == text


def test_the_error_is_one_of_ours_and_not_the_callers_mistake():
    with pytest.raises(FramewireError) as caught:
        decode([])
    assert not isinstance(caught.value, ValueError)


def test_the_error_hides_how_it_was_noticed():
    with pytest.raises(WireError) as caught:
        decode(setting(V5, n7=b"1"))
    assert caught.value.__suppress_context__


def test_the_error_survives_being_copied_and_pickled():
    with pytest.raises(WireError) as caught:
        decode(setting(V5, n7=b"1"))
    for twin in (copy.copy(caught.value), pickle.loads(pickle.dumps(caught.value))):  # noqa: S301 - our own bytes
        assert (twin.reason, twin.field, twin.frame) == ("bad_integer", "version", 7)
        assert str(twin) == str(caught.value)


# What hostile frames cost: reads, not seconds.


def reads_of(frames, read=decode):
    watched = Watched(frames)
    try:
        read(watched)
    except WireError as error:
        return len(watched.reads), error.reason
    return len(watched.reads), None


@pytest.mark.parametrize("count", [100, 10_000])
def test_frames_above_the_message_are_not_read(count):
    reads, reason = reads_of([b"x"] * count + V5)
    assert reason is None
    assert reads <= 2 * (len(V5) + 5)  # once to understand it, once to know its like again


@pytest.mark.parametrize(
    "places",
    [
        {"n12": lanes(18, 0xFFFF, 0xFFFF)},
        {"n12": lanes(18, 0xFFFF, 0)},
        {"n13": lanes(18, 0xFFFF, 0xFFFF, 0xFFFF)},
        {"n2": lanes(18, 0xFFFF)},
    ],
)
def test_huge_counts_are_refused_before_any_entry_is_read(places):
    reads, reason = reads_of(setting(V5, **places))
    assert reason in ("bad_divisor", "bad_offset")
    assert reads <= 2 * 17 + 5


def test_huge_v1_counts_are_refused_before_any_entry_is_read():
    reads, reason = reads_of(setting(V1, n6=i32(2**31 - 1), n14=i32(2**31 - 1)))
    assert reason == "bad_offset"
    assert reads <= 2 * 15 + 5


@pytest.mark.parametrize("spoil", [{}, {"n10000": NOT_TEXT, "n15": NOT_TEXT}, {"n5": lanes(0, 2)}])
def test_ten_thousand_frames_are_read_a_few_times_each_at_most(spoil):
    # Every section covers all that there is to cover, all of them over one another.
    frames = [b"\x01\x00"] * (10_000 - 17) + V5[-17:]
    frames = setting(frames, n12=lanes(18, 3327, 3), n13=lanes(18, 4991, 2), n2=lanes(18, 9983))
    frames = setting(frames, **spoil)
    reads, reason = reads_of(frames)
    assert (reason is None) == (not spoil)
    assert reads <= 6 * len(frames)


@pytest.mark.parametrize("count", [1, 14, 15, 17, 28, 10_000])
def test_frames_of_one_byte_each_are_no_message(count):
    reads, reason = reads_of([b"\x05"] * count)
    assert reason == ("too_few_frames" if count < 15 else "unknown_version")
    assert reads <= 5


@pytest.mark.parametrize("count", [17, 28, 10_000])
def test_frames_of_one_byte_each_above_a_version_are_a_bad_integer(count):
    reads, reason = reads_of([b"\x05"] * count + [b"\x05\x00"])
    assert reason == "bad_integer"
    assert reads <= 10


def test_decoding_copies_no_body():
    body = bytes(1_000_000)
    frames = encode(Message(b"big", body_frames=(body,)))
    assert decode(frames).body is body
