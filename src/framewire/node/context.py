"""What a handler may know and do beyond its payload."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from framewire.errors import Overloaded, UsageError
from framewire.node.core import Flow
from framewire.node.cycles import asking
from framewire.node.flow import following
from framewire.node.parcel import Parcel
from framewire.node.payloads import type_of
from framewire.node.thread_pool import waiting
from framewire.node.worker import Worker
from framewire.routing import Route
from framewire.wire import Distribution, Message, MessageId, TraceOptions
from framewire.wire.message import BodyFrame

if TYPE_CHECKING:
    from framewire.node.cell import Cell
    from framewire.node.hub import MessageHub

__all__ = ["Context"]

T = TypeVar("T")
_LEAST = 0.001
"""Seconds that even a flow without time gives to what it sends, which then ends as expired."""


class Context:
    """One message being handled."""

    __slots__ = ("_cell", "_handled", "_parcel")

    def __init__(self, cell: Cell, parcel: Parcel, handled: Flow) -> None:
        self._cell = cell
        self._parcel = parcel
        self._handled = handled

    @property
    def message(self) -> Message:
        """The message as it is on the wire."""
        return self._parcel.to_message(self._cell.core.now())

    @property
    def body_frames(self) -> tuple[BodyFrame, ...]:
        """The frames of the message's body: bytes, or read-only views where a body of several has large ones."""
        return self._parcel.body

    @property
    def message_id(self) -> MessageId:
        return self._parcel.message_id

    @property
    def correlation_id(self) -> bytes:
        """What all messages of this flow have in common."""
        return self._parcel.correlation_id

    @property
    def deadline(self) -> float | None:
        """When the time of the message is over, on the node's clock; None for never."""
        return None if self._parcel.deadline == math.inf else self._parcel.deadline

    @property
    def remaining(self) -> float | None:
        """Seconds that are left; None for no limit."""
        deadline = self.deadline
        return None if deadline is None else max(0.0, deadline - self._cell.core.now())

    @property
    def source(self) -> bytes:
        """The identity of the node that sent the message here; empty for this node.

        It is what the message says of itself, and no proof. A message that names no router, as V1 callers send, has
        a name of its connection instead.
        """
        parcel = self._parcel
        return self._cell.core.sender_of(parcel.source, parcel.routing) if parcel.source else b""

    @property
    def actor(self) -> Route:
        """The address of the actor that handles the message."""
        return self._cell.route

    @property
    def partition(self) -> bytes:
        """The partition of the message."""
        return self._parcel.message_id.partition

    async def reply(
        self, payload: object, *, partition: str | bytes | None = None, version: int | None = None
    ) -> None:
        """Send what the handler could also have returned."""
        await self._send(self._following(payload, partition, version))

    async def forward(
        self,
        payload: object = None,
        *,
        to_node: bytes = b"",
        to_actor: bytes | Route = b"",
        partition: str | bytes | None = None,
        version: int | None = None,
    ) -> None:
        """Pass the message on, or another in its place, to a certain node or actor. The flow goes on there.

        The message itself keeps its partition and version, unless others are named.
        """
        untouched = payload is None
        if untouched:
            payload, handled = self._parcel.payload, self._parcel.message_id
            partition = handled.partition if partition is None else partition
            version = handled.version if version is None and isinstance(handled.version, int) else version
        passed = self._following(payload, partition, version)
        passed.stencil = None
        if untouched:
            passed.keep_frames(self._parcel)
        if isinstance(to_actor, Route):
            passed.receiver, passed.receiver_node = to_actor.receiver, to_actor.node
        else:
            passed.receiver, passed.receiver_node = to_actor, to_node
        await self._send(passed)

    async def broadcast(
        self,
        payload: object,
        *,
        to_node: bytes = b"",
        partition: str | bytes | None = None,
        version: int | None = None,
    ) -> None:
        """Send a message of this flow to every handler on every node, or of one node. It carries no callback."""
        if not isinstance(to_node, bytes):
            raise UsageError(f"to_node: {to_node!r} is not bytes; name a node as node.identity does: b'orders-1'")
        parcel = self._parcel
        declared = type_of(type(payload)).on(partition, version=version)
        self._cell.core.counters.sent += 1
        await self._send(
            Parcel(
                declared.message_id,
                payload,
                correlation_id=parcel.correlation_id,
                deadline=parcel.deadline,
                distribution=Distribution.BROADCAST,
                receiver_node=to_node,
                routing=parcel.routing,
                trace_options=parcel.trace_options,
            )
        )

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the handler any more: the message's time is over, or its caller has given up.

        For handlers that run in a thread, which cannot be cancelled: one that takes long looks at it now and then.
        """
        worker = self._worker
        return self._parcel.deadline <= self._cell.core.now() or (
            worker is not None and worker.cut_short is not None
        )

    async def tell(self, payload: object, **options: Any) -> None:
        """Send a message of this flow whose answers, if any, are not for the original caller."""
        if options.get("new_flow"):
            await self._hub.tell(payload, **options)
            return
        remaining = self.remaining
        if remaining is not None:
            options.setdefault("ttl", max(remaining, _LEAST))
        await self._hub.tell(payload, **self._flow(options))

    async def ask(self, payload: object, *types: type[T], **options: Any) -> T:
        """Ask within this flow, for no longer than the flow has time."""
        if not options.get("new_flow"):
            remaining = self.remaining
            if remaining is not None:
                options["timeout"] = min(options.get("timeout") or remaining, max(remaining, _LEAST))
            options = self._flow(options)
        worker = self._worker
        if worker is None:
            return await self._hub.ask(payload, *types, **options)
        with asking(worker) as asked:
            return await asked(self._hub.start(payload, *types, **options))

    @property
    def _worker(self) -> Worker | None:
        """The worker that handles the message; None where its handler has ended."""
        return None if self._handled.ended else self._handled.worker

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """For handlers that run in a thread: do one of the above and wait for it."""
        if threading.get_ident() == self._cell.thread:
            coroutine.close()
            raise UsageError("this is the event loop's thread, where waiting stops everything: use await")
        try:
            with waiting():  # another thread takes the place of this one meanwhile
                future = asyncio.run_coroutine_threadsafe(coroutine, self._cell.loop)
                try:
                    return future.result(self.remaining)
                except BaseException:
                    future.cancel()  # who waits no longer wants no more of it
                    raise
        except Overloaded:
            coroutine.close()
            raise

    @property
    def _hub(self) -> MessageHub:
        return self._cell.actor.node.hub

    def _flow(self, options: dict[str, Any]) -> dict[str, Any]:
        traced = bool(self._parcel.trace_options & TraceOptions.ROUTING)
        return {"correlation_id": self._parcel.correlation_id, "trace": traced, **options}

    def _following(self, payload: object, partition: str | bytes | None, version: int | None) -> Parcel:
        chosen = None
        if partition is not None or version is not None:
            chosen = type_of(type(payload)).on(partition, version=version)
        return following(self._cell.core, self._cell.name, self._parcel, payload, chosen)

    async def _send(self, parcel: Parcel) -> None:
        room = self._cell.core.send(parcel)
        if room is not None:
            await self._cell.pace(room)
            if room.done():
                room.result()
