"""Messages that leave for other nodes: written as frames, signed, handed to the transport."""

from __future__ import annotations

import math
from time import time_ns

from framewire.errors import BadBody, BadSignature, Expired, MessageError, Overloaded, Unreachable, UsageError
from framewire.node.core import Core
from framewire.node.deadletters import Reason
from framewire.node.mailbox import Room
from framewire.node.parcel import Parcel, ttl_ticks
from framewire.node.transport import Transport
from framewire.routing import Route
from framewire.wire import RouterAddress, encode, forward

__all__ = ["Departures", "reason_of"]

_REASONS = {
    BadBody: Reason.BAD_BODY,
    BadSignature: Reason.BAD_SIGNATURE,
    Overloaded: Reason.OVERLOADED,
}


def reason_of(error: MessageError) -> Reason:
    """Why a message did not leave; where nothing else is told, nobody could be reached."""
    return _REASONS.get(type(error), Reason.UNREACHABLE)


class Departures:
    """The way out of one node."""

    def __init__(self, core: Core, transport: Transport | None) -> None:
        self._core = core
        self._transport = transport
        self._address: RouterAddress | None = None
        self._passing = 0

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
            router, stencil = self._address, parcel.stencil
            if router is None or router.uri != transport.uri:
                router = self._address = RouterAddress(transport.uri, core.identity)
            frames = None if stencil is None else stencil.frames(parcel, now, router, core.keyring)
            if frames is None:
                frames = self._frames(parcel, now, router)
            if (tap := core.tap) is None:
                room = transport.send(route.node, frames)
            else:
                at = time_ns()
                room = transport.send(route.node, frames)
                tap.sent(route.node, frames, at)
        except MessageError as problem:
            core.undeliverable(parcel, reason_of(problem), problem)
            return None
        core.counters.forwarded += 1
        samples = core.samples
        samples.due -= 1
        if samples.due <= 0:
            samples.sent(route.node, parcel.message_id)
        if room is None:
            return None
        if parcel.source:
            room = self._pass(room, parcel)
        return None if room is None else core.limited(room, parcel)

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
        if parcel.frames is not None:
            return forward(parcel.frames, router, ttl_ticks=ttl_ticks(parcel.deadline, now))
        keyring, message = self._core.keyring, parcel.to_message(now, router)
        if keyring is not None:
            try:
                message = keyring.sign(message)
            except UsageError as problem:
                raise BadSignature(str(problem)) from None
        frames = encode(message)
        if parcel.stencil is not None:
            parcel.stencil.learn(message, frames, router, keyring)
        return frames
