"""The routing decision: which receivers a message goes to, from what the message says and the table knows."""

from __future__ import annotations

from framewire.routing.table import Route, RoutingTable
from framewire.wire import Distribution, MessageId

__all__ = ["HUB", "routes_for"]

HUB = 0
"""The first byte of a message hub's identity; an actor's is 1."""


def routes_for(
    table: RoutingTable,
    here: bytes,
    message: MessageId,
    distribution: Distribution,
    receiver: bytes,
    receiver_node: bytes,
    *,
    from_network: bool,
) -> tuple[Route, ...]:
    """The routes that a message takes from this node; none where it cannot be routed.

    A route to another node may have an empty receiver: that node then decides.
    """
    broadcast = distribution == Distribution.BROADCAST
    if receiver_node and receiver_node != here:
        there = Route(b"" if broadcast else receiver, receiver_node)
        return (there,) if table.knows_node(receiver_node) else ()
    if broadcast:
        return _broadcast(table, message, here_only=from_network or bool(receiver_node))
    if receiver:
        return _addressed(table, message, receiver, here_only=bool(receiver_node))
    if receiver_node:
        return _one(table.next_here(message))
    if from_network:
        return _one(table.next_here(message) or table.next(message))
    return _one(table.next(message))


def _addressed(table: RoutingTable, message: MessageId, receiver: bytes, *, here_only: bool) -> tuple[Route, ...]:
    route = table.find(receiver)
    if route is None or (here_only and route.node):
        return ()
    # A hub takes whatever is addressed to it; an actor only what it handles.
    if receiver[0] == HUB or table.handles(route, message):
        return (route,)
    return ()


def _broadcast(table: RoutingTable, message: MessageId, *, here_only: bool) -> tuple[Route, ...]:
    routes = list(table.all_here(message))
    if not here_only:
        nodes = {route.node: None for route in table.all(message) if route.node}
        routes += [Route(b"", node) for node in nodes]
    return tuple(routes)


def _one(route: Route | None) -> tuple[Route, ...]:
    return () if route is None else (route,)
