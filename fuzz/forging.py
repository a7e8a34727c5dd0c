"""Service messages that no honest node would write: announcements, farewells and heartbeats in any name."""

from __future__ import annotations

from collections.abc import Iterable

from framewire.cluster import service
from framewire.wire import Message, MessageId, encode

__all__ = [
    "announcement",
    "asks_for_routes",
    "farewell",
    "heartbeat",
    "leader",
    "question",
    "reconfiguration",
    "withdrawal",
]

Frames = list[bytes]


def announcement(
    node: bytes,
    uri: str,
    *,
    health: str = "",
    interval: float = 1.0,
    routes: Iterable[tuple[bytes, Iterable[bytes]]] = (),
) -> Frames:
    """Return a KINO.REGEXTROUTE: a node at an address, with receivers and what each handles."""
    return encode(
        service.service_message(
            service.REGISTER_EXTERNAL_ROUTE,
            uri=uri,
            node_identity=node,
            routes=_routes(routes),
            health=service.body("Health", uri=health, interval=service.time_span(interval)),
        )
    )


def withdrawal(node: bytes, uri: str, routes: Iterable[tuple[bytes, Iterable[bytes]]]) -> Frames:
    """Return a KINO.UNREGMSGROUTE."""
    return encode(
        service.service_message(
            service.UNREGISTER_MESSAGE_ROUTE, uri=uri, node_identity=node, routes=_routes(routes)
        )
    )


def farewell(node: bytes, uri: str) -> Frames:
    """Return a KINO.UNREGNODE."""
    return encode(service.service_message(service.UNREGISTER_NODE, uri=uri, node_identity=node))


def heartbeat(node: bytes, health: str, interval: float) -> Frames:
    """Return a KINO.HEARTBEAT."""
    return encode(
        service.service_message(
            service.HEARTBEAT, interval=service.time_span(interval), socket_identity=node, health_uri=health
        )
    )


def asks_for_routes(node: bytes, uri: str, message: bytes, receiver: bytes = b"", partition: bytes = b"") -> Frames:
    """Return a KINO.DISCOVMSGROUTE."""
    return encode(
        service.service_message(
            service.DISCOVER_MESSAGE_ROUTE,
            requestor_node_identity=node,
            requestor_uri=uri,
            receiver_identity=receiver,
            contract=service.contract(MessageId(message, partition=partition)),
        )
    )


def question(message: Message) -> Frames:
    """Return any other message as a node would send it over its connection: without what a ROUTER takes off."""
    return encode(message)[1:]


def _routes(routes: Iterable[tuple[bytes, Iterable[bytes]]]) -> list[object]:
    return [
        service.body(
            "RouteRegistration",
            receiver_identity=receiver,
            contracts=[service.contract(MessageId(message)) for message in messages],
        )
        for receiver, messages in routes
    ]


def leader(uri: str) -> Frames:
    """Return a KINO.RNDZVNOTLEADER that names a server at an address."""
    return encode(service.service_message(service.RENDEZVOUS_NOT_LEADER, leader=_server(uri)))


def reconfiguration(uri: str) -> Frames:
    """Return a KINO.RNDZVRECONFIG with one server."""
    return encode(service.service_message(service.RENDEZVOUS_RECONFIGURED, servers=[_server(uri)]))


def _server(uri: str) -> object:
    return service.body("RendezvousNode", broadcast_uri=uri, unicast_uri=uri, partner_uri=uri)
