"""Byte strings that frames are made of, each stored once.

A message is a row of numbers into this pool until the moment it is written: numbers are what numpy is fast with,
and Arrow turns them into bytes with one call for all frames of all messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Ints", "Pool", "fixed_width", "ragged"]

Ints = npt.NDArray[Any]
"""Whole numbers of some width."""


class Pool:
    """Grows while a block of messages is put together; ``EMPTY`` is always the empty string."""

    EMPTY = 0

    def __init__(self, parts: Iterable[pa.Array] = ()) -> None:
        self._parts: list[pa.Array] = list(parts) or [pa.array([b""], pa.binary())]
        self._size = sum(map(len, self._parts))

    @property
    def parts(self) -> tuple[pa.Array, ...]:
        return tuple(self._parts)

    def add(self, values: pa.Array) -> int:
        """Take strings in; returns the number of the first."""
        first = self._size
        self._parts.append(values)
        self._size += len(values)
        return first

    def add_all(self, values: Iterable[bytes]) -> Ints:
        """Take a few strings in; returns the number of each."""
        array = pa.array(list(values), pa.binary())
        first = self.add(array)
        return np.arange(first, first + len(array), dtype=np.int32)

    def add_numbers(self, numbers: Ints, kind: str) -> Ints:
        """Take numbers in as little-endian words of a numpy type; returns the number of each string."""
        words = np.ascontiguousarray(numbers, dtype=kind)
        first = self.add(fixed_width(words.view(np.uint8).reshape(len(words), words.itemsize)))
        return np.arange(first, first + len(words), dtype=np.int32)

    def take(self, numbers: Ints) -> pa.Array:
        """The strings with these numbers."""
        return pa.concat_arrays(self._parts).take(pa.array(numbers))


def fixed_width(table: npt.NDArray[np.uint8]) -> pa.Array:
    """Rows of bytes as strings that all have the same length."""
    count, width = table.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    data = np.ascontiguousarray(table)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def ragged(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32]) -> pa.Array:
    """One run of bytes as strings that end where the next begins."""
    return pa.Array.from_buffers(
        pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    )
