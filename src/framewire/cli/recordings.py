"""Recorded messages out of files, however they were written down.

``jsonl``
    A line of JSON each: an object with its ``frames`` in hex and maybe a ``name``, or a bare list of frames.
``hex``
    A line of hex each frame, an empty line between messages. An empty frame is ``-``. Spaces between the
    digits and ``0x`` before them do not matter; a line that starts with ``#`` is a remark.
``zmtp``
    The bytes of a connection, see ``framewire.cli.zmtp``.

Everything is read as it comes, so a recording may be larger than memory, or not have ended yet.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, cast

import msgspec

from framewire.cli import zmtp
from framewire.wire.explaining import printable

__all__ = ["INPUTS", "Input", "Recording", "Unreadable", "read"]

Input = Literal["auto", "jsonl", "hex", "zmtp"]
INPUTS: tuple[Input, ...] = ("auto", "jsonl", "hex", "zmtp")

LONGEST_LINE = 1 << 30

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EMPTY_FRAME = (b"-", b'""')


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


Lines = Iterable[tuple[int, bytes | None]]
"""Numbered lines; None is one that is too long to be looked at."""


def read(path: str, kind: Input = "auto") -> Iterator[Recording | Unreadable]:
    """Everything in a file (``-`` is the standard input), good or bad, in its order."""
    source = "<stdin>" if path == "-" else printable(path)
    with ExitStack() as stack:
        try:
            stream = _open(path, stack)
            yield from _read(stream, source, kind)
        except OSError as problem:
            yield Unreadable(source, problem.strerror or str(problem))


def _open(path: str, stack: ExitStack) -> io.BufferedReader:
    if path != "-":
        return stack.enter_context(Path(path).open("rb"))
    stream = sys.stdin.buffer
    if isinstance(stream, io.BufferedReader):
        return stream
    # A replaced standard input need not have the peek that telling the formats apart needs.
    return io.BufferedReader(cast("io.RawIOBase", stream))


def _read(stream: io.BufferedReader, source: str, kind: Input) -> Iterator[Recording | Unreadable]:
    if kind == "auto":
        first = stream.peek(1)[:1]
        if first and (first[0] == zmtp.GREETING or zmtp.is_flags(first[0])):
            kind = "zmtp"
        elif first and not (first.isspace() or first == _BYTE_ORDER_MARK[:1] or b" " < first < b"\x7f"):
            yield Unreadable(source, "is neither JSON lines, nor hex, nor ZMTP; name it with --input")
            return
    if kind == "zmtp":
        yield from _connection(stream, source)
        return
    lines: Lines = _lines(stream)
    if kind == "auto":
        kind, lines = _told_apart(lines)
    yield from _json_lines(lines, source) if kind == "jsonl" else _hex_lines(lines, source)


def _told_apart(lines: Lines) -> tuple[Input, Lines]:
    """JSON or hex, by the first line that says anything, and the lines from there on."""
    rest = iter(lines)
    for number, line in rest:
        said = (line or b"").strip()
        if said and not said.startswith(b"#"):
            return "jsonl" if said[:1] in (b"{", b"[") else "hex", chain([(number, line)], rest)
    return "hex", ()


def _lines(stream: io.BufferedReader) -> Lines:
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if len(line) < LONGEST_LINE or line.endswith(b"\n"):
            yield number, line
        else:
            while line and not line.endswith(b"\n"):
                line = stream.readline(LONGEST_LINE)
            yield number, None


class _Line(msgspec.Struct):
    """What a line of JSON must have; anything else in it is left alone."""

    frames: list[str]
    name: str | None = None


_JSON = msgspec.json.Decoder(_Line | list[str])


def _json_lines(lines: Lines, source: str) -> Iterator[Recording | Unreadable]:
    for number, line in lines:
        place = f"{source}:{number}"
        if line is None:
            yield _too_long(place)
        elif line.strip():
            try:
                found = _JSON.decode(line)
                texts, name = (found, None) if isinstance(found, list) else (found.frames, found.name)
                yield Recording([_frame(text, f"frames[{at}]: ") for at, text in enumerate(texts)], name, place)
            except RecursionError:
                yield Unreadable(place, "the JSON is nested too deeply")
            except UnicodeDecodeError:
                yield Unreadable(place, "the JSON is not UTF-8")
            except msgspec.ValidationError as problem:
                yield Unreadable(place, f"not a recorded message: {printable(str(problem))}")
            except msgspec.DecodeError as problem:
                yield Unreadable(place, f"not JSON: {printable(str(problem))}")
            except ValueError as problem:
                yield Unreadable(place, str(problem))


def _hex_lines(lines: Lines, source: str) -> Iterator[Recording | Unreadable]:
    frames: list[bytes] = []
    fault: Unreadable | None = None
    start = 0
    for number, line in chain(lines, [(0, b"")]):
        said = None if line is None else line.strip()
        if said is None or fault:
            fault = fault or _too_long(f"{source}:{number}")
        elif said and not said.startswith(b"#"):
            start = start or number
            try:
                frames.append(b"" if said in _EMPTY_FRAME else _frame(said.decode("latin-1")))
            except ValueError as problem:
                fault = Unreadable(f"{source}:{number}", str(problem))
        if said == b"":
            if fault:
                yield fault
            elif frames:
                yield Recording(frames, None, f"{source}:{start}")
            frames, fault, start = [], None, 0


def _frame(text: str, where: str = "") -> bytes:
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        shown = printable(text if len(text) <= 24 else f"{text[:23]}…")
        why = "an odd number of digits" if len(text) % 2 and set(text) <= _DIGITS else "not hex"
        raise ValueError(f"{where}'{shown}' is {why}") from None


_DIGITS = frozenset("0123456789abcdefABCDEF")


def _too_long(place: str) -> Unreadable:
    return Unreadable(place, f"a line longer than {LONGEST_LINE} bytes")


def _connection(stream: io.BufferedReader, source: str) -> Iterator[Recording | Unreadable]:
    try:
        for offset, frames in zmtp.messages(stream):
            yield Recording(frames, None, f"{source}: byte {offset}")
    except zmtp.NotZmtp as problem:
        yield Unreadable(f"{source}: byte {problem.offset}", problem.problem)
