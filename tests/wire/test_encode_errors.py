"""What a message cannot say in a wire format is the caller's mistake, and the error names the field."""

from enum import IntEnum

import pytest

from framewire.errors import UsageError
from framewire.wire import Message, MessageId, RouterAddress, decode, encode

PLAIN = Message(b"orders.place", body_frames=(b"body",))
LONE_SURROGATE = "half \ud800"


def refused(field):
    return pytest.raises(UsageError, match=rf"^{field}: ")


def test_the_error_is_a_value_error_that_names_field_and_value():
    with pytest.raises(ValueError, match=r"^hops: 65536 does not fit a 16-bit lane$"):
        encode(PLAIN.replace(hops=65536))


@pytest.mark.parametrize("wire_version", [4, 5])
@pytest.mark.parametrize(
    ("field", "least", "most"),
    [
        ("version", 0, 0xFFFF),
        ("trace_options", 0, 0xFFFF),
        ("hops", 0, 0xFFFF),
        ("ttl_ticks", -(2**63), 2**63 - 1),
        ("callback_key", -(2**63), 2**63 - 1),
    ],
)
def test_a_number_fits_its_frame_or_is_refused(wire_version, field, least, most):
    for fitting in (least, most):
        message = PLAIN.replace(wire_version=wire_version, **{field: fitting})
        assert decode(encode(message, wire_version)) == message
    for too_far in (least - 1, most + 1, 10**30):
        with refused(field):
            encode(PLAIN.replace(**{field: too_far}), wire_version)


@pytest.mark.parametrize(
    ("field", "least", "most"),
    [
        ("trace_options", -(2**63), 2**63 - 1),
        ("hops", -(2**31), 2**31 - 1),
        ("ttl_ticks", -(2**63), 2**63 - 1),
    ],
)
def test_a_number_fits_its_v1_frame_or_is_refused(field, least, most):
    old = PLAIN.replace(version=b"1.0", wire_version=1)
    for fitting in (least, most):
        message = old.replace(**{field: fitting})
        assert decode(encode(message, 1, ttl_unit="ticks"), ttl_unit="ticks") == message
    for too_far in (least - 1, most + 1):
        with refused(field):
            encode(old.replace(**{field: too_far}), 1, ttl_unit="ticks")


@pytest.mark.parametrize("wire_version", [1, 4, 5])
@pytest.mark.parametrize("distribution", [2, -1, 0xFFFF, None, "unicast", []])
def test_a_distribution_is_unicast_or_broadcast(wire_version, distribution):
    with refused("distribution"):
        encode(PLAIN.replace(distribution=distribution), wire_version)


@pytest.mark.parametrize("wire_version", [1, 4, 5])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("identity", "text"),
        ("identity", None),
        ("correlation_id", 7),
        ("receiver_identity", "text"),
        ("callback_receiver_identity", None),
        ("version", None),
        ("version", "1.0"),
        ("version", 1.0),
        ("trace_options", "1"),
        ("trace_options", None),
        ("hops", "1"),
        ("hops", 1.0),
        ("ttl_ticks", 1.0),
        ("ttl_ticks", None),
        ("ttl_ticks", "%d"),
        ("socket_identity", "text"),
        ("socket_identity", 0),
        ("callback_points", None),
        ("callback_points", (b"orders.placed",)),
        ("callback_points", (MessageId("text", 1),)),
        ("callback_points", (MessageId(b"m", None),)),
        ("callback_points", (MessageId(b"m", 1, 5),)),
        ("routing", 5),
        ("routing", (("tcp://10.0.0.1:7400", b"n1"),)),
        ("routing", (RouterAddress(b"tcp://10.0.0.1:7400", b"n1"),)),
        ("routing", (RouterAddress("tcp://10.0.0.1:7400", "n1"),)),
        ("body_frames", None),
        ("body_frames", b"body"),
        ("body_frames", {b"body"}),
        ("body_frames", ("text",)),
        ("body_frames", (5,)),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(wire_version, field, value):
    with refused(field):
        encode(PLAIN.replace(**{field: value}), wire_version)


@pytest.mark.parametrize("wire_version", [4, 5])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("partition", "text"),
        ("receiver_node_identity", 1),
        ("callback_receiver_node_identity", "text"),
        ("callback_key", "1"),
        ("callback_key", None),
        ("domain", b"bytes"),
        ("domain", None),
        ("signature", "text"),
    ],
)
def test_a_value_of_the_wrong_type_in_a_field_that_v1_lacks_is_refused(wire_version, field, value):
    with refused(field):
        encode(PLAIN.replace(**{field: value}), wire_version)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("partition", b"eu"),
        ("receiver_node_identity", b"node"),
        ("callback_receiver_node_identity", b"node"),
        ("callback_key", 1),
        ("callback_key", -1),
        ("domain", "shop"),
        ("signature", b"signed"),
    ],
)
def test_v1_refuses_a_field_that_it_cannot_hold(field, value):
    with refused(field):
        encode(PLAIN.replace(**{field: value}), 1)


def test_v1_refuses_a_callback_point_with_a_partition():
    points = (MessageId(b"orders.placed", 1), MessageId(b"orders.refused", 1, b"eu"))
    with pytest.raises(UsageError, match=r"^callback_points: V1 cannot hold the partition of orders.refused v1"):
        encode(PLAIN.replace(callback_points=points), 1)


@pytest.mark.parametrize("body_frames", [(), (b"first", b"second")])
def test_v1_holds_exactly_one_body_frame(body_frames):
    with pytest.raises(UsageError, match=rf"^body_frames: V1 holds one frame, not {len(body_frames)}"):
        encode(PLAIN.replace(body_frames=body_frames), 1)


def test_a_v1_ttl_in_milliseconds_is_whole():
    with pytest.raises(UsageError, match=r"^ttl_ticks: 10001 ticks are not whole milliseconds"):
        encode(PLAIN.replace(ttl_ticks=10_001), 1)
    assert (
        decode(encode(PLAIN.replace(ttl_ticks=10_001), 1, ttl_unit="ticks"), ttl_unit="ticks").ttl_ticks == 10_001
    )


def test_a_domain_is_text_that_utf8_can_write():
    with refused("domain"):
        encode(PLAIN.replace(domain=LONE_SURROGATE))


@pytest.mark.parametrize("wire_version", [1, 4, 5])
def test_a_uri_is_text_that_utf8_can_write(wire_version):
    with refused("routing"):
        encode(PLAIN.replace(routing=(RouterAddress(LONE_SURROGATE, b"n"),)), wire_version)


@pytest.mark.parametrize("version", [0, 2, 3, 6, -1, None, "5"])
def test_only_known_formats_are_written(version):
    with pytest.raises(UsageError, match=r"^version: no wire format .*; there are 1, 4, 5$"):
        encode(PLAIN, version)


@pytest.mark.parametrize("wire_version", [1, 4, 5])
@pytest.mark.parametrize("unknown", [0, 2, 9, None, "5"])
def test_a_message_says_which_format_it_is_of(wire_version, unknown):
    with refused("wire_version"):
        encode(PLAIN.replace(wire_version=unknown), wire_version)


@pytest.mark.parametrize("wire_version", [4, 5])
def test_an_opaque_version_needs_upgrading_first(wire_version):
    with pytest.raises(UsageError, match=r"^version: the version b'1\.0' is not a number; upgrade\(\)"):
        encode(PLAIN.replace(version=b"1.0"), wire_version)
    with refused("callback_points"):
        encode(PLAIN.replace(callback_points=(MessageId(b"m", b"1.0"),)), wire_version)


@pytest.mark.parametrize("number", [-1, 0x10000])
def test_the_version_of_a_callback_point_fits_u16(number):
    with refused("callback_points"):
        encode(PLAIN.replace(callback_points=(MessageId(b"m", number),)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("callback_points", (MessageId(b"m"),) * 21840),
        ("routing", (RouterAddress("", b""),) * 32760),
        ("body_frames", (b"",) * 0x10000),
    ],
)
def test_more_entries_than_an_offset_can_reach_are_refused(field, value):
    with pytest.raises(UsageError, match=rf"^{field}: more frames than a 16-bit offset can reach$"):
        encode(PLAIN.replace(**{field: value}))


def test_as_many_entries_as_an_offset_can_reach_are_written():
    message = PLAIN.replace(callback_points=(MessageId(b"m"),) * 21839)
    assert decode(encode(message)) == message


def test_the_unit_of_the_ttl_is_one_of_two():
    with pytest.raises(UsageError, match=r"^ttl_unit: 'seconds' is neither 'ms' nor 'ticks'$"):
        encode(PLAIN, 1, ttl_unit="seconds")
    with pytest.raises(UsageError, match=r"^ttl_unit: 'seconds'"):
        decode(encode(PLAIN), ttl_unit="seconds")


@pytest.mark.parametrize("wire_version", [1, 4, 5])
def test_a_version_may_be_any_kind_of_whole_number(wire_version):
    class Version(IntEnum):
        FIRST = 1

    named = PLAIN.replace(version=Version.FIRST, callback_points=(MessageId(b"m", Version.FIRST),))
    plain = PLAIN.replace(version=1, callback_points=(MessageId(b"m", 1),))
    assert encode(named, wire_version) == encode(plain, wire_version)


def test_encoding_leaves_the_message_as_it_was():
    before = PLAIN.replace()
    encode(PLAIN)
    with refused("hops"):
        encode(PLAIN.replace(hops=-1))
    assert before == PLAIN


@pytest.mark.parametrize("version", [-1, 65536])
def test_a_number_that_no_format_has_as_a_version_is_not_written_into_v1_either(version):
    with refused("version"):
        encode(PLAIN.replace(version=version), 1)
    with refused("callback_points"):
        encode(PLAIN.replace(callback_points=(MessageId(b"placed", version),)), 1)
