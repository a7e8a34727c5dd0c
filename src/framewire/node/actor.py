"""Actors: classes whose methods handle messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from framewire.errors import UsageError
from framewire.node.mailbox import Overflow
from framewire.node.payloads import MessageType, type_of
from framewire.wire import MessageId

if TYPE_CHECKING:
    from framewire.node.node import Node

__all__ = ["Actor", "FunctionActor", "Handler", "Kind", "Restart", "handlers_of", "handles"]

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__framewire_handles__"


class Kind(Enum):
    """How a handler runs."""

    COROUTINE = auto()
    STREAM = auto()
    THREAD = auto()
    INLINE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """When an actor is stopped and started again, and when it is given up.

    Handlers may fail as they like unless ``after`` is set: so many failures in a row mean that the actor is
    broken. A hook that fails is tried again, later each time, up to ``attempts`` times.
    """

    after: int | None = None
    attempts: int = 3
    backoff: float = 0.1
    longest: float = 30.0

    def __post_init__(self) -> None:
        if self.after is not None and self.after < 1:
            raise UsageError(f"after: {self.after}; at least one failure must come before a restart")
        if self.attempts < 1:
            raise UsageError(f"attempts: {self.attempts}; an actor must be started at least once")
        if not (self.backoff >= 0 and self.longest >= 0):
            raise UsageError(f"backoff: {self.backoff} up to {self.longest}; neither can be less than nothing")

    def delay(self, attempt: int) -> float:
        """Seconds to wait before an attempt, the first being 1."""
        return min(self.longest, self.backoff * 2.0 ** min(attempt - 1, 1000))


def _methods(cls: type) -> Iterator[tuple[str, MessageType, bool]]:
    found: dict[MessageId, str] = {}
    for name in dir(cls):
        for message_type, inline in getattr(inspect.getattr_static(cls, name), _MARK, ()):
            message_id = message_type.message_id
            if message_id in found:
                both = f"{found[message_id]} and {name}"
                raise UsageError(f"{cls.__qualname__} handles {message_id} twice: in {both}")
            found[message_id] = name
            yield name, message_type, inline


class Actor:
    """A handler of messages with a state of its own, a mailbox, and a life.

    Options are class attributes, or arguments of ``node.host``.
    """

    concurrency: ClassVar[int] = 1
    """How many messages are handled at a time; 1 keeps their order."""
    mailbox: ClassVar[int | None] = None
    """How many messages may wait; None for the node's setting."""
    overflow: ClassVar[Overflow | None] = None
    """What happens when more come; None for the node's setting."""
    restart: ClassVar[Restart] = Restart()
    cancel_late: ClassVar[bool] = True
    """Whether an ``async def`` handler is cancelled when the time of its message is over."""
    reentrant: ClassVar[bool] = False
    """Whether a message of a flow is handled at once while a handler here waits for an answer within that flow."""
    node: Node
    """The node that hosts this actor; there from ``started`` on."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for _ in _methods(cls):  # a type that is handled twice is a mistake to be told at once
            pass

    async def started(self) -> None:
        """Called before the first message."""

    async def stopping(self) -> None:
        """Called after the last message."""


@dataclass(slots=True)
class Figures:
    """What a handler has done so far; times are in seconds."""

    handled: int = 0
    failed: int = 0
    seconds: float = 0.0
    longest: float = 0.0


@dataclass(slots=True)
class Handler:
    """One function that handles one message type."""

    name: str
    message_type: MessageType
    kind: Kind
    function: Callable[..., Any]
    takes_context: bool
    figures: Figures = field(default_factory=Figures)


def handles(*types: type, inline: bool = False) -> Callable[[F], F]:
    """Mark a method as the handler of message types.

    ``async def`` runs on the event loop, ``def`` in a thread; ``inline`` runs a ``def`` at once, where the
    message is sent, and is for tiny pure functions only.
    """
    if not types:
        raise UsageError("types: name at least one message type to handle")
    declared = [(type_of(cls), inline) for cls in types]

    def mark(function: F) -> F:
        _kind(function, inline=inline)
        setattr(function, _MARK, [*getattr(function, _MARK, ()), *declared])
        return function

    return mark


class FunctionActor(Actor):
    """An actor around one plain function."""

    def __init__(self, function: Callable[..., Any], types: tuple[type, ...], *, inline: bool) -> None:
        if not types:
            raise UsageError("types: name at least one message type to handle")
        self.handlers = {type_of(cls).message_id: _handler(function, type_of(cls), inline=inline) for cls in types}
        if len(self.handlers) < len(types):
            raise UsageError(f"{_name(function)} is to handle one message twice: {_listed(types)}")


def handlers_of(actor: Actor) -> dict[MessageId, Handler]:
    """The handlers of an actor, bound to it."""
    if isinstance(actor, FunctionActor):
        return actor.handlers
    return {
        message_type.message_id: _handler(getattr(actor, name), message_type, inline=inline)
        for name, message_type, inline in _methods(type(actor))
    }


def _handler(function: Callable[..., Any], message_type: MessageType, *, inline: bool) -> Handler:
    return Handler(
        _name(function), message_type, _kind(function, inline=inline), function, _takes_context(function)
    )


def _kind(function: Callable[..., Any], *, inline: bool) -> Kind:
    # An object with __call__ is what its __call__ is.
    called: Any = function
    if not (inspect.isroutine(function) or isinstance(function, partial)):
        called = type(function).__call__
    if inspect.isasyncgenfunction(called):
        kind = Kind.STREAM
    elif inspect.iscoroutinefunction(called):
        kind = Kind.COROUTINE
    elif inspect.isgeneratorfunction(called):
        raise UsageError(f"{_name(function)} yields; make it `async def`, or let it return a list")
    else:
        return Kind.INLINE if inline else Kind.THREAD
    if inline:
        raise UsageError(f"inline: {_name(function)} is async; only a plain def can run inline")
    return kind


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


def _listed(types: tuple[type, ...]) -> str:
    return ", ".join(str(type_of(cls).message_id) for cls in types)


def _takes_context(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return True
    required = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    if not positional or len(required) > 2:
        raise UsageError(f"{_name(function)} must take the payload, and the context if it wants it")
    return len(positional) >= 2
