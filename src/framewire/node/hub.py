"""Where messages start from, and where the answers come back to."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Iterator
from typing import TypeVar, cast

from framewire.errors import NodeStopped, UsageError
from framewire.node.core import Core, Flow, Hook, handling
from framewire.node.cycles import asking
from framewire.node.flow import flow_ids
from framewire.node.forks import forked_error
from framewire.node.mailbox import Room
from framewire.node.open_promises import OpenPromises
from framewire.node.parcel import Parcel, Stencil
from framewire.node.payloads import type_of
from framewire.node.plans import Plan, Receipt
from framewire.node.promises import Gathered, Gathering, Pending, Promise
from framewire.routing import Route
from framewire.wire import Distribution, TraceOptions
from framewire.wire.message import readable

__all__ = ["MessageHub"]

T = TypeVar("T")

_MAX_PLANS = 16_384
"""Plans that are kept: classes are few, but a hub may send to any number of partitions."""
_LEAST_S = 0.001
"""Seconds that even a flow without time gives to what is asked within it, which then ends as expired."""
_IN_A_ROW = 256
"""Messages that are told without a wait before others on the event loop have a go."""
Address = bytes | Route


class MessageHub:
    """Sends messages for those who are not actors, and brings them the answers."""

    def __init__(self, core: Core) -> None:
        self.identity = b"\x00" + uuid.uuid4().bytes
        self._core = core
        self._open = OpenPromises(core, self.identity)
        self.accept, self.accept_all, self.accept_alike = (
            self._open.accept,
            self._open.accept_all,
            self._open.accept_alike,
        )
        self.moved, self.node_lost = self._open.moved, self._open.node_lost
        self._plans: dict[tuple[object, ...], Plan] = {}
        """By class and wanted answers, and by partition and version where those are not the class's own."""
        self._told: dict[type, Plan] = {}
        self._in_a_row = 0
        self._timeout = core.settings.timeout
        self._flows = flow_ids()
        self._accepts = True
        """Whether anybody may send; otherwise only handlers that finish may, until the hub is closed."""
        self._closed = False
        self._forked = False

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
        new_flow: bool = False,
        partition: str | bytes | None = None,
        version: int | None = None,
    ) -> T:
        """Send a message and await the first that is one of the types, wherever in the flow it arises."""
        flow = handling.get()
        if flow is not None and (worker := flow.worker) is not None and asyncio.current_task() is worker.task:
            with asking(worker) as asked:
                promise = self._start(
                    payload,
                    types,
                    timeout,
                    ttl,
                    to_node,
                    to_actor,
                    trace,
                    correlation_id,
                    flow,
                    new_flow,
                    partition,
                    version,
                )
                return await asked(promise)
        promise = self._start(
            payload,
            types,
            timeout,
            ttl,
            to_node,
            to_actor,
            trace,
            correlation_id,
            flow,
            new_flow,
            partition,
            version,
        )
        if not promise.done:  # what follows is to await the promise, without a generator between the two
            try:
                await promise.ended()
            except asyncio.CancelledError:
                promise.cancel()
                raise
        return promise.result()

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
        new_flow: bool = False,
        partition: str | bytes | None = None,
        version: int | None = None,
    ) -> Promise[T]:
        """Send a message and return the promise of its answer."""
        return self._start(
            payload,
            types,
            timeout,
            ttl,
            to_node,
            to_actor,
            trace,
            correlation_id,
            handling.get(),
            new_flow,
            partition,
            version,
        )

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
        new_flow: bool = False,
        partition: str | bytes | None = None,
        version: int | None = None,
    ) -> None:
        """Send a message and return when the node that handles it has confirmed that it is there."""
        await self._start(
            payload,
            (Receipt,),
            timeout,
            ttl,
            to_node,
            to_actor,
            trace,
            correlation_id,
            handling.get(),
            new_flow,
            partition,
            version,
        )

    async def tell(
        self,
        payload: object,
        *,
        ttl: float | None = None,
        to_node: bytes | None = None,
        to_actor: Address | None = None,
        trace: bool = False,
        correlation_id: bytes | None = None,
        new_flow: bool = False,
        partition: str | bytes | None = None,
        version: int | None = None,
    ) -> None:
        """Send a message and forget it; returns when its receiver, or the way there, has room for it."""
        if partition is None and version is None:
            plan = self._told.get(type(payload)) or self._plan_to_tell(payload)
        else:
            plan = self._plan(payload, (), partition, version)
        core = self._core
        if (
            ttl is not None
            or correlation_id is not None
            or to_actor is not None
            or to_node is not None
            or trace
            or not self._accepts
            or handling.get() is not None
        ):
            now, lasting = (0.0, None) if ttl is None else (core.now(), _lasting(ttl))
            flow = _current(new_flow)
            parcel = self._parcel(
                plan, payload, now, lasting, to_node, to_actor, trace, correlation_id, flow, new_flow
            )
        else:
            named = next(self._flows)
            parcel = Parcel(plan.message_id, payload, None, named, stencil=plan.stencil, caller=self.identity)
            core.counters.sent += 1
        waiting = core.send(parcel)
        if waiting is not None:
            await self._room(waiting)
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
        to_node: bytes | None = None,
        trace: bool = False,
        correlation_id: bytes | None = None,
        new_flow: bool = False,
        partition: str | bytes | None = None,
        version: int | None = None,
    ) -> None:
        """Send a message to every handler on every node, or to every handler of one node."""
        plan, flow = self._plan(payload, (), partition, version), _current(new_flow)
        now = self._core.now()
        parcel = self._parcel(
            plan, payload, now, _lasting(ttl), to_node, None, trace, correlation_id, flow, new_flow
        )
        parcel.distribution, parcel.stencil = Distribution.BROADCAST, None
        waiting = self._core.send(parcel)
        if waiting is not None:
            await self._room(waiting)

    async def _room(self, room: Room) -> None:
        """Wait for room; a handler does so only while nobody waits for its actor."""
        flow = handling.get()
        if isinstance(flow, Flow) and not flow.ended and flow.cell.loop is asyncio.get_running_loop():
            await flow.cell.pace(room)
            if room.done():
                room.result()
        else:
            await room

    async def gather(
        self,
        payload: object,
        *types: type[T],
        timeout: float | None = None,  # noqa: ASYNC109 - see ask
        stop_after: int | None = None,
        to_node: bytes | None = None,
        trace: bool = False,
        correlation_id: bytes | None = None,
        new_flow: bool = False,
        partition: str | bytes | None = None,
        version: int | None = None,
    ) -> Gathered[T]:
        """Broadcast a message and collect the replies until there are enough or the time is over."""
        if stop_after is not None and not (isinstance(stop_after, int) and stop_after >= 1):
            raise UsageError(f"stop_after: {stop_after!r}; at least one reply must be waited for")
        plan, limit = self._plan(payload, _wanted(types), partition, version), self._limit(timeout)
        now, flow = self._core.now(), _current(new_flow)
        parcel = self._parcel(
            plan, payload, now, limit, to_node, None, trace, correlation_id, flow, new_flow, awaited=True
        )
        limit = self._left(limit, flow, new_flow, now)
        parcel.distribution, parcel.stencil = Distribution.BROADCAST, None
        opened = self._open
        opened.last_key = key = opened.last_key + 1
        gathering: Gathering[T] = Gathering(opened, parcel, plan.types, key, now, stop_after=stop_after)
        opened.post(gathering, plan, limit)
        return cast("Gathered[T]", await gathering)

    @property
    def pending(self) -> Iterator[Pending]:
        """What is still waited for, the oldest first."""
        return iter(self._open)

    @property
    def awaited(self) -> int:
        """How many promises are open."""
        return len(self._open)

    async def answered(self) -> None:
        """Wait until no answer of another node is awaited."""
        await self._open.answered()

    def drain(self) -> None:
        """Let only handlers send that finish their work."""
        self._accepts = False

    def forked(self) -> None:
        """Mark as the copy in a forked child, where every use raises ``UsageError``."""
        self._forked = True
        self._accepts, self._closed = False, True

    def close(self, detail: str) -> None:
        """End whatever is still open, and start nothing more."""
        self._accepts, self._closed = False, True
        self._open.close(detail)

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
        flow: Flow | Hook | None,
        new_flow: bool,
        partition: str | bytes | None,
        version: int | None,
    ) -> Promise[T]:
        # There is one of these for every ask, so what is usual skips a call (bench/node.py, bench/cluster.py).
        if partition is None and version is None:
            plan = self._plans.get((type(payload), types)) or self._plan(payload, _wanted(types))
        else:
            plan = self._plan(payload, _wanted(types), partition, version)
        core = self._core
        limit = self._timeout if timeout is None else self._limit(timeout)
        lasting = limit if ttl is None else _lasting(ttl)
        now = core.now()
        if (
            lasting is None
            or correlation_id is not None
            or to_actor is not None
            or to_node is not None
            or trace
            or not self._accepts
            or flow is not None
        ):
            flow = None if flow is None else _current(new_flow)
            parcel = self._parcel(
                plan, payload, now, lasting, to_node, to_actor, trace, correlation_id, flow, new_flow, awaited=True
            )
            if flow is not None:
                limit = self._left(limit, flow, new_flow, now)
        else:
            named = next(self._flows)
            parcel = Parcel(
                plan.message_id,
                payload,
                None,
                named,
                None,
                now + lasting,
                stencil=plan.stencil,
                caller=self.identity,
            )
            core.counters.sent += 1
        opened = self._open
        opened.last_key = key = opened.last_key + 1
        promise: Promise[T] = Promise(opened, parcel, plan.types, key, now)
        opened.post(promise, plan, limit)
        return promise

    def _plan(
        self,
        payload: object,
        types: tuple[type, ...],
        partition: str | bytes | None = None,
        version: int | None = None,
    ) -> Plan:
        asked = type(payload)
        key = (asked, types) if partition is None and version is None else (asked, types, partition, version)
        plan = self._plans.get(key)
        if plan is None:
            declared = type_of(asked)
            if len(key) > 2:
                declared = declared.on(partition, version=version)
            plan = Plan(declared, types)
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def _plan_to_tell(self, payload: object) -> Plan:
        if len(self._told) >= _MAX_PLANS:
            self._told.clear()
        return self._told.setdefault(type(payload), Plan(type_of(type(payload)), ()))

    def _parcel(
        self,
        plan: Plan,
        payload: object,
        now: float,
        ttl: float | None,
        to_node: bytes | None,
        to_actor: Address | None,
        trace: bool,
        correlation_id: bytes | None,
        flow: Flow | Hook | None,
        new_flow: bool,
        *,
        awaited: bool = False,
    ) -> Parcel:
        if self._closed or (flow is None and not self._accepts):
            raise self._stopped(payload, correlation_id)
        within = flow if isinstance(flow, Flow) and not new_flow else None
        if correlation_id is None:
            correlation_id = next(self._flows) if within is None else within.correlation_id
        elif not isinstance(correlation_id, bytes):
            raise UsageError(f"correlation_id: {correlation_id!r} is not bytes")
        self._core.counters.sent += 1
        parcel = Parcel(
            plan.message_id,
            payload,
            None,
            correlation_id,
            None,
            math.inf if ttl is None else now + ttl,
            stencil=plan.stencil,
            caller=self.identity,
        )
        if within is not None and within.carried is not None and (options := within.carried[0]):
            trace = trace or bool(options & TraceOptions.ROUTING)
            parcel.trace_options, parcel.stencil = options, None
        if trace or to_actor is not None or to_node is not None:
            self._direct(parcel, to_node, to_actor, trace)
        if flow is None:
            return parcel
        begins = new_flow and isinstance(flow, Flow)
        if begins:
            parcel.may_wait = False
        # Nobody may wait for what may wait: what a handler could await is under way as soon as it was let in.
        if flow.under_way and (awaited or not begins):
            parcel.caller = None
            if parcel.stencil is not None:
                parcel.stencil = plan.under_way
        if within is not None:
            self._carry(parcel, within, plan)
        return parcel

    def _carry(self, parcel: Parcel, flow: Flow, plan: Plan) -> None:
        """Give a message the deadline of its flow, and the routing: other nodes know by it that it was admitted."""
        parcel.deadline = min(parcel.deadline, flow.deadline_on(self._core))
        if flow.carried is None or parcel.correlation_id != flow.correlation_id:
            return
        _, parcel.routing, like = flow.carried
        if parcel.stencil is not None:
            if flow.cell.core is not self._core:
                like = None
            known = None if like is None else like.following
            parcel.stencil = None if known is None else known.setdefault(plan, Stencil(parcel.stencil.message_type))

    def _left(self, limit: float, flow: Flow | Hook | None, new_flow: bool, now: float) -> float:
        """Return for how many of so many seconds an answer is waited for: no longer than the flow has time."""
        if new_flow or not isinstance(flow, Flow):
            return limit
        return min(limit, max(flow.deadline_on(self._core) - now, _LEAST_S))

    def _direct(self, parcel: Parcel, to_node: bytes | None, to_actor: Address | None, trace: bool) -> None:
        if to_node is not None and not isinstance(to_node, bytes):
            raise UsageError(f"to_node: {to_node!r} is not bytes; name a node as node.identity does: b'orders-1'")
        if to_actor is not None and not isinstance(to_actor, bytes | Route):
            raise UsageError(f"to_actor: {to_actor!r} is neither a Route, as node.host returns it, nor bytes")
        parcel.stencil = None
        if isinstance(to_actor, Route):
            parcel.receiver, parcel.receiver_node = to_actor.receiver, to_actor.node
        elif to_actor is not None:
            parcel.receiver = to_actor
        if to_node is not None:
            parcel.receiver_node = to_node
        if trace:
            parcel.trace_options |= TraceOptions.ROUTING
            self._core.trace.step("received", parcel.message_id, parcel.correlation_id, "from a hub of this node")

    def _stopped(self, payload: object, correlation_id: bytes | None) -> NodeStopped | UsageError:
        if self._forked:
            return forked_error("node")
        return NodeStopped(
            "this node is stopping, so it was not sent",
            message_id=type_of(type(payload)).message_id,
            correlation_id=correlation_id or b"",
            target="nobody",
            node=self._core.identity,
            elapsed=0.0,
            last_hop=f"node {readable(self._core.identity)}",
        )

    def _limit(self, timeout: float | None) -> float:
        if timeout is None:
            return self._core.settings.timeout
        if not (is_seconds(timeout) and 0 < timeout < math.inf):
            raise UsageError(f"timeout: {timeout!r} is not a positive number of seconds")
        return timeout


def _wanted(types: tuple[type[T], ...]) -> tuple[type[T], ...]:
    if not types:
        raise UsageError("types: name at least one message type that counts as the answer")
    return types


def _current(new_flow: bool) -> Flow | Hook | None:
    """Return the flow that something is sent in now; None where it is outside of handlers.

    A task that has outlived its handler is still in its flow as long as that has time, unless it begins another.
    """
    flow = handling.get()
    if isinstance(flow, Flow) and flow.ended and (new_flow or flow.is_over):
        return None
    return flow


def is_seconds(value: object) -> bool:
    """Whether a value is a number, which True and False are not meant to be."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _lasting(ttl: float | None) -> float | None:
    if ttl is not None and not (is_seconds(ttl) and ttl > 0):
        raise UsageError(f"ttl: {ttl!r} is not a positive number of seconds")
    return ttl
