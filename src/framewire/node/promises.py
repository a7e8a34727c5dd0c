"""Answers that are still to come. Each ends exactly once: with a reply, or with an error that says why not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from framewire.errors import MessageError
from framewire.node.mailbox import Room
from framewire.node.parcel import Parcel
from framewire.node.payloads import MessageType
from framewire.wire import Distribution, MessageId
from framewire.wire.message import readable

if TYPE_CHECKING:
    from framewire.node.core import Core

__all__ = ["Gathered", "Gathering", "Pending", "Promise"]

T = TypeVar("T")


class Hub(Protocol):
    """Where promises are made."""

    new_future: Callable[[], asyncio.Future[None]]
    """Makes something to wait for, on the event loop of the hub."""

    def give_up(self, waiting: Any) -> None:
        """Wait no longer."""

    def cancelled(self, waiting: Any) -> None:
        """Wait no longer, and let nobody work for it."""

    def fail(self, waiting: Any, error: MessageError) -> None:
        """End a promise, with all that is known of its message."""

    @property
    def core(self) -> Core:
        """The node's shared parts."""


class Pending(msgspec.Struct, eq=False, weakref=True):
    """A message that somebody waits for an answer to; ``types`` are what counts as one.

    The outcome is kept here, and a future is made only where it has to be waited for: an actor that is idle
    has answered by the time its caller awaits (bench/node.py).
    """

    _hub: Hub
    parcel: Parcel
    types: Mapping[MessageId, MessageType]
    key: int = 0
    started: float = 0.0
    done: bool = False
    slot: int | None = None
    room: Room | None = None
    _result: Any = None
    _error: BaseException | None = None
    _future: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        """What was asked, without what it said: that is nothing for a log."""
        state = "done" if self.done else "open"
        return f"<{type(self).__name__} of {self.parcel.message_id} to {self.target}, {state}>"

    @property
    def target(self) -> str:
        """Whom the message was sent to, in words."""
        parcel = self.parcel
        if parcel.receiver:
            return f"actor {parcel.receiver.hex()}"
        every = "every handler" if parcel.distribution == Distribution.BROADCAST else ""
        if parcel.receiver_node:
            return f"{every and f'{every} of '}node {readable(parcel.receiver_node)}"
        return every or "any handler"

    def __await__(self) -> Generator[Any, None, Any]:
        if not self.done:
            try:
                yield from self.ended().__await__()
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self.result()

    def ended(self) -> asyncio.Future[None]:
        """What is done when this is; only for what is not done yet."""
        if self._future is None:
            self._future = self._hub.new_future()
        return self._future

    def result(self) -> Any:
        """The reply, if it is there; raises the error if that is how it ended."""
        if not self.done:
            raise asyncio.InvalidStateError("the answer is not there yet")
        if self._error is not None:
            raise self._error.with_traceback(None)  # or it would grow with each look
        return self._result

    def cancel(self) -> None:
        """Give up: whatever comes now is late, and the nodes that work on it are told to stop."""
        if self._end(None, asyncio.CancelledError()):
            self._hub.cancelled(self)

    def fail_with(self, error: MessageError) -> None:
        """End with an error that was found here."""
        self._hub.fail(self, error)

    @property
    def core(self) -> Core:
        """The shared parts of the node that waits."""
        return self._hub.core

    def reply(self, payload: Any) -> bool:
        """Take a reply; whether that ends the waiting."""
        if self.done:
            return False
        self.done = True
        self._result = payload
        if (future := self._future) is not None and not future.done():
            future.set_result(None)
        return True

    def fail(self, error: MessageError) -> bool:
        """Take the failure of a handler; whether that ends the waiting."""
        return self._end(None, error)

    def expire(self, error: MessageError) -> bool:
        """The time is over; whether that ends the waiting."""
        return self._end(None, error)

    def end(self, error: MessageError) -> bool:
        """No answer will come."""
        return self._end(None, error)

    def _end(self, result: Any, error: BaseException | None) -> bool:
        if self.done:
            return False
        self.done = True
        self._result = result
        self._error = error
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
        return True


class Promise(Pending, Generic[T]):
    """One answer, some day. Await it; cancel it, or the task that awaits it, to give up."""

    if TYPE_CHECKING:

        def __await__(self) -> Generator[Any, None, T]: ...

        def result(self) -> T: ...


class Gathered(list[T]):
    """The replies to a broadcast, in the order they came; ``errors`` are those of handlers that failed."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[MessageError] = []


class Gathering(Pending, Generic[T]):
    """Many answers to one message, until there are enough or the time is over."""

    stop_after: int | None = None
    """How many answers are enough."""
    gathered: Gathered[T] = msgspec.field(default_factory=Gathered)

    def reply(self, payload: T) -> bool:
        self.gathered.append(payload)
        return self._enough()

    def fail(self, error: MessageError) -> bool:
        self.gathered.errors.append(error)
        return self._enough()

    def expire(self, error: MessageError) -> bool:  # noqa: ARG002 - that the time is over is how gathering ends
        return super().reply(self.gathered)

    def _enough(self) -> bool:
        count = len(self.gathered) + len(self.gathered.errors)
        return self.stop_after is not None and count >= self.stop_after and super().reply(self.gathered)
