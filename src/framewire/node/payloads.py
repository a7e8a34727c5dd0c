"""What a message carries: Python values on one side, bytes on the other.

A message type is declared on the class itself, so there is no registry: whoever has the class has everything.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar, cast

import msgspec

from framewire.errors import BadBody, UsageError
from framewire.node import out_of_band
from framewire.node.buffers import LARGE_BYTES, Buffers, frames_of
from framewire.wire import MessageId
from framewire.wire.message import BodyFrame

__all__ = ["Codec", "MessageType", "declare", "message", "on", "raw", "type_of"]

T = TypeVar("T")
_MARK = "__framewire_message__"
_Functions = tuple[Callable[[Any], Any], Callable[[Any], Any], bool]
"""What writes a body, what reads one, and whether in frames: see ``MessageType.several``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Codec:
    """A codec of your own: ``@fw.message("camera.picture", codec=fw.Codec("jpeg", encode, decode))``.

    ``encode`` takes a payload and returns its body: a buffer, or a list or tuple of buffers, each of which travels
    as a frame. ``decode`` takes the frames of a body as a tuple and returns a payload; a frame is bytes, or a
    read-only view where a body of several has large ones.
    """

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[tuple[BodyFrame, ...]], Any]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not (callable(self.encode) and callable(self.decode)):
            raise UsageError(f"codec: {self!r} needs a name and two functions, encode and decode")

    def _functions(self, cls: type) -> _Functions:
        def write(payload: Any) -> tuple[BodyFrame, ...]:
            encoded = self.encode(payload)
            return frames_of(encoded if isinstance(encoded, list | tuple) else (encoded,))

        def read(frames: Sequence[BodyFrame]) -> Any:
            decoded = self.decode(tuple(frames))
            if not isinstance(decoded, cls):
                raise TypeError(f"decode returned {type(decoded).__qualname__}")
            return decoded

        return write, read, True


@dataclasses.dataclass(frozen=True, slots=True)
class MessageType:
    """How a Python class travels: under which message id, and as which bytes.

    One with another partition or version stands for its class where a message type is named: as what counts as an
    answer, and as what is handled.
    """

    python_type: type
    message_id: MessageId
    codec: str
    encode: Callable[[Any], Any]
    """Returns a body as bytes, or as a tuple of frames where ``several`` is true."""
    _decode: Callable[[Any], Any]
    several: bool = False
    """Whether the codec writes and reads frames, of which there may be several; others write one."""

    def frames(self, payload: Any) -> tuple[BodyFrame, ...]:
        """Return the frames of a payload's body."""
        encoded = self.encode(payload)
        return encoded if self.several else (encoded,)

    def on(self, partition: str | bytes | None = None, *, version: int | None = None) -> MessageType:
        """Return the same type in another partition, or version."""
        own = self.message_id
        return dataclasses.replace(
            self,
            message_id=MessageId(
                own.identity,
                own.version if version is None else _checked_version(version),
                own.partition if partition is None else raw("partition", partition),
            ),
        )

    def __call__(self, *_: object, **__: object) -> NoReturn:
        name = self.python_type.__qualname__
        raise UsageError(
            f"{name}.on(…) names {self.message_id} and makes none: send a {name}(…) with partition= and version="
        )

    def decode(self, body: BodyFrame) -> Any:
        """The payload that a body holds, or ``BadBody`` naming the type, the field and the reason."""
        try:
            return self._decode((body,) if self.several else body)
        except MemoryError as problem:
            raise self._too_large(len(body)) from problem
        except Exception as problem:
            raise self._unreadable(problem) from problem

    def read(self, frames: Sequence[BodyFrame]) -> Any:
        """The payload that the frames of a body hold, or ``BadBody``.

        A codec of one frame reads a body of several as one, joined.
        """
        if len(frames) == 1 and isinstance(frames[0], bytes):
            return self.decode(frames[0])
        if self.several:
            try:
                return self._decode(frames)
            except MemoryError as problem:
                raise self._too_large(sum(map(len, frames))) from problem
            except Exception as problem:
                raise self._unreadable(problem) from problem
        try:
            body = b"".join(frames)
        except MemoryError as problem:
            raise self._too_large(sum(map(len, frames))) from problem
        return self.decode(body)

    def _unreadable(self, problem: Exception) -> BadBody:
        what = f"{self.python_type.__qualname__} as {self.codec}"
        return BadBody(f"not a {what}: {_reason(problem)}", message_id=self.message_id)

    def _too_large(self, size: int) -> BadBody:
        what = f"{size} bytes as {self.python_type.__qualname__}"
        return BadBody(f"there was no memory to read {what}", message_id=self.message_id)


def message(
    identity: str | bytes,
    version: int = 1,
    partition: str | bytes = b"",
    *,
    codec: str | Codec | None = None,
) -> Callable[[type[T]], type[T]]:
    """Declare a class as a message: a struct, a dataclass, a protobuf class, or a subclass of bytes or ``Buffers``.

    ``codec`` is "msgpack" (the default for structs and dataclasses), "msgpack+buffers", "json", "protobuf" or
    "raw", or a ``Codec`` of your own. Version and partition are defaults: each message may be sent with others. The
    class gets a method ``on`` that names the type in another partition or version, unless it has something of that
    name; ``framewire.on`` does the same for any.
    """
    message_id = MessageId(raw("identity", identity), version, raw("partition", partition))
    if not message_id.identity:
        raise UsageError("identity: a message needs one")
    _checked_version(version)

    def declared(cls: type[T]) -> type[T]:
        if not isinstance(cls, type) or issubclass(cls, list | tuple):
            raise UsageError(f"{cls!r} cannot be a message: a list or tuple from a handler stands for several")
        if _MARK in vars(cls):
            raise UsageError(f"{cls.__qualname__} is already declared as {type_of(cls).message_id}")
        if isinstance(codec, Codec):
            declare(cls, message_id, codec.name, *codec._functions(cls))  # noqa: SLF001 - of this module
        else:
            name = codec or _usual_codec(cls)
            declare(cls, message_id, name, *_functions(cls, name))
        if not hasattr(cls, "on") and "on" not in getattr(cls, "__annotations__", ()):
            cls.on = classmethod(on)  # type: ignore[attr-defined]
        return cls

    return declared


def declare(
    cls: type,
    message_id: MessageId,
    codec: str,
    encode: Callable[[Any], Any],
    decode: Callable[[Any], Any],
    several: bool = False,
) -> None:
    """Declare a class whose bytes are made by functions of its own; ``several`` as in ``MessageType``."""
    setattr(cls, _MARK, MessageType(cls, message_id, codec, encode, decode, several))


def type_of(cls: type) -> MessageType:
    """The declaration of a message class, or ``UsageError`` with how to make one."""
    try:
        declared = cls.__dict__.get(_MARK)
    except AttributeError:
        declared = cls if isinstance(cls, MessageType) else None
    if declared is None:
        name = getattr(cls, "__qualname__", repr(cls))
        raise UsageError(f'{name} is not a message; declare it with @fw.message("some.identity")')
    return declared  # type: ignore[no-any-return]


def on(cls: type[T], partition: str | bytes | None = None, *, version: int | None = None) -> type[T]:
    """Name a message type in a partition, or a version, other than those that its class has by default."""
    return cast("type[T]", type_of(cls).on(partition, version=version))


def _functions(cls: type, codec: str) -> _Functions:
    factory = _CODECS.get(codec)
    if factory is None:
        raise UsageError(f"codec: {codec!r} for {cls.__qualname__}; there are {', '.join(_CODECS)}")
    try:
        return factory(cls)
    except (TypeError, AttributeError) as problem:
        raise UsageError(f"{cls.__qualname__} cannot travel as {codec}: {problem}") from problem


def _usual_codec(cls: type) -> str:
    if issubclass(cls, bytes | Buffers):
        return "raw"
    return "protobuf" if hasattr(cls, "SerializeToString") else "msgpack"


def _msgpack(cls: type) -> _Functions:
    return msgspec.msgpack.Encoder().encode, _decoder(msgspec.msgpack.Decoder, cls), False


def _msgpack_and_buffers(cls: type) -> _Functions:
    return out_of_band.writer(cls), out_of_band.reader(cls, _decoder(msgspec.msgpack.Decoder, cls)), True


def _json(cls: type) -> _Functions:
    return msgspec.json.Encoder().encode, _decoder(msgspec.json.Decoder, cls), False


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


def _protobuf(cls: Any) -> _Functions:
    if not hasattr(cls, "FromString"):
        raise TypeError("it is no protobuf class")
    return cls.SerializeToString, cls.FromString, False


def _raw_bytes(cls: type) -> _Functions:
    if issubclass(cls, Buffers):
        return _frames_held, cls, True
    if not issubclass(cls, bytes):
        raise TypeError("a raw message is a subclass of bytes, or of fw.Buffers where it has several frames")
    return _plain, cls, False


def _frames_held(payload: Buffers) -> tuple[BodyFrame, ...]:
    return payload.frames


def _plain(payload: bytes) -> bytes:
    """A small one as bytes and nothing else, which whoever handles it likes best; a large one is not copied."""
    return payload if len(payload) > LARGE_BYTES else bytes(payload)


_CODECS: dict[str, Callable[[type], _Functions]] = {
    "msgpack": _msgpack,
    "json": _json,
    "protobuf": _protobuf,
    "raw": _raw_bytes,
    "msgpack+buffers": _msgpack_and_buffers,
}


def raw(field: str, text: str | bytes) -> bytes:
    """Return text or bytes as bytes, or ``UsageError`` naming the field."""
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, bytes):
        return text
    raise UsageError(f"{field}: {text!r} is neither text nor bytes")


def _checked_version(version: object) -> int:
    if not isinstance(version, int) or not 0 <= version <= 0xFFFF:
        raise UsageError(f"version: {version!r} is not a number from 0 to 65535")
    return version


def _reason(problem: Exception) -> str:
    """A decoder's complaint with the field first: msgspec puts it at the end."""
    found = re.fullmatch(r"(?P<what>.*) - at `\$\.?(?P<field>.*)`", str(problem), re.DOTALL)
    if found and found["field"]:
        return f"field {found['field']}: {found['what']}"
    return str(problem) or type(problem).__name__
