"""What a node knows of routes, for whoever asks by message: kino's three questions, and our answers to them.

As in kino, the actor that answers is not announced: a hub that names no node asks its own node, and another node is
asked by its identity, be it framewire's or kino's:

    found = await node.hub.ask(RequestExternalRoutes(), ExternalRoutes, to_node=identity)
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

import msgspec

from framewire.cluster import service
from framewire.errors import UsageError
from framewire.node import Actor, Context, handles
from framewire.node.payloads import declare
from framewire.routing import HUB, Route, RoutingTable
from framewire.wire import MessageId

__all__ = [
    "ExternalRoutes",
    "Handled",
    "Hub",
    "InternalRoutes",
    "Kind",
    "MessageRoutes",
    "NodeActors",
    "NodeRoutes",
    "RequestExternalRoutes",
    "RequestInternalRoutes",
    "RequestMessageRoutes",
    "RouteRequests",
]

T = TypeVar("T", bound=type)

log = logging.getLogger("framewire.cluster")

_MAX_TOLD = 10_000
"""Nodes, receivers and messages in one answer: writing more takes too long, and strangers can announce them."""
_SLICE = 500
"""Of these that are gathered before others on the event loop have their turn."""


def _as(message: MessageId) -> Callable[[T], T]:
    """Let a class travel as the service message of this id, in fields that it writes and reads itself."""

    def declared(cls: Any) -> Any:
        kind = service.kind(message)
        declare(
            cls,
            message,
            "protobuf",
            lambda value: service.body(message, **value.written()).SerializeToString(),
            lambda raw: cls.read(kind.FromString(raw)),
        )
        return cls

    return declared


class Kind(enum.IntEnum):
    """Which routes are asked for: of receivers on the node that is asked, of those on others, or both."""

    ALL = 0
    INTERNAL = 1
    EXTERNAL = 2


class NodeActors(msgspec.Struct, frozen=True):
    """The actors of one node that handle a message."""

    node: bytes
    actors: tuple[bytes, ...] = ()


class Handled(msgspec.Struct, frozen=True):
    """A message, and the actors that handle it."""

    message: MessageId
    actors: tuple[bytes, ...] = ()


class Hub(msgspec.Struct, frozen=True):
    """A message hub; others are not told of a local one."""

    identity: bytes
    local: bool = False


class NodeRoutes(msgspec.Struct, frozen=True):
    """Another node, where it is reached, and what it has."""

    node: bytes
    uri: str
    hubs: tuple[bytes, ...] = ()
    messages: tuple[Handled, ...] = ()


@_as(service.REQUEST_MESSAGE_ROUTES)
class RequestMessageRoutes(msgspec.Struct, frozen=True):
    """Asks who handles a message, as far as the node that is asked knows."""

    message: MessageId
    kind: Kind = Kind.ALL

    def written(self) -> dict[str, Any]:
        numbered = {"kind": int(self.kind)} if self.kind else {}
        return {"contract": service.contract(self.message), **numbered}

    @classmethod
    def read(cls, said: Any) -> RequestMessageRoutes:
        return cls(service.message_id(said.contract), Kind(said.kind))


@_as(service.MESSAGE_ROUTES)
class MessageRoutes(msgspec.Struct, frozen=True):
    """Who handles a message: on other nodes, and on the one that answers."""

    message: MessageId
    external: tuple[NodeActors, ...] = ()
    internal: NodeActors | None = None

    def written(self) -> dict[str, Any]:
        here = {} if self.internal is None else {"internal": _node_actors(self.internal)}
        return {
            "contract": service.contract(self.message),
            "external": [_node_actors(there) for there in self.external],
            **here,
        }

    @classmethod
    def read(cls, said: Any) -> MessageRoutes:
        here = NodeActors(said.internal.node, tuple(said.internal.actors)) if said.HasField("internal") else None
        there = tuple(NodeActors(found.node, tuple(found.actors)) for found in said.external)
        return cls(service.message_id(said.contract), there, here)


class _Question(msgspec.Struct, frozen=True):
    def written(self) -> dict[str, Any]:
        return {}

    @classmethod
    def read(cls, _: Any) -> Any:
        return cls()


@_as(service.REQUEST_EXTERNAL_ROUTES)
class RequestExternalRoutes(_Question, frozen=True):
    """Asks which other nodes the one that is asked knows, and what they have."""


@_as(service.EXTERNAL_ROUTES)
class ExternalRoutes(msgspec.Struct, frozen=True):
    """The other nodes that the one that answers knows."""

    nodes: tuple[NodeRoutes, ...] = ()

    def written(self) -> dict[str, Any]:
        return {
            "nodes": [
                service.body(
                    "NodeRoutes",
                    node=known.node,
                    uri=known.uri,
                    hubs=known.hubs,
                    messages=_message_actors(known.messages),
                )
                for known in self.nodes
            ]
        }

    @classmethod
    def read(cls, said: Any) -> ExternalRoutes:
        return cls(
            tuple(
                NodeRoutes(known.node, known.uri, tuple(known.hubs), _handled(known.messages))
                for known in said.nodes
            )
        )


@_as(service.REQUEST_INTERNAL_ROUTES)
class RequestInternalRoutes(_Question, frozen=True):
    """Asks for the hubs and actors of the node that is asked."""


@_as(service.INTERNAL_ROUTES)
class InternalRoutes(msgspec.Struct, frozen=True):
    """The hubs and actors of the node that answers, local ones included."""

    hubs: tuple[Hub, ...] = ()
    messages: tuple[Handled, ...] = ()

    def written(self) -> dict[str, Any]:
        hubs = [
            service.body("Hub", identity=hub.identity, **({"local": True} if hub.local else {}))
            for hub in self.hubs
        ]
        return {"hubs": hubs, "messages": _message_actors(self.messages)}

    @classmethod
    def read(cls, said: Any) -> InternalRoutes:
        return cls(tuple(Hub(hub.identity, hub.local) for hub in said.hubs), _handled(said.messages))


def _node_actors(found: NodeActors) -> Any:
    return service.body("NodeActors", node=found.node, actors=found.actors)


def _message_actors(handled: tuple[Handled, ...]) -> list[Any]:
    return [
        service.body("MessageActors", contract=service.contract(one.message), actors=one.actors) for one in handled
    ]


def _handled(said: Any) -> tuple[Handled, ...]:
    return tuple(Handled(service.message_id(one.contract), tuple(one.actors)) for one in said)


class RouteRequests(Actor):
    """The actor on every node of a cluster that answers them; it is to be hosted as a local one."""

    def __init__(
        self, table: RoutingTable, announced: Callable[[], Collection[Route]], uri_of: Callable[[bytes], str]
    ) -> None:
        self._table = table
        self._announced = announced
        self._uri_of = uri_of

    @handles(RequestMessageRoutes, inline=True)
    def message_routes(self, asked: RequestMessageRoutes, ctx: Context) -> MessageRoutes:
        _check_asked(ctx)
        actors: dict[bytes, list[bytes]] = {}
        for route in (*self._table.all_here(asked.message), *islice(self._away(asked.message), _MAX_TOLD)):
            actors.setdefault(route.node, []).append(route.receiver)
        here = actors.pop(b"", None)
        internal = here is not None and asked.kind != Kind.EXTERNAL
        return MessageRoutes(
            asked.message,
            ()
            if asked.kind == Kind.INTERNAL
            else tuple(NodeActors(node, tuple(receivers)) for node, receivers in actors.items()),
            NodeActors(self.node.identity, tuple(here)) if internal and here is not None else None,
        )

    def _away(self, message: MessageId) -> Iterator[Route]:
        return (route for route in self._table.all(message) if route.node)

    @handles(RequestExternalRoutes)
    async def external_routes(self, _: RequestExternalRoutes, ctx: Context) -> ExternalRoutes:
        _check_asked(ctx)
        found: list[NodeRoutes] = []
        room, pause = _MAX_TOLD, _MAX_TOLD - _SLICE
        for node in self._table.nodes:
            room -= 1
            has: dict[Route, Collection[MessageId]] = {}
            for route in self._table.receivers_of(node):
                if room <= 0:
                    break
                has[route] = tuple(islice(self._table.handled_by(route), room))
                room -= 1 + len(has[route])
                if room < pause:
                    pause = room - _SLICE
                    await asyncio.sleep(0)
            if self._table.knows_node(node):
                hubs = tuple(map(_receiver, filter(_is_hub, has)))
                found.append(NodeRoutes(node, self._uri_of(node), hubs, _by_message(has)))
            if room <= 0:
                log.debug("asked for all routes: only the first %d are told", _MAX_TOLD)
                break
            if room < pause:
                pause = room - _SLICE
                await asyncio.sleep(0)
        return ExternalRoutes(tuple(found))

    @handles(RequestInternalRoutes, inline=True)
    def internal_routes(self, _: RequestInternalRoutes, ctx: Context) -> InternalRoutes:
        _check_asked(ctx)
        here = {route: self._table.handled_by(route) for route in self._table.receivers_of(b"")}
        announced = self._announced()
        return InternalRoutes(
            tuple(Hub(route.receiver, route not in announced) for route in here if _is_hub(route)),
            _by_message(here),
        )


def _check_asked(ctx: Context) -> None:
    """Raise ``UsageError`` where another node asks no node in particular: its own should have answered."""
    if ctx.source and not ctx.message.receiver_node_identity:
        raise UsageError(f"{ctx.message_id} is asked of one node: name it, with to_node=")


def _receiver(route: Route) -> bytes:
    return route.receiver


def _is_hub(route: Route) -> bool:
    return route.receiver[:1] == bytes([HUB])


def _by_message(routes: Mapping[Route, Collection[MessageId]]) -> tuple[Handled, ...]:
    actors: dict[MessageId, list[bytes]] = {}
    for route, handled in routes.items():
        for message in sorted(handled, key=str):
            actors.setdefault(message, []).append(route.receiver)
    return tuple(Handled(message, tuple(receivers)) for message, receivers in actors.items())
