"""Failures as messages: how an exception on one node becomes an error on another.

The message is kino's own, a BSON document, so that .NET callers understand our failures and we understand
theirs. A document that cannot be read is still a failure with a text, never a second one.
"""

from __future__ import annotations

import traceback
from typing import Any

import bson
import msgspec

from framewire import errors
from framewire.node.payloads import declare
from framewire.wire import MessageId

__all__ = ["EXCEPTION", "ExceptionMessage", "error_from", "exception_from", "text_of"]

EXCEPTION = MessageId(b"KINO.EXCEPTION")

_OURS = "framewire."
_KINDS: tuple[type[errors.MessageError], ...] = (
    errors.BadBody,
    errors.BadSignature,
    errors.Expired,
    errors.NoRoute,
    errors.NodeStopped,
    errors.Overloaded,
    errors.Unreachable,
)
_KNOWN = {_OURS + kind.__name__: kind for kind in _KINDS} | {
    "kino.Security.WrongMessageSignatureException": errors.BadSignature
}


class ExceptionMessage(msgspec.Struct, kw_only=True):
    """What is told about a failure. Every promise waits for this message too."""

    message: str = ""
    exception_type: str = ""
    stack_trace: str = ""
    actor: str = ""
    node: str = ""
    target: str = ""
    about: str = ""
    """The message that failed."""


def exception_from(
    error: BaseException, *, actor: str = "", node: bytes = b"", about: object = ""
) -> ExceptionMessage:
    """What to tell a caller about an exception.

    One that an actor's handler raised is the handler's failure, even if it is an error of ours: the handler may
    have asked somebody else, and what became of that is not what became of the caller's message.
    """
    kind = type(error)
    ours = not actor and f"{_OURS}{kind.__name__}" in _KNOWN and kind.__module__ == errors.__name__
    return ExceptionMessage(
        message=text_of(error),
        exception_type=f"{_OURS if ours else kind.__module__ + '.'}{kind.__qualname__}",
        stack_trace=_sendable("".join(traceback.format_exception(error))) if error.__traceback__ else "",
        actor=actor,
        node=node.decode(errors="backslashreplace"),
        target=error.target if ours and isinstance(error, errors.MessageError) else "",
        about=str(about),
    )


def text_of(error: BaseException) -> str:
    """What an exception says, even if it cannot say it."""
    try:
        return _sendable(str(error.detail if isinstance(error, errors.MessageError) else error))
    except Exception as problem:  # noqa: BLE001 - a failure that cannot be told must not hide that there was one
        return f"<its text cannot be had: {type(problem).__name__}>"


def _sendable(text: str) -> str:
    """Text without the half characters that no encoding has room for."""
    return text.encode(errors="backslashreplace").decode()


def error_from(told: ExceptionMessage) -> errors.MessageError:
    """The typed error that a caller gets for what was told."""
    kind = _KNOWN.get(told.exception_type, errors.RemoteError)
    error = kind(
        told.message,
        message_id=told.about or None,
        target=told.target,
        node=told.node.encode(),
    )
    if isinstance(error, errors.RemoteError):
        error.type_name = told.exception_type.removeprefix("builtins.") or "an unknown exception"
        error.traceback = told.stack_trace
        error.actor = told.actor
    return error


_FIELDS = {
    "Message": "message",
    "ExceptionType": "exception_type",
    "StackTrace": "stack_trace",
    "Actor": "actor",
    "Node": "node",
    "Target": "target",
    "About": "about",
}


def _encode(told: ExceptionMessage) -> bytes:
    return bson.encode({name: getattr(told, field) for name, field in _FIELDS.items()})


def _decode(body: bytes) -> ExceptionMessage:
    # .NET sends the whole of its stream buffer: the document's own length says where it ends.
    length = int.from_bytes(body[:4], "little")
    try:
        document: dict[str, Any] = bson.decode(body[:length])
    except Exception as problem:  # noqa: BLE001 - whatever a foreign document does, the failure must get through
        return ExceptionMessage(message=f"a failure that cannot be read ({problem})")
    texts = {field: document.get(name) for name, field in _FIELDS.items()}
    told = {field: text for field, text in texts.items() if isinstance(text, str)}
    if "message" not in told and isinstance(document.get("Exception"), dict):
        told["message"] = str(document["Exception"].get("Message", document["Exception"]))
    return ExceptionMessage(**told)


declare(ExceptionMessage, EXCEPTION, "bson", _encode, _decode)
