"""Recorded messages out of files, however they were written down.

``jsonl`` and ``hex``
    Text, see ``framewire.wire.transcripts``.
``zmtp``
    The bytes of a connection, see ``framewire.cli.zmtp``.

Everything is read as it comes, so a recording may be larger than memory, or not have ended yet.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, cast

from framewire.cli import zmtp
from framewire.wire.explaining import printable
from framewire.wire.transcripts import Lines, Recording, Unreadable, read_lines

__all__ = ["INPUTS", "Input", "Recording", "Unreadable", "read"]

Input = Literal["auto", "jsonl", "hex", "zmtp"]
INPUTS: tuple[Input, ...] = ("auto", "jsonl", "hex", "zmtp")

LONGEST_LINE = 1 << 30

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
    yield from read_lines(_lines(stream), lambda number: f"{source}:{number}", None if kind == "auto" else kind)


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
            yield number, f"a line longer than {LONGEST_LINE} bytes"


def _connection(stream: io.BufferedReader, source: str) -> Iterator[Recording | Unreadable]:
    try:
        for offset, frames in zmtp.messages(stream):
            yield Recording(frames, None, f"{source}: byte {offset}")
    except zmtp.NotZmtp as problem:
        yield Unreadable(f"{source}: byte {problem.offset}", problem.problem)
