"""Messages that somebody pasted: JSON lines or hex, as ``framewire inspect`` reads them from files.

It has its own reader because what is pasted is small, is all there, and is text: nothing has to be read as it
comes, and a browser cannot hand over the bytes of a connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from framewire.wire.explaining import printable

__all__ = ["Pasted", "pasted"]

MOST = 200
"""Messages that are shown of one paste."""
_EMPTY = ("-", '""')


@dataclass(frozen=True, slots=True)
class Pasted:
    """One message, or why some lines are none."""

    place: str
    frames: tuple[bytes, ...] = ()
    problem: str = ""


class _Line(msgspec.Struct):
    frames: list[str]
    name: str | None = None


_JSON = msgspec.json.Decoder(_Line | list[str])


def pasted(content: str) -> Iterator[Pasted]:
    """Everything in a paste, good or bad, in its order."""
    lines = content.removeprefix("\ufeff").splitlines()
    first = next((line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    return _json(lines) if first[:1] in ("{", "[") else _hex(lines)


def _json(lines: list[str]) -> Iterator[Pasted]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            found = _JSON.decode(line)
            texts, name = (found, None) if isinstance(found, list) else (found.frames, found.name)
            yield Pasted(name or place, tuple(_frame(text, f"frames[{at}]: ") for at, text in enumerate(texts)))
        except RecursionError:
            yield Pasted(place, problem="the JSON is nested too deeply")
        except msgspec.ValidationError as problem:
            yield Pasted(place, problem=f"not a recorded message: {printable(str(problem))}")
        except msgspec.DecodeError as problem:
            yield Pasted(place, problem=f"not JSON: {printable(str(problem))}")
        except ValueError as problem:
            yield Pasted(place, problem=str(problem))


def _hex(lines: list[str]) -> Iterator[Pasted]:
    frames: list[bytes] = []
    fault = ""
    start = 0
    for number, line in enumerate([*lines, ""], 1):
        said = line.strip()
        if said and not said.startswith("#"):
            start = start or number
            try:
                frames.append(b"" if said in _EMPTY else _frame(said))
            except ValueError as problem:
                fault = fault or f"line {number}: {problem}"
        elif not said:
            if fault:
                yield Pasted(f"line {start}", problem=fault)
            elif frames:
                yield Pasted(f"line {start}", tuple(frames))
            frames, fault, start = [], "", 0


def _frame(text: str, where: str = "") -> bytes:
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        shown = printable(text if len(text) <= 24 else f"{text[:23]}…")
        raise ValueError(f"{where}'{shown}' is not hex: two digits a byte, - for an empty frame") from None
