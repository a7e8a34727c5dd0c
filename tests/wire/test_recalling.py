"""A message whose like was seen before is read and written as if it were the first."""

import random

import pytest
from fuzz import wire as fuzzer
from tests.wire import vectors

from framewire.wire import Message, MessageId, RouterAddress, WireError, encode, layout_of
from framewire.wire.compiler import compile_layout
from framewire.wire.layout import LAYOUTS, V5

RECORDED = [case["frames"] for name in ("v1", "v4", "v5", "v5_int") for case in vectors.load(name)]


def outcome(codec, frames):
    try:
        return codec.decode(frames, codec.layout.ticks_per_ttl)
    except WireError as error:
        return (error.reason, error.field, error.frame)


@pytest.mark.parametrize("version", LAYOUTS)
def test_whatever_came_before_the_same_frames_mean_the_same(version):
    seasoned = compile_layout(LAYOUTS[version])
    rng = random.Random(5)  # noqa: S311 - a test that can be repeated
    seeds = [frames for frames in RECORDED if layout_of(frames).version == version]
    for frames in seeds:
        outcome(seasoned, frames)
    tried = 0
    for _ in range(3000):
        frames = fuzzer.mutated(rng, rng.choice(seeds), rng.choice(seeds))
        try:
            if layout_of(frames).version != version:
                continue
        except WireError:
            continue
        tried += 1
        assert outcome(seasoned, frames) == outcome(forgetful(version), frames)
    assert tried > 500


def forgetful(version):
    """A codec that has seen nothing: its memories are emptied before each use."""
    codec = COLD[version]
    for memory in MEMORIES[version]:
        memory.clear()
    return codec


COLD = {version: compile_layout(layout) for version, layout in LAYOUTS.items()}
MEMORIES = {
    version: [value for name, value in codec.decode.__globals__.items() if name.isupper() and value == {}]
    for version, codec in COLD.items()
}


def test_the_cold_codec_is_really_cold():
    assert all(len(memories) == 6 for memories in MEMORIES.values())


@pytest.mark.parametrize("version", LAYOUTS)
def test_what_was_written_before_is_written_alike(version):
    codec = compile_layout(LAYOUTS[version])
    for frames in RECORDED:
        if layout_of(frames).version == version:
            message = codec.decode(frames, 1)
            first, second = codec.encode(message, 1), codec.encode(message, 1)
            assert first == second
            assert first is not second


def test_a_value_that_is_no_bytes_is_refused_also_when_all_else_is_known():
    good = Message(b"a", callback_points=(MessageId(b"b"),), routing=(RouterAddress("tcp://h:1", b"n"),))
    encode(good)
    for name in ("identity", "correlation_id", "signature", "socket_identity"):
        with pytest.raises(ValueError, match=name):
            encode(good.replace(**{name: "x"}))
    with pytest.raises(ValueError, match="body"):
        encode(good.replace(body_frames=("text",)))


def test_a_peer_cannot_fill_the_memories():
    codec = compile_layout(V5)
    for number in range(5000):
        points = (MessageId(b"%d" % number),)
        codec.decode(encode(Message(b"a", callback_points=points, hops=number)), 1)
    many = (MessageId(b""),) * 1000
    codec.decode(encode(Message(b"a", callback_points=many)), 1)
    large = (MessageId(b"x" * 2000),)
    codec.decode(encode(Message(b"a", callback_points=large)), 1)
    memories = [codec.decode.__globals__[name] for name in ("SHAPES", "POINTS_READ", "ROUTERS_READ")]
    assert all(len(memory) <= 4096 for memory in memories)
    assert {len(key) for key in memories[1]} == {3}
    assert large not in memories[1].values()
