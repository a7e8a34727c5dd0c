"""Bodies of several frames: buffers, codecs of one's own, and what stays of the frames on one node."""

import array
import gc

import numpy as np
import pyarrow as pa
import pytest
from tests.node.bodies import Copy, Mirror, Picture, Readings, Same, assert_same, readings
from tests.node.running import run

import framewire as fw
from framewire.node.buffers import LARGE_BYTES, MAX_BODY_FRAMES
from framewire.node.payloads import type_of
from framewire.testing import Cluster

BIG = b"b" * LARGE_BYTES


def test_each_buffer_is_a_frame_of_its_own():
    buffers = [
        b"head",
        bytearray(b"array"),
        memoryview(b"view"),
        np.arange(2, dtype="<u2"),
        pa.py_buffer(b"arrow"),
        b"",
    ]
    picture = Picture(buffers)
    assert picture.frames == (b"head", b"array", b"view", b"\0\0\1\0", b"arrow", b"")
    assert (len(picture), picture[0], picture[-2:], list(picture)[1]) == (6, b"head", (b"arrow", b""), b"array")
    assert type_of(Picture).frames(picture) == picture.frames


def test_a_large_buffer_is_not_copied_and_a_small_one_is():
    large, small = np.zeros(LARGE_BYTES, np.uint8), np.zeros(8, np.uint8)
    picture = Picture([large, small])
    large[0] = small[0] = 7
    assert (picture[0][0], picture[1][0]) == (7, 0)
    assert isinstance(picture[0], memoryview)
    assert picture[0].readonly


@pytest.mark.parametrize(
    "buffer",
    [
        np.arange(24_000.0).reshape(200, 120).T,
        np.arange(40_000.0)[::2],
        np.arange(20_000, dtype=">f8"),
        np.zeros(10_000, [("a", "<i4"), ("b", "<f8")]),
        array.array("d", bytes(80_000)),
    ],
    ids=["fortran", "stride", "big endian", "fields", "array"],
)
def test_a_buffer_of_any_shape_is_its_bytes_in_c_order(buffer):
    frame = Picture([buffer])[0]
    assert bytes(frame) == memoryview(buffer).tobytes()
    assert len(frame) == memoryview(buffer).nbytes


def test_buffers_are_equal_where_their_frames_are():
    assert Picture([b"a", b"b"]) == Picture([b"a", bytearray(b"b")])
    assert Picture([b"a", b"b"]) != Picture([b"ab"])
    assert Picture([b"a"]) != Copy([b"a"])
    assert repr(Picture([b"a", BIG])) == f"Picture(2 buffers of 1, {LARGE_BYTES} bytes)"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (b"alone", r"Picture takes a list of buffers, not bytes: Picture\(\[…\]\)"),
        ([b"", "text"], "buffer 1 cannot be a frame: .*'str'"),
        ([b""] * (MAX_BODY_FRAMES + 1), f"a body has at most {MAX_BODY_FRAMES} frames"),
    ],
    ids=["bytes", "text", "many"],
)
def test_what_can_be_no_frames_is_an_error_at_once(given, complaint):
    with pytest.raises(fw.UsageError, match=complaint):
        Picture(given)


class Scan:
    def __init__(self, size, tiles):
        self.size, self.tiles = size, tiles


def scan_frames(scan):
    return [b"%d" % scan.size, *scan.tiles]


def scan_from(frames):
    return Scan(int(bytes(frames[0])), [bytes(frame) for frame in frames[1:]])


fw.message("bodies.scan", codec=fw.Codec("tiles", scan_frames, scan_from))(Scan)


@fw.message("bodies.single", codec=fw.Codec("single", lambda single: bytearray(single.text, "utf-8"), lambda _: 5))
class Single:
    text = "one"


def test_a_codec_of_ones_own_writes_and_reads_frames():
    declared = type_of(Scan)
    assert declared.codec == "tiles"
    assert declared.frames(Scan(3, [b"a", BIG])) == (b"3", b"a", BIG)
    read = declared.read((b"3", b"a", memoryview(BIG)))
    assert (read.size, read.tiles) == (3, [b"a", BIG])
    assert declared.decode(b"3").tiles == []


def test_a_codec_of_ones_own_may_write_one_frame_and_what_it_reads_must_be_of_the_class():
    assert type_of(Single).frames(Single()) == (b"one",)
    with pytest.raises(fw.BadBody, match="not a Single as single: decode returned int"):
        type_of(Single).read((b"one",))


def test_a_codec_of_ones_own_that_fails_is_a_bad_body():
    with pytest.raises(fw.BadBody, match="not a Scan as tiles: invalid literal"):
        type_of(Scan).read((b"x", b"y"))
    with pytest.raises(fw.UsageError, match="needs a name and two functions"):
        fw.Codec("half", scan_frames, None)


def test_a_codec_of_one_frame_reads_a_body_of_several_joined():
    @fw.message("bodies.joined")
    class Joined(bytes):
        pass

    assert type_of(Joined).read((b"a", memoryview(b"b"))) == b"ab"


def test_a_handler_on_the_same_node_gets_the_object_and_can_ask_for_its_frames():
    async def main():
        async with fw.Node(signals=False) as node:
            mirror = Mirror()
            await node.host(mirror)
            picture = Picture([b"head", np.zeros(LARGE_BYTES, np.uint8)])
            copy = await node.hub.ask(picture, Copy)
            assert copy.frames == picture.frames
            assert mirror.seen == [picture.frames]

    run(main())


def test_frames_reach_another_node_and_come_back_as_they_were():
    async def main():
        async with Cluster(2) as cluster:
            await cluster[0].host(Mirror())
            await cluster.settled()
            for buffers in ([b"a", b"", BIG, b"c"], [BIG], [b"only"], []):
                for _ in range(3):  # like messages may be read and written another way
                    copy = await cluster[1].hub.ask(Picture(buffers), Copy)
                    assert copy.frames == tuple(buffers)
            sent = readings()
            same = await cluster[1].hub.ask(sent, Same)
            assert_same(same.readings, sent)

    run(main())


def test_forwarding_keeps_the_frames_even_where_the_class_is_one_of_bytes():
    @fw.message("bodies.picture")
    class Flat(bytes):
        pass

    class Gate(fw.Actor):
        async def on_start(self):
            self.next = None

        @fw.handles(Flat)
        async def passes(self, flat: Flat, ctx: fw.Context):
            assert flat == b"ab"
            await ctx.forward(to_node=self.next)

    class Pass(fw.Actor):
        """Knows the frames of what it passes on."""

        @fw.handles(Picture)
        async def passes(self, _: Picture, ctx: fw.Context):
            await ctx.forward(to_node=self.next)

    async def main(gate):
        async with Cluster(3) as cluster:
            gate.next = cluster[2].identity
            route = await cluster[1].host(gate)
            await cluster[2].host(Mirror())
            await cluster.settled()
            gate.next = cluster[2].identity
            copy = await cluster[0].hub.ask(Picture([b"a", b"b"]), Copy, to_actor=route)
            assert copy.frames == (b"a", b"b")

    run(main(Gate()))
    run(main(Pass()))


def test_what_cannot_be_written_is_told_with_its_field():
    async def main():
        async with Cluster(2) as cluster:
            await cluster[0].host(Mirror())
            await cluster.settled()
            with pytest.raises(fw.BadBody, match=r"Readings as msgpack\+buffers: field values: .*dtype object"):
                await cluster[1].hub.ask(Readings("odd", np.array([object()])), Copy)

    run(main())


@pytest.mark.parametrize("dtype", ["u1", "<i8", ">f8", "c16", "datetime64[s]", [("x", "f4"), ("y", "i2")]])
def test_large_arrays_of_any_kind_are_frames_without_a_copy_and_can_be_garbage(dtype):
    array = np.zeros((200, LARGE_BYTES // 100), dtype)
    payload = Picture([array])
    [frame] = payload.frames
    assert isinstance(frame, memoryview)
    assert (frame.readonly, frame.format, frame.ndim, frame.nbytes) == (True, "B", 1, array.nbytes)
    array.view("u1").reshape(-1)[7] = 42
    assert frame[7] == 42
    cycle = [payload, frame]
    cycle.append(cycle)
    del cycle, payload, frame, array
    gc.collect()


def test_objects_of_python_are_no_frame():
    with pytest.raises(fw.UsageError, match="buffer 0 cannot be a frame"):
        Picture([np.full(LARGE_BYTES, None, object)])
