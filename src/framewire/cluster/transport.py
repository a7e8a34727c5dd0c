"""A node's connection to other nodes over ZeroMQ, filling the seam in ``framewire.node.transport``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import zmq

from framewire.cluster import service
from framewire.cluster.discovery import Discovery
from framewire.cluster.links import Links
from framewire.cluster.liveness import Liveness
from framewire.cluster.settings import ClusterSettings, candidates, reachable
from framewire.cluster.sockets import Reader, bind_first, make_socket
from framewire.errors import NodeStopped
from framewire.node.mailbox import Room
from framewire.node.transport import Port, Registration
from framewire.security import KeyRing
from framewire.wire import MessageId

__all__ = ["SocketTransport"]

log = logging.getLogger("framewire.cluster")

_LINGER = 1000
"""Milliseconds that closing waits for what was sent to be on its way."""

_SERVICE = frozenset(
    message.identity
    for message in (
        service.REGISTER_EXTERNAL_ROUTE,
        service.UNREGISTER_MESSAGE_ROUTE,
        service.UNREGISTER_NODE,
        service.REQUEST_CLUSTER_ROUTES,
        service.REQUEST_NODE_ROUTES,
        service.DISCOVER_MESSAGE_ROUTE,
        service.PING,
    )
)
"""What is not routed but heard, also where it comes straight from a peer."""


class SocketTransport:
    """Sockets, discovery and liveness of one node."""

    def __init__(self, settings: ClusterSettings, keyring: KeyRing | None = None) -> None:
        self._settings = settings
        self._keyring = keyring
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self.uri = ""

    async def start(self, port: Port) -> None:
        settings = self._settings
        self._port = port
        self._loop = asyncio.get_running_loop()
        self._context = context = zmq.Context()
        front = make_socket(
            context,
            zmq.ROUTER,
            ROUTING_ID=port.identity,
            ROUTER_MANDATORY=1,
            RCVHWM=10_000,
            MAXMSGSIZE=settings.max_message_bytes,
        )
        try:
            bound = bind_first(front, candidates(settings.bind))
        except BaseException:
            front.close(0)
            context.term()
            raise
        self.uri = reachable(bound, settings.advertise)
        self._front = Reader(front, self._take, settings.max_frames, settings.max_message_bytes)
        self._links = Links(context, settings, lost=self._lost, undelivered=port.undelivered)
        self._liveness = Liveness(
            context,
            settings,
            port.identity,
            [_any_port(bound)],
            lost=lambda peer: self._loop.call_soon_threadsafe(self._lost, peer),
            found=lambda peer: self._loop.call_soon_threadsafe(self._found, peer),
        )
        health_uri = reachable(self._liveness.uri, _any_port(settings.advertise) if settings.advertise else None)
        self._discovery = Discovery(
            context,
            settings,
            port,
            uri=self.uri,
            health_uri=health_uri,
            keyring=self._keyring,
            learned=self._learned,
            left=self._left,
        )
        self._liveness.start()
        self._discovery.introduce()

    def send(self, peer: bytes, frames: list[bytes]) -> Room | None:
        if self._context is None:
            raise NodeStopped("this node is not connected")
        return self._links.send(peer, frames)

    def announce(self, registrations: Iterable[Registration]) -> None:
        if self._context is not None:
            self._discovery.register(registrations)

    def withdraw(self, registrations: Iterable[Registration]) -> None:
        if self._context is not None:
            self._discovery.unregister(registrations)

    def discover(self, message: MessageId, receiver: bytes) -> None:
        if self._context is not None:
            self._discovery.discover(message, receiver)

    async def stop(self) -> None:
        context, self._context = self._context, None
        if context is None:
            return
        self._discovery.leave()
        self._front.close()
        self._liveness.stop()
        self._links.close(_LINGER)
        self._discovery.close(_LINGER)
        await asyncio.to_thread(context.term)

    def _take(self, frames: list[bytes]) -> None:
        if len(frames) > 6 and frames[-6] in _SERVICE:
            self._discovery.hear(frames)
        else:
            self._port.receive(frames[0], frames)

    def _learned(self, peer: bytes, uri: str, health_uri: str, interval: float) -> None:
        self._links.learn(peer, uri)
        if health_uri:
            self._liveness.watch(peer, health_uri, interval)

    def _left(self, peer: bytes) -> None:
        self._liveness.ignore(peer)
        self._gone(peer, "it has left")

    def _lost(self, peer: bytes) -> None:
        if self._context is not None:
            log.warning("node %s is gone", peer.decode(errors="replace"))
            self._gone(peer, "it gives no sign of life")

    def _found(self, peer: bytes) -> None:
        if self._context is not None:
            self._discovery.ask_node(peer)

    def _gone(self, peer: bytes, why: str) -> None:
        self._links.forget(peer, why)
        self._port.peer_lost(peer)


def _any_port(uri: str) -> str:
    head, _, port = uri.rpartition(":")
    return f"{head}:*" if port.isdigit() else (uri if port == "*" else f"{uri}.health")
