"""Actors: classes whose methods handle messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from framewire.errors import UsageError
from framewire.node.mailbox import Overflow
from framewire.node.payloads import MessageType, raw, type_of
from framewire.wire import MessageId

if TYPE_CHECKING:
    from framewire.node.node import Node

__all__ = ["Actor", "FunctionActor", "Handler", "Kind", "Restart", "handlers_of", "handles"]

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__framewire_handles__"
Partitions = Iterable[str | bytes] | Callable[[Any], Iterable[str | bytes]] | str
"""Partitions, or what tells them of an actor that is hosted: a function of it, or the name of an attribute."""


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


@dataclass(frozen=True, slots=True)
class _Marked:
    """What a method was marked to handle."""

    message_type: MessageType
    inline: bool
    partitions: Partitions | None


def _methods(cls: type) -> Iterator[tuple[str, _Marked]]:
    for name in dir(cls):
        for marked in getattr(inspect.getattr_static(cls, name), _MARK, ()):
            yield name, marked


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
        found: dict[MessageId, str] = {}
        for name, marked in _methods(cls):  # a type that is handled twice is a mistake to be told at once
            if marked.partitions is None:
                _note(found, marked.message_type.message_id, name, cls.__qualname__)

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
    """One function that handles one message type, in one partition or in many."""

    name: str
    message_id: MessageId
    """What it handles, in the first of its partitions."""
    message_type: MessageType
    kind: Kind
    function: Callable[..., Any]
    takes_context: bool
    partitions: int = 1
    """How many partitions it handles the message in."""
    figures: Figures = field(default_factory=Figures)


def handles(*types: type, inline: bool = False, partitions: Partitions | None = None) -> Callable[[F], F]:
    """Mark a method as the handler of message types, in the partitions of their classes or in others.

    ``partitions`` are those, or a function of the actor, or the name of an attribute of it, that gives them when
    the actor is hosted.

    ``async def`` runs on the event loop, ``def`` in a thread; ``inline`` runs a ``def`` at once, where the
    message is sent, and is for tiny pure functions only.
    """
    if not types:
        raise UsageError("types: name at least one message type to handle")
    declared = [_Marked(type_of(cls), inline, _kept(partitions)) for cls in types]

    def mark(function: F) -> F:
        _kind(function, inline=inline)
        setattr(function, _MARK, [*getattr(function, _MARK, ()), *declared])
        return function

    return mark


class FunctionActor(Actor):
    """An actor around one plain function."""

    def __init__(
        self,
        function: Callable[..., Any],
        types: tuple[type, ...],
        *,
        inline: bool,
        partitions: Partitions | None = None,
    ) -> None:
        if not types:
            raise UsageError("types: name at least one message type to handle")
        self.handlers: dict[MessageId, Handler] = {}
        kept, found = _kept(partitions), dict[MessageId, str]()
        for cls in types:
            for message_id, handler in _bound(self, function, _Marked(type_of(cls), inline, kept)):
                if message_id in found:
                    raise UsageError(f"{_name(function)} is to handle one message twice: {_listed(types)}")
                found[message_id] = handler.name
                self.handlers[message_id] = handler


def handlers_of(actor: Actor, known: dict[str, list[bytes]] | None = None) -> dict[MessageId, Handler]:
    """The handlers of an actor, bound to it: for all partitions that one handles a message in, it is the same.

    ``known`` are partitions that the actor was asked for before: they are those of when it was hosted, also for an
    actor that takes its place after a restart.
    """
    if isinstance(actor, FunctionActor):
        return actor.handlers
    handlers: dict[MessageId, Handler] = {}
    found: dict[MessageId, str] = {}
    for name, marked in _methods(type(actor)):
        for message_id, handler in _bound(actor, getattr(actor, name), marked, known):
            _note(found, message_id, name, type(actor).__qualname__)
            handlers[message_id] = handler
    return handlers


def _bound(
    actor: Actor, function: Callable[..., Any], marked: _Marked, known: dict[str, list[bytes]] | None = None
) -> Iterator[tuple[MessageId, Handler]]:
    declared = marked.message_type
    own, name = declared.message_id, _name(function)
    names = [own.partition]
    if marked.partitions is not None:
        found = {} if known is None else known
        key = f"{name} {own}"
        names = found.get(key) or found.setdefault(key, _partitions(actor, marked.partitions, name))
    ids = [MessageId(own.identity, own.version, partition) for partition in names]
    kind = _kind(function, inline=marked.inline)
    handler = Handler(name, ids[0], declared, kind, function, _takes_context(function), len(ids))
    for message_id in ids:
        yield message_id, handler


def _partitions(actor: Actor, wanted: Partitions, handler: str) -> list[bytes]:
    """Return the partitions that a handler is for; ``UsageError`` where they are none."""
    given: Any = wanted
    if isinstance(wanted, str):
        given = getattr(actor, wanted, None)
        if given is None:
            raise UsageError(
                f"partitions: {handler} takes them from the attribute {wanted!r}, which {type(actor).__qualname__} "
                f"does not have; for one partition of that name give [{wanted!r}]"
            )
    if callable(given):
        given = given() if inspect.ismethod(given) and given.__self__ is actor else given(actor)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise UsageError(f"partitions: {given!r} of {handler} is not a list of partitions")
    names = [raw("partitions", name) for name in given]
    if not names:
        raise UsageError(f"partitions: there is none that {handler} is for; name at least one")
    return names


def _kept(partitions: Partitions | None) -> Partitions | None:
    """Return partitions so that they can be gone through more than once."""
    if partitions is None or isinstance(partitions, str) or callable(partitions):
        return partitions
    if isinstance(partitions, bytes) or not isinstance(partitions, Iterable):
        raise UsageError(f"partitions: {partitions!r} is neither a list of them nor something that gives one")
    return tuple(partitions)


def _note(found: dict[MessageId, str], message_id: MessageId, name: str, actor: str) -> None:
    if message_id in found:
        raise UsageError(f"{actor} handles {message_id} twice: in {found[message_id]} and {name}")
    found[message_id] = name


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
