"""Every message of a node passes here: to a receiver on this node, to another node, or to the dead letters."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Protocol

from framewire.errors import (
    MessageError,
    Unreachable,
)
from framewire.node.admission import Admission
from framewire.node.core import Core
from framewire.node.departures import Departures, reason_of
from framewire.node.exceptions import EXCEPTION
from framewire.node.holding import Departed, Holding
from framewire.node.hub import MessageHub
from framewire.node.likeness import Likeness
from framewire.node.mailbox import Room, fulfilled, together
from framewire.node.parcel import RECEIPT, Callback, Parcel, sole_sender
from framewire.node.plans import Receipt
from framewire.node.transport import Registration, Transport
from framewire.routing import Route, RoutingTable, routes_for
from framewire.security import KeyRing
from framewire.wire import MessageId, RouterAddress, TraceOptions, decode
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
        self._hubs: dict[bytes, MessageHub] = {}
        self._announced: dict[Route, tuple[MessageId, ...]] = {}
        self._departed = Departed(core)
        self._holding = Holding(core, self.table, transport, self._departed)
        departures = Departures(core, transport, self.table)
        self._send_away = departures.send
        self.admission = Admission(core)
        self._familiar = self.admission.familiar
        core.send = self.send
        core.held = lambda: self._holding.parcels
        core.has_peers = lambda: bool(self.table.nodes)
        core.cancellations.drop_held = self._holding.remove
        self._cancelled = core.cancellations.known
        core.answer = departures.answer
        core.sender = self.sender

    # --- receivers of this node

    def add(self, route: Route, receiver: Receiver, messages: Iterable[MessageId], *, local: bool = False) -> None:
        """Let messages come to a receiver of this node; others are told of it unless it is local."""
        handled = tuple(messages)
        self._receivers[route.receiver] = receiver
        if isinstance(receiver, MessageHub):
            self._hubs[route.receiver] = receiver
        self.table.add_receiver(route)
        for message in handled:
            self.table.add(message, route)
        self._departed.came_back(handled)
        if not local:
            self._announced[route] = handled
            if self._transport is not None:
                self._transport.announce([(route, handled)])
        self._release(handled)

    def remove(self, route: Route) -> None:
        """Let no more messages come to a receiver of this node."""
        handled = tuple(self.table.handled_by(route))
        self.table.remove_receiver(route)
        self._note_departed(handled, None)
        self._receivers.pop(route.receiver, None)
        self._hubs.pop(route.receiver, None)
        self._withdraw([route])

    @property
    def registrations(self) -> list[Registration]:
        """The receivers of this node that others may know of."""
        return list(self._announced.items())

    def registered(self, message: MessageId, receiver: bytes) -> list[Registration]:
        """Those of them that handle a message, or the one with an identity, with that message and no others."""
        routes = [Route(receiver)] if receiver else self.table.all_here(message)
        return [
            (route, (message,) if self.table.handles(route, message) else ())
            for route in routes
            if route in self._announced
        ]

    @property
    def expects(self) -> bool:
        """Whether messages are held for handlers of other nodes that are probably being started again."""
        return self._holding.expects

    async def handlers_returned(self) -> None:
        """Wait until those are back, or are waited for no longer."""
        await self._holding.returned()

    def retire(self) -> None:
        """Let other nodes send no more to the actors here; what is under way is still taken, and so are answers."""
        self._withdraw([route for route in self._announced if route.receiver not in self._hubs])

    def _withdraw(self, routes: Iterable[Route]) -> None:
        gone = [(route, self._announced.pop(route)) for route in routes if route in self._announced]
        if gone and self._transport is not None:
            self._transport.withdraw(gone, self._core.settings.restart_grace)

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
                parcel.sent_to = route
                if route.node:
                    return self._send_away(route, parcel)
                callback = parcel.callback
                if callback is None or not callback.receipt:
                    return self._receivers[route.receiver].accept(parcel)
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
            if hub is not None and not (parcel.trace_options or parcel.distribution):
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

    def _hold(self, parcel: Parcel) -> Room | None:
        self._holding.keep(parcel)
        return None

    def _release(self, messages: Iterable[MessageId]) -> None:
        """Send on what was held, where there is a route now that these are handled."""
        if not self._holding:
            return
        handled = set(messages)
        for parcel in self._holding.parcels:
            if parcel.message_id in handled or parcel.receiver or parcel.receiver_node:
                routes = self._routes(parcel)
                if routes:
                    self._holding.let_go(parcel)
                    self._dispatch(routes, parcel)

    def _note_departed(self, messages: Iterable[MessageId], grace: float | None) -> None:
        """Hold what comes for these for a while, where nobody else handles them: a handler has left with notice."""
        for message in messages:
            if not self.table.is_handled(message):
                self._departed.left(message, grace)

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

    # --- messages from other nodes

    def receive(self, peer: bytes, frames: list[bytes]) -> None:
        """Take in what another node sent."""
        core = self._core
        core.counters.received += 1
        like = self._familiar.recall(frames, core.keyring)
        if like is None or not like.fits(frames):
            self._take_apart(peer, frames)
            return
        if (hub := self._asker(like)) is not None:
            hub.accept_alike(like, [frames], peer, self._take_apart)
            return
        parcel = like.next(frames, core.now(), peer)
        if parcel is None:
            self._take_apart(peer, frames)
            return
        if core.tap is not None:
            core.tap.received(like.peer or core.sender_of(peer, like.pattern.routing), frames)
        if self._cancelled and core.cancellations.drops(parcel):
            return
        route = self.table.next_here(parcel.message_id) if like.plain else None
        if route is None:
            self.send(parcel)
        else:
            parcel.sent_to = route
            self._receivers[route.receiver].accept(parcel)

    def sender(self, peer: bytes, routing: tuple[RouterAddress, ...]) -> RouterAddress | None:
        """Return the routing entry of the node that a peer's message came from; None where there is no entry.

        Without a peer the message is this node's own, which appends itself.
        """
        if not routing:
            return None
        if not peer or self._transport is None:
            return routing[-1]
        return sole_sender(routing, self._core.identity) or self._transport.sender(peer, routing)

    def _asker(self, like: Likeness) -> MessageHub | None:
        """The hub of this node that messages of a kind are answers for; None where they are something else."""
        if not like.answers or like.pattern.receiver_node != self._core.identity:
            return None
        return self._hubs.get(like.pattern.receiver)

    def _take_apart(self, peer: bytes, frames: list[bytes]) -> None:
        parcel = self.admission.taken_apart(peer, frames)
        if parcel is not None and not (self._cancelled and self._core.cancellations.drops(parcel)):
            self.send(parcel)

    def receive_alike(self, peer: bytes, messages: list[list[bytes]]) -> None:
        """Take in several messages that differ in nothing but what is new in every message."""
        core = self._core
        like = self._familiar.recall(messages[0], core.keyring)
        if like is None or not like.fits(messages[0]):
            for frames in messages:
                self.receive(peer, frames)
            return
        core.counters.received += len(messages)
        if (hub := self._asker(like)) is not None:
            hub.accept_alike(like, messages, peer, self._take_apart)
            return
        # All of one kind, so where they go is looked up only once; where there is a choice, it is made for each.
        route = self.table.only_here(like.pattern.message_id) if like.plain else None
        parcels = like.parcels(messages, core.now(), peer, route, self.admission.taken_apart)
        if core.tap is not None:
            for parcel in parcels:
                if parcel.like is like and (came := parcel.frames):  # what was taken apart is recorded already
                    core.tap.received(like.peer or core.sender_of(peer, like.pattern.routing), came)
        if self._cancelled:
            parcels = [parcel for parcel in parcels if not core.cancellations.drops(parcel)]
        if route is not None:
            self._receivers[route.receiver].accept_all(parcels)
        else:
            for parcel in parcels:
                self.send(parcel)

    def undelivered(self, frames: list[bytes], error: MessageError) -> None:
        """A message that was on its way to another node did not get there."""
        parcel = Parcel.from_message(decode(frames), self._core.now())
        self._core.undeliverable(parcel, reason_of(error), error)

    def returned(self, frames: list[bytes]) -> None:
        """A message did not even leave for a node that has left: whoever else handles it may have it."""
        message = decode(frames)
        if message.receiver_identity or message.receiver_node_identity or message.distribution:
            self.undelivered(frames, Unreachable("the node that it was addressed to has left"))
            return
        unsent = message.replace(routing=message.routing[:-1], hops=max(message.hops - 1, 0))
        parcel = Parcel.from_message(unsent, self._core.now())
        if message.hops > 1:
            parcel.caller = None
        self.send(parcel)
        callback = parcel.callback
        if callback is not None and (asker := self._hubs.get(callback.receiver)) is not None:
            asker.moved(callback.key, parcel.sent_to)

    def peer_registered(self, peer: bytes, registrations: Iterable[Registration]) -> None:
        """Another node handles these."""
        self.table.add_node(peer)
        handled: list[MessageId] = []
        for route, messages in registrations:
            there = Route(route.receiver, peer)
            self.table.add_receiver(there)
            for message in messages:
                self.table.add(message, there)
            handled += messages
        self._departed.came_back(handled)
        self._release(handled)

    def peer_unregistered(
        self, peer: bytes, registrations: Iterable[Registration], grace: float | None = None
    ) -> None:
        """Another node handles these no longer; a receiver without messages is gone as a whole.

        Without a receiver, no actor of that node handles these messages any more. ``grace`` is for how many seconds
        they are expected to be back.
        """
        gone = list(registrations)
        self._unregister(peer, gone)
        if grace:
            for _, messages in gone:
                self._note_departed(messages, grace)

    def _unregister(self, peer: bytes, registrations: Iterable[Registration]) -> None:
        whole: list[Route] = []
        gone: dict[MessageId, set[bytes]] = {}
        of_all: dict[MessageId, set[bytes]] = {}
        for route, messages in registrations:
            if not route.receiver:
                of_all |= {message: set() for message in messages}
            elif not messages:
                whole.append(Route(route.receiver, peer))
            else:
                for message in messages:
                    gone.setdefault(message, set()).add(route.receiver)
        self.table.remove_receivers(whole)
        self.table.remove_messages(peer, gone | of_all)

    def use_keys(self, ring: KeyRing | None) -> None:
        """Sign and verify with other keys from now on, and forget what their domains do not let this node see."""
        before, self._core.keyring = self._core.keyring, ring
        for route, messages in self.table.routes.items():
            for message in messages:
                if route.node and not _same_domain(message.identity, before, ring):
                    self.table.remove(message, route)

    def peer_left(self, peer: bytes) -> None:
        """Another node has left with notice."""
        handled = {message for route in self.table.receivers_of(peer) for message in self.table.handled_by(route)}
        self.table.remove_node(peer)
        self._note_departed(handled, None)

    def peer_shrinks(self, peer: bytes, most: int, *, left: bool) -> None:
        """Forget about so many routes of another node that is gone, or ``left`` with notice."""
        gone = self.table.remove_some(peer, most)
        if left:
            self._note_departed(gone, None)

    def peer_lost(self, peer: bytes) -> None:
        """Another node is gone."""
        self.table.remove_node(peer)

    def close(self) -> None:
        """Give up on everything that is held."""
        self._holding.close()


def _same_domain(identity: bytes, before: KeyRing | None, after: KeyRing | None) -> bool:
    """Whether a message belongs to the same domain by two rings, and the second lets it be seen."""
    domain = "" if after is None else after.domain_of(identity)
    known = not domain or (after is not None and domain in after.domains)
    return known and domain == ("" if before is None else before.domain_of(identity))
