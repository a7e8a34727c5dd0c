"""Where messages start from, and where the answers come back to."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from typing import TypeVar, cast

from framewire.errors import (
    BadBody,
    BadSignature,
    Expired,
    MessageError,
    NodeStopped,
    NoRoute,
    RemoteError,
    Unreachable,
    UsageError,
)
from framewire.node.clock import DeadlineWheel
from framewire.node.core import Core, handling
from framewire.node.deadletters import Reason
from framewire.node.exceptions import EXCEPTION, ExceptionMessage, error_from
from framewire.node.flow import flow_ids
from framewire.node.parcel import Callback, Parcel
from framewire.node.payloads import type_of
from framewire.node.plans import Plan, Receipt
from framewire.node.promises import Gathered, Gathering, Pending, Promise
from framewire.routing import Route
from framewire.wire import Distribution, TraceOptions
from framewire.wire.message import readable

__all__ = ["MessageHub"]

T = TypeVar("T")
E = TypeVar("E", bound=MessageError)

_IN_A_ROW = 256
"""Messages that are told without a wait before others on the event loop have a go."""
_REMEMBERED = 10_000
"""Promises that were given up and whose answers are still known to be late."""
Address = bytes | Route


class MessageHub:
    """Sends messages for those who are not actors, and brings them the answers."""

    def __init__(self, core: Core) -> None:
        self.identity = b"\x00" + uuid.uuid4().bytes
        self._core = core
        self._pending: dict[int, Pending] = {}
        self._given_up: OrderedDict[int, None] = OrderedDict()
        self._plans: dict[tuple[type, tuple[type, ...]], Plan] = {}
        self._told: dict[type, Plan] = {}
        self._wheel = DeadlineWheel(core.clock, self._expire)
        self._last_key = 0
        self._in_a_row = 0
        self._flows = flow_ids()
        self.draining = False
        self.closed = False

    async def ask(
        self,
        payload: object,
        *types: type[T],
        timeout: float | None = None,  # noqa: ASYNC109 - it travels with the message as its ttl
        ttl: float | None = None,
        to_node: bytes | None = None,
        to_actor: Address | None = None,
        trace: bool = False,
        correlation_id: bytes | None = None,
    ) -> T:
        """Send a message and await the first that is one of the types, wherever in the flow it arises."""
        return await self._start(payload, types, timeout, ttl, to_node, to_actor, trace, correlation_id)

    def start(
        self,
        payload: object,
        *types: type[T],
        timeout: float | None = None,
        ttl: float | None = None,
        to_node: bytes | None = None,
        to_actor: Address | None = None,
        trace: bool = False,
        correlation_id: bytes | None = None,
    ) -> Promise[T]:
        """Send a message and return the promise of its answer."""
        return self._start(payload, types, timeout, ttl, to_node, to_actor, trace, correlation_id)

    async def send(
        self,
        payload: object,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - see ask
        ttl: float | None = None,
        to_node: bytes | None = None,
        to_actor: Address | None = None,
        trace: bool = False,
        correlation_id: bytes | None = None,
    ) -> None:
        """Send a message and return when the node that handles it has confirmed that it is there."""
        await self._start(payload, (Receipt,), timeout, ttl, to_node, to_actor, trace, correlation_id)

    async def tell(
        self,
        payload: object,
        *,
        ttl: float | None = None,
        to_node: bytes | None = None,
        to_actor: Address | None = None,
        trace: bool = False,
        correlation_id: bytes | None = None,
    ) -> None:
        """Send a message and forget it; returns when its receiver, or the way there, has room for it."""
        plan = self._told.get(type(payload)) or self._plan_to_tell(payload)
        lasting = None if ttl is None else _lasting(ttl)
        parcel = self._parcel(plan, payload, lasting, to_node, to_actor, trace, correlation_id)
        waiting = self._core.send(parcel)
        if waiting is not None:
            await waiting
        else:
            self._in_a_row += 1
            if self._in_a_row >= _IN_A_ROW:
                self._in_a_row = 0
                await asyncio.sleep(0)

    async def broadcast(
        self,
        payload: object,
        *,
        ttl: float | None = None,
        trace: bool = False,
        correlation_id: bytes | None = None,
    ) -> None:
        """Send a message to every handler on every node."""
        plan = self._plan_to_tell(payload)
        parcel = self._parcel(plan, payload, _lasting(ttl), None, None, trace, correlation_id)
        parcel.distribution, parcel.stencil = Distribution.BROADCAST, None
        waiting = self._core.send(parcel)
        if waiting is not None:
            await waiting

    async def gather(
        self,
        payload: object,
        *types: type[T],
        timeout: float | None = None,  # noqa: ASYNC109 - see ask
        stop_after: int | None = None,
        trace: bool = False,
        correlation_id: bytes | None = None,
    ) -> Gathered[T]:
        """Broadcast a message and collect the replies until there are enough or the time is over."""
        if stop_after is not None and stop_after < 1:
            raise UsageError(f"stop_after: {stop_after}; at least one reply must be waited for")
        plan, limit = self._plan(payload, _wanted(types)), self._limit(timeout)
        parcel = self._parcel(plan, payload, limit, None, None, trace, correlation_id)
        parcel.distribution, parcel.stencil = Distribution.BROADCAST, None
        gathering: Gathering[T] = Gathering(self, parcel).collect(stop_after)
        self._post(gathering, plan, limit)
        return cast("Gathered[T]", await gathering)

    @property
    def pending(self) -> Iterator[Pending]:
        """What is still waited for, the oldest first."""
        return iter(tuple(self._pending.values()))

    def accept(self, parcel: Parcel, *, at_once: bool = True) -> None:  # noqa: ARG002 - a hub always does
        """Take a message that is addressed to this hub: an answer."""
        callback = parcel.callback
        waiting = self._pending.get(callback.key) if callback is not None else None
        if waiting is None:
            self._nobody_waits(parcel, callback)
            return
        if parcel.correlation_id != waiting.parcel.correlation_id:
            self._core.dead_letters.add(Reason.UNKNOWN_REPLY, "the answer to a question of another flow", parcel)
            return
        message_type = waiting.types.get(parcel.message_id)
        failed = message_type is None
        if failed and parcel.message_id != EXCEPTION:
            self._core.dead_letters.add(Reason.UNKNOWN_REPLY, "not what was asked for", parcel)
            return
        try:
            answer = parcel.read(message_type or type_of(ExceptionMessage))
        except BadBody as problem:
            self._core.dead_letters.add(Reason.BAD_BODY, problem.detail, parcel)
            ended = waiting.fail(self._completed(problem, waiting, parcel))
        else:
            if self._core.tap is not None:
                self._core.tap.delivered(self.identity, parcel)
            if failed:
                error = self._completed(error_from(cast("ExceptionMessage", answer)), waiting, parcel)
                # A handler of many may fail and the gathering goes on; that nobody handles it is the end.
                ended = waiting.end(error) if isinstance(error, NoRoute) else waiting.fail(error)
            else:
                ended = waiting.reply(answer)
                self._core.counters.replies += 1
                if not waiting.key % self._core.samples.every:
                    self._sample(waiting)
        if ended:
            self._forget(waiting)

    def _sample(self, waiting: Pending) -> None:
        asked = waiting.parcel
        if asked.sent_to is not None and asked.sent_to.node:
            took = self._core.now() - waiting.started
            self._core.samples.answered(asked.sent_to.node, asked.message_id, took)

    def accept_all(self, parcels: list[Parcel]) -> None:
        """Take several answers."""
        for parcel in parcels:
            self.accept(parcel)

    def moved(self, key: int, route: Route | None) -> None:
        """A message that is waited for was sent elsewhere."""
        if (waiting := self._pending.get(key)) is not None:
            waiting.parcel.sent_to = route

    def node_lost(self, node: bytes) -> None:
        """End what waits for an answer from a node that is gone."""
        for waiting in tuple(self._pending.values()):
            route = waiting.parcel.sent_to
            if route is not None and route.node == node and not isinstance(waiting, Gathering):
                gone = Unreachable(f"node {readable(node)} is gone")
                if waiting.end(self._completed(gone, waiting)):
                    self.give_up(waiting)

    def close(self, detail: str) -> None:
        """End whatever is still open, and start nothing more."""
        self.closed = True
        self._wheel.close()
        for waiting in tuple(self._pending.values()):
            error = self._completed(NodeStopped(detail), waiting)
            if waiting.end(error):
                self.give_up(waiting)

    def _start(
        self,
        payload: object,
        types: tuple[type[T], ...],
        timeout: float | None,
        ttl: float | None,
        to_node: bytes | None,
        to_actor: Address | None,
        trace: bool,
        correlation_id: bytes | None,
    ) -> Promise[T]:
        # There is one of these for every ask, so what is usual skips a call (bench/node.py, bench/cluster.py).
        plan = self._plans.get((type(payload), types)) or self._plan(payload, _wanted(types))
        limit = self._core.settings.timeout if timeout is None else self._limit(timeout)
        lasting = limit if ttl is None else _lasting(ttl)
        parcel = self._parcel(plan, payload, lasting, to_node, to_actor, trace, correlation_id)
        promise: Promise[T] = Promise(self, parcel)
        self._post(promise, plan, limit)
        return promise

    def _plan(self, payload: object, types: tuple[type, ...]) -> Plan:
        asked = type(payload)
        return self._plans.get((asked, types)) or self._plans.setdefault((asked, types), Plan(asked, types))

    def _plan_to_tell(self, payload: object) -> Plan:
        told = type(payload)
        return self._told.get(told) or self._told.setdefault(told, Plan(told, ()))

    def _parcel(
        self,
        plan: Plan,
        payload: object,
        ttl: float | None,
        to_node: bytes | None,
        to_actor: Address | None,
        trace: bool,
        correlation_id: bytes | None,
    ) -> Parcel:
        if self.closed or (self.draining and not handling.get()):
            raise self._stopped(payload, correlation_id)
        if correlation_id is None:
            correlation_id = next(self._flows)
        core = self._core
        parcel = Parcel(plan.message_id, payload, None, correlation_id)
        if ttl is not None:
            parcel.deadline = core.now() + ttl
        if trace or to_actor is not None or to_node is not None:
            self._direct(parcel, to_node, to_actor, trace)
        else:
            parcel.stencil = plan.stencil
        core.counters.sent += 1
        return parcel

    def _direct(self, parcel: Parcel, to_node: bytes | None, to_actor: Address | None, trace: bool) -> None:
        if isinstance(to_actor, Route):
            parcel.receiver, parcel.receiver_node = to_actor.receiver, to_actor.node
        elif to_actor is not None:
            parcel.receiver = to_actor
        if to_node is not None:
            parcel.receiver_node = to_node
        if trace:
            parcel.trace_options = TraceOptions.ROUTING
            self._core.trace.step("received", parcel.message_id, parcel.correlation_id, "from a hub of this node")

    def _stopped(self, payload: object, correlation_id: bytes | None) -> NodeStopped:
        return NodeStopped(
            "this node is stopping, so it was not sent",
            message_id=type_of(type(payload)).message_id,
            correlation_id=correlation_id or b"",
            target="nobody",
            node=self._core.identity,
            elapsed=0.0,
            last_hop=f"node {readable(self._core.identity)}",
        )

    def _post(self, waiting: Pending, plan: Plan, limit: float) -> None:
        core = self._core
        if len(self._pending) >= core.settings.promises:
            detail = f"{len(self._pending)} promises are open already"
            raise core.overloaded(waiting.parcel, detail)
        waiting.types = plan.types
        self._last_key = waiting.key = key = self._last_key + 1
        waiting.started = started = core.now()
        waiting.parcel.callback = Callback(self.identity, core.identity, key, plan.points, plan.receipt)
        self._pending[key] = waiting
        try:
            room = core.send(waiting.parcel)
        except BaseException:
            self._forget(waiting)  # what cannot be written never leaves, so nothing would end the promise
            raise
        if not waiting.done:
            # The promise ends in time whether or not there is room; the wait for room ends with the promise.
            waiting.room = room
            waiting.slot = self._wheel.add(waiting, started + limit)

    def _limit(self, timeout: float | None) -> float:
        if timeout is None:
            return self._core.settings.timeout
        limit = timeout
        if not (limit > 0 and math.isfinite(limit)):
            raise UsageError(f"timeout: {limit!r} is not a positive number of seconds")
        return limit

    def _expire(self, waiting: Pending) -> None:
        elapsed = self._core.now() - waiting.started
        if waiting.expire(self._completed(Expired(f"no answer in {elapsed:.1f} s"), waiting)):
            self.give_up(waiting)

    def _forget(self, waiting: Pending) -> None:
        self._pending.pop(waiting.key, None)
        if waiting.slot is not None:
            self._wheel.discard(waiting, waiting.slot)
        if waiting.room is not None and not waiting.room.done():
            waiting.room.cancel()

    def give_up(self, waiting: Pending) -> None:
        if waiting.key in self._pending:
            self._forget(waiting)
            self._given_up[waiting.key] = None
            if len(self._given_up) > _REMEMBERED:
                self._given_up.popitem(last=False)

    def _nobody_waits(self, parcel: Parcel, callback: Callback | None) -> None:
        if callback is None or not 0 < callback.key <= self._last_key:
            self._core.dead_letters.add(Reason.UNKNOWN_REPLY, "nobody asked for this", parcel)
        elif callback.key in self._given_up:
            self._core.dead_letters.add(Reason.LATE_REPLY, "the asker has given up", parcel)
        else:
            self._core.dead_letters.add(Reason.DUPLICATE_REPLY, "the answer is already there", parcel)

    def _completed(self, error: E, waiting: Pending, answer: Parcel | None = None) -> E:
        """An error with all that is known here about the message that it is about."""
        about, error.message_id = error.message_id, waiting.parcel.message_id
        if about is not None and str(about) != str(error.message_id) and not isinstance(error, RemoteError):
            error.detail = f"{about}, which came of it: {error.detail}"
        error.correlation_id = waiting.parcel.correlation_id
        error.target = error.target or waiting.target
        error.node = error.node or self._core.identity
        error.elapsed = self._core.now() - waiting.started
        if isinstance(error, BadSignature) and not error.domain and self._core.keyring is not None:
            error.domain = self._core.keyring.domain_of(waiting.parcel.message_id.identity)
        if answer is not None and answer.routing:
            error.last_hop = answer.routing[-1].uri
        elif (route := waiting.parcel.sent_to) is not None:
            error.last_hop = f"node {readable(route.node)}" if route.node else f"actor {route.receiver.hex()} here"
        else:
            error.last_hop = f"node {readable(self._core.identity)}"
        return error


def _wanted(types: tuple[type[T], ...]) -> tuple[type[T], ...]:
    if not types:
        raise UsageError("types: name at least one message type that counts as the answer")
    return types


def _lasting(ttl: float | None) -> float | None:
    if ttl is not None and not ttl > 0:
        raise UsageError(f"ttl: {ttl!r} is not a positive number of seconds")
    return ttl
