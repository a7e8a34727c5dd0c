"""The codec against the reference decoder: the same fields, or the same reason, for any frames at all."""

import pytest
from hypothesis import event, given, settings
from tests.wire import reference
from tests.wire.strategies import broken_frames, canonical_frames, odd_frames, random_frames

from framewire.wire import WireError, decode, peek

MANY = settings(max_examples=400)


def outcome(read, as_plain, frames):
    try:
        return as_plain(read(frames))
    except WireError as error:
        return error.reason


def assert_agreement(frames):
    expected = reference.decode(frames)
    event(expected if isinstance(expected, str) else "valid")
    assert outcome(decode, reference.plain, frames) == expected
    assert outcome(peek, reference.plain_selectors, frames) == reference.peek(frames)


@given(canonical_frames)
def test_both_read_the_same_from_what_we_write(frames):
    assert_agreement(frames)


@given(odd_frames)
def test_both_read_the_same_from_what_others_may_write(frames):
    assert_agreement(frames)


@MANY
@given(broken_frames())
def test_both_say_the_same_about_broken_messages(frames):
    assert_agreement(frames)


@MANY
@given(random_frames)
def test_both_say_the_same_about_frames_that_were_never_a_message(frames):
    assert_agreement(frames)


@pytest.mark.parametrize("ttl_unit", ["ms", "ticks"])
@given(frames=broken_frames())
def test_both_say_the_same_in_either_unit_of_a_v1_ttl(ttl_unit, frames):
    actual = outcome(lambda given: decode(given, ttl_unit=ttl_unit), reference.plain, frames)
    assert actual == reference.decode(frames, ttl_unit)
