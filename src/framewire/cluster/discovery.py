"""How nodes come to know of each other: service messages through rendezvous servers, or straight to known peers.

Every node hears every service message, its own included, and forgets nothing that it can ask for again: after
each (re)connection it tells all it has and asks for all there is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import zmq
from zmq.utils.monitor import parse_monitor_message

from framewire.cluster import service
from framewire.cluster.settings import ClusterSettings, next_port
from framewire.cluster.sockets import Reader, connect, make_socket
from framewire.errors import BadSignature, UsageError, WireError
from framewire.node.transport import Port, Registration
from framewire.routing import HUB, Route
from framewire.security import KeyRing
from framewire.wire import Message, MessageId, decode, encode

__all__ = ["Discovery"]

log = logging.getLogger("framewire.cluster")

_SETTLING = 0.05
"""Seconds that a server needs to take note of a new subscription."""


class Discovery:
    """One node's part in the conversation."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        settings: ClusterSettings,
        port: Port,
        *,
        uri: str,
        health_uri: str,
        keyring: KeyRing | None,
        learned: Callable[[bytes, str, str, float], None],
        left: Callable[[bytes], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._port = port
        self._uri = uri
        self._health_uri = health_uri
        self._keyring = keyring
        self._learned = learned
        self._left = left
        self._timers: set[asyncio.TimerHandle] = set()
        self._asked: dict[tuple[MessageId, bytes], float] = {}
        self._ways = [
            make_socket(context, zmq.DEALER, SNDHWM=10_000) for _ in (*settings.rendezvous, *settings.peers)
        ]
        for way, address in zip(self._ways, (*settings.rendezvous, *settings.peers), strict=True):
            connect(way, address)
        subscriber = make_socket(context, zmq.SUB, SUBSCRIBE=b"", RCVHWM=100_000)
        events = zmq.EVENT_HANDSHAKE_SUCCEEDED
        self._monitor = Reader(subscriber.get_monitor_socket(events), self._connected, 10, 4096)
        self._monitored = subscriber
        self._subscriber = Reader(subscriber, self.hear, settings.max_frames, settings.max_message_bytes)
        for address in settings.rendezvous:
            connect(subscriber, next_port(address))
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
        for domain in self._domains():
            self._register_in(domain, registered)

    def unregister(self, registrations: Iterable[Registration]) -> None:
        """Tell of receivers that are gone."""
        registered = list(registrations)
        for domain in self._domains():
            routes = [route for route in self._routes(registered, domain) if route.contracts]
            if routes:
                message = service.service_message(
                    service.UNREGISTER_MESSAGE_ROUTE,
                    uri=self._uri,
                    node_identity=self._port.identity,
                    routes=routes,
                )
                self._say(message, [domain])

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
            frames = encode(said)
            for way in self._ways:
                try:
                    way.send_multipart(frames, zmq.NOBLOCK)
                except zmq.Again:
                    log.debug("a rendezvous server is not there; it will be told when it is")

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

    def hear(self, frames: list[bytes]) -> None:
        """Take in a service message, from a server or straight from a peer."""
        try:
            message = decode(frames)
            take = self._HANDLERS.get(message.message_id)
            if take is None:
                return
            if self._keyring is not None:
                self._keyring.verify(message, domain=message.domain)
            take(self, service.parse(message), message.domain)
        except (WireError, BadSignature, ValueError) as problem:
            log.warning("a service message is ignored: %s", problem)

    def _registered(self, said: Any, domain: str) -> None:
        if said.node_identity == self._port.identity or not said.node_identity:
            return
        self._learned(said.node_identity, said.uri, said.health.uri, service.seconds(said.health.interval))
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
            self._left(said.node_identity)

    def _cluster_routes_requested(self, said: Any, domain: str) -> None:
        if said.requestor_node_identity != self._port.identity:
            self._register_in(domain, self._port.registrations)

    def _node_routes_requested(self, said: Any, domain: str) -> None:
        if said.target_node_identity == self._port.identity:
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

    _HANDLERS: ClassVar[dict[MessageId, Callable[[Discovery, Any, str], None]]] = {
        service.REGISTER_EXTERNAL_ROUTE: _registered,
        service.UNREGISTER_MESSAGE_ROUTE: _unregistered,
        service.UNREGISTER_NODE: _node_unregistered,
        service.REQUEST_CLUSTER_ROUTES: _cluster_routes_requested,
        service.REQUEST_NODE_ROUTES: _node_routes_requested,
        service.DISCOVER_MESSAGE_ROUTE: _route_wanted,
    }

    # --- when

    def _connected(self, frames: list[bytes]) -> None:
        event = parse_monitor_message(frames)
        log.debug("connected to %s", event["endpoint"].decode(errors="replace"))
        self._later(_SETTLING, self.introduce)

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

    def close(self, linger: int) -> None:
        """Hear and say no more, once what was said is out."""
        for timer in self._timers:
            timer.cancel()
        self._monitored.disable_monitor()
        self._monitor.close()
        self._subscriber.close()
        for way in self._ways:
            way.close(linger)


def _contract(message: MessageId) -> Any:
    return service.body(
        "MessageContract", version=message.version, identity=message.identity, partition=message.partition
    )


def _message_id(contract: Any) -> MessageId:
    return MessageId(contract.identity, contract.version, contract.partition)
