"""A node that joins a cluster only to look: who is there, what they handle, and how they are.

It asks by framewire's own messages, under the same rules as everyone: it sees the domains that it has keys of.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import dataclass
from time import perf_counter as clock  # the loop's own clock may count in milliseconds
from types import TracebackType
from typing import Any, ClassVar, Self

from framewire.cluster import Node
from framewire.cluster.addresses import any_port
from framewire.cluster.route_requests import ExternalRoutes, NodeRoutes, RequestExternalRoutes
from framewire.config import Configuration
from framewire.errors import ConfigError, FramewireError, MessageError
from framewire.node import MessageHub, NodeInfo, NodeStats
from framewire.node.payloads import type_of
from framewire.node.reports import FlowInfo, FlowSteps, Ping, Pong, StepStats
from framewire.wire import MessageId
from framewire.wire.message import readable

__all__ = ["NoClusterError", "Observer", "Seen", "Step"]

_NAME = b"framewire-cli-"
_QUIET = 0.4
"""Seconds without news after which all who are there have been heard of."""
_LOOK = 0.05
_PATIENCE = 1.0
"""Seconds for a node to tell whom it knows."""
_OURS = b"FRAMEWIRE."
_NODE_INFO, _FLOW_INFO = type_of(NodeInfo).message_id, type_of(FlowInfo).message_id


_SILENT = "does not answer: others know it, but its event loop stands still, or it has just gone"
_NO_PEER = "not asked: only others know it, and without a rendezvous server it must be named with --peer"


class NoClusterError(FramewireError):
    """Nobody was found."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Another node: where it is, what it handles, and what it said of itself, or why it did not."""

    identity: bytes
    uri: str
    handles: tuple[MessageId, ...]
    stats: NodeStats | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        """Its identity, as a person would want to see it."""
        return readable(self.identity)

    @property
    def is_kino(self) -> bool:
        """Return whether it has announced none of framewire's own messages.

        A framewire node looks like that, too, where those are in a domain that the observer has no key of.
        """
        return not any(message.identity.startswith(_OURS) for message in self.handles)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a traced message, on which node, and when on the observer's clock."""

    node: str
    at: float
    told: StepStats


class _ObservingNode(Node):
    """A node whose identity is made up for it."""

    _identity_is_unique: ClassVar[bool] = True


class Observer:
    """Looks at the cluster that a configuration names; ``wait`` is after how long nobody is taken to be there."""

    def __init__(self, config: Configuration, *, wait: float = 5.0, timeout: float = 5.0) -> None:
        options = config.told("cluster")
        self._places = [*_places(options.get("rendezvous", ())), *options.get("peers", ())]
        if not self._places:
            missing = "missing; say where the cluster is, with --rendezvous or --peer"
            raise ConfigError("configuration", [f"cluster.rendezvous or cluster.peers: {missing}"])
        # What listens at those addresses is the node that the file is for; this one needs others.
        for name in ("bind", "health", "advertise", "advertise_health"):
            if name in options and not config.origin(f"cluster.{name}").startswith("-"):
                options[name] = "ipc://*" if options[name].startswith("ipc:") else any_port(options[name])
        self._why_unheard = _SILENT if "rendezvous" in options else _NO_PEER
        self._wait = wait
        self.timeout = timeout
        # A broken cluster must not keep a person who looks at it from leaving.
        self.node = _ObservingNode(
            identity=_NAME + f"{os.getpid()}-{secrets.token_hex(4)}".encode(),
            keyring=config.keyring(),
            signals=False,
            stop_timeout=0,
            timeout=timeout,
            **options,
        )

    @property
    def hub(self) -> MessageHub:
        return self.node.hub

    async def __aenter__(self) -> Self:
        await self.node.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.node.stop()

    async def find(self) -> list[Seen]:
        """Everyone who is there, once nobody else comes forward; ``NoClusterError`` if that is nobody."""
        began = changed = clock()
        known: list[Seen] = []
        while True:
            found = await self.known()
            if found != known:
                known, changed = found, clock()
            if known and (clock() - changed >= _QUIET or clock() - began >= self._wait):
                return await self.everyone()
            if clock() - began >= self._wait:
                raise NoClusterError(
                    f"no node was found through {', '.join(self._places)} in {self._wait:g} s. Is that where the "
                    f"cluster is, does it run, and may nodes there connect to {self.node.uri}?"
                )
            await asyncio.sleep(_LOOK)

    async def known(self) -> list[Seen]:
        """Everyone who is known now, those who only look apart."""
        found = await self._routes(self.node.identity)
        return sorted(map(_seen, found), key=lambda seen: seen.identity)

    async def everyone(self) -> list[Seen]:
        """The same, and those whom only others know: a node that stands still introduces itself to nobody."""
        known = await self.known()
        answers = await asyncio.gather(*(self._routes(node.identity) for node in known))
        names = {node.identity for node in known}
        missing = {told.node: told for found in answers for told in found if told.node not in names}
        silent = [_without(_seen(told), self._why_unheard) for told in missing.values()]
        return sorted([*known, *silent], key=lambda seen: seen.identity)

    async def _routes(self, node: bytes) -> list[NodeRoutes]:
        """The nodes that a node knows, those who only look apart."""
        try:
            asked = RequestExternalRoutes()
            found = await self.hub.ask(asked, ExternalRoutes, to_node=node, timeout=min(self.timeout, _PATIENCE))
        except MessageError:
            return []
        return [known for known in found.nodes if not known.node.startswith(_NAME)]

    async def look(self, nodes: list[Seen], *, pending: int = 0, letters: int = 0) -> list[Seen]:
        """The same nodes with what they say of themselves."""
        return list(await asyncio.gather(*(self._look(node, NodeInfo(pending, letters)) for node in nodes)))

    async def _look(self, node: Seen, question: NodeInfo) -> Seen:
        if node.problem:
            return node
        if _NODE_INFO not in node.handles:
            return _without(node, "does not tell: it is no framewire node, or its domain is not ours")
        try:
            stats = await self.hub.ask(question, NodeStats, to_node=node.identity, timeout=self.timeout)
        except MessageError as problem:
            return _without(node, f"{type(problem).__name__}: {problem.detail}")
        return Seen(node.identity, node.uri, node.handles, stats)

    async def steps(self, nodes: list[Seen], flow: bytes) -> list[Step]:
        """What this node and others remember of a traced flow, in the order of time as far as that can be told."""
        asked = [self.node.identity, *(node.identity for node in nodes if _FLOW_INFO in node.handles)]
        found = await asyncio.gather(*(self._steps(node, flow) for node in asked))
        return sorted((step for steps in found for step in steps), key=lambda step: step.at)

    async def _steps(self, node: bytes, flow: bytes) -> list[Step]:
        began = clock()
        try:
            told = await self.hub.ask(FlowInfo(flow), FlowSteps, to_node=node, timeout=self.timeout)
        except MessageError:
            return []
        # The answer tells how long ago each step was when it was given: about half way between question and answer.
        then = (began + clock()) / 2
        return [Step(told.node, then - each.age, each) for each in told.steps]

    async def ping(self, node: Seen) -> float:
        """Seconds that a question to a node's event loop and the answer take."""
        began = clock()
        await self.hub.ask(Ping(), Pong, to_node=node.identity, timeout=self.timeout)
        return clock() - began


def _without(node: Seen, problem: str) -> Seen:
    return Seen(node.identity, node.uri, node.handles, None, problem)


def _seen(known: NodeRoutes) -> Seen:
    return Seen(known.node, known.uri, tuple(sorted((each.message for each in known.messages), key=str)))


def _places(servers: Any) -> list[str]:
    return [server if isinstance(server, str) else server[0] for server in servers]
