"""The codec "msgpack+buffers": a struct as msgpack, and its arrays, record batches and large bytes as frames.

Body frame 0 is what the codec "msgpack" writes, with an extension in place of each value that travels as frames;
these follow from body frame 1 on. Neither side copies a buffer: arrays and batches are sent from the memory that
they have, and what is read are views of the frames that were received. numpy and pyarrow are imported only where a
message needs them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, get_args

import msgspec

from framewire.errors import UsageError
from framewire.node.buffers import LARGE_BYTES, frame_of, frames_of
from framewire.wire.message import BodyFrame

__all__ = ["reader", "writer"]

ARRAY, BYTES, BATCH = 1, 2, 3
"""Types of msgpack extensions. Their data is msgpack, too: an ``_Array``, ``_Bytes`` or ``_Batch``."""
_MOST_BUFFERS = 256
"""Buffers of a record batch that become a frame each; one with more is copied into one frame."""
_NATIVE = (bytes, bytearray, memoryview, dt.datetime)
"""What msgpack has besides what JSON has."""
_DTYPE = re.compile(r"[<>|][biufcSUVmM]\d+(\[\w+\])?")


class _Array(msgspec.Struct, array_like=True, frozen=True):
    """A numpy array whose memory is one frame."""

    frame: int
    dtype: Any
    """As ``numpy.lib.format`` describes it: text, or a list of fields."""
    shape: tuple[int, ...]
    fortran: bool = False
    """Whether the first index varies fastest."""


class _Bytes(msgspec.Struct, array_like=True, frozen=True):
    """Bytes that are one frame."""

    frame: int
    length: int


class _Batch(msgspec.Struct, array_like=True, frozen=True):
    """A record batch: an Arrow IPC stream in one frame, or its buffers in a frame each."""

    frame: int
    rows: int = 0
    schema: bytes = b""
    columns: list[list[bool]] | None = None
    """For each column which of its buffers are there, each in a frame; None for an IPC stream."""


_encode = msgspec.msgpack.Encoder().encode
_read_array = msgspec.msgpack.Decoder(_Array).decode
_read_batch = msgspec.msgpack.Decoder(_Batch).decode
_read_bytes = msgspec.msgpack.Decoder(_Bytes).decode


# --- writing


def writer(cls: type) -> Callable[[Any], tuple[BodyFrame, ...]]:
    """Return the function that writes instances of a class as frames."""

    def write(payload: Any) -> tuple[BodyFrame, ...]:
        buffers = _Buffers()
        fields = dict(_fields(payload))
        large = [name for name, value in fields.items() if _is_large(value)]
        try:
            for name in large:
                number = buffers.add(fields[name])
                told = _Bytes(number, len(buffers.frames[number - 1]))
                fields[name] = msgspec.msgpack.Ext(BYTES, _encode(told))
            head = msgspec.msgpack.Encoder(enc_hook=buffers.extension).encode(
                _shaped(cls, payload, fields) if large else payload
            )
        except UsageError as problem:
            where = [name for name, value in fields.items() if value is buffers.refused]
            raise UsageError(f"field {where[0]}: {problem}" if where else str(problem)) from None
        return frames_of((head, *buffers.frames))

    return write


class _Buffers:
    """The frames that a payload needs besides its head, as they are found."""

    def __init__(self) -> None:
        self.frames: list[BodyFrame] = []
        self.refused: object = None

    def add(self, buffer: Any) -> int:
        """Add a frame, and return its number in the body."""
        self.frames.append(frame_of(buffer))
        return len(self.frames)

    def extension(self, value: Any) -> msgspec.msgpack.Ext:
        """Return what stands for a value in the head."""
        numpy, pyarrow = sys.modules.get("numpy"), sys.modules.get("pyarrow")
        self.refused = value
        if numpy is not None and isinstance(value, numpy.ndarray):
            return msgspec.msgpack.Ext(ARRAY, _encode(self._array(numpy, value)))
        if pyarrow is not None and isinstance(value, pyarrow.RecordBatch):
            return msgspec.msgpack.Ext(BATCH, _encode(self._batch(pyarrow, value)))
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        raise UsageError(f"{name} cannot travel; numpy.ndarray and pyarrow.RecordBatch can, and what msgpack has")

    def _array(self, numpy: Any, array: Any) -> _Array:
        if type(array) not in (numpy.ndarray, numpy.memmap):
            raise UsageError(
                f"{type(array).__qualname__} cannot travel; numpy.asarray(…) makes a plain array of it"
            )
        dtype = array.dtype
        described = None if dtype.hasobject else numpy.lib.format.dtype_to_descr(dtype)
        if described is None or numpy.lib.format.descr_to_dtype(described) != dtype:
            raise UsageError(
                f"an array of dtype {dtype} cannot travel; use numbers, times, or text of a fixed length"
            )
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        rows = array.T if fortran else array if array.flags.c_contiguous else numpy.ascontiguousarray(array)
        # As single bytes: a buffer cannot tell of some dtypes, among them datetime64.
        frame = self.add(rows.reshape(-1).view(numpy.uint8) if array.nbytes else b"")
        return _Array(frame, described, array.shape, fortran)

    def _batch(self, pyarrow: Any, batch: Any) -> _Batch:
        columns = [column.buffers() for column in batch.columns]
        if not _is_plain(pyarrow, batch) or sum(map(len, columns)) > _MOST_BUFFERS:
            sink = pyarrow.BufferOutputStream()
            with pyarrow.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            return _Batch(self.add(sink.getvalue()))
        first = len(self.frames) + 1
        for buffers in columns:
            for buffer in buffers:
                if buffer is not None:
                    self.add(buffer)
        there = [[buffer is not None for buffer in buffers] for buffers in columns]
        return _Batch(first, batch.num_rows, batch.schema.serialize().to_pybytes(), there)


def _fields(payload: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a struct or dataclass under the names that they have in msgpack."""
    if isinstance(payload, msgspec.Struct):
        for name, written in zip(payload.__struct_fields__, payload.__struct_encode_fields__, strict=True):
            yield written, getattr(payload, name)
    else:
        for field in dataclasses.fields(payload):
            yield field.name, getattr(payload, field.name)


def _shaped(cls: type, payload: Any, fields: dict[str, Any]) -> dict[str, Any] | list[Any]:
    """Return fields in the shape that the msgpack of a class has."""
    config = payload.__struct_config__ if issubclass(cls, msgspec.Struct) else None
    if config is None:
        return fields
    if config.array_like:
        return [*([] if config.tag is None else [config.tag]), *fields.values()]
    return fields if config.tag is None else {config.tag_field: config.tag, **fields}


def _is_large(value: object) -> bool:
    return isinstance(value, bytes | bytearray | memoryview) and memoryview(value).nbytes >= LARGE_BYTES


def _is_plain(pyarrow: Any, batch: Any) -> bool:
    """Return whether a batch is worth frames of its own: large, whole buffers without others inside.

    The buffers of a slice are those of all that it was cut from: such a batch is copied.
    """
    types = pyarrow.types
    kinds = (
        *(types.is_primitive, types.is_decimal, types.is_fixed_size_binary),
        *(types.is_binary, types.is_large_binary, types.is_string, types.is_large_string),
    )
    size = batch.nbytes
    return (
        size >= LARGE_BYTES
        and batch.get_total_buffer_size() <= size + size // 4
        and all(column.offset == 0 and any(kind(column.type) for kind in kinds) for column in batch.columns)
    )


# --- reading


class _Broken:
    """Stands for a value whose frames are not what the head says."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def reader(cls: type, read_head: Callable[[Any], Any]) -> Callable[[Sequence[BodyFrame]], Any]:
    """Return the function that reads frames; ``read_head`` reads what has no buffers."""

    def read(frames: Sequence[BodyFrame]) -> Any:
        if len(frames) == 1:
            with contextlib.suppress(msgspec.ValidationError):  # the way of several tells which frame is missing
                return read_head(frames[0])
        if not frames:
            raise ValueError("the body is empty")
        broken: list[_Broken] = []

        def opened(code: int, data: memoryview) -> Any:
            try:
                return _READERS[code](data, frames) if code in _READERS else msgspec.msgpack.Ext(code, bytes(data))
            except ModuleNotFoundError as missing:
                broken.append(_Broken(f"needs {missing.name}, which is not installed here"))
                return broken[-1]
            except Exception as problem:  # noqa: BLE001 - numpy and Arrow raise many kinds
                broken.append(_Broken(str(problem) or type(problem).__name__))
                return broken[-1]

        value = msgspec.msgpack.Decoder(ext_hook=opened).decode(frames[0])
        for name, field in value.items() if isinstance(value, dict) else ():
            if isinstance(field, _Broken):
                raise ValueError(f"{field.reason} - at `$.{name}`")  # noqa: TRY004 - as msgspec tells it
        made: Any = msgspec.convert(value, cls, builtin_types=_NATIVE, dec_hook=_checked)
        if broken:
            raise ValueError(broken[0].reason)
        return made

    return read


def _checked(kind: Any, value: Any) -> Any:
    """Return a value of a type that msgpack does not have, or raise ``ValueError``; msgspec adds the field."""
    if isinstance(value, _Broken):
        raise ValueError(value.reason)  # noqa: TRY004
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        for wanted in get_args(kind)[1:]:  # numpy.typing.NDArray[numpy.float64]
            scalar = (get_args(wanted) or (Any,))[0]
            if isinstance(scalar, type) and not issubclass(value.dtype.type, scalar):
                raise ValueError(f"dtype {value.dtype}; {scalar.__name__} is expected")  # noqa: TRY004
    return value


def _frame(frames: Sequence[BodyFrame], number: int) -> BodyFrame:
    if not 0 < number < len(frames):
        raise ValueError(f"its buffer is body frame {number}, and the body has {_counted(len(frames), 'frame')}")
    return frames[number]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _bytes_from(data: memoryview, frames: Sequence[BodyFrame]) -> BodyFrame:
    told = _read_bytes(data)
    frame = _frame(frames, told.frame)
    if len(frame) != told.length:
        raise ValueError(f"there were {told.length} bytes; body frame {told.frame} has {len(frame)}")
    return frame


def _array_from(data: memoryview, frames: Sequence[BodyFrame]) -> Any:
    import numpy  # noqa: ICN001, PLC0415 - only those need it who send arrays

    told = _read_array(data)
    dtype = numpy.dtype(_fields_of(told.dtype))
    if dtype.hasobject or any(length < 0 for length in told.shape):
        raise ValueError(f"no array has dtype {dtype} and shape {told.shape}")
    frame, size = _frame(frames, told.frame), dtype.itemsize * math.prod(told.shape)
    if len(frame) != size:
        what = f"an array of dtype {dtype} and shape {told.shape} has {size} bytes"
        raise ValueError(f"{what}; body frame {told.frame} has {len(frame)}")
    return numpy.ndarray(told.shape, dtype, buffer=frame, order="F" if told.fortran else "C")


def _fields_of(described: Any) -> Any:
    """Return the description of a dtype as numpy wants it, where lists and tuples are not the same."""
    if isinstance(described, str) and _DTYPE.fullmatch(described):
        return described
    if not isinstance(described, list) or not described:
        return _no_dtype(described)
    fields = []
    for field in described:
        if not isinstance(field, list) or not 2 <= len(field) <= 3:
            return _no_dtype(described)
        name = tuple(field[0]) if isinstance(field[0], list) else field[0]
        fields.append((name, _fields_of(field[1]), *(tuple(shape) for shape in field[2:])))
    return fields


def _no_dtype(described: object) -> NoReturn:
    raise ValueError(f"{described!r:.100} describes no dtype")


def _batch_from(data: memoryview, frames: Sequence[BodyFrame]) -> Any:
    import pyarrow  # noqa: ICN001, PLC0415 - only those need it who send batches
    import pyarrow.ipc  # noqa: PLC0415

    told = _read_batch(data)
    if told.columns is None:
        with pyarrow.ipc.open_stream(pyarrow.py_buffer(_frame(frames, told.frame))) as stream:
            batch = stream.read_next_batch()
    else:
        schema, number, arrays = pyarrow.ipc.read_schema(pyarrow.py_buffer(told.schema)), told.frame, []
        for field, there in zip(schema, told.columns, strict=True):
            buffers: list[Any] = []
            for is_there in there:
                buffers.append(pyarrow.py_buffer(_frame(frames, number)) if is_there else None)
                number += is_there
            arrays.append(pyarrow.Array.from_buffers(field.type, told.rows, buffers))
        batch = pyarrow.RecordBatch.from_arrays(arrays, schema=schema)
    batch.validate(full=True)  # or a peer could have the process read memory that is not the message's
    return batch


_READERS: dict[int, Callable[[memoryview, Sequence[BodyFrame]], Any]] = {
    ARRAY: _array_from,
    BYTES: _bytes_from,
    BATCH: _batch_from,
}
