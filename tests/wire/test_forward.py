"""Sending on what came in: one more hop, one more routing entry, and everything else as it was."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.building import CANONICAL, laid_out, laid_out_v1, lanes, setting
from tests.wire.strategies import (
    addresses,
    i64,
    layouts,
    raw,
    v1_layouts,
    v1_messages,
    versioned_messages,
    whole_ms,
)

from framewire.wire import Message, MessageId, RouterAddress, WireError, decode, encode, forward

HERE = RouterAddress("tcp://10.0.0.9:7400", b"here")
FULL = Message(
    b"orders.place",
    version=2,
    partition=b"eu",
    callback_points=(MessageId(b"orders.placed", 1, b"eu"), MessageId(b"orders.refused", 3)),
    routing=(RouterAddress("tcp://10.0.0.1:7400", b"n1"),),
    hops=1,
    body_frames=(b"first", b"second"),
    domain="shop",
    signature=b"signed",
    socket_identity=b"socket",
)
OLD = Message(
    b"orders.place",
    version=b"1.0",
    callback_points=(MessageId(b"orders.placed", b"1.0"),),
    routing=(RouterAddress("tcp://10.0.0.1:7400", b"n1"),),
    hops=1,
    body_frames=(b"body",),
    socket_identity=b"socket",
    wire_version=1,
)
ORDERS = list(itertools.permutations(CANONICAL))

forwardable = versioned_messages(hops=st.integers(0, 0xFFFE)) | v1_messages(hops=st.integers(-(2**31), 2**31 - 2))


def sent_on(message, router=HERE, **changes):
    """What a forwarded message has to say."""
    return message.replace(hops=message.hops + 1, routing=(*message.routing, router), **changes)


def assert_in_order(frames, within):
    """Every frame is still there, as the same object, in the same order."""
    remaining = iter(within)
    for frame in frames:
        assert any(frame is other for other in remaining), f"{frame!r} is gone, or has moved"


@given(forwardable, addresses)
def test_canonical_frames_stay_canonical(message, router):
    version = message.wire_version
    assert forward(encode(message, version), router) == encode(sent_on(message, router), version)


@given(v1_messages(ttl_ticks=i64, hops=st.just(0)), i64)
def test_a_v1_recording_in_ticks_is_sent_on_in_ticks(message, ttl_ticks):
    frames = encode(message, 1, ttl_unit="ticks")
    sent = forward(frames, HERE, ttl_ticks=ttl_ticks, ttl_unit="ticks")
    assert decode(sent, ttl_unit="ticks") == sent_on(message, ttl_ticks=ttl_ticks)


@given(versioned_messages(hops=st.integers(0, 0xFFFE)), layouts)
def test_sections_may_lie_anywhere(message, odd):
    frames = laid_out(message, **odd)
    before = decode(frames)
    assert decode(forward(frames, HERE)) == sent_on(before)


@given(v1_messages(hops=st.just(7)), v1_layouts)
def test_v1_sections_may_lie_anywhere(message, odd):
    frames = laid_out_v1(message, **odd)
    assert decode(forward(frames, HERE)) == sent_on(decode(frames))


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("gap", [0, 1, 3])
def test_frames_of_a_newer_writer_travel_on(order, gap):
    frames = laid_out(FULL, order=order, gap=gap, point_extras=1, route_extras=2, wasted=[b"kept"])
    sent = forward(frames, HERE)
    rewritten = {2, 12, 13}
    assert_in_order([f for k, f in enumerate(reversed(frames), 1) if k not in rewritten][::-1], sent)
    assert len(sent) == len(frames) + 4
    assert decode(sent) == sent_on(FULL)


def test_a_new_entry_among_larger_ones_is_filled_up_with_empty_frames():
    frames = laid_out(FULL, route_extras=2)
    sent = forward(frames, HERE)
    assert sent[-13] == lanes(24, 2, 4, 2)
    assert sent[-31:-23] == [
        b"",
        b"",
        HERE.uri.encode(),
        HERE.identity,
        b"new route 0.1",
        b"new route 0.0",
        b"tcp://10.0.0.1:7400",
        b"n1",
    ]


def test_the_first_entry_goes_above_the_callback_points_and_below_the_body():
    sent = forward(encode(FULL.replace(routing=())), HERE)
    assert sent == encode(FULL.replace(routing=(HERE,), hops=2))


def test_the_first_entry_of_a_message_without_sections_goes_right_above_the_fixed_frames():
    bare = Message(b"bare", body_frames=(), socket_identity=None)
    frames = encode(bare)
    assert forward(frames, HERE)[:2] == [HERE.uri.encode(), HERE.identity]
    assert decode(forward(frames, HERE)) == sent_on(bare)


@pytest.mark.parametrize(
    "places",
    [
        {"n2": lanes(20, 5)},  # the body over callback points and the routing
        {"n13": lanes(21, 1, 2, 1)},  # the routing inside the callback points
        {"n13": lanes(19, 2, 2, 1), "n2": lanes(18, 1)},  # the body below it, shared with a callback point
        {"n12": lanes(22, 2, 3)},  # the callback points over the end of the routing
    ],
)
def test_sections_laid_across_one_another_are_taken_apart_first(places):
    message = FULL.replace(
        callback_points=(MessageId(b"ab", 1, b"ab"), MessageId(b"cd", 2, b"cd")),
        routing=(RouterAddress("ef", b"gh"),),
        body_frames=(b"ij", b"kl", b"mn"),
    )
    frames = setting(encode(message), **places)
    before = decode(frames)
    assert decode(forward(frames, HERE)) == sent_on(before)


@given(forwardable, st.none() | whole_ms, st.none() | raw)
def test_a_new_ttl_and_signature_replace_the_old_ones(message, ttl_ticks, signature):
    version = message.wire_version
    changes = {} if ttl_ticks is None else {"ttl_ticks": ttl_ticks}
    if version == 1:
        signature = None
    elif signature is not None:
        changes["signature"] = signature
    sent = forward(encode(message, version), HERE, ttl_ticks=ttl_ticks, signature=signature)
    assert decode(sent) == sent_on(message, **changes)


@given(forwardable)
def test_the_frames_given_are_left_alone_and_passed_on_as_they_are(message):
    version = message.wire_version
    frames = encode(message, version)
    before = list(frames)
    sent = forward(frames, HERE)
    assert all(frame is same for frame, same in zip(frames, before, strict=True))
    rewritten = {5, 6, 13, 14, 15} if version == 1 else {2, 12, 13}
    concerned = [f for k, f in enumerate(reversed(frames), 1) if k not in rewritten][::-1]
    assert_in_order(concerned, sent)


def test_any_sequence_of_frames_will_do():
    frames = encode(FULL)
    assert forward(tuple(frames), HERE) == forward(frames, HERE)


def test_a_second_router_comes_above_the_first():
    there = RouterAddress("tcp://10.0.0.10:7400", b"there")
    message = decode(forward(forward(encode(FULL), HERE), there))
    assert message.routing == (*FULL.routing, HERE, there)
    assert message.hops == 3


@pytest.mark.parametrize("version", [4, 5])
def test_one_hop_too_many_is_refused(version):
    frames = encode(FULL.replace(hops=0xFFFF), version)
    with pytest.raises(ValueError, match=r"^hops: 65536 does not fit"):
        forward(frames, HERE)


def test_one_hop_too_many_is_refused_in_v1():
    frames = encode(OLD.replace(hops=2**31 - 1), 1)
    with pytest.raises(ValueError, match=r"^hops: 2147483648 does not fit"):
        forward(frames, HERE)


def test_one_routing_entry_too_many_is_refused():
    # The highest body offset that 16 bits hold leaves no room for another entry below it.
    crowded = Message(b"crowded", routing=(HERE,) * 32758)
    with pytest.raises(ValueError, match=r"^routing: "):
        forward(encode(crowded), HERE)


@pytest.mark.parametrize("ttl_ticks", [2**63, -(2**63) - 1, 1.5, "10"])
def test_a_ttl_that_does_not_fit_is_refused(ttl_ticks):
    with pytest.raises(ValueError, match=r"^ttl_ticks: "):
        forward(encode(FULL), HERE, ttl_ticks=ttl_ticks)


def test_a_v1_ttl_that_is_not_whole_milliseconds_is_refused():
    with pytest.raises(ValueError, match=r"^ttl_ticks: 15000 ticks are not whole milliseconds"):
        forward(encode(OLD, 1), HERE, ttl_ticks=15_000)


def test_v1_has_no_place_for_a_signature():
    with pytest.raises(ValueError, match=r"^signature: V1 cannot hold b'signed'"):
        forward(encode(OLD, 1), HERE, signature=b"signed")


@pytest.mark.parametrize("frames", [encode(FULL), encode(FULL, 4), encode(OLD, 1)], ids=["v5", "v4", "v1"])
@pytest.mark.parametrize(
    "router",
    [
        RouterAddress("tcp://10.0.0.9:7400", "text"),
        RouterAddress("tcp://10.0.0.9:7400", None),
        RouterAddress(b"tcp://10.0.0.9:7400", b"id"),
        RouterAddress("lone \ud800 surrogate", b"id"),
    ],
)
def test_an_address_that_cannot_be_written_is_refused(frames, router):
    with pytest.raises(ValueError, match=r"^routing: "):
        forward(frames, router)


@pytest.mark.parametrize("signature", ["text", 5])
def test_a_signature_that_is_not_bytes_is_refused(signature):
    with pytest.raises(ValueError, match=r"^signature: "):
        forward(encode(FULL), HERE, signature=signature)


MALFORMED = {
    "too_few_frames": [b""] * 3,
    "unknown_version": setting(encode(FULL), n1=b"\x09\x00"),
    "bad_integer": setting(encode(FULL), n13=b"short"),
    "bad_divisor": setting(encode(FULL), n12=lanes(18, 2, 2)),
    "bad_offset": setting(encode(FULL), n2=lanes(17, 1)),
}


@pytest.mark.parametrize("reason", MALFORMED)
def test_frames_that_are_not_a_message_are_not_sent_on(reason):
    with pytest.raises(WireError) as caught:
        forward(MALFORMED[reason], HERE)
    assert caught.value.reason == reason


def test_the_fault_is_the_one_that_decoding_finds_first():
    # As ticks this ttl does not fit; the section is misplaced too, but that is checked later.
    frames = setting(encode(OLD, 1), n3=(2**62).to_bytes(8, "little"), n5=(1).to_bytes(4, "little"))
    with pytest.raises(WireError) as caught:
        forward(frames, HERE)
    assert (caught.value.reason, caught.value.field) == ("bad_integer", "ttl")
