"""How a node comes to know of others: what it makes of the service messages that it hears, and when it speaks up.

Every node hears every service message, its own included. After each (re)connection a node tells all that it has and
asks for all that there is, and it answers the same question of others.

A node that is known in a signed domain is vouched for: nobody without a key can say that it has moved or left.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, ClassVar

from framewire.cluster import service
from framewire.cluster.addresses import can_connect
from framewire.cluster.announcing import Announcer
from framewire.cluster.settings import ClusterSettings
from framewire.errors import BadSignature, WireError
from framewire.node.deadletters import Reason
from framewire.node.transport import Port, Registration
from framewire.routing import HUB, Route
from framewire.security import KeyRing
from framewire.wire import MessageId, decode
from framewire.wire.message import readable

__all__ = ["Discovery"]

_SETTLING = 0.05
"""Seconds that a server needs to take note of a new subscription."""
_PAUSE = 0.1
"""Seconds between two answers to the same question, at most: whoever asks in between is answered after it."""


class Discovery:
    """One node's ear. ``servers`` are those to talk to from now on, ``leader`` is one more."""

    def __init__(
        self,
        settings: ClusterSettings,
        port: Port,
        announcer: Announcer,
        *,
        keyring: KeyRing | None,
        learned: Callable[[bytes, str, str, float], None],
        left: Callable[[bytes], None],
        servers: Callable[[list[tuple[str, str]]], None],
        leader: Callable[[tuple[str, str]], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._port = port
        self._announcer = announcer
        self._keyring = keyring
        self._learned = learned
        self._left = left
        self._servers = servers
        self._leader = leader
        self._timers: set[asyncio.TimerHandle] = set()
        self._vouched: dict[bytes, tuple[str, str]] = {}
        self._answered: dict[str | None, float] = {}
        self._owed: set[str | None] = set()
        if settings.peers:
            self._keep_asking(settings.heartbeat)
        self._keep_asking(settings.rediscover)

    def use_keys(self, keyring: KeyRing | None) -> None:
        """Verify with other keys from now on; in domains that are new here, everyone will introduce themselves."""
        before, self._keyring = self._keyring, keyring
        if keyring is None or before is None or keyring.domains != before.domains:
            self._vouched.clear()

    def forget(self, peer: bytes) -> None:
        """Nobody vouches for a peer that is gone."""
        self._vouched.pop(peer, None)

    # --- what it hears

    def hear(self, frames: list[bytes], *, straight: bool = False) -> bytes:
        """Take in a service message; who it was that told of itself.

        To a peer from which it came straight, and not through a server, answers go the same way.
        """
        try:
            message = decode(frames)
            take = self._HANDLERS.get(message.message_id)
            if take is None or message.domain not in self._announcer.domains:
                return b""
            if self._keyring is not None:
                self._keyring.verify(message, domain=message.domain)
            said = service.parse(message)
            take(self, said, message.domain)
        except (WireError, BadSignature, ValueError) as problem:
            reason = Reason.BAD_SIGNATURE if isinstance(problem, BadSignature) else Reason.MALFORMED
            detail = f"a service message is ignored: {problem}"
            self._port.refused(frames[0] if straight else b"", reason, detail, frames)
            return b""
        if message.message_id != service.REGISTER_EXTERNAL_ROUTE or said.node_identity == self._port.identity:
            return b""
        speaker: bytes = said.node_identity
        if straight:
            self._announcer.include(speaker)
        return speaker

    def _registered(self, said: Any, domain: str) -> None:
        if said.node_identity == self._port.identity:
            return
        if not said.node_identity or said.node_identity[0] == 0 or len(said.node_identity) > 255:
            raise ValueError(f"{said.node_identity!r} is no identity of a node")
        health, interval = said.health.uri, service.seconds(said.health.interval)
        if not (can_connect(said.uri) and (can_connect(health) or not health)):
            raise ValueError(f"node {readable(said.node_identity)} is at {said.uri!r} and {health!r}: no addresses")
        place, signed = (said.uri, health), self._is_signed(domain)
        if not signed and self._vouched.get(said.node_identity, place) != place:
            raise self._unbelievable(said.node_identity, f"is at {said.uri}", domain)
        self._learned(said.node_identity, said.uri, health, interval)
        if signed:
            self._vouched[said.node_identity] = place
        self._port.peer_registered(said.node_identity, self._understood(said, domain))

    def _unregistered(self, said: Any, domain: str) -> None:
        if said.node_identity == self._port.identity:
            return
        # A hub is gone as a whole, whichever message it was that did not find it.
        gone = [
            (route, () if _is_hub(route.receiver) else messages)
            for route, messages in self._understood(said, domain)
            if route.receiver or messages
        ]
        self._port.peer_unregistered(said.node_identity, gone)

    def _understood(self, said: Any, domain: str) -> list[Registration]:
        found: list[Registration] = []
        for route in said.routes:
            contracts = tuple(map(service.message_id, route.contracts))
            ours = tuple(message for message in contracts if self._announcer.domain_of(message) == domain)
            if ours or not contracts or _is_hub(route.receiver_identity):  # a hub belongs to every domain
                found.append((Route(route.receiver_identity), ours))
        return found

    def _node_unregistered(self, said: Any, domain: str) -> None:
        if said.node_identity == self._port.identity:
            return
        if said.node_identity in self._vouched and not self._is_signed(domain):
            raise self._unbelievable(said.node_identity, "has left", domain)
        self._announcer.forget(said.node_identity)
        self._left(said.node_identity)

    def _is_signed(self, domain: str) -> bool:
        """Whether what is said of nodes in a domain is signed."""
        ring = self._keyring
        return ring is not None and ring.is_signed(domain, service.REGISTER_EXTERNAL_ROUTE.identity)

    def _unbelievable(self, peer: bytes, what: str, domain: str) -> BadSignature:
        where = f"domain {domain!r}" if domain else "no domain"
        return BadSignature(
            f"that node {readable(peer)} {what} was said in {where}, and it is known by a signature"
        )

    def _cluster_routes_requested(self, said: Any, domain: str) -> None:
        if not said.requestor_node_identity:
            self._answer(None)  # a server asks: there are others now who have not heard of this node
        elif said.requestor_node_identity != self._port.identity:
            self._answer(domain)

    def _node_routes_requested(self, said: Any, domain: str) -> None:
        if said.target_node_identity == self._port.identity:
            self._answer(domain)

    def _route_wanted(self, said: Any, domain: str) -> None:
        if said.requestor_node_identity == self._port.identity:
            return
        wanted = service.message_id(said.contract)
        matching = [
            (route, messages)
            for route, messages in self._port.registrations
            if (route.receiver == said.receiver_identity if said.receiver_identity else wanted in messages)
        ]
        self._announcer.register_in(domain, matching)

    def _reconfigured(self, said: Any, _: str) -> None:
        if not said.servers:
            raise ValueError("a new configuration without servers")
        self._servers(list(map(_place, said.servers)))

    def _leader_named(self, said: Any, _: str) -> None:
        # A kino server that is not the leader repeats nothing of what it is told: without the leader nobody hears.
        self._leader(_place(said.leader))

    _HANDLERS: ClassVar[dict[MessageId, Callable[[Discovery, Any, str], None]]] = {
        service.REGISTER_EXTERNAL_ROUTE: _registered,
        service.UNREGISTER_MESSAGE_ROUTE: _unregistered,
        service.UNREGISTER_NODE: _node_unregistered,
        service.REQUEST_CLUSTER_ROUTES: _cluster_routes_requested,
        service.REQUEST_NODE_ROUTES: _node_routes_requested,
        service.DISCOVER_MESSAGE_ROUTE: _route_wanted,
        service.RENDEZVOUS_RECONFIGURED: _reconfigured,
        service.RENDEZVOUS_NOT_LEADER: _leader_named,
    }

    # --- when it speaks up

    def _answer(self, domain: str | None) -> None:
        """Tell all in a domain, or in every one; those who ask again and again are answered together."""
        if domain in self._owed:
            return
        wait = self._answered.get(domain, -math.inf) + _PAUSE - self._loop.time()
        if wait > 0:
            self._owed.add(domain)
            self._later(wait, lambda: self._answer_now(domain))
        else:
            self._answer_now(domain)

    def _answer_now(self, domain: str | None) -> None:
        self._owed.discard(domain)
        self._answered[domain] = self._loop.time()
        if domain is None:
            self._announcer.introduce()
        elif domain in self._announcer.domains:
            self._announcer.tell_all_in(domain)

    def connected(self) -> None:
        """A server is there. It may be slow to take note of who listens, so it is told twice."""
        self._later(_SETTLING, self._announcer.introduce)
        self._later(max(2 * _SETTLING, self._settings.heartbeat / 2), self._announcer.introduce)

    def _keep_asking(self, interval: float) -> None:
        def again() -> None:
            self._announcer.introduce()
            self._later(interval, again)

        self._later(interval, again)

    def _later(self, delay: float, call: Callable[[], None]) -> None:
        def due() -> None:
            self._timers.discard(timer)
            call()

        timer = self._loop.call_later(delay, due)
        self._timers.add(timer)

    def close(self) -> None:
        """Speak up no more."""
        for timer in self._timers:
            timer.cancel()


def _is_hub(receiver: bytes) -> bool:
    return receiver[:1] == bytes([HUB])


def _place(server: Any) -> tuple[str, str]:
    place = (server.unicast_uri, server.broadcast_uri)
    if not all(map(can_connect, place)):
        raise ValueError(f"a server at {place!r}: no addresses")
    return place
