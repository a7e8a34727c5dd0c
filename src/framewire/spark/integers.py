"""Little-endian integers in binary columns, read and written with expressions.

Spark has no function that reads a number from bytes. The fastest exact way that compiles is by hexadecimal
text: ``conv(hex(bytes), 16, -10)``, about 0.4 µs for eight bytes, and then the bytes are in the wrong order,
because ``conv`` reads the first as the most significant. Turning them round as text would cost as much again;
shifting them into place costs next to nothing. (``bench/spark.py`` has the whole.)
"""

from __future__ import annotations

__all__ = ["as_bytes", "pack_lanes", "small", "turned", "word"]


def word(raw: str) -> str:
    """Up to eight bytes as one number, the first byte the most significant. More than eight would be an error."""
    return f"CAST(conv(hex({raw}), 16, -10) AS BIGINT)"


def small(raw: str) -> str:
    """A number of two bytes, which is nearly always a small one, so those are looked for first."""
    usual = " ".join(f"WHEN {raw} = X'{number:02x}00' THEN {number}" for number in range(1, 5))
    return f"CASE {usual} ELSE CAST({turned(word(raw), 2)} AS INT) END"


def as_bytes(number: str, width: int) -> str:
    """A number as ``width`` little-endian bytes; it must fit."""
    return f"unhex(lpad(hex({turned(number, width)}), {2 * width}, '0'))"


def pack_lanes(lanes: list[str]) -> str:
    """Up to four numbers of 16 bits as the little-endian number that a descriptor of eight bytes holds."""
    shifted = [f"shiftleft(CAST({number} AS BIGINT), {16 * lane})" for lane, number in enumerate(lanes)]
    return f"({' | '.join(shifted)})"


def turned(number: str, width: int) -> str:
    """The same bytes in the opposite order."""
    moved = []
    for at in range(width):
        up = 8 * (width - 1 - at)
        byte = _byte(number, 8 * at)
        moved.append(f"shiftleft({byte}, {up})" if up else byte)
    return f"({' | '.join(moved)})"


def _byte(number: str, shift: int) -> str:
    shifted = f"shiftrightunsigned({number}, {shift})" if shift else number
    return f"({shifted} & 255L)"
