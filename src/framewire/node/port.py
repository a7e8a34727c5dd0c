"""A node's end of its transport: what comes from other nodes, and what is told of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from framewire.errors import MessageError, Overloaded
from framewire.node.core import Core
from framewire.node.deadletters import Reason
from framewire.node.guests import Guest
from framewire.node.hub import MessageHub
from framewire.node.parcel import Parcel
from framewire.node.router import Router
from framewire.node.transport import Registration
from framewire.routing import Route
from framewire.wire import Message, MessageId, decode

__all__ = ["NodePort"]


class NodePort:
    """The ``Port`` of one node (see ``framewire.node.transport``)."""

    def __init__(self, core: Core, router: Router, hubs: list[MessageHub]) -> None:
        self._core = core
        self._router = router
        self._hubs = hubs
        self.identity = core.identity
        self.shunned = core.conduct.shunned
        self.receive = router.receive
        self.receive_alike = router.receive_alike
        self.several = core.hold_on
        self.sender_of = core.sender_of

    @property
    def registrations(self) -> list[Registration]:
        return self._router.registrations

    def registered(self, message: MessageId, receiver: bytes) -> list[Registration]:
        return self._router.registered(message, receiver)

    @property
    def max_queued(self) -> int:
        return self._core.settings.max_queued

    @property
    def max_queued_bytes(self) -> int:
        return self._core.settings.max_queued_bytes

    @property
    def awaited(self) -> int:
        return sum(hub.awaited for hub in self._hubs)

    def shuns(self, peer: bytes) -> bool:
        if not self._core.conduct.shuns(peer):
            return False
        self._core.dead_letters.counts[Reason.THROTTLED] += 1
        return True

    def refused(
        self, peer: bytes, reason: Reason, detail: str, frames: list[bytes] | None = None, count: int = 1
    ) -> None:
        self._router.admission.refuse(peer, reason, detail, frames or [], count)

    def unread(self, peer: bytes, frames: list[bytes], problem: Exception) -> None:
        core, lacking = self._core, isinstance(problem, MemoryError)
        detail = "there was no memory to read it" if lacking else f"reading it failed: {type(problem).__name__}"
        if not core.conduct.note(peer, Reason.UNREAD):
            core.dead_letters.counts[Reason.UNREAD] += 1
            return
        try:
            parcel = Parcel.from_message(decode(frames), core.now(), peer)
            core.dead_letters.add(Reason.UNREAD, detail, parcel)
        except Exception:  # noqa: BLE001 - there may be no memory for this either, and then nobody can be told
            core.dead_letters.add_frames(Reason.UNREAD, detail, [])
            return
        core.tell_failure(parcel, Overloaded(detail, node=core.identity) if lacking else problem)

    def turned_away(self) -> None:
        self._core.counters.turned_away += 1

    def undelivered(self, frames: list[bytes], error: MessageError) -> None:
        self._router.undelivered(frames, error)

    def peer_registered(self, peer: bytes, registrations: Iterable[Registration]) -> None:
        self._router.peer_registered(peer, registrations)

    @property
    def removals(self) -> int:
        return self._router.table.removals

    def routes_of(self, peer: bytes) -> int:
        return self._router.table.routes_of(peer)

    def peer_shrinks(self, peer: bytes, most: int, *, left: bool) -> None:
        self._router.peer_shrinks(peer, most, left=left)

    def peer_unregistered(
        self, peer: bytes, registrations: Iterable[Registration], grace: float | None = None
    ) -> None:
        self._router.peer_unregistered(peer, registrations, grace)

    def returned(self, frames: list[bytes]) -> None:
        self._router.returned(frames)

    def peer_left(self, peer: bytes) -> None:
        self._router.peer_left(peer)

    def peer_lost(self, peer: bytes) -> None:
        self._router.peer_lost(peer)
        for hub in self._hubs:
            hub.node_lost(peer)

    def admit(self, receiver: bytes, deliver: Callable[[Message], None]) -> None:
        self._router.add(Route(receiver), Guest(self._core, receiver, deliver), (), local=True)

    def dismiss(self, receiver: bytes) -> None:
        self._router.remove(Route(receiver))
