"""A message frame by frame, counted from the end, as ``framewire inspect`` shows it."""

from __future__ import annotations

from collections.abc import Sequence

from framewire._counts import counted
from framewire.dashboard.elements import Cell, Column, Rows, block, text
from framewire.dashboard.showing import bytes_text, shown
from framewire.wire.explaining import Explanation, FrameNote, explain

__all__ = ["frame_view"]

_MOST_FRAMES = 400
_LONGEST = 1024
_COLUMNS = (
    Column(""),
    Column("frame", number=True),
    Column("field"),
    Column("kind"),
    Column("size", number=True),
    Column("value", wide=True),
)
_HIDDEN = "hidden: this dashboard was started with --no-bodies"


def frame_view(title: str, frames: Sequence[bytes], *, bodies: bool, signature: str = "") -> None:
    """What a message is, what is wrong with it, and what each of its frames is."""
    found = explain(frames, longest=_LONGEST)
    with block("article", "fw-section", aria_label=f"Message {shown(title, 60)}"):
        with block("div", "fw-section-head"):
            text("h2", shown(title))
            text("span", _summary(found, frames, signature), "bad" if found.error else "soft")
        if found.error is not None:
            text("p", f"✗ {shown(found.error, 400)}", "bad")
        rows = [_row(note, bodies=bodies) for note in _telling(found.notes)]
        Rows(f"Frames of {shown(title, 60)}, from the end", _COLUMNS, rows)
        if len(found.notes) > len(rows):
            text(
                "p",
                f"… and {len(found.notes) - len(rows):,} more frames; `framewire inspect --full` shows them",
                "soft",
            )
        text("p", "→ decides the route   ✗ makes it malformed", "soft")


def _summary(found: Explanation, frames: Sequence[bytes], signature: str) -> str:
    message = found.message
    parts = [f"V{found.wire_version}" if found.wire_version else "no known format"]
    if message is None:
        parts.append("malformed")
    else:
        domain = f" in {shown(message.domain, 40)}" if message.domain else ""
        signed = signature or ("signed" if message.signature else "unsigned")
        parts += [
            shown(message.message_id),
            message.distribution.name.lower(),
            counted(message.hops, "hop"),
            signed + domain,
        ]
    return " · ".join([*parts, f"{counted(len(frames), 'frame')}, {bytes_text(sum(map(len, frames)))}"])


def _telling(notes: Sequence[FrameNote]) -> list[FrameNote]:
    """As many frames as anybody reads, and the one that is wrong, wherever it is."""
    return [*notes[:_MOST_FRAMES], *(note for note in notes[_MOST_FRAMES:] if note.offending)]


def _row(note: FrameNote, *, bodies: bool) -> tuple[Cell | str, ...]:
    field = note.field or "?"
    # A frame that no format places may be a piece of a body as well.
    hidden = (
        not bodies and note.size > 0 and (note.field is None or field.startswith("body") or note.part == "unknown")
    )
    mark = "✗" if note.offending else "→" if note.selector else ""
    also = f" (also {', '.join(note.also)})" if note.also else ""
    tone = "bad" if note.offending else None
    return (
        Cell(mark, tone=tone or "soft"),
        Cell(f"n-{note.position}", sort=note.position, tone=tone),
        Cell(shown(f"{field}{also}"), tone=tone),
        str(note.kind),
        Cell(f"{note.size:,}", sort=note.size),
        Cell(_HIDDEN, tone="soft")
        if hidden
        else Cell(shown(note.value, _LONGEST) if note.size else "empty", mono=True, tone=tone),
    )
