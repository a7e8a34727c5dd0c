"""Messages that were written down as text, read line by line.

``jsonl``
    A line of JSON each: an object with its ``frames`` in hex and maybe a ``name``, or a bare list of frames.
``hex``
    A line of hex each frame, an empty line between messages. An empty frame is ``-``. Spaces between the
    digits and ``0x`` before them do not matter; a line that starts with ``#`` is a remark.

Where lines come from is up to whoever reads: a file that grows, or what somebody pasted. Each message is there as
soon as its last line is, so a transcript may be larger than memory, or not have ended yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import msgspec

from framewire.wire.explaining import printable

__all__ = ["Lines", "Notation", "Recording", "Unreadable", "read_lines", "read_text"]

Notation = Literal["jsonl", "hex"]
Lines = Iterable[tuple[int, bytes | str]]
"""Numbered lines; a text is why a line is not there."""
Place = Callable[[int], str]
"""What a line is called, by its number."""

_EMPTY_FRAME = (b"-", b'""')
_DIGITS = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True)
class Recording:
    """One message as it was written down."""

    frames: list[bytes]
    name: str | None
    place: str
    """Where it was found: ``file:line``, or ``file: byte offset``."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A piece of the input that holds no frames, and why."""

    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


def read_text(content: str) -> Iterator[Recording | Unreadable]:
    """Everything in a text, good or bad, in its order."""
    # A text may hold halves of characters that no encoding has; they are no hex in any case.
    lines = content.removeprefix("\ufeff").encode(errors="replace").splitlines()
    return read_lines(enumerate(lines, 1), "line {}".format)


def read_lines(lines: Lines, place: Place, notation: Notation | None = None) -> Iterator[Recording | Unreadable]:
    """Everything in some lines, good or bad, in its order; without a notation, the first line tells it."""
    if notation is None:
        notation, lines = _told_apart(lines)
    return _json_lines(lines, place) if notation == "jsonl" else _hex_lines(lines, place)


def _told_apart(lines: Lines) -> tuple[Notation, Lines]:
    """JSON or hex, by the first line that says anything, and the lines from there on."""
    rest = iter(lines)
    for number, line in rest:
        said = line.strip() if isinstance(line, bytes) else b""
        if said and not said.startswith(b"#"):
            return "jsonl" if said[:1] in (b"{", b"[") else "hex", chain([(number, line)], rest)
    return "hex", ()


class _Line(msgspec.Struct):
    """What a line of JSON must have; anything else in it is left alone."""

    frames: list[str]
    name: str | None = None


_JSON = msgspec.json.Decoder(_Line | list[str])


def _json_lines(lines: Lines, place: Place) -> Iterator[Recording | Unreadable]:
    for number, line in lines:
        if isinstance(line, str):
            yield Unreadable(place(number), line)
        elif line.strip():
            yield _json_line(line, place(number))


def _json_line(line: bytes, place: str) -> Recording | Unreadable:
    try:
        found = _JSON.decode(line)
        texts, name = (found, None) if isinstance(found, list) else (found.frames, found.name)
        return Recording([_frame(text, f"frames[{at}]: ") for at, text in enumerate(texts)], name, place)
    except RecursionError:
        return Unreadable(place, "the JSON is nested too deeply")
    except UnicodeDecodeError:
        return Unreadable(place, "the JSON is not UTF-8")
    except msgspec.ValidationError as problem:
        return Unreadable(place, f"not a recorded message: {printable(str(problem))}")
    except msgspec.DecodeError as problem:
        return Unreadable(place, f"not JSON: {printable(str(problem))}")
    except ValueError as problem:
        return Unreadable(place, str(problem))


def _hex_lines(lines: Lines, place: Place) -> Iterator[Recording | Unreadable]:
    frames: list[bytes] = []
    fault: Unreadable | None = None
    start = 0
    for number, line in chain(lines, [(0, b"")]):
        said = line if isinstance(line, str) else line.strip()
        if isinstance(said, str):
            fault = fault or Unreadable(place(number), said)
        elif said and not fault and not said.startswith(b"#"):
            start = start or number
            try:
                frames.append(b"" if said in _EMPTY_FRAME else _frame(said.decode("latin-1")))
            except ValueError as problem:
                fault = Unreadable(place(number), str(problem))
        if said == b"":
            if fault:
                yield fault
            elif frames:
                yield Recording(frames, None, place(start))
            frames, fault, start = [], None, 0


def _frame(text: str, where: str = "") -> bytes:
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        shown = printable(text if len(text) <= 24 else f"{text[:23]}…")
        why = "an odd number of digits" if len(text) % 2 and set(text) <= _DIGITS else "not hex"
        raise ValueError(f"{where}'{shown}' is {why}") from None
