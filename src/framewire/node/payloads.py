"""What a message carries: Python values on one side, bytes on the other.

A message type is declared on the class itself, so there is no registry: whoever has the class has everything.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from framewire.errors import BadBody, UsageError
from framewire.wire import MessageId

__all__ = ["MessageType", "declare", "message", "type_of"]

T = TypeVar("T")
_LARGE = 65_536
_MARK = "__framewire_message__"
Codec = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class MessageType:
    """How a Python class travels: under which message id, and as which bytes."""

    python_type: type
    message_id: MessageId
    codec: str
    encode: Callable[[Any], bytes]
    _decode: Callable[[bytes], Any]

    def decode(self, body: bytes) -> Any:
        """The payload that a body holds, or ``BadBody`` naming the type, the field and the reason."""
        try:
            return self._decode(body)
        except MemoryError as problem:
            raise self._too_large(len(body)) from problem
        except Exception as problem:
            what = f"{self.python_type.__qualname__} as {self.codec}"
            raise BadBody(f"not a {what}: {_reason(problem)}", message_id=self.message_id) from problem

    def read(self, frames: Sequence[bytes]) -> Any:
        """The payload that the frames of a body hold, or ``BadBody``."""
        if len(frames) == 1:
            return self.decode(frames[0])
        try:
            body = b"".join(frames)
        except MemoryError as problem:
            raise self._too_large(sum(map(len, frames))) from problem
        return self.decode(body)

    def _too_large(self, size: int) -> BadBody:
        what = f"{size} bytes as {self.python_type.__qualname__}"
        return BadBody(f"there was no memory to read {what}", message_id=self.message_id)


def message(
    identity: str | bytes,
    version: int = 1,
    partition: str | bytes = b"",
    *,
    codec: str | None = None,
) -> Callable[[type[T]], type[T]]:
    """Declare a class as a message: a msgspec struct, a dataclass, a protobuf class, or a subclass of bytes.

    ``codec`` is "msgpack" (the default for structs and dataclasses), "json", "protobuf" or "raw".
    """
    message_id = MessageId(_raw("identity", identity), version, _raw("partition", partition))
    if not message_id.identity:
        raise UsageError("identity: a message needs one")
    if not isinstance(version, int) or not 0 <= version <= 0xFFFF:
        raise UsageError(f"version: {version!r} is not a number from 0 to 65535")

    def declared(cls: type[T]) -> type[T]:
        if not isinstance(cls, type) or issubclass(cls, list | tuple):
            raise UsageError(f"{cls!r} cannot be a message: a list or tuple from a handler stands for several")
        if _MARK in vars(cls):
            raise UsageError(f"{cls.__qualname__} is already declared as {type_of(cls).message_id}")
        name = codec or _usual_codec(cls)
        declare(cls, message_id, name, *_functions(cls, name))
        return cls

    return declared


def declare(
    cls: type,
    message_id: MessageId,
    codec: str,
    encode: Callable[[Any], bytes],
    decode: Callable[[bytes], Any],
) -> None:
    """Declare a class whose bytes are made by functions of its own."""
    setattr(cls, _MARK, MessageType(cls, message_id, codec, encode, decode))


def type_of(cls: type) -> MessageType:
    """The declaration of a message class, or ``UsageError`` with how to make one."""
    declared = cls.__dict__.get(_MARK)
    if declared is None:
        name = getattr(cls, "__qualname__", repr(cls))
        raise UsageError(f'{name} is not a message; declare it with @fw.message("some.identity")')
    return declared  # type: ignore[no-any-return]


def _functions(cls: type, codec: str) -> Codec:
    factory = _CODECS.get(codec)
    if factory is None:
        raise UsageError(f"codec: {codec!r} for {cls.__qualname__}; there are {', '.join(_CODECS)}")
    try:
        return factory(cls)
    except (TypeError, AttributeError) as problem:
        raise UsageError(f"{cls.__qualname__} cannot travel as {codec}: {problem}") from problem


def _usual_codec(cls: type) -> str:
    if issubclass(cls, bytes):
        return "raw"
    return "protobuf" if hasattr(cls, "SerializeToString") else "msgpack"


def _msgpack(cls: type) -> Codec:
    return msgspec.msgpack.Encoder().encode, _decoder(msgspec.msgpack.Decoder, cls)


def _json(cls: type) -> Codec:
    return msgspec.json.Encoder().encode, _decoder(msgspec.json.Decoder, cls)


def _decoder(make: Callable[[Any], Any], cls: type) -> Callable[[bytes], Any]:
    if not (issubclass(cls, msgspec.Struct) or dataclasses.is_dataclass(cls)):
        raise TypeError("it is no struct and no dataclass (yet: @fw.message goes above @dataclass)")
    decoders: list[Any] = []

    def decode(body: bytes) -> Any:
        # Made when it is needed: a type may have fields of its own type, or of one that is declared further down.
        if not decoders:
            decoders.append(make(cls))
        return decoders[0].decode(body)

    try:
        made = make(cls).decode
    except NameError:
        return decode
    return made  # type: ignore[no-any-return]


def _protobuf(cls: Any) -> Codec:
    if not hasattr(cls, "FromString"):
        raise TypeError("it is no protobuf class")
    return cls.SerializeToString, cls.FromString


def _raw_bytes(cls: type) -> Codec:
    if not issubclass(cls, bytes):
        raise TypeError("a raw message is a subclass of bytes")
    return _plain, cls


def _plain(payload: bytes) -> bytes:
    """A small one as bytes and nothing else, which whoever handles it likes best; a large one is not copied."""
    return payload if len(payload) > _LARGE else bytes(payload)


_CODECS: dict[str, Callable[[type], Codec]] = {
    "msgpack": _msgpack,
    "json": _json,
    "protobuf": _protobuf,
    "raw": _raw_bytes,
}


def _raw(field: str, text: str | bytes) -> bytes:
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, bytes):
        return text
    raise UsageError(f"{field}: {text!r} is neither text nor bytes")


def _reason(problem: Exception) -> str:
    """A decoder's complaint with the field first: msgspec puts it at the end."""
    found = re.fullmatch(r"(?P<what>.*) - at `\$\.?(?P<field>.*)`", str(problem), re.DOTALL)
    if found and found["field"]:
        return f"field {found['field']}: {found['what']}"
    return str(problem) or type(problem).__name__
