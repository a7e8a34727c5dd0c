"""Every message of a node passes here: to a receiver on this node, to another node, or to the dead letters."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from time import time_ns
from typing import Protocol

from framewire.errors import (
    BadBody,
    BadSignature,
    Expired,
    MessageError,
    NodeStopped,
    NoRoute,
    Overloaded,
    Unreachable,
    UsageError,
)
from framewire.node.admission import Admission
from framewire.node.core import Core
from framewire.node.deadletters import Reason
from framewire.node.exceptions import EXCEPTION
from framewire.node.explaining import why_not
from framewire.node.hub import MessageHub, Receipt
from framewire.node.likeness import Likeness
from framewire.node.mailbox import Room, fulfilled, together
from framewire.node.parcel import RECEIPT, Callback, Parcel, ttl_ticks
from framewire.node.transport import Registration, Transport
from framewire.routing import HUB, Route, RoutingTable, routes_for
from framewire.security import KeyRing
from framewire.wire import Distribution, MessageId, RouterAddress, TraceOptions, decode, encode, forward
from framewire.wire.message import readable

__all__ = ["Receiver", "Router"]


class Receiver(Protocol):
    """What messages are delivered to: a message hub, or an actor in its cell."""

    def accept(self, parcel: Parcel, *, at_once: bool = True) -> Room | None: ...

    def accept_all(self, parcels: list[Parcel]) -> None:
        """Take in what came from another node at once."""


class Router:
    """The routing of one node."""

    def __init__(self, core: Core, transport: Transport | None = None) -> None:
        self.table = RoutingTable()
        self._core = core
        self._transport = transport
        self._receivers: dict[bytes, Receiver] = {}
        self._hubs: dict[bytes, Receiver] = {}
        self._announced: dict[Route, tuple[MessageId, ...]] = {}
        self._held: dict[int, Parcel] = {}
        self._passing = 0
        self._closed = False
        self._address: RouterAddress | None = None
        self.admission = Admission(core)
        self._familiar = self.admission.familiar
        core.send = self.send

    # --- receivers of this node

    def add(self, route: Route, receiver: Receiver, messages: Iterable[MessageId], *, local: bool = False) -> None:
        """Let messages come to a receiver of this node; others are told of it unless it is local."""
        handled = tuple(messages)
        self._receivers[route.receiver] = receiver
        if route.receiver[0] == HUB:
            self._hubs[route.receiver] = receiver
        self.table.add_receiver(route)
        for message in handled:
            self.table.add(message, route)
        if not local:
            self._announced[route] = handled
            if self._transport is not None:
                self._transport.announce([(route, handled)])
        self._release()

    def remove(self, route: Route) -> None:
        """Let no more messages come to a receiver of this node."""
        self.table.remove_receiver(route)
        self._receivers.pop(route.receiver, None)
        self._hubs.pop(route.receiver, None)
        self._withdraw([route])

    @property
    def registrations(self) -> list[Registration]:
        """The receivers of this node that others may know of."""
        return list(self._announced.items())

    def retire(self) -> None:
        """Let other nodes send no more to the actors here; what is under way is still taken, and so are answers."""
        self._withdraw([route for route in self._announced if route.receiver not in self._hubs])

    def _withdraw(self, routes: Iterable[Route]) -> None:
        gone = [(route, self._announced.pop(route)) for route in routes if route in self._announced]
        if gone and self._transport is not None:
            self._transport.withdraw(gone)

    # --- messages of this node

    def send(self, parcel: Parcel) -> Room | None:
        """Get a parcel under way; what is returned is done when there is room for it."""
        # Nearly every message is one of these, so they skip the detours (bench/node.py, bench/cluster.py): to
        # anyone who handles it, from here or to here, and an answer to a hub, of this node or another. What has a
        # stencil is new here and nothing is special about it.
        if not parcel.receiver:
            if parcel.stencil is not None:
                route = self.table.next(parcel.message_id)
                if route is None:
                    return self._hold(parcel)
                if route.node:
                    parcel.sent_to = route
                    return self._send_away(route, parcel)
                return self._take(route, parcel)
            if not parcel.receiver_node and parcel.distribution == 0:
                if not parcel.source:
                    route = self.table.next(parcel.message_id)
                    return self._hold(parcel) if route is None else self._take(route, parcel)
                route = self.table.next_here(parcel.message_id)
                if route is not None:
                    return self._take(route, parcel)
        elif parcel.receiver_node == self._core.identity:
            hub = self._hubs.get(parcel.receiver)
            if hub is not None and not parcel.trace_options:
                return hub.accept(parcel)
        elif parcel.distribution == 0 and self.table.knows_node(parcel.receiver_node):
            route = Route(parcel.receiver, parcel.receiver_node)
            if parcel.trace_options:
                return self._take(route, parcel)
            parcel.sent_to = route
            return self._send_away(route, parcel)
        routes = self._routes(parcel)
        return self._dispatch(routes, parcel) if routes else self._hold(parcel)

    def _routes(self, parcel: Parcel) -> tuple[Route, ...]:
        return routes_for(
            self.table,
            self._core.identity,
            parcel.message_id,
            parcel.distribution,
            parcel.receiver,
            parcel.receiver_node,
            from_network=bool(parcel.source),
        )

    def _dispatch(self, routes: tuple[Route, ...], parcel: Parcel) -> Room | None:
        if len(routes) == 1:
            return self._take(routes[0], parcel)
        rooms = [room for route in routes if (room := self._take(route, copy.copy(parcel))) is not None]
        return together(rooms) if rooms else None

    def _take(self, route: Route, parcel: Parcel) -> Room | None:
        parcel.sent_to = route
        if parcel.trace_options and parcel.trace_options & TraceOptions.ROUTING:
            where = f"to node {readable(route.node)}" if route.node else f"to {route.receiver.hex()}"
            self._core.trace.step("routed", parcel.message_id, parcel.correlation_id, where)
        if route.node:
            return self._send_away(route, parcel)
        receiver = self._receivers[route.receiver]
        callback = parcel.callback
        if callback is not None and callback.receipt and parcel.message_id != RECEIPT:
            return self._deliver_with_receipt(receiver, parcel, callback)
        return receiver.accept(parcel)

    def _deliver_with_receipt(self, receiver: Receiver, parcel: Parcel, callback: Callback) -> Room | None:
        parcel.like = parcel.stencil = None
        points = tuple(point for point in callback.points if point != RECEIPT)
        # Where only the receipt was asked for, what the handler does is nobody's answer. It may be done with the
        # message before the loop comes round to tell that there was room for it, so it never gets the callback.
        only = set(points) <= {EXCEPTION}
        parcel.callback = None if only else Callback(callback.receiver, callback.node, callback.key, points)
        room = receiver.accept(parcel, at_once=False)
        if room is None:
            self._confirm(parcel, callback)
            return None

        def settled(done: Room) -> None:
            if fulfilled(done):
                self._confirm(parcel, callback)
            elif only and not done.cancelled() and (error := done.exception()) is not None:
                refused = copy.copy(parcel)
                refused.callback = callback
                self._core.tell_failure(refused, error)

        room.add_done_callback(settled)
        return room

    def _confirm(self, parcel: Parcel, callback: Callback) -> None:
        """Tell the sender that its message has arrived."""
        self.send(
            Parcel(
                RECEIPT,
                Receipt(),
                correlation_id=parcel.correlation_id,
                callback=callback,
                deadline=parcel.deadline,
                receiver=callback.receiver,
                receiver_node=callback.node,
                routing=parcel.routing,
                trace_options=parcel.trace_options,
            )
        )

    # --- messages to other nodes

    def _send_away(self, route: Route, parcel: Parcel) -> Room | None:
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
            core.undeliverable(parcel, _REASONS.get(type(problem), Reason.UNREACHABLE), problem)
            return None
        core.counters.forwarded += 1
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

    # --- messages from other nodes

    def receive(self, peer: bytes, frames: list[bytes]) -> None:
        """Take in what another node sent."""
        core = self._core
        core.counters.received += 1
        like = self._familiar.recall(frames, core.keyring)
        parcel = None if like is None else like.parcel(frames, core.now(), peer)
        if like is None or parcel is None:
            parcel = self.admission.taken_apart(peer, frames)
            if parcel is not None:
                self.send(parcel)
            return
        if core.tap is not None:
            core.tap.received(frames, like.sender)
        route = self.table.next_here(parcel.message_id) if like.plain else None
        if route is None:
            self.send(parcel)
        else:
            parcel.sent_to = route
            self._receivers[route.receiver].accept(parcel)

    def receive_alike(self, peer: bytes, messages: list[list[bytes]]) -> None:
        """Take in several messages that differ in nothing but what is new in every message."""
        core = self._core
        like = self._familiar.recall(messages[0], core.keyring)
        if like is None or not like.fits(messages[0]):
            for frames in messages:
                self.receive(peer, frames)
            return
        now, tap = core.now(), core.tap
        parcels = []
        for frames in messages:
            parcel = like.next(frames, now, peer)
            if parcel is None:
                parcel = self.admission.taken_apart(peer, frames)
                if parcel is None:
                    continue
            elif tap is not None:
                tap.received(frames, like.sender)
            parcels.append(parcel)
        core.counters.received += len(messages)
        self._deliver(parcels, like)

    def _deliver(self, parcels: list[Parcel], like: Likeness) -> None:
        """Send on what is of one kind, looking only once where it goes."""
        pattern = like.pattern
        if like.plain:
            route = self.table.only_here(pattern.message_id)
            if route is not None:
                for parcel in parcels:
                    parcel.sent_to = route
                self._receivers[route.receiver].accept_all(parcels)
                return
        elif pattern.receiver_node == self._core.identity and (hub := self._hubs.get(pattern.receiver)) is not None:
            hub.accept_all(parcels)
            return
        for parcel in parcels:
            self.send(parcel)

    def undelivered(self, frames: list[bytes], error: MessageError) -> None:
        """A message that was on its way to another node did not get there."""
        reason = _REASONS.get(type(error), Reason.UNREACHABLE)
        self._core.undeliverable(Parcel.from_message(decode(frames), self._core.now()), reason, error)

    def returned(self, frames: list[bytes]) -> None:
        """A message did not even leave for a node that has left: whoever else handles it may have it."""
        message = decode(frames)
        if message.receiver_identity or message.receiver_node_identity or message.distribution:
            self.undelivered(frames, Unreachable("the node that it was addressed to has left"))
            return
        unsent = message.replace(routing=message.routing[:-1], hops=max(message.hops - 1, 0))
        parcel = Parcel.from_message(unsent, self._core.now())
        self.send(parcel)
        callback = parcel.callback
        if callback is not None and isinstance(asker := self._hubs.get(callback.receiver), MessageHub):
            asker.moved(callback.key, parcel.sent_to)

    def peer_registered(self, peer: bytes, registrations: Iterable[Registration]) -> None:
        """Another node handles these."""
        self.table.add_node(peer)
        for route, messages in registrations:
            there = Route(route.receiver, peer)
            self.table.add_receiver(there)
            for message in messages:
                self.table.add(message, there)
        self._release()

    def peer_unregistered(self, peer: bytes, registrations: Iterable[Registration]) -> None:
        """Another node handles these no longer; a receiver without messages is gone as a whole.

        Without a receiver, no actor of that node handles these messages any more.
        """
        for route, messages in registrations:
            if not route.receiver:
                for message in messages:
                    for known in tuple(self.table.all(message)):
                        if known.node == peer:
                            self.peer_unregistered(peer, [(Route(known.receiver), (message,))])
                continue
            there = Route(route.receiver, peer)
            for message in messages:
                self.table.remove(message, there)
            if not messages or not self.table.routes.get(there):
                self.table.remove_receiver(there)

    def use_keys(self, ring: KeyRing | None) -> None:
        """Sign and verify with other keys from now on, and forget what their domains do not let this node see."""
        before, self._core.keyring = self._core.keyring, ring
        for route, messages in self.table.routes.items():
            for message in messages:
                if route.node and not _same_domain(message.identity, before, ring):
                    self.table.remove(message, route)

    def peer_lost(self, peer: bytes) -> None:
        """Another node is gone."""
        self.table.remove_node(peer)

    # --- messages without a route

    def _hold(self, parcel: Parcel) -> Room | None:
        """Keep a parcel for a moment while the other nodes are asked who handles it."""
        settings = self._core.settings
        if parcel.distribution == Distribution.BROADCAST and parcel.source:
            # The others have had it from its origin, and it is no failure of theirs that nobody is here any more.
            self._core.dead_letters.add(Reason.NO_ROUTE, "nobody here handles it any more", parcel)
            self._disown(parcel)
            return None
        if self._closed:
            self._stopped(parcel)
            return None
        self._disown(parcel)
        if self._transport is None or settings.route_grace == 0:
            self._no_route(parcel)
            return None
        if len(self._held) >= settings.hold:
            self._no_route(parcel, f"; nobody was asked, for {settings.hold} messages are held already")
            return None
        self._held[id(parcel)] = parcel
        self._transport.discover(parcel.message_id, parcel.receiver)
        self._core.clock.call_later(settings.route_grace, self._grace_is_over, parcel)
        return None

    def _disown(self, parcel: Parcel) -> None:
        """Let nobody send here what another node sent in vain; whoever believes otherwise has missed something."""
        if parcel.source and self._transport is not None and parcel.receiver_node in (b"", self._core.identity):
            self._transport.withdraw([(Route(parcel.receiver), (parcel.message_id,))])

    def _release(self) -> None:
        """Send on what was held, where there is a route now."""
        for parcel in tuple(self._held.values()):
            routes = self._routes(parcel)
            if routes:
                del self._held[id(parcel)]
                self._dispatch(routes, parcel)

    def _grace_is_over(self, parcel: Parcel) -> None:
        if self._held.pop(id(parcel), None) is not None:
            count = len(self.table.nodes)
            nodes = f"{count} node{'' if count == 1 else 's'}"
            self._no_route(parcel, f"; asked {nodes} for {self._core.settings.route_grace:.1f} s")

    def _no_route(self, parcel: Parcel, asked: str = "") -> None:
        why = why_not(self.table, self._core.identity, parcel, asked)
        self._core.undeliverable(parcel, Reason.NO_ROUTE, NoRoute(why))

    def _stopped(self, parcel: Parcel) -> None:
        stopped = NodeStopped("the node was stopped before it was handled")
        self._core.undeliverable(parcel, Reason.NODE_STOPPED, stopped)

    def close(self) -> None:
        """Give up on everything that is held."""
        self._closed = True
        held, self._held = self._held, {}
        for parcel in held.values():
            self._stopped(parcel)


_REASONS = {
    BadBody: Reason.BAD_BODY,
    BadSignature: Reason.BAD_SIGNATURE,
    Overloaded: Reason.OVERLOADED,
}
"""Why a message did not leave, where it is not that nobody could be reached."""


def _same_domain(identity: bytes, before: KeyRing | None, after: KeyRing | None) -> bool:
    """Whether a message belongs to the same domain by two rings, and the second lets it be seen."""
    domain = "" if after is None else after.domain_of(identity)
    known = not domain or (after is not None and domain in after.domains)
    return known and domain == ("" if before is None else before.domain_of(identity))
