"""A message that is like another is written and read as if it were on its own."""

import random

import pytest
from fuzz import wire as fuzzer
from hypothesis import given
from hypothesis import strategies as st
from tests.wire import vectors
from tests.wire.building import laid_out
from tests.wire.strategies import i64, raw, versioned_messages

from framewire.wire import Message, MessageId, RouterAddress, WireError, decode, encode
from framewire.wire.moulds import HOLES, Mould, PureHoles, are_alike, contents

try:
    from framewire.wire._moulds import Holes
except ImportError:
    Holes = None

both_makes = pytest.mark.skipif(Holes is None, reason="there was no compiler")

QUESTION = Message(
    b"shop.order",
    body_frames=(b"two apples",),
    correlation_id=b"flow-1",
    ttl_ticks=300_000_000,
    callback_receiver_identity=b"\0hub",
    callback_receiver_node_identity=b"node-a",
    callback_key=7,
    callback_points=(MessageId(b"shop.ordered"), MessageId(b"KINO.EXCEPTION")),
    routing=(RouterAddress("tcp://127.0.0.1:7001", b"node-a"),),
    hops=1,
)


def mould_of(message):
    return Mould.of(message, encode(message))


def opened(mould, frames):
    """What is in a message, where it is of the mould's kind."""
    return contents(frames) if mould.fits(frames) else None


@given(
    versioned_messages(5).map(lambda message: message.replace(body_frames=(b"x",), socket_identity=b"")),
    raw,
    i64,
    raw,
    i64,
    raw,
)
def test_what_is_filled_in_is_what_would_be_written(like, body, ttl, flow, key, signature):
    written = like.replace(
        body_frames=(body,), ttl_ticks=ttl, correlation_id=flow, callback_key=key, signature=signature
    )
    mould = mould_of(like)
    assert mould.filled(body, ttl, flow, key, signature) == encode(written)
    assert opened(mould, encode(written)) == (body, ttl, flow, key, signature)


@given(versioned_messages(5).map(lambda message: message.replace(body_frames=(b"x",), socket_identity=b"")))
def test_a_message_that_differs_in_anything_else_is_of_another_kind(other):
    same = QUESTION.replace(
        body_frames=other.body_frames,
        ttl_ticks=other.ttl_ticks,
        correlation_id=other.correlation_id,
        callback_key=other.callback_key,
        signature=other.signature,
        socket_identity=other.socket_identity,
    )
    found = opened(mould_of(QUESTION), encode(other))
    assert (found is not None) == (other == same)


@given(versioned_messages(5).map(lambda message: message.replace(body_frames=(b"x",), socket_identity=b"")))
def test_messages_are_alike_where_one_fits_the_mould_of_the_other(other):
    alike = QUESTION.replace(correlation_id=other.correlation_id, callback_key=1, signature=b"mac", ttl_ticks=0)
    assert are_alike(encode(QUESTION), encode(alike))
    fits = mould_of(QUESTION).fits(encode(other))
    assert are_alike(encode(QUESTION), encode(other)) == fits


def test_messages_of_two_connections_are_not_alike():
    frames = encode(QUESTION)
    assert not are_alike(frames, [b"other", *frames[1:]])


def test_mutated_messages_are_read_as_they_would_be_anew_or_not_at_all():
    rng = random.Random(11)  # noqa: S311 - a test that can be repeated
    seeds = [case["frames"] for name in ("v5", "v5_int") for case in vectors.load(name)] + [encode(QUESTION)]
    moulds = [mould for frames in seeds if (mould := Mould.of(decode(frames), frames)) is not None]
    assert moulds
    count = 0
    for _ in range(5000):
        frames = fuzzer.mutated(rng, rng.choice(seeds), rng.choice(seeds))
        for mould in moulds:
            found = opened(mould, frames)
            if found is not None:
                count += 1
                told = decode(frames)
                ours = (told.body, told.ttl_ticks, told.correlation_id, told.callback_key, told.signature)
                assert found == ours
    assert count


def test_a_number_that_is_not_eight_bytes_is_left_to_the_reader_that_tells_what_is_wrong():
    mould, frames = mould_of(QUESTION), encode(QUESTION)
    frames[-3] = b"\1"
    assert opened(mould, frames) is None
    with pytest.raises(WireError):
        decode(frames)


def test_the_connection_it_came_over_does_not_make_it_another_kind():
    frames = encode(QUESTION)
    frames[0] = b"\0\1\2\3\4"
    assert opened(mould_of(QUESTION), frames) is not None


@pytest.mark.parametrize(
    "message",
    [
        QUESTION.replace(wire_version=4),
        QUESTION.replace(body_frames=(b"one", b"two")),
        QUESTION.replace(body_frames=()),
        QUESTION.replace(socket_identity=None),
        QUESTION.replace(domain="d" * 2000),
    ],
    ids=["V4", "two body frames", "no body", "no envelope", "too large"],
)
def test_what_cannot_be_kept_has_no_mould(message):
    assert Mould.of(message, encode(message)) is None


def test_parts_that_are_not_where_we_write_them_make_no_mould():
    frames = laid_out(QUESTION, order=("body", "routing", "callback_points"))
    assert decode(frames).body == b"two apples"
    assert Mould.of(decode(frames), frames) is None


def test_a_mould_does_not_keep_the_body_it_was_made_from():
    large = b"x" * 100_000
    mould = mould_of(QUESTION.replace(body_frames=(large,)))
    assert all(large not in held for held in (mould.filled.args[0], mould._holed))


@both_makes
@given(versioned_messages(5).map(lambda message: message.replace(socket_identity=b"")), raw, i64, raw, i64, raw)
def test_the_compiled_make_puts_in_and_takes_out_the_same(like, body, ttl, flow, key, signature):
    frames, compiled = encode(like), Holes(*HOLES)
    filled = compiled.filled(frames, body, ttl, flow, key, signature)
    assert filled == PureHoles.filled(frames, body, ttl, flow, key, signature)
    assert compiled.contents(filled) == PureHoles.contents(filled) == (body, ttl, flow, key, signature)
    assert frames == encode(like)  # what it was made from stays as it was


@both_makes
@given(raw, raw)
def test_the_compiled_make_takes_the_same_for_no_number(ttl, key):
    frames, compiled = encode(QUESTION), Holes(*HOLES)
    frames[HOLES[1]], frames[HOLES[3]] = ttl, key
    assert compiled.contents(frames) == PureHoles.contents(frames)


@both_makes
@given(
    versioned_messages(5).map(lambda message: message.replace(body_frames=(b"x",), socket_identity=b"")),
    st.integers(0, 60),
    raw,
    st.integers(-1, 1),
)
def test_the_compiled_make_takes_the_same_for_alike(like, place, other, more):
    frames = encode(like)
    changed = [bytes(bytearray(frame)) for frame in frames]  # equal, and not the same objects
    if place < len(changed):
        changed[place] = other
    changed = [*changed, b""][: len(changed) + more]
    kept = [list(frames), list(frames)]
    for holed in kept:
        for hole in (0, *HOLES):
            holed[hole] = None
    compiled, pure = (
        make.fits(holed, changed) for make, holed in zip((Holes(*HOLES), PureHoles()), kept, strict=True)
    )
    assert compiled == pure
    assert kept[0] == kept[1]
    assert not compiled or Holes(*HOLES).fits(kept[0], changed)


@both_makes
def test_the_compiled_make_refuses_what_is_no_message():
    compiled, frames = Holes(*HOLES), encode(QUESTION)
    short = frames[: -min(HOLES) - 1]
    for make in (compiled, PureHoles()):
        with pytest.raises(IndexError):
            make.contents(short)
        with pytest.raises(IndexError):
            make.filled(short, b"", 1, b"", 1, b"")
    with pytest.raises(TypeError, match="frames are a list"):
        compiled.contents(tuple(frames))
    with pytest.raises(OverflowError):
        compiled.filled(frames, b"", 2**63, b"", 1, b"")
    with pytest.raises(TypeError):
        compiled.filled(frames, b"", "1", b"", 1, b"")
    with pytest.raises(TypeError, match="two lists"):
        compiled.fits(frames, tuple(frames))
    with pytest.raises(TypeError, match="6 arguments"):
        compiled.filled(frames, b"")
