"""Messages that leave for other nodes: written as frames, signed, handed to the transport."""

from __future__ import annotations

import logging
import math
from collections import Counter
from functools import partial
from time import time_ns
from typing import cast

from framewire.errors import BadBody, BadSignature, Expired, MessageError, Overloaded, Unreachable, UsageError
from framewire.node.core import Core
from framewire.node.deadletters import Reason
from framewire.node.flow import following
from framewire.node.mailbox import Room
from framewire.node.parcel import MAX_ROUTERS, Parcel, Stencil, kept_routers, ttl_ticks
from framewire.node.transport import Transport
from framewire.routing import Route, RoutingTable
from framewire.wire import MessageId, RouterAddress, TraceOptions, decode, encode, forward
from framewire.wire.message import readable

__all__ = ["Departures", "reason_of"]

log = logging.getLogger("framewire.node")

_LOG_INTERVAL_S = 60.0
"""Seconds between two lines in the log about routing entries that were dropped; each is counted."""

_REASONS = {
    BadBody: Reason.BAD_BODY,
    BadSignature: Reason.BAD_SIGNATURE,
    Overloaded: Reason.OVERLOADED,
}


def reason_of(error: MessageError) -> Reason:
    """Why a message did not leave; where nothing else is told, nobody could be reached."""
    return _REASONS.get(type(error), Reason.UNREACHABLE)


def _encoded(stencil: Stencil, payload: object) -> bytes | None:
    """The body of an answer; None where it cannot be written, or in several frames: it becomes a parcel then."""
    message_type = stencil.message_type
    if message_type.several:
        return None
    try:
        return cast("bytes", message_type.encode(payload))
    except Exception:  # noqa: BLE001 - whatever it is
        return None


class Departures:
    """The way out of one node."""

    def __init__(self, core: Core, transport: Transport | None, table: RoutingTable) -> None:
        self._core = core
        self._transport = transport
        self._knows_node = table.knows_node
        self._address: RouterAddress | None = None
        self._passing = 0
        self._beginning: Counter[bytes] = Counter()
        """Messages that begin a flow and wait for the way to a node."""
        self._crowded: set[bytes] = set()
        """Nodes that no more of those may wait for: the rest of the room is for flows under way."""
        self._next_log = -math.inf

    def send(self, route: Route, parcel: Parcel) -> Room | None:
        """Send a parcel to another node; what is returned is done when there is room for it."""
        core, transport = self._core, self._transport
        now = 0.0 if parcel.deadline == math.inf else core.now()
        if parcel.deadline <= now:
            core.undeliverable(parcel, Reason.EXPIRED, Expired("its time was over before it left this node"))
            return None
        try:
            if transport is None:
                raise Unreachable("this node is connected to no other")
            if self._crowded and parcel.caller is not None and route.node in self._crowded:
                waiting = self._beginning[route.node]
                raise Overloaded(f"{waiting} messages already wait for node {readable(route.node)}")
            router, stencil = self._address, parcel.stencil
            if router is None or router.uri != transport.uri:
                router = self._address = RouterAddress(transport.uri, core.identity)
            frames = None
            if stencil is not None and not stencil.message_type.several:
                body = parcel.body_frames or parcel.body
                if len(body) == 1:
                    frames = stencil.written(cast("bytes", body[0]), parcel, now, router, core.keyring)
            if frames is None:
                frames = self._frames(parcel, now, router)
            room = self._hand_over(transport, route.node, parcel.message_id, frames)
        except MessageError as problem:
            core.undeliverable(parcel, reason_of(problem), problem)
            return None
        if room is None:
            return None
        if parcel.caller is not None:
            self._count_beginning(route.node, room)
        if parcel.source:
            room = self._pass(room, parcel)
        return None if room is None else core.limited(room, parcel)

    def answer(self, actor: str, parcel: Parcel, payload: object) -> Room | None:
        """Send what a handler made of a message.

        Most of it is the answer to a question like one before, from a node that is known, and leaves without ever
        being a parcel (bench/cluster.py).
        """
        core, like = self._core, parcel.like
        stencil = None if like is None else like.following.get(type(payload))
        if (
            stencil is None
            or (route := stencil.answers) is None
            or (router := self._address) is None
            or (transport := self._transport) is None
            or router.uri != transport.uri
            or not self._knows_node(route.node)
            or parcel.deadline <= (now := core.now())
            or (body := _encoded(stencil, payload)) is None
            or (frames := stencil.written(body, parcel, now, router, core.keyring)) is None
        ):
            return core.send(following(core, actor, parcel, payload))
        try:
            room = self._hand_over(transport, route.node, stencil.message_type.message_id, frames)
        except MessageError as problem:
            core.undeliverable(following(core, actor, parcel, payload), reason_of(problem), problem)
            return None
        if room is not None:
            return core.limited(room, following(core, actor, parcel, payload))
        core.counters.sent += 1
        return None

    def _hand_over(
        self, transport: Transport, node: bytes, message_id: MessageId, frames: list[bytes]
    ) -> Room | None:
        core = self._core
        if (tap := core.tap) is None:
            room = transport.send(node, frames)
        else:
            at = time_ns()
            room = transport.send(node, frames)
            tap.sent(node, frames, None, at)
        core.counters.forwarded += 1
        samples = core.samples
        samples.due -= 1
        if samples.due <= 0:
            samples.sent(node, message_id)
        return room

    def _count_beginning(self, node: bytes, room: Room) -> None:
        """Keep half of what may wait for a node for flows under way: they must not fail for those that begin."""
        self._beginning[node] += 1
        if self._beginning[node] >= max(self._core.settings.max_queued // 2, 1):
            self._crowded.add(node)
        room.add_done_callback(partial(self._has_begun, node))

    def _has_begun(self, node: bytes, _: Room) -> None:
        self._crowded.discard(node)
        self._beginning[node] -= 1
        if not self._beginning[node]:
            del self._beginning[node]

    def _pass(self, room: Room, parcel: Parcel) -> Room | None:
        """Bound what waits for the way to another node: what came from one has no sender here that could wait."""
        if self._passing >= self._core.settings.hold:
            room.cancel()
            refusal = self._core.overloaded(parcel, f"{self._passing} messages already wait to be passed on")
            self._core.undeliverable(parcel, Reason.OVERLOADED, refusal)
            return None
        self._passing += 1
        room.add_done_callback(self._passed)
        return room

    def _passed(self, _: Room) -> None:
        self._passing -= 1

    def _frames(self, parcel: Parcel, now: float, router: RouterAddress) -> list[bytes]:
        """What a parcel is on the wire, where nothing like it was written before."""
        dropped = len(parcel.routing) - MAX_ROUTERS
        if dropped > 0:
            self._tell_dropped(parcel, dropped)
        if parcel.frames is not None:
            ticks = ttl_ticks(parcel.deadline, now)
            if dropped <= 0:
                return forward(parcel.frames, router, ttl_ticks=ticks)
            came = decode(parcel.frames)  # signed or not: the signature does not cover the routing
            routing = (*kept_routers(came.routing), router)
            return encode(came.replace(routing=routing, hops=came.hops + 1, ttl_ticks=ticks))
        keyring, message = self._core.keyring, parcel.to_message(now, router)
        if keyring is not None:
            try:
                message = keyring.sign(message)
            except UsageError as problem:
                raise BadSignature(str(problem)) from None
        frames = encode(message)
        # Where entries were dropped, the next message of its kind would not be counted.
        if parcel.stencil is not None and dropped <= 0 and not parcel.stencil.message_type.several:
            parcel.stencil.learn(message, frames, router, keyring)
        return frames

    def _tell_dropped(self, parcel: Parcel, count: int) -> None:
        """Count, trace and log the routing entries that a message leaves without."""
        core = self._core
        core.counters.entries_dropped += count
        detail = f"{count} of its {len(parcel.routing)} routing entries are dropped, from the second on"
        if parcel.trace_options & TraceOptions.ROUTING:
            core.trace.step("shortened", parcel.message_id, parcel.correlation_id, detail)
        now = core.now()
        if now >= self._next_log:
            self._next_log = now + _LOG_INTERVAL_S
            log.warning(
                "%s of flow %s passed more than %d routers: %s; does the flow ever end?",
                parcel.message_id,
                readable(parcel.correlation_id),
                MAX_ROUTERS,
                detail,
            )
