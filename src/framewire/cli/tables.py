"""Findings for people: a heading and a table of frames for each message, or one line.

Everything that comes from a recording is put into ``Text``, never into markup, and has been made printable
before: no message can colour, move or clear anything on the reader's terminal.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from framewire._counts import counted
from framewire.cli.findings import Finding, SignatureState
from framewire.wire import Message
from framewire.wire.explaining import FrameNote, Part, printable
from framewire.wire.layout import LAYOUTS, Kind

__all__ = ["frame_view", "one_line", "output"]

LONGEST_TABLE = 400
"""Rows that are shown without ``--full``; a message can have a million frames."""

_PIPE_WIDTH = 100
_NARROW = 80
_NARROW_FIELD = 20
_LONGEST_NAME = 80
_BAD, _GOOD, _FAINT = "bold red", "green", "dim"


def output() -> Console:
    """A console on the standard output that takes all text as it is."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.encoding.lower().startswith("utf"):
        sys.stdout.reconfigure(errors="replace")
    terminal = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(markup=False, emoji=False, highlight=False, width=None if terminal else _PIPE_WIDTH)


def frame_view(finding: Finding, *, width: int, full: bool) -> RenderableType:
    """The heading, the frames from the end, and below them what is wrong, if anything is."""
    notes = finding.explanation.notes
    shown = notes if full else _most_telling(notes)
    parts: list[RenderableType] = [
        Rule(Text(_cut(finding.title), style="bold"), align="left", style=_FAINT),
        Padding(_summary(finding), (0, 1)),
    ]
    if shown:
        parts += [Text(), _table(shown, narrow=width < _NARROW, full=full)]
    if hidden := len(notes) - len(shown):
        parts.append(Padding(Text(f"… {counted(hidden, 'more frame')}; --full shows them", style=_FAINT), (0, 1)))
    below = [Text(f"✗ {complaint}", style=_BAD) for complaint in _complaints(finding)]
    below += [Text(f"  {hint}", style="yellow") for hint in _hints(finding)]
    if below:
        parts += [Text(), *(Padding(line, (0, 1)) for line in below)]
    return Group(*parts, Text())


def one_line(finding: Finding) -> Text:
    """A message in one line, with what is wrong at its end."""
    line = Text.assemble((f"{_cut(finding.title):<32}", "bold"), " ", _summary(finding))
    for complaint in _complaints(finding):
        line.append(f" · {complaint}", style=_BAD)
    return line


def _summary(finding: Finding) -> Text:
    """The format, what the message is, and how large."""
    explanation = finding.explanation
    version, message = explanation.wire_version, explanation.message
    summary = Text()
    if version is not None:
        summary.append(f"V{version}  ", style="cyan")
    if message is None:
        summary.append("malformed", style=_BAD)
    else:
        summary.append(_cut(str(message.message_id)), style="bold")
        summary.append(f"  {message.distribution.name.lower()} · {counted(message.hops, 'hop')} · ")
        summary.append_text(_signature(finding, message))
    size = sum(note.size for note in explanation.notes)
    return summary.append(f" · {counted(len(explanation.notes), 'frame')}, {counted(size, 'byte')}")


def _signature(finding: Finding, message: Message) -> Text:
    domain = _cut(printable(message.domain))
    within = f" in {domain}" if domain else ""
    if finding.signature is None:
        return Text(("signed" if message.signature else "unsigned") + within)
    state = finding.signature.state
    if state is SignatureState.UNSIGNED:
        return Text(f"{state} {domain}".rstrip())
    return Text(f"{state}{within}", style=_BAD if finding.forged else _GOOD)


def _complaints(finding: Finding) -> Iterator[str]:
    if finding.explanation.error is not None:
        yield str(finding.explanation.error)
    if finding.forged:
        yield str(finding.signature)


def _hints(finding: Finding) -> Iterator[str]:
    error, version = finding.explanation.error, finding.explanation.wire_version
    if error and error.field == "ttl" and version and LAYOUTS[version].ticks_per_ttl != 1:
        yield "Old .NET builds recorded ticks where milliseconds belong: try --ttl-unit ticks."


def _most_telling(notes: Sequence[FrameNote]) -> Sequence[FrameNote]:
    """As many frames as fit a reader's patience, and the offending one, wherever it is."""
    return [*notes[:LONGEST_TABLE], *(note for note in notes[LONGEST_TABLE:] if note.offending)]


def _table(notes: Sequence[FrameNote], *, narrow: bool, full: bool) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style=_FAINT)
    table.add_column("" if narrow else "route", justify="center", no_wrap=True)
    table.add_column("frame", no_wrap=True)
    table.add_column("field", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("value")
    for _, group in groupby(notes, key=_section):
        for note in group:
            table.add_row(
                _mark(note),
                Text(f"n-{note.position}", style=_FAINT),
                _field(note, narrow=narrow),
                Text(str(note.size), style=_FAINT),
                _value(note, full=full),
                style=_BAD if note.offending else None,
            )
        table.add_section()
    return table


def _section(note: FrameNote) -> str:
    """The name of the section that an entry is in; the part of the message that any other frame is in."""
    entry = note.part in (Part.ENTRY, Part.EXTRA)
    return note.field.partition("[")[0] if entry and note.field else note.part


def _mark(note: FrameNote) -> Text:
    arrow = "→" if note.selector else ""
    return Text(f"✗{arrow}") if note.offending else Text(arrow, style=_GOOD)


def _field(note: FrameNote, *, narrow: bool) -> Text:
    if note.field is None:
        return Text("—", style=_FAINT)
    names = [note.field, *(f"= {other}" for other in note.also)]
    lines = [line for name in names for line in (_folded(name) if narrow else [name])]
    return Text("\n".join(lines), style="" if note.offending or note.part is not Part.EXTRA else "yellow")


def _folded(name: str) -> list[str]:
    """A field's name in lines that leave room for the value, broken where its words end."""
    lines = [""]
    for piece in name.replace("_", "_\0").replace(".", "\0.").split("\0"):
        if len(lines[-1]) + len(piece) > _NARROW_FIELD:
            lines.append(" ")
        lines[-1] += piece
    return lines


def _value(note: FrameNote, *, full: bool) -> Text:
    if not note.size and note.value == "":
        return Text("empty", style=_FAINT)
    value = Text(note.value)
    if note.part is Part.EXTRA:
        value = Text.assemble(("newer writer: ", "yellow"), value)
    # Numbers and lanes are short and told in full; only what a sender can make long is cut.
    if note.kind in (Kind.BYTES, Kind.TEXT) and not full:
        value.no_wrap, value.overflow = True, "ellipsis"
    else:
        value.overflow = "fold"
    return value


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
