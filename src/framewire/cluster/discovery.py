"""How nodes come to know of each other: service messages through rendezvous servers, or straight to known peers.

Every node hears every service message, its own included. Nothing is confirmed, so after each (re)connection a node
tells all that it has and asks for all that there is, and it answers the same question of others with what it has
and with what it has no longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from framewire.cluster import service
from framewire.cluster.addresses import can_connect
from framewire.cluster.settings import ClusterSettings
from framewire.errors import BadSignature, MessageError, UsageError, WireError
from framewire.node.transport import Port, Registration
from framewire.routing import HUB, Route
from framewire.security import KeyRing
from framewire.wire import Message, MessageId, decode, encode
from framewire.wire.message import readable

__all__ = ["Discovery"]

log = logging.getLogger("framewire.cluster")

_SETTLING = 0.05
"""Seconds that a server needs to take note of a new subscription."""
_REMEMBERED = 1000
"""Receivers that are gone, of which others are told when they ask."""


class Discovery:
    """One node's part in the conversation."""

    def __init__(
        self,
        settings: ClusterSettings,
        port: Port,
        *,
        uri: str,
        health_uri: str,
        keyring: KeyRing | None,
        say: Callable[[list[bytes]], None],
        send: Callable[[bytes, list[bytes]], object],
        learned: Callable[[bytes, str, str, float], None],
        left: Callable[[bytes], None],
        servers: Callable[[list[tuple[str, str]]], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._port = port
        self._uri = uri
        self._health_uri = health_uri
        self._keyring = keyring
        self._say_to_all = say
        self._send = send
        self._learned = learned
        self._left = left
        self._servers = servers
        self._straight: set[bytes] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._asked: dict[tuple[MessageId, bytes], float] = {}
        self._withdrawn: dict[Route, tuple[MessageId, ...]] = {}
        if settings.peers:
            self._keep_asking(settings.heartbeat)
        self._keep_asking(settings.rediscover)

    # --- what this node says

    def introduce(self) -> None:
        """Tell all that this node has, and ask for all that there is."""
        self.register(self._port.registrations)
        self._say(
            service.service_message(
                service.REQUEST_CLUSTER_ROUTES,
                requestor_uri=self._uri,
                requestor_node_identity=self._port.identity,
            ),
            self._domains(),
        )

    def register(self, registrations: Iterable[Registration]) -> None:
        """Tell of receivers."""
        registered = list(registrations)
        for route, _ in registered:
            self._withdrawn.pop(route, None)
        for domain in self._domains():
            self._register_in(domain, registered)

    def unregister(self, registrations: Iterable[Registration]) -> None:
        """Tell of receivers that are gone."""
        gone = list(registrations)
        self._withdrawn |= dict(gone)
        for forgotten in tuple(self._withdrawn)[: len(self._withdrawn) - _REMEMBERED]:
            del self._withdrawn[forgotten]
        for domain in self._domains():
            self._unregister_in(domain, gone)

    def discover(self, message: MessageId, receiver: bytes) -> None:
        """Ask who handles a message, or where a hub is; the same question not more than once a heartbeat."""
        now = self._loop.time()
        last = self._asked.get((message, receiver))
        if last is not None and now - last < self._settings.heartbeat / 2:
            return
        if len(self._asked) > 10_000:
            self._asked.clear()
        self._asked[message, receiver] = now
        question: dict[str, Any] = {
            "requestor_node_identity": self._port.identity,
            "requestor_uri": self._uri,
            "contract": _contract(message),
        }
        hub = bool(receiver) and receiver[0] == HUB
        if hub:
            question["receiver_identity"] = receiver
        domains = self._domains() if hub or self._keyring is None else [self._keyring.domain_of(message.identity)]
        self._say(service.service_message(service.DISCOVER_MESSAGE_ROUTE, **question), domains)

    def ask_node(self, identity: bytes) -> None:
        """Ask one node to tell what it has."""
        self._say(
            service.service_message(service.REQUEST_NODE_ROUTES, target_uri="", target_node_identity=identity),
            self._domains(),
        )

    def leave(self) -> None:
        """Take leave of everyone."""
        message = service.service_message(service.UNREGISTER_NODE, uri=self._uri, node_identity=self._port.identity)
        self._say(message, self._domains())

    def _say(self, message: Message, domains: Iterable[str]) -> None:
        for domain in domains:
            try:
                said = message if self._keyring is None else self._keyring.sign(message, domain=domain)
            except UsageError as problem:
                log.warning("not announced: %s", problem)
                continue
            frames = encode(said, self._settings.wire_version)
            self._say_to_all(frames)
            for peer in self._straight:
                with contextlib.suppress(MessageError):  # gone, or too slow; it will ask again
                    self._send(peer, list(frames))

    def _domains(self) -> list[str]:
        """The domains that this node speaks in; without keys there is only the nameless one."""
        return [""] if self._keyring is None else ["", *sorted(self._keyring.domains)]

    def _routes(self, registrations: Iterable[Registration], domain: str) -> Iterator[Any]:
        for route, messages in registrations:
            ours = [message for message in messages if self._domain_of(message) == domain]
            if ours or not messages:
                contracts = [_contract(message) for message in ours]
                yield service.body("RouteRegistration", receiver_identity=route.receiver, contracts=contracts)

    def _domain_of(self, message: MessageId) -> str:
        return "" if self._keyring is None else self._keyring.domain_of(message.identity)

    # --- what it hears

    def hear(self, frames: list[bytes], *, straight: bool = False) -> bytes:
        """Take in a service message; who it was that told of itself.

        To a peer from which it came straight, and not through a server, answers go the same way.
        """
        try:
            message = decode(frames)
            take = self._HANDLERS.get(message.message_id)
            if take is None or message.domain not in self._domains():
                return b""
            if self._keyring is not None:
                self._keyring.verify(message, domain=message.domain)
            said = service.parse(message)
            take(self, said, message.domain)
        except (WireError, BadSignature, ValueError) as problem:
            log.warning("a service message is ignored: %s", problem)
            return b""
        if message.message_id != service.REGISTER_EXTERNAL_ROUTE or said.node_identity == self._port.identity:
            return b""
        speaker: bytes = said.node_identity
        if straight:
            self._straight.add(speaker)
        return speaker

    def _registered(self, said: Any, domain: str) -> None:
        if said.node_identity == self._port.identity:
            return
        if not said.node_identity or said.node_identity[0] == 0 or len(said.node_identity) > 255:
            raise ValueError(f"{said.node_identity!r} is no identity of a node")
        health, interval = said.health.uri, service.seconds(said.health.interval)
        if not (can_connect(said.uri) and (can_connect(health) or not health)):
            raise ValueError(f"node {readable(said.node_identity)} is at {said.uri!r} and {health!r}: no addresses")
        self._learned(said.node_identity, said.uri, health, interval)
        self._port.peer_registered(said.node_identity, self._understood(said, domain))

    def _unregistered(self, said: Any, domain: str) -> None:
        if said.node_identity != self._port.identity:
            self._port.peer_unregistered(said.node_identity, self._understood(said, domain))

    def _understood(self, said: Any, domain: str) -> list[Registration]:
        found: list[Registration] = []
        for route in said.routes:
            contracts = tuple(_message_id(contract) for contract in route.contracts)
            ours = tuple(message for message in contracts if self._domain_of(message) == domain)
            if ours or not contracts:
                found.append((Route(route.receiver_identity), ours))
        return found

    def _node_unregistered(self, said: Any, _: str) -> None:
        if said.node_identity != self._port.identity:
            self.forget(said.node_identity)
            self._left(said.node_identity)

    def forget(self, peer: bytes) -> None:
        """Say nothing more to a peer that is gone."""
        self._straight.discard(peer)

    def _cluster_routes_requested(self, said: Any, domain: str) -> None:
        if not said.requestor_node_identity:
            self.introduce()  # a server asks, because there are others now who have not heard of this node
        elif said.requestor_node_identity != self._port.identity:
            self._tell_all_in(domain)

    def _node_routes_requested(self, said: Any, domain: str) -> None:
        if said.target_node_identity == self._port.identity:
            self._tell_all_in(domain)

    def _tell_all_in(self, domain: str) -> None:
        self._unregister_in(domain, self._withdrawn.items())
        self._register_in(domain, self._port.registrations)

    def _route_wanted(self, said: Any, domain: str) -> None:
        if said.requestor_node_identity == self._port.identity:
            return
        wanted = _message_id(said.contract)
        matching = [
            (route, messages)
            for route, messages in self._port.registrations
            if (route.receiver == said.receiver_identity if said.receiver_identity else wanted in messages)
        ]
        self._register_in(domain, matching)

    def _register_in(self, domain: str, registrations: Iterable[Registration]) -> None:
        routes = list(self._routes(registrations, domain))
        if routes:
            health = service.body(
                "Health", uri=self._health_uri, interval=service.time_span(self._settings.heartbeat)
            )
            message = service.service_message(
                service.REGISTER_EXTERNAL_ROUTE,
                uri=self._uri,
                node_identity=self._port.identity,
                routes=routes,
                health=health,
            )
            self._say(message, [domain])

    def _unregister_in(self, domain: str, registrations: Iterable[Registration]) -> None:
        routes = [route for route in self._routes(registrations, domain) if route.contracts]
        if routes:
            message = service.service_message(
                service.UNREGISTER_MESSAGE_ROUTE, uri=self._uri, node_identity=self._port.identity, routes=routes
            )
            self._say(message, [domain])

    def _reconfigured(self, said: Any, _: str) -> None:
        places = [(server.unicast_uri, server.broadcast_uri) for server in said.servers]
        if not places or not all(can_connect(uri) for place in places for uri in place):
            raise ValueError(f"servers at {places!r}: no addresses")
        self._servers(places)

    _HANDLERS: ClassVar[dict[MessageId, Callable[[Discovery, Any, str], None]]] = {
        service.REGISTER_EXTERNAL_ROUTE: _registered,
        service.UNREGISTER_MESSAGE_ROUTE: _unregistered,
        service.UNREGISTER_NODE: _node_unregistered,
        service.REQUEST_CLUSTER_ROUTES: _cluster_routes_requested,
        service.REQUEST_NODE_ROUTES: _node_routes_requested,
        service.DISCOVER_MESSAGE_ROUTE: _route_wanted,
        service.RENDEZVOUS_RECONFIGURED: _reconfigured,
    }

    # --- when

    def connected(self) -> None:
        """A server is there. It may be slow to take note of who listens, so it is told twice."""
        self._later(_SETTLING, self.introduce)
        self._later(max(2 * _SETTLING, self._settings.heartbeat / 2), self.introduce)

    def _keep_asking(self, interval: float) -> None:
        def again() -> None:
            self.introduce()
            self._later(interval, again)

        self._later(interval, again)

    def _later(self, delay: float, call: Callable[[], None]) -> None:
        def due() -> None:
            self._timers.discard(timer)
            call()

        timer = self._loop.call_later(delay, due)
        self._timers.add(timer)

    def close(self) -> None:
        """Ask nobody any more."""
        for timer in self._timers:
            timer.cancel()


def _contract(message: MessageId) -> Any:
    return service.body(
        "MessageContract", version=message.version, identity=message.identity, partition=message.partition
    )


def _message_id(contract: Any) -> MessageId:
    return MessageId(contract.identity, contract.version, contract.partition)
