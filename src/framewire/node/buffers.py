"""Buffers as the frames of a body: sent from where they are, and received as views.

A frame of a body is bytes, or a view of memory that belongs to something else: an array, a record batch, a message
that libzmq received. Views are for large buffers: to copy a small one takes less time than to keep track of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, overload

from framewire.errors import UsageError
from framewire.wire.message import BodyFrame

__all__ = ["LARGE_BYTES", "MAX_BODY_FRAMES", "Buffers", "frame_of", "frames_of"]

LARGE_BYTES = 65_536
"""From this size on a buffer is sent without a copy."""
MAX_BODY_FRAMES = 8192
"""Frames of one body, at most: so that with its routing a message has no more than the 10,000 that nodes take."""


class Buffers:
    """A payload of several buffers, each of which is a frame of its own: subclass it to declare a message.

    A buffer is anything with Python's buffer protocol: bytes, memoryview, a numpy array, a pyarrow.Buffer. Received
    buffers are bytes, or read-only views where they are large.
    """

    __slots__ = ("frames",)

    def __init__(self, buffers: Iterable[Any] = ()) -> None:
        if isinstance(buffers, bytes | bytearray | memoryview | str):
            name = type(self).__qualname__
            raise UsageError(f"{name} takes a list of buffers, not {type(buffers).__name__}: {name}([…])")
        self.frames: tuple[BodyFrame, ...] = frames_of(buffers)

    def __len__(self) -> int:
        return len(self.frames)

    def __iter__(self) -> Iterator[BodyFrame]:
        return iter(self.frames)

    @overload
    def __getitem__(self, index: int) -> BodyFrame: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[BodyFrame, ...]: ...

    def __getitem__(self, index: int | slice) -> BodyFrame | tuple[BodyFrame, ...]:
        return self.frames[index]

    def __eq__(self, other: object) -> bool:
        return self.frames == other.frames if type(other) is type(self) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # views of memory that can change have no hash

    def __repr__(self) -> str:
        sizes = ", ".join(str(len(frame)) for frame in self.frames[:8])
        return f"{type(self).__qualname__}({len(self.frames)} buffers of {sizes}{', …' * (len(self) > 8)} bytes)"


def frames_of(buffers: Iterable[Any]) -> tuple[BodyFrame, ...]:
    """Return buffers as the frames of a body, or raise ``UsageError`` naming the one that cannot be a frame."""
    made = []
    for index, buffer in enumerate(buffers):
        if index >= MAX_BODY_FRAMES:
            raise UsageError(f"a body has at most {MAX_BODY_FRAMES} frames; join small buffers into fewer")
        try:
            made.append(frame_of(buffer))
        except (TypeError, ValueError, BufferError) as problem:
            raise UsageError(f"buffer {index} cannot be a frame: {problem}") from None
    return tuple(made)


def frame_of(buffer: Any) -> BodyFrame:
    """Return a buffer as a frame: a view of it where it is large and its bytes are in a row, else a copy.

    Without ``pickle.PickleBuffer``, which would do the same for any buffer: a view of one that is part of a cycle
    crashes the garbage collection.
    """
    if isinstance(buffer, bytes):
        return buffer
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(buffer, numpy.ndarray):
        if buffer.dtype.hasobject:
            raise TypeError(f"an array of dtype {buffer.dtype} holds references, not bytes")
        if buffer.nbytes < LARGE_BYTES or not buffer.flags.c_contiguous:
            return bytes(buffer.tobytes())
        buffer = buffer.reshape(-1).view(numpy.uint8)  # memoryview does not know all formats of numpy's
    view = memoryview(buffer)
    if view.nbytes < LARGE_BYTES or not view.c_contiguous:
        return view.tobytes()
    try:
        return view.cast("B").toreadonly()
    except TypeError:  # a format that memoryview does not know
        return view.tobytes()
