"""Findings for machines: a JSON object a message.

``frames`` are all frames in hex, as they were recorded, so the output is itself a recording that can be read
again. Bytes are ``{"hex": …, "text": …}``, where the text is null unless every character of it is printable.
Everything beyond ASCII is escaped: a recording can hold what would upset a terminal.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from framewire.cli.findings import Finding
from framewire.errors import WireError
from framewire.wire import Message
from framewire.wire.explaining import FrameNote

__all__ = ["json_line"]


def json_line(finding: Finding) -> str:
    """One finding as a line of JSON."""
    recording, explanation, signature = finding.recording, finding.explanation, finding.signature
    return json.dumps(
        {
            "name": recording.name,
            "place": recording.place,
            "wire_version": explanation.wire_version,
            "error": explanation.error and _error(explanation.error),
            "signature": signature and {"state": signature.state.name.lower(), "detail": signature.detail},
            "message": explanation.message and _message(explanation.message),
            "frames": [frame.hex() for frame in recording.frames],
            "notes": [_note(note) for note in explanation.notes],
        }
    )


def _error(error: WireError) -> dict[str, Any]:
    return {"reason": error.reason, "field": error.field, "frame": error.frame, "detail": error.detail}


def _message(message: Message) -> dict[str, Any]:
    fields = {name: _plain(getattr(message, name)) for name in message.__struct_fields__}
    return fields | {"distribution": message.distribution.name.lower(), "traced": message.traced}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex(), "text": _text(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    return value


def _text(raw: bytes) -> str | None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _note(note: FrameNote) -> dict[str, Any]:
    return {
        "position": note.position,
        "field": note.field,
        "part": note.part,
        "kind": note.kind,
        "value": note.value,
        "size": note.size,
        "selector": note.selector,
        "offending": note.offending,
        "also": note.also,
    }
