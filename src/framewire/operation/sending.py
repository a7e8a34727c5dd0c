"""Messages that a person writes: a name and some JSON, and the answer as JSON again.

With the program's own module its message types say how that travels. Without, the JSON itself is the body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import msgspec

from framewire.errors import UsageError
from framewire.node.buffers import Buffers
from framewire.node.payloads import MessageType, message, type_of
from framewire.operation.apps import message_types
from framewire.wire import MessageId
from framewire.wire.message import readable

__all__ = ["Types", "message_id", "plain"]

_NAME = re.compile(r"(?P<identity>.+?)(?:[ @]v?(?P<version>\d{1,5}))?(?: ?\[(?P<partition>.*)\])?")


def message_id(name: str) -> tuple[MessageId, bool]:
    """The message that ``orders.place@2 [eu]`` or ``orders.place v2 [eu]`` names; whether a version was given."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise UsageError(
            f"message: {name!r} is no name; write it like orders.place, orders.place@2 or orders.place@2[eu]"
        )
    version = int(found["version"] or 1)
    if version > 0xFFFF:
        raise UsageError(f"message: {name!r}: the version must be 0 to 65535")
    partition = (found["partition"] or "").encode()
    return MessageId(found["identity"].encode(), version, partition), found["version"] is not None


@dataclass(frozen=True, slots=True)
class Types:
    """How messages are written and read: by the types of a module, or raw where there is none."""

    module: ModuleType | None = None

    def named(self, name: str) -> MessageType:
        """The type that a name stands for."""
        wanted, versioned = message_id(name)
        if self.module is None:
            return _raw(wanted)
        every = list(message_types(self.module))
        alike = [each for each in every if _matches(each.message_id, wanted, versioned=versioned)]
        if len(alike) == 1:
            return alike[0]
        exact = [each for each in alike if each.message_id == wanted]
        if exact:
            return exact[0]
        if alike:
            raise UsageError(f"message: {name!r} may be {_listed(alike)}: say which")
        raise UsageError(
            f"message: {self.module.__name__} has no {name!r}; it has {_listed(every) or 'no messages'}"
        )

    def payload(self, declared: MessageType, text: str) -> Any:
        """What a person wrote, as the message's own type."""
        if self.module is None:
            return declared.python_type(_checked(text).encode())
        cls: Any = declared.python_type
        try:
            if issubclass(cls, Buffers):
                return cls(_frames(text))
            if declared.codec == "raw":
                return cls(_text_or_json(text))
            if declared.codec == "protobuf":
                from google.protobuf import json_format  # noqa: PLC0415 - only where it is needed

                return json_format.Parse(text, cls())
            return msgspec.json.decode(text.encode(), type=cls, strict=True)
        except Exception as problem:  # noqa: BLE001 - a type's own code may raise anything
            raise UsageError(f"payload: not a {cls.__qualname__}: {problem}") from None


def plain(payload: object) -> Any:
    """An answer as JSON has it."""
    declared = type_of(type(payload))
    if declared.codec == "protobuf" and hasattr(payload, "DESCRIPTOR"):
        from google.protobuf import json_format  # noqa: PLC0415 - only where it is needed

        return json_format.MessageToDict(payload)  # type: ignore[arg-type]
    if isinstance(payload, bytes):
        return _guessed(payload)
    if isinstance(payload, Buffers):
        return [_guessed(bytes(frame)) for frame in payload]
    return msgspec.to_builtins(payload, enc_hook=repr)  # an array, a record batch, or what only its own codec knows


def _raw(wanted: MessageId) -> MessageType:
    cls = type("Raw", (bytes,), {})
    version = wanted.version if isinstance(wanted.version, int) else 1
    return type_of(message(wanted.identity, version, wanted.partition, codec="raw")(cls))


def _guessed(body: bytes) -> Any:
    """What a body holds whose type is not known: JSON or msgpack if it is either, else text or hex."""
    for decode in (json.loads, msgspec.msgpack.decode):
        try:
            found = decode(body)
        except (ValueError, msgspec.DecodeError):
            continue
        if isinstance(found, dict | list | str) or decode is json.loads:
            return msgspec.to_builtins(found, str_keys=True)
    return readable(body)


def _checked(text: str) -> str:
    try:
        json.loads(text)
    except ValueError as problem:
        raise UsageError(f"payload: not JSON: {problem}") from None
    return text


def _text_or_json(text: str) -> bytes:
    """A raw body: the text of a JSON string, or else the JSON itself."""
    value = json.loads(text)
    return (value if isinstance(value, str) else text).encode()


def _frames(text: str) -> list[bytes]:
    """A raw body of several frames: each item of a JSON list is one, a text as it is and all else as JSON."""
    value = json.loads(text)
    items = value if isinstance(value, list) else [value]
    return [(item if isinstance(item, str) else json.dumps(item)).encode() for item in items]


def _matches(known: MessageId, wanted: MessageId, *, versioned: bool) -> bool:
    same = known.identity == wanted.identity and (not wanted.partition or known.partition == wanted.partition)
    return same and (not versioned or known.version == wanted.version)


def _listed(types: Iterable[MessageType]) -> str:
    return ", ".join(sorted(str(each.message_id) for each in types))
