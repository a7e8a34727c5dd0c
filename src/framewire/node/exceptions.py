"""Failures as messages: how an exception on one node becomes an error on another.

The message is kino's own, a BSON document, so that .NET callers understand our failures and we understand
theirs. A document that cannot be read is still a failure with a text, never a second one.
"""

from __future__ import annotations

import math
import traceback
from typing import Any

import bson
import msgspec

from framewire import errors
from framewire.node.payloads import declare
from framewire.wire import MessageId

__all__ = ["EXCEPTION", "ExceptionMessage", "error_from", "exception_from", "shortened", "text_of"]

EXCEPTION = MessageId(b"KINO.EXCEPTION")

_OURS = "framewire."
_MAX_TEXT, _MAX_TRACE = 1 << 20, 1 << 21
"""Characters of an exception's text and of its traceback that are told; of what is longer, the middle is not."""
_MARKER = 40
"""Characters for saying how many were left out."""
_SHORTER = ((16_384, 49_152), (128, 0))
"""The same for messages that are sent where those before were too large for the node's limits: 64 KB, then 1 KB."""
_KINDS: tuple[type[errors.MessageError], ...] = (
    errors.BadBody,
    errors.BadSignature,
    errors.Deadlock,
    errors.Expired,
    errors.NoRoute,
    errors.NodeStopped,
    errors.Overloaded,
    errors.Unreachable,
)
_KNOWN = {_OURS + kind.__name__: kind for kind in _KINDS} | {
    "kino.Security.WrongMessageSignatureException": errors.BadSignature
}


_OF_THE_FLOW = (errors.Overloaded, errors.Deadlock)
"""Errors that remain what they are when a handler lets them pass."""


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
    retry_after: float | None = None
    """Seconds that the caller should stay away."""


def exception_from(
    error: BaseException, *, actor: str = "", node: bytes = b"", about: object = ""
) -> ExceptionMessage:
    """What to tell a caller about an exception.

    One that an actor's handler raised is the handler's failure, even if it is an error of ours: the handler may
    have asked somebody else, and what became of that is not what became of the caller's message. But where a flow
    ends because there is too much to do, its caller must know that, wherever it was.
    """
    kind = type(error)
    ours = (
        (not actor or kind in _OF_THE_FLOW)
        and f"{_OURS}{kind.__name__}" in _KNOWN
        and kind.__module__ == errors.__name__
    )
    text = text_of(error)
    return ExceptionMessage(
        message=_cut(text, _MAX_TEXT),
        exception_type=_OURS + kind.__name__ if ours else _cut(_name_of(kind), _MAX_TEXT),
        stack_trace="" if ours else _trace_of(error, text),  # refusals must be cheap, and who asked gets the error
        actor=actor,
        node=node.decode(errors="backslashreplace"),
        target=error.target if ours and isinstance(error, errors.MessageError) else "",
        about=str(about),
        retry_after=error.retry_after if isinstance(error, errors.Overloaded) else None,
    )


def shortened(told: ExceptionMessage) -> ExceptionMessage | None:
    """The same with less text and a shorter traceback; None where there is nothing more to leave out."""
    for text, trace in _SHORTER:
        limits = {field: trace if field == "stack_trace" else text for field in _FIELDS.values()}
        short = msgspec.structs.replace(
            told, **{field: _cut(getattr(told, field), limit) for field, limit in limits.items()}
        )
        if _length(short) < _length(told):
            return short
    return None


def _length(told: ExceptionMessage) -> int:
    return sum(len(getattr(told, field)) for field in _FIELDS.values())


def _name_of(kind: type) -> str:
    # A class that a program makes by hand may have no module, or something else in its place.
    module = getattr(kind, "__module__", None)
    return _sendable(f"{module}.{kind.__qualname__}" if isinstance(module, str) and module else kind.__qualname__)


def _trace_of(error: BaseException, text: str) -> str:
    if error.__traceback__ is None:
        return ""
    lines: list[str] = []
    try:
        if len(text) <= _MAX_TEXT:
            lines = traceback.format_exception(error)
    except Exception:  # noqa: BLE001 - a class without a module, or a cause that cannot be told
        lines = []
    try:
        lines = lines or [
            "Traceback (most recent call last):\n",
            *traceback.format_tb(error.__traceback__),
            f"{_name_of(type(error))}: {_cut(text, _MAX_TEXT)}\n",
        ]
        return _cut(_sendable("".join(lines)), _MAX_TRACE)
    except Exception as problem:  # noqa: BLE001 - see text_of
        return f"<its traceback cannot be had: {type(problem).__name__}>"


def _cut(text: str, limit: int) -> str:
    """Leave out the middle of a text that is too long: tracebacks end with what matters most."""
    if len(text) <= limit:
        return text
    kept = max(limit - _MARKER, 0)
    if not kept:
        return ""
    begin = kept // 4
    return f"{text[:begin]}… ({len(text) - kept} characters left out) …{text[begin - kept :]}"


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
    if isinstance(error, errors.Overloaded) and told.retry_after is not None:
        error.retry_after = told.retry_after
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
    document: dict[str, Any] = {name: getattr(told, field) for name, field in _FIELDS.items()}
    if told.retry_after is not None:
        document["RetryAfter"] = told.retry_after
    return bson.encode(document)


def _decode(body: bytes) -> ExceptionMessage:
    # .NET sends the whole of its stream buffer: the document's own length says where it ends.
    length = int.from_bytes(body[:4], "little")
    try:
        document: dict[str, Any] = bson.decode(body[:length])
    except Exception as problem:  # noqa: BLE001 - whatever a foreign document does, the failure must get through
        return ExceptionMessage(message=f"a failure that cannot be read ({problem})")
    texts = {field: document.get(name) for name, field in _FIELDS.items()}
    told: dict[str, Any] = {field: text for field, text in texts.items() if isinstance(text, str)}
    after = document.get("RetryAfter")
    if isinstance(after, float) and 0 <= after < math.inf:
        told["retry_after"] = after
    if "message" not in told and isinstance(document.get("Exception"), dict):
        told["message"] = str(document["Exception"].get("Message", document["Exception"]))
    return ExceptionMessage(**told)


declare(ExceptionMessage, EXCEPTION, "bson", _encode, _decode)
