"""Messages that nobody is known to handle: held for a moment while the other nodes are asked.

Where the last handler of a message has left with notice it is probably being started again, so its messages are
held for as long as that takes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable

from framewire.errors import Expired, NodeStopped, NoRoute
from framewire.node.clock import Timer
from framewire.node.core import Core
from framewire.node.deadletters import Reason
from framewire.node.explaining import why_not
from framewire.node.parcel import Parcel
from framewire.node.transport import Transport
from framewire.routing import Route, RoutingTable
from framewire.wire import Distribution, MessageId

__all__ = ["Departed", "Holding"]


_MAX_GRACE_S = 300.0
"""Seconds of grace that another node may ask for."""
_REMEMBERED = 10_000
"""Messages whose last handler has left."""


class Departed:
    """Messages whose last handler has left with notice, and until when it is waited for."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._until: OrderedDict[MessageId, float] = OrderedDict()

    def left(self, message: MessageId, grace: float | None) -> None:
        """The last handler of a message has left, and has told for how long it is to be waited for, or has not."""
        own = self._core.settings.restart_grace
        if own:  # who sets it to 0 wants nothing to be held
            self._until[message] = self._core.now() + min(own if grace is None else grace, _MAX_GRACE_S)
            if len(self._until) > _REMEMBERED:
                self._until.popitem(last=False)

    def came_back(self, messages: Iterable[MessageId]) -> None:
        """These are handled again."""
        if self._until:
            for message in messages:
                self._until.pop(message, None)

    def grace(self, message: MessageId) -> float | None:
        """For how many more seconds a message may be held for its handler; None where that has not just left."""
        until = self._until.get(message)
        if until is None:
            return None
        left = until - self._core.now()
        if left <= 0:
            del self._until[message]
            return None
        return left


class Holding:
    """What one node holds."""

    def __init__(
        self, core: Core, table: RoutingTable, transport: Transport | None, departed: Departed | None = None
    ) -> None:
        self._core = core
        self._departed = departed or Departed(core)
        self._table = table
        self._transport = transport
        self._held: dict[int, Parcel] = {}
        self._timers: dict[int, Timer] = {}
        self._closed = False
        self._expected: set[int] = set()
        """Those of them whose handler has left with notice, by their ids: it is probably being started again."""
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def parcels(self) -> tuple[Parcel, ...]:
        """All of it, the oldest first."""
        return tuple(self._held.values())

    def __bool__(self) -> bool:
        return bool(self._held)

    @property
    def expects(self) -> bool:
        """Whether a message is held for a handler of another node that is probably being started again."""
        return bool(self._expected) and self._transport is not None

    async def returned(self) -> None:
        """Wait until that is not so."""
        while self.expects:
            returned = asyncio.get_running_loop().create_future()
            self._waiting.append(returned)
            await returned

    def _forget(self, parcel: Parcel) -> None:
        self._expected.discard(id(parcel))
        if not self._expected:
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_result(None)
            self._waiting.clear()

    def keep(self, parcel: Parcel) -> None:
        """Hold a parcel until somebody is found who handles it, or its grace is over."""
        settings = self._core.settings
        here = parcel.receiver_node in (b"", self._core.identity)
        if parcel.distribution == Distribution.BROADCAST and parcel.source and here:
            # The others have had it from its origin, and it is no failure of theirs that nobody is here any more.
            self._core.dead_letters.add(Reason.NO_ROUTE, "nobody here handles it any more", parcel)
            self._disown(parcel)
            return
        if self._closed:
            self._stopped(parcel)
            return
        self._disown(parcel)
        grace = None if parcel.receiver else self._departed.grace(parcel.message_id)
        if settings.route_grace == 0 or (self._transport is None and grace is None):
            self._no_route(parcel)
        elif len(self._held) >= settings.hold:
            self._no_route(parcel, f"; nobody was asked, for {settings.hold} messages are held already")
        else:
            self._held[id(parcel)] = parcel
            if self._transport is not None:
                self._transport.discover(parcel.message_id, parcel.receiver)
            held = wait = settings.discovery_grace if grace is None else grace
            if grace is not None:
                self._expected.add(id(parcel))
                # A restart may take longer than a message has, and others need its place.
                wait = max(min(held, parcel.deadline - self._core.now()), 0.0)
            self._timers[id(parcel)] = self._core.clock.call_later(wait, self._grace_is_over, parcel, held)

    def remove(self, unwanted: Callable[[Parcel], bool]) -> list[Parcel]:
        """Take out all messages of a kind."""
        gone = [parcel for parcel in self._held.values() if unwanted(parcel)]
        for parcel in gone:
            self.let_go(parcel)
        return gone

    def let_go(self, parcel: Parcel) -> None:
        """Hold a parcel no longer: there is a way for it."""
        del self._held[id(parcel)]
        self._timers.pop(id(parcel)).cancel()
        self._forget(parcel)

    def close(self) -> None:
        """Give up on everything that is held, and hold nothing more."""
        self._closed = True
        held, self._held = self._held, {}
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for parcel in held.values():
            self._forget(parcel)
            self._stopped(parcel)

    def _disown(self, parcel: Parcel) -> None:
        """Let nobody send here what another node sent in vain; whoever believes otherwise has missed something."""
        if parcel.source and self._transport is not None and parcel.receiver_node in (b"", self._core.identity):
            # A broadcast ignores its receiver, which may be a hub of this node that others have to know.
            receiver = b"" if parcel.distribution == Distribution.BROADCAST else parcel.receiver
            self._transport.withdraw([(Route(receiver), (parcel.message_id,))])

    def _grace_is_over(self, parcel: Parcel, held: float) -> None:
        self._timers.pop(id(parcel), None)
        if self._held.pop(id(parcel), None) is None:
            return
        self._forget(parcel)
        if parcel.deadline <= self._core.now() and self._departed.grace(parcel.message_id) is not None:
            late = Expired("its time was over before its handler was back")
            self._core.undeliverable(parcel, Reason.EXPIRED, late)
        else:
            count = len(self._table.nodes)
            nodes = f"{count} node{'' if count == 1 else 's'}"
            self._no_route(parcel, f"; asked {nodes} for {held:.1f} s")

    def _no_route(self, parcel: Parcel, asked: str = "") -> None:
        why = why_not(self._table, self._core.identity, parcel, asked)
        self._core.undeliverable(parcel, Reason.NO_ROUTE, NoRoute(why))

    def _stopped(self, parcel: Parcel) -> None:
        stopped = NodeStopped("the node was stopped before it was handled")
        self._core.undeliverable(parcel, Reason.NODE_STOPPED, stopped)
