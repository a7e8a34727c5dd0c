"""The wire: a message that somebody pastes or picks, frame by frame from its end."""

from __future__ import annotations

from itertools import islice

from nicegui import events

from framewire.dashboard.board import Board
from framewire.dashboard.elements import block, text
from framewire.dashboard.frames import frame_view
from framewire.dashboard.pasting import MOST, pasted
from framewire.dashboard.shell import heading, page, state

__all__ = ["wire_page"]

_LONGEST = 4 * 1024 * 1024
_HELP = (
    'JSON lines (an object with "frames" in hex, or a list of them), or hex: a frame a line, - for an empty one, '
    "an empty line between messages."
)


def wire_page(board: Board) -> None:
    """A place to paste, and below it what was pasted."""
    with page(board, "Wire", "/wire"):
        heading(
            "Wire", "Paste a message to see its frames, counted from the end, as `framewire inspect` shows them."
        )
        with block("div", "fw-section"):
            text("label", _HELP, "soft", for_="paste")
            area = block("textarea", "fw-paste", id="paste", spellcheck="false", rows="10")
            button = text("button", "Show the frames", "fw-button main", type="button")
        found = block("div", "fw-main-part", aria_live="polite")

    def look(event: events.GenericEventArguments) -> None:
        found.clear()
        with found:
            _show(str(event.args or ""), bodies=board.bodies is not None)

    button.on("click", look, js_handler='() => emit(document.getElementById("paste").value)')
    area.on("keydown.ctrl.enter", look, js_handler="(event) => emit(event.target.value)")


def _show(content: str, *, bodies: bool) -> None:
    if len(content) > _LONGEST:
        state(
            "Too much to paste",
            "This page takes up to 4 MiB; the command reads files of any size.",
            "framewire inspect FILE",
            tone="bad",
        )
        return
    messages = list(islice(pasted(content), MOST + 1))
    if not messages:
        state("Nothing to show", _HELP)
    for each in messages[:MOST]:
        if each.problem:
            state(f"{each.place} holds no message", each.problem, tone="bad")
        else:
            frame_view(each.place, each.frames, bodies=bodies)
    if len(messages) > MOST:
        text("p", f"… and more; this page shows {MOST} messages. `framewire inspect FILE` shows all.", "soft")
