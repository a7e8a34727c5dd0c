"""Messages whose bodies have several frames, and an actor that gives them back."""

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

import framewire as fw

LARGE = 200_000
"""Bytes of a buffer that is sent without a copy, and received as a view by the compiled channel."""


@fw.message("bodies.picture")
class Picture(fw.Buffers):
    pass


@fw.message("bodies.copy")
class Copy(fw.Buffers):
    """The answer to a picture: its frames."""


@fw.message("bodies.readings", codec="msgpack+buffers")
class Readings(msgspec.Struct):
    name: str
    values: npt.NDArray[np.float64] | None = None
    raw: bytes = b""
    batch: pa.RecordBatch | None = None
    parts: list[np.ndarray] = []


@fw.message("bodies.same", codec="msgpack+buffers")
class Same(msgspec.Struct):
    """The answer to readings: the same again, and how they were seen."""

    readings: Readings
    frames: list[int]
    writable: bool


class Mirror(fw.Actor):
    """Gives back what it gets, and notes the frames that it came in."""

    def __init__(self):
        self.seen = []

    @fw.handles(Picture)
    async def picture(self, picture: Picture, ctx: fw.Context) -> Copy:
        self.seen.append(ctx.body_frames)
        return Copy(picture)

    @fw.handles(Readings)
    async def readings(self, readings: Readings, ctx: fw.Context) -> Same:
        self.seen.append(ctx.body_frames)
        writable = readings.values is not None and bool(readings.values.flags.writeable)
        return Same(readings, [len(frame) for frame in ctx.body_frames], writable)


def readings():
    """Readings with one buffer of every kind."""
    values = np.arange(LARGE // 8, dtype=np.float64)
    columns = {"number": np.arange(20_000), "text": [f"row {number}" for number in range(20_000)]}
    return Readings("all", values, bytes(LARGE), pa.record_batch(columns), [np.arange(3), np.zeros((0, 2))])


def assert_same(one: Readings, other: Readings):
    assert (one.name, one.raw) == (other.name, other.raw)
    assert np.array_equal(one.values, other.values)
    assert one.batch.equals(other.batch)
    assert [part.shape for part in one.parts] == [part.shape for part in other.parts]
    assert all(np.array_equal(left, right) for left, right in zip(one.parts, other.parts, strict=True))
