"""From older formats to V5 and back, and never by guessing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.strategies import u16, v1_messages, versioned_messages

from framewire.errors import UsageError
from framewire.wire import Message, MessageId, RouterAddress, decode, encode, upgrade

OLD = Message(b"orders.place", version=b"1.0", body_frames=(b"body",), wire_version=1)


@given(u16, st.sampled_from([b"%d", b"%d.0"]))
def test_a_version_n_or_n_point_zero_becomes_n(number, pattern):
    upgraded = upgrade(OLD.replace(version=pattern % number))
    assert upgraded.version == number
    assert upgraded.wire_version == 5


@pytest.mark.parametrize(
    "version",
    [
        b"",
        b"1.1",
        b"1.00",
        b"1.",
        b".0",
        b"v1",
        b"01",
        b"1.0\n",
        b" 1",
        b"-1",
        b"+1",
        b"1.0.0",
        b"\xd9\xa1",
        b"\xff",
    ],
)
def test_any_other_version_is_an_error_and_never_a_guess(version):
    with pytest.raises(UsageError, match=r"^version: .* is neither N nor N\.0; map it with versions="):
        upgrade(OLD.replace(version=version))


@pytest.mark.parametrize("version", [b"65536", b"65536.0", b"99999"])
def test_a_version_beyond_16_bits_is_an_error(version):
    with pytest.raises(UsageError, match=r"^version: \d+ does not fit the 16 bits"):
        upgrade(OLD.replace(version=version))


def test_a_mapping_names_the_number_of_any_other_version():
    assert upgrade(OLD.replace(version=b"beta"), {b"beta": 7}).version == 7


def test_a_mapping_wins_over_the_rule():
    assert upgrade(OLD.replace(version=b"1.0"), {b"1.0": 7}).version == 7


def test_versions_that_the_mapping_does_not_name_follow_the_rule():
    assert upgrade(OLD.replace(version=b"3.0"), {b"beta": 7}).version == 3


@pytest.mark.parametrize("number", [-1, 0x10000])
def test_a_mapping_to_something_that_does_not_fit_is_an_error(number):
    with pytest.raises(UsageError, match=rf"^version: {number} does not fit"):
        upgrade(OLD.replace(version=b"beta"), {b"beta": number})


@pytest.mark.parametrize("number", ["7", 7.0, None])
def test_a_mapping_to_something_that_is_not_a_number_is_an_error(number):
    with pytest.raises(UsageError, match=r"^version: "):
        upgrade(OLD.replace(version=b"beta"), {b"beta": number})


def test_callback_points_are_upgraded_by_the_same_rules():
    points = (MessageId(b"a", b"2"), MessageId(b"b", b"3.0"), MessageId(b"c", b"beta"))
    upgraded = upgrade(OLD.replace(callback_points=points), {b"beta": 7})
    assert upgraded.callback_points == (MessageId(b"a", 2), MessageId(b"b", 3), MessageId(b"c", 7))


def test_a_callback_point_that_cannot_be_upgraded_is_an_error():
    with pytest.raises(UsageError, match=r"^callback_points: b'beta' is neither N nor N\.0"):
        upgrade(OLD.replace(callback_points=(MessageId(b"c", b"beta"),)))


@pytest.mark.parametrize(
    ("v1_bits", "v5_bits"),
    [(0, 0), (2, 1), (1, 2), (3, 3), (4, 4), (6, 5), (0xFFFC, 0xFFFC), (0xFFFE, 0xFFFD)],
)
def test_the_routing_bit_moves_and_unknown_bits_stay(v1_bits, v5_bits):
    upgraded = upgrade(OLD.replace(trace_options=v1_bits))
    assert upgraded.trace_options == v5_bits
    assert upgraded.traced is OLD.replace(trace_options=v1_bits).traced


@pytest.mark.parametrize(
    ("field", "value"), [("hops", 0x10000), ("hops", -1), ("trace_options", 0x10000), ("trace_options", -1)]
)
def test_numbers_that_v5_has_no_room_for_are_an_error(field, value):
    with pytest.raises(UsageError, match=rf"^{field}: -?\d+ does not fit the 16 bits"):
        upgrade(OLD.replace(**{field: value}))


def test_the_most_hops_that_fit_are_kept():
    assert upgrade(OLD.replace(hops=0xFFFF)).hops == 0xFFFF


@given(v1_messages(hops=u16))
def test_everything_else_is_kept_and_can_be_written_as_v5(message):
    message = message.replace(
        version=b"1.0",
        trace_options=0,
        callback_points=tuple(MessageId(point.identity, b"1.0") for point in message.callback_points),
    )
    upgraded = upgrade(message)
    assert decode(encode(upgraded)) == upgraded
    points = tuple(MessageId(point.identity, 1) for point in message.callback_points)
    assert upgraded == message.replace(version=1, callback_points=points, wire_version=5)


@given(versioned_messages(wire_version=4))
def test_v4_differs_in_nothing_but_its_number(message):
    assert upgrade(message) == message.replace(wire_version=5)


def test_v5_stays_what_it_is():
    message = Message(b"orders.place", version=2, trace_options=0xFFFF)
    assert upgrade(message) is message
    assert upgrade(message, {b"1.0": 3}) is message


def test_an_unknown_format_cannot_be_upgraded():
    with pytest.raises(UsageError, match=r"^wire_version: no wire format 9"):
        upgrade(OLD.replace(wire_version=9))


@given(u16)
def test_downgrading_writes_the_number_with_point_zero(number):
    message = Message(b"orders.place", version=number, callback_points=(MessageId(b"orders.placed", number),))
    old = decode(encode(message, 1))
    assert old.version == b"%d.0" % number
    assert old.callback_points == (MessageId(b"orders.placed", b"%d.0" % number),)


@pytest.mark.parametrize(("v5_bits", "v1_bits"), [(0, 0), (1, 2), (2, 1), (3, 3), (5, 6), (0xFFFC, 0xFFFC)])
@pytest.mark.parametrize("wire_version", [4, 5])
def test_downgrading_moves_the_routing_bit(wire_version, v5_bits, v1_bits):
    message = Message(b"orders.place", trace_options=v5_bits, wire_version=wire_version)
    assert decode(encode(message, 1)).trace_options == v1_bits


@given(u16)
def test_what_is_downgraded_upgrades_to_what_it_was(trace_options):
    message = Message(
        b"orders.place",
        version=2,
        trace_options=trace_options,
        ttl_ticks=50_000,
        callback_points=(MessageId(b"orders.placed", 3),),
        routing=(RouterAddress("tcp://10.0.0.1:7400", b"n1"),),
        hops=1,
        body_frames=(b"body",),
    )
    assert upgrade(decode(encode(message, 1))) == message
