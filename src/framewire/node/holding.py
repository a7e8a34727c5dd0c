"""Messages that nobody is known to handle: kept for a moment while the other nodes are asked."""

from __future__ import annotations

from framewire.errors import NodeStopped, NoRoute
from framewire.node.core import Core
from framewire.node.deadletters import Reason
from framewire.node.explaining import why_not
from framewire.node.parcel import Parcel
from framewire.node.transport import Transport
from framewire.routing import Route, RoutingTable
from framewire.wire import Distribution

__all__ = ["Holding"]


class Holding:
    """What one node holds."""

    def __init__(self, core: Core, table: RoutingTable, transport: Transport | None) -> None:
        self._core = core
        self._table = table
        self._transport = transport
        self._held: dict[int, Parcel] = {}
        self._closed = False

    @property
    def parcels(self) -> tuple[Parcel, ...]:
        """All of it, the oldest first."""
        return tuple(self._held.values())

    def keep(self, parcel: Parcel) -> None:
        """Hold a parcel until somebody is found who handles it, or its grace is over."""
        settings = self._core.settings
        if parcel.distribution == Distribution.BROADCAST and parcel.source:
            # The others have had it from its origin, and it is no failure of theirs that nobody is here any more.
            self._core.dead_letters.add(Reason.NO_ROUTE, "nobody here handles it any more", parcel)
            self._disown(parcel)
            return
        if self._closed:
            self._stopped(parcel)
            return
        self._disown(parcel)
        if self._transport is None or settings.route_grace == 0:
            self._no_route(parcel)
        elif len(self._held) >= settings.hold:
            self._no_route(parcel, f"; nobody was asked, for {settings.hold} messages are held already")
        else:
            self._held[id(parcel)] = parcel
            self._transport.discover(parcel.message_id, parcel.receiver)
            self._core.clock.call_later(settings.route_grace, self._grace_is_over, parcel)

    def let_go(self, parcel: Parcel) -> None:
        """Hold a parcel no longer: there is a way for it."""
        del self._held[id(parcel)]

    def close(self) -> None:
        """Give up on everything that is held, and hold nothing more."""
        self._closed = True
        held, self._held = self._held, {}
        for parcel in held.values():
            self._stopped(parcel)

    def _disown(self, parcel: Parcel) -> None:
        """Let nobody send here what another node sent in vain; whoever believes otherwise has missed something."""
        if parcel.source and self._transport is not None and parcel.receiver_node in (b"", self._core.identity):
            self._transport.withdraw([(Route(parcel.receiver), (parcel.message_id,))])

    def _grace_is_over(self, parcel: Parcel) -> None:
        if self._held.pop(id(parcel), None) is not None:
            count = len(self._table.nodes)
            nodes = f"{count} node{'' if count == 1 else 's'}"
            self._no_route(parcel, f"; asked {nodes} for {self._core.settings.route_grace:.1f} s")

    def _no_route(self, parcel: Parcel, asked: str = "") -> None:
        why = why_not(self._table, self._core.identity, parcel, asked)
        self._core.undeliverable(parcel, Reason.NO_ROUTE, NoRoute(why))

    def _stopped(self, parcel: Parcel) -> None:
        stopped = NodeStopped("the node was stopped before it was handled")
        self._core.undeliverable(parcel, Reason.NODE_STOPPED, stopped)
