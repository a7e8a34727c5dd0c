"""The codec "msgpack+buffers": arrays, record batches and large bytes beside the msgpack of the rest."""

import contextlib
import dataclasses
import subprocess
import sys
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node.bodies import LARGE, Readings, assert_same, readings

import framewire as fw
from framewire.node.buffers import LARGE_BYTES, MAX_BODY_FRAMES
from framewire.node.payloads import type_of

READINGS = type_of(Readings)


def again(payload):
    """A payload written, and read from frames that are bytes."""
    declared = type_of(type(payload))
    return declared.read(tuple(bytes(frame) for frame in declared.frames(payload)))


def test_everything_that_is_large_is_beside_the_head():
    sent = readings()
    head, raw, values, *rest = READINGS.frames(sent)
    assert len(head) < 1000
    assert raw is sent.raw
    assert np.shares_memory(np.frombuffer(values), sent.values)
    assert (len(values), len(rest)) == (LARGE, 3 + 2)
    assert_same(again(sent), sent)


def test_what_has_no_buffers_is_plain_msgpack_in_one_frame():
    small = Readings("small", None, b"few")
    assert READINGS.frames(small) == (msgspec.msgpack.encode(small),)
    assert again(small) == small


def test_arrays_are_sent_from_their_own_memory_and_read_as_views_of_the_frames():
    values = np.arange(LARGE / 8)
    frames = READINGS.frames(Readings("views", values))
    assert np.shares_memory(np.frombuffer(frames[1]), values)
    read = READINGS.read(frames).values
    assert np.shares_memory(read, values)
    assert not read.flags.writeable


def test_batches_are_sent_from_their_own_memory_and_read_as_views_of_the_frames():
    batch = pa.record_batch({"number": np.arange(20_000), "even": [number % 2 == 0 for number in range(20_000)]})
    frames = READINGS.frames(Readings("views", batch=batch))
    read = READINGS.read(frames).batch
    addresses = [[buffer and buffer.address for buffer in column.buffers()] for column in (batch[0], read[0])]
    assert addresses[0] == addresses[1]
    assert read.equals(batch)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3)),
        np.array(5.5),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(100)[::3],
        np.zeros((2, 3, 4)).transpose(1, 0, 2),
        np.array(["2026-01-01", "NaT"], "M8[ns]"),
        np.array([1, 2], "m8[25s]"),
        np.zeros(4, [("a", "<i4"), ("b", ">f8", (2,)), ("c", [("d", "S3")])]),
        np.array(["text", "é"]),
        np.arange(4, dtype=">i2"),
        np.array([True, False]),
        np.array([1.5], np.float16),
        np.array([1 + 2j]),
        np.zeros(2, "S0"),
        np.zeros(2, "V3"),
    ],
    ids=lambda array: f"{array.dtype.str}{list(array.shape)}",
)
def test_an_array_is_the_same_after_its_journey(array):
    read = again(Readings("one", parts=[array])).parts[0]
    assert (read.dtype, read.shape) == (array.dtype, array.shape)
    assert np.array_equal(read, array, equal_nan=array.dtype.kind in "fc") or np.isnat(array).any()
    assert read.tobytes() == array.tobytes()


def test_fortran_order_is_kept_and_a_stride_is_copied():
    fortran = np.asfortranarray(np.arange(20_000.0).reshape(100, 200))
    frames = READINGS.frames(Readings("order", parts=[fortran, np.arange(20_000)[::2]]))
    assert np.shares_memory(np.frombuffer(frames[1]), fortran)
    first, second = READINGS.read(frames).parts
    assert first.flags.f_contiguous
    assert np.array_equal(first, fortran)
    assert np.array_equal(second, np.arange(20_000)[::2])


@pytest.mark.parametrize(
    "batch",
    [
        pa.record_batch({"few": [1, 2, 3]}),
        pa.record_batch({"list": [[1, 2], [], None] * 20_000}),
        pa.record_batch({"word": pa.array(["a", "b"] * 40_000).dictionary_encode()}),
        pa.record_batch({"null": pa.nulls(9), "number": range(9)}),
        pa.record_batch({"number": np.arange(1_000_000)}).slice(7, 20),
        pa.record_batch({"number": np.arange(100_000)}).slice(7),
        pa.record_batch({"some": pa.array([None, 1] * 40_000, pa.int32()), "text": ["x", None] * 40_000}),
        pa.record_batch({f"c{number}": np.arange(100) for number in range(300)}),
        pa.record_batch({"n": np.arange(20_000)}, schema=pa.schema([("n", pa.int64())], {"made": "by hand"})),
        pa.record_batch({}),
    ],
    ids=["few", "list", "dictionary", "null", "slice", "tail", "nulls", "columns", "metadata", "empty"],
)
def test_a_batch_is_the_same_after_its_journey(batch):
    read = again(Readings("one", batch=batch)).batch
    assert read.equals(batch, check_metadata=True)


def test_a_slice_of_a_large_batch_does_not_take_all_of_it_along():
    batch = pa.record_batch({"number": np.arange(1_000_000)}).slice(7, 20)
    assert sum(map(len, READINGS.frames(Readings("slice", batch=batch)))) < 2000


@fw.message("bodies.tagged", codec="msgpack+buffers")
class Tagged(msgspec.Struct, tag="kind", rename="camel", omit_defaults=True):
    first_part: bytes
    any_part: Any = None
    view: memoryview | None = None
    grown: bytearray | None = None


@fw.message("bodies.list", codec="msgpack+buffers")
class Listed(msgspec.Struct, array_like=True, tag="list"):
    first: bytes
    second: npt.NDArray[np.float64]


@fw.message("bodies.dataclass", codec="msgpack+buffers")
@dataclasses.dataclass
class Plain:
    first: bytes
    second: dict[str, np.ndarray]


def test_structs_of_every_shape_and_dataclasses_keep_their_fields():
    large = b"l" * LARGE_BYTES
    tagged = Tagged(large, [1, np.arange(3)], memoryview(large), bytearray(large))
    head, *frames = type_of(Tagged).frames(tagged)
    assert len(frames) == 4
    assert msgspec.msgpack.decode(head).keys() == {"type", "firstPart", "anyPart", "view", "grown"}
    read = again(tagged)
    assert (read.first_part, bytes(read.view), read.grown) == (large, large, bytearray(large))
    assert np.array_equal(read.any_part[1], np.arange(3))
    listed = again(Listed(large, np.arange(4.0)))
    assert (listed.first, listed.second.tolist()) == (large, [0, 1, 2, 3])
    plain = again(Plain(large, {"k": np.arange(2)}))
    assert (plain.first, plain.second["k"].tolist()) == (large, [0, 1])


class Odd:
    pass


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (np.array([None]), "an array of dtype object cannot travel; use numbers"),
        (np.array([1], np.dtypes.StringDType()), "an array of dtype StringDType.* cannot travel"),
        (np.ma.masked_array([1], [True]), "MaskedArray cannot travel; numpy.asarray"),
        (pa.table({"a": [1]}), "pyarrow.lib.Table cannot travel; numpy.ndarray and pyarrow.RecordBatch can"),
        (Odd(), "test_out_of_band.Odd cannot travel"),
    ],
    ids=["object", "strings", "masked", "table", "class"],
)
def test_what_cannot_travel_is_told_with_its_field(value, complaint):
    with pytest.raises(fw.UsageError, match=f"^field anyPart: .*{complaint}"):
        type_of(Tagged).frames(Tagged(b"", value))
    with pytest.raises(fw.UsageError, match=complaint):
        type_of(Tagged).frames(Tagged(b"", {"deep": [value]}))


def test_too_many_buffers_are_told():
    with pytest.raises(fw.UsageError, match=f"at most {MAX_BODY_FRAMES} frames"):
        READINGS.frames(Readings("many", parts=[np.arange(1)] * MAX_BODY_FRAMES))


def without(frames, place, count):
    return [bytes(frame)[:-count] if index == place else frame for index, frame in enumerate(frames)]


@pytest.mark.parametrize(
    ("place", "field"), [(1, "raw"), (2, "values"), (3, "batch"), (5, "batch"), (6, r"parts\[0\]")]
)
def test_a_frame_that_was_cut_is_a_bad_body_that_names_the_field(place, field):
    with pytest.raises(fw.BadBody, match=rf"not a Readings as msgpack\+buffers: field {field}: "):
        READINGS.read(without(READINGS.frames(readings()), place, 5))


def test_frames_that_are_missing_are_a_bad_body_that_names_the_field():
    frames = READINGS.frames(readings())
    with pytest.raises(fw.BadBody, match="field values: its buffer is body frame 2, and the body has 2 frames"):
        READINGS.read(frames[:2])
    with pytest.raises(fw.BadBody, match="field values: its buffer is body frame 2, and the body has 1 frame"):
        READINGS.read(frames[:1])
    with pytest.raises(fw.BadBody, match="the body is empty"):
        READINGS.read(())


def test_an_array_of_another_dtype_than_the_field_has_is_a_bad_body():
    with pytest.raises(fw.BadBody, match="field values: dtype int64; float64 is expected"):
        again(Readings("numbers", np.arange(3)))


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ([1, "|O", [1]], "describes no dtype"),
        ([1, [["a", "|O"]], [1]], "describes no dtype"),
        ([1, "<f8", [-1]], "no array has dtype float64"),
        ([1, "<f8", [2**62, 2**62]], "body frame 1 has 8"),
        ([0, "<f8", [1]], "its buffer is body frame 0"),
        ([-1, "<f8", [1]], "its buffer is body frame -1"),
        (["x", "<f8", [1]], "Expected `int`"),
        ([1, "i4,(9)f8", [1]], "describes no dtype"),
        ([1, [], [1]], "describes no dtype"),
        ([1, [["a"]], [1]], "describes no dtype"),
    ],
)
def test_a_head_that_lies_about_an_array_is_a_bad_body(told, complaint):
    extension = msgspec.msgpack.Ext(1, msgspec.msgpack.encode(told))
    head = msgspec.msgpack.encode({"name": "liar", "values": extension})
    with pytest.raises(fw.BadBody, match=f"field values: .*{complaint}"):
        READINGS.read((head, bytes(8)))


def test_offsets_that_point_out_of_a_batch_are_a_bad_body():
    batch = pa.record_batch({"text": [f"row {number}" for number in range(20_000)]})
    frames = [bytes(frame) for frame in READINGS.frames(Readings("offsets", batch=batch))]
    frames[1] = frames[1][:-8] + (2**30).to_bytes(4, "little") + frames[1][-4:]
    with pytest.raises(fw.BadBody, match="field batch: "):
        READINGS.read(frames)


@given(st.data())
def test_whatever_happens_to_frames_nothing_but_a_bad_body_comes_of_it(data):
    frames = [bytearray(frame) for frame in READINGS.frames(readings())]
    for _ in range(data.draw(st.integers(1, 4))):
        frame = frames[data.draw(st.integers(0, 1)) * data.draw(st.integers(0, len(frames) - 1))]
        if frame:
            frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(fw.BadBody):
        READINGS.read([bytes(frame) for frame in frames])


def test_neither_numpy_nor_pyarrow_is_imported_for_messages_without_them():
    program = (
        "import sys, msgspec, framewire as fw\n"
        "from framewire.node.payloads import type_of\n"
        "@fw.message('x', codec='msgpack+buffers')\n"
        "class X(msgspec.Struct):\n    raw: bytes\n"
        "frames = type_of(X).frames(X(bytes(100_000)))\n"
        "assert len(frames) == 2 and type_of(X).read(frames).raw == bytes(100_000)\n"
        "assert not {'numpy', 'pyarrow'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
