"""Messages and frames for property tests: valid ones of every format, odd ones, and broken ones."""

from __future__ import annotations

import struct

from hypothesis import strategies as st
from tests.wire.building import CANONICAL, laid_out, laid_out_v1

from framewire.wire import Distribution, Message, MessageId, RouterAddress, encode

TICKS_PER_MS = 10_000

u16 = st.integers(0, 0xFFFF)
i32 = st.integers(-(2**31), 2**31 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
raw = st.binary(max_size=12)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
addresses = st.builds(RouterAddress, uri=texts, identity=raw)
whole_ms = st.integers(-(2**63) // TICKS_PER_MS + 1, (2**63 - 1) // TICKS_PER_MS).map(lambda ms: ms * TICKS_PER_MS)


def lists_of(elements):
    return st.lists(elements, max_size=4).map(tuple)


def versioned_messages(wire_version=None, hops=u16):
    """Messages of V4 and V5, or of one of them."""
    return st.builds(
        Message,
        identity=raw,
        version=u16,
        partition=raw,
        body_frames=lists_of(raw),
        correlation_id=raw,
        ttl_ticks=i64,
        distribution=st.sampled_from(Distribution),
        trace_options=u16,
        receiver_identity=raw,
        receiver_node_identity=raw,
        callback_receiver_identity=raw,
        callback_receiver_node_identity=raw,
        callback_key=i64,
        callback_points=lists_of(st.builds(MessageId, identity=raw, version=u16, partition=raw)),
        routing=lists_of(addresses),
        hops=hops,
        domain=texts,
        signature=raw,
        socket_identity=st.none() | raw,
        wire_version=st.sampled_from([4, 5]) if wire_version is None else st.just(wire_version),
    )


def v1_messages(ttl_ticks=whole_ms, hops=i32):
    """Messages of V1; with ``ttl_ticks=i64`` those that only a recording in ticks can hold."""
    return st.builds(
        Message,
        identity=raw,
        version=raw,
        body_frames=st.tuples(raw),
        correlation_id=raw,
        ttl_ticks=ttl_ticks,
        distribution=st.sampled_from(Distribution),
        trace_options=i64,
        receiver_identity=raw,
        callback_receiver_identity=raw,
        callback_points=lists_of(st.builds(MessageId, identity=raw, version=raw)),
        routing=lists_of(addresses),
        hops=hops,
        socket_identity=st.none() | raw,
        wire_version=st.just(1),
    )


messages = v1_messages() | versioned_messages()
canonical_frames = messages.map(lambda message: encode(message, message.wire_version))

layouts = st.fixed_dictionaries(
    {
        "order": st.permutations(CANONICAL),
        "gap": st.integers(0, 2),
        "point_extras": st.integers(0, 2),
        "route_extras": st.integers(0, 2),
        "wasted": st.lists(raw, max_size=2),
    }
)
"""Arguments of ``laid_out``: everything that the format allows and our own writer never does."""

v1_layouts = st.fixed_dictionaries(
    {
        "order": st.permutations(CANONICAL[:2]),
        "gap": st.integers(0, 2),
        "wasted": st.lists(raw, max_size=2),
    }
)

odd_frames = st.builds(
    lambda message, layout: laid_out(message, **layout), versioned_messages(), layouts
) | st.builds(lambda message, layout: laid_out_v1(message, **layout), v1_messages(), v1_layouts)

# Numbers that sit on an edge of some check: the first section, the last frame, the limits of every width.
edges = st.sampled_from([0, 1, 2, 3, 4, 14, 15, 16, 17, 18, 19, 20, 24, 28, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF])
hostile = st.one_of(
    st.builds(lambda *values: struct.pack("<4H", *values), edges, edges, edges, edges),
    (edges | i32).map(lambda number: struct.pack("<i", number)),
    (edges | i64).map(lambda number: struct.pack("<q", number)),
    edges.map(lambda number: struct.pack("<H", number)),
    st.sampled_from([b"", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\x05\x00\x00\x00", b"\x04\x00", b"\x09\x00"]),
)

# Lists that no writer made, with sizes that let them pass for a message some of the time.
random_frames = st.lists(st.binary(max_size=9) | hostile, max_size=40)


@st.composite
def broken_frames(draw):
    """A valid message after one to four accidents; some do no harm, and the decoders must agree on that."""
    frames = list(draw(canonical_frames | odd_frames))
    for accident in draw(st.lists(st.sampled_from(ACCIDENTS), min_size=1, max_size=4)):
        if frames:
            accident(draw, frames, draw(st.integers(0, len(frames) - 1)))
    return frames


def drop(_draw, frames, at):
    del frames[at]


def duplicate(_draw, frames, at):
    frames.insert(at, frames[at])


def truncate(draw, frames, at):
    frames[at] = frames[at][: draw(st.integers(0, max(0, len(frames[at]) - 1)))]


def extend(draw, frames, at):
    frames[at] += draw(st.binary(min_size=1, max_size=4))


def flip(draw, frames, at):
    if frames[at]:
        bit = draw(st.integers(0, 8 * len(frames[at]) - 1))
        turned = int.from_bytes(frames[at], "little") ^ (1 << bit)
        frames[at] = turned.to_bytes(len(frames[at]), "little")


def swap(draw, frames, at):
    other = draw(st.integers(0, len(frames) - 1))
    frames[at], frames[other] = frames[other], frames[at]


def shuffle(draw, frames, _at):
    frames[:] = draw(st.permutations(frames))


def insert_empty(_draw, frames, at):
    frames.insert(at, b"")


def behead(_draw, frames, at):
    del frames[: at + 1]


def overwrite(draw, frames, at):
    frames[at] = draw(hostile)


def overwrite_a_lane(draw, frames, _at):
    """Set one lane of a descriptor of V5, where it hurts, keeping the size of the frame right."""
    place = draw(st.sampled_from([2, 5, 12, 13]))
    if len(frames) >= place and len(frames[-place]) == 8:
        at = 2 * draw(st.integers(0, 3))
        near_the_top = st.integers(len(frames) - 2, len(frames) + 2)
        number = struct.pack("<H", draw(edges | near_the_top) & 0xFFFF)
        frames[-place] = frames[-place][:at] + number + frames[-place][at + 2 :]


def overwrite_a_v1_number(draw, frames, _at):
    place = draw(st.sampled_from([5, 6, 8, 13, 14, 15]))
    if len(frames) >= place and len(frames[-place]) in (0, 4):
        frames[-place] = struct.pack("<i", draw(st.integers(-2, 40) | i32))


ACCIDENTS = (
    drop,
    duplicate,
    truncate,
    extend,
    flip,
    swap,
    shuffle,
    insert_empty,
    behead,
    overwrite,
    overwrite_a_lane,
    overwrite_a_lane,
    overwrite_a_v1_number,
)
