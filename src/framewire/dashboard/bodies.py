"""What messages say, as text: by their types where those are known, as what they look like, or in hex."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import ModuleType

import msgspec

from framewire.capture import cut_of
from framewire.dashboard.showing import bytes_text
from framewire.errors import MessageError
from framewire.node import reports
from framewire.node.payloads import MessageType
from framewire.operation.apps import message_types
from framewire.operation.sending import plain
from framewire.wire.explaining import printable

__all__ = ["Bodies", "Body"]

_LONGEST_HEX = 1024
_LONGEST_TEXT = 8 * 1024
_LONGEST_READ = 256 * 1024
"""Bytes of a body that are looked at; nobody reads more on a page."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body as it is shown, and how it was read."""

    how: str
    content: str


@dataclass(frozen=True, slots=True)
class Bodies:
    """Reads bodies; ``module`` is the program's, with its message types."""

    module: ModuleType | None = None
    _types: dict[tuple[bytes, int | None, bytes], MessageType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for module in (reports, self.module):
            for each in message_types(module) if module is not None else ():
                known = each.message_id
                version = known.version if isinstance(known.version, int) else None
                self._types[known.identity, version, known.partition] = each

    def read(self, body: bytes, identity: bytes, version: int | None, partition: bytes) -> Body:
        """What a message says."""
        size = bytes_text(len(body))
        if not body:
            return Body("empty", "")
        if (cut := cut_of(body[-256:] if len(body) > _LONGEST_READ else body)) is not None:
            return Body(f"cut when it was recorded; it had {bytes_text(cut.length)}", _hex(cut.kept))
        if len(body) > _LONGEST_READ:
            return Body(f"{size}, too long to be read here; the beginning, in hex", _hex(body))
        declared = self._types.get((identity, version, partition)) or self._types.get((identity, version, b""))
        if declared is not None:
            try:
                return Body(f"{declared.python_type.__qualname__}, {size}", _json(plain(declared.decode(body))))
            except MessageError as problem:
                return Body(f"{printable(problem.detail)[:300]}; {size}, in hex", _hex(body))
        return _guessed(body, size)


def _guessed(body: bytes, size: str) -> Body:
    """A body whose type is not known, by what it looks like: JSON, msgpack, text, else hex."""
    if body[:1] in b'{["':
        try:
            return Body(f"looks like JSON, {size}", _json(json.loads(body)))
        except (ValueError, RecursionError):
            pass
    try:
        found = msgspec.msgpack.decode(body)
        # Nearly every byte is some msgpack number; what has a shape is meant.
        if isinstance(found, dict | list):
            return Body(f"looks like msgpack, {size}", _json(msgspec.to_builtins(found, str_keys=True)))
    except (ValueError, TypeError, msgspec.MsgspecError, RecursionError):
        pass
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return Body(f"{size}, in hex", _hex(body))
    odd = sum(not (character.isprintable() or character in "\r\n\t") for character in text)
    return Body(f"{size}, in hex", _hex(body)) if 8 * odd > len(text) else Body(f"text, {size}", _cut(text))


def _json(value: object) -> str:
    return _cut(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def _cut(text: str) -> str:
    lines = "\n".join(map(printable, text[:_LONGEST_TEXT].splitlines()))
    return lines + ("…" if len(text) > _LONGEST_TEXT else "")


def _hex(body: bytes) -> str:
    """Sixteen bytes a line, as such things are read."""
    some = body[:_LONGEST_HEX]
    lines = []
    for at in range(0, len(some), 16):
        row = some[at : at + 16]
        seen = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in row)
        lines.append(f"{at:06x}  {row.hex(' '):<47}  {seen}")
    more = len(body) - len(some)
    return "\n".join([*lines, f"… and {bytes_text(more)} more"] if more else lines)
