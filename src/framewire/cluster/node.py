"""The node that users make: one that can be told how to find others."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

from framewire.cluster.route_requests import RouteRequests
from framewire.cluster.settings import ClusterSettings, Server
from framewire.cluster.transport import SocketTransport
from framewire.errors import ConfigError, UsageError
from framewire.node import node
from framewire.node.clock import Clock
from framewire.node.core import Settings
from framewire.node.tap import Recorder
from framewire.node.transport import Transport
from framewire.routing import Route
from framewire.security import KeyRing

__all__ = ["Node"]

T = TypeVar("T")
_OPTIONS = frozenset(field.name for field in dataclasses.fields(ClusterSettings))


class Node(node.Node):
    """Hosts actors, and sends messages to them and to those of other nodes.

    ``Node()`` is a world of its own. ``Node(rendezvous=["tcp://host:7400"])`` is part of a cluster, and so is one
    with ``peers`` or ``bind``. Use it with ``async with``. Under ``fw.run`` SIGTERM and SIGINT stop it in good
    order; in any other program it leaves signals alone, unless ``signals=True`` has it take them. ``capture``
    records it: a directory, a URI, a ``Capture`` with options, or any ``Recorder``. Further options are those of
    ``Settings`` and ``ClusterSettings``.
    """

    _identity_is_unique: ClassVar[bool] = False
    """Whether nobody else can have an identity that it is given, so that this need not be checked."""

    def __init__(
        self,
        *,
        rendezvous: str | Iterable[Server | list[str]] = (),
        peers: str | Iterable[str] = (),
        identity: str | bytes | None = None,
        keyring: KeyRing | None = None,
        capture: Recorder | str | os.PathLike[str] | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        signals: bool | None = None,
        **options: Any,
    ) -> None:
        told = {name: options.pop(name) for name in tuple(options) if name in _OPTIONS}
        told |= {
            name: value for name, value in (("rendezvous", _many(rendezvous)), ("peers", _many(peers))) if value
        }
        settings = _checked(told, options)
        if transport is None and told:
            named = identity is not None and not self._identity_is_unique
            transport = SocketTransport(settings, keyring, check_identity=named)
            transport.refused = self._be_refused
        super().__init__(
            identity=identity,
            keyring=keyring,
            recorder=_recorder(capture),
            transport=transport,
            clock=clock,
            signals=signals,
            **options,
        )

    async def start(self) -> None:
        """Begin: needed only where ``async with`` does not fit."""
        await super().start()
        if isinstance(self._transport, SocketTransport):
            routes = RouteRequests(self._router.table, self._announced, self._transport.uri_of)
            try:
                await self.host(routes, local=True)
            except BaseException:
                await self.stop(0)
                raise

    @property
    def has_joined(self) -> bool:
        """Whether a rendezvous server was reached since the start; True where none is named."""
        return not isinstance(self._transport, SocketTransport) or self._transport.joined.is_set()

    async def joined(self) -> None:
        """Wait until a rendezvous server was reached, or the node stops; return at once where none is named."""
        if isinstance(self._transport, SocketTransport):
            await self._transport.joined.wait()

    async def serve(self) -> None:
        """Wait until the node is stopped; raise ``ConfigError`` if it was, because another has its identity."""
        await super().serve()
        if isinstance(self._transport, SocketTransport) and self._transport.refusal is not None:
            raise self._transport.refusal

    def _be_refused(self, _: ConfigError) -> None:
        self._refused = asyncio.get_running_loop().create_task(self.stop(), name="framewire stop of a refused node")

    def use_keys(self, keyring: KeyRing | None) -> None:
        super().use_keys(keyring)
        if isinstance(self._transport, SocketTransport):
            self._transport.use_keys(keyring)

    def _announced(self) -> frozenset[Route]:
        return frozenset(route for route, _ in self.port.registrations)


def _recorder(capture: Recorder | str | os.PathLike[str] | None) -> Recorder | None:
    if isinstance(capture, str | os.PathLike):
        from framewire.capture import Capture  # noqa: PLC0415 - only needed where something is recorded

        return Capture(capture)
    if capture is not None and not callable(getattr(capture, "record", None)):
        raise UsageError(f"capture: {capture!r} is neither a directory, nor a URI, nor a Capture, nor a Recorder")
    return capture


def _many(addresses: str | Iterable[T]) -> tuple[str | T, ...]:
    return (addresses,) if isinstance(addresses, str) else tuple(addresses)


def _checked(told: dict[str, Any], others: dict[str, Any]) -> ClusterSettings:
    """The cluster's settings, or one error that lists what is wrong with them and with those of the node."""
    known = {field.name for field in dataclasses.fields(Settings)}
    listed = ", ".join(sorted(known | _OPTIONS))
    problems = [f"{name}: no such setting; there are {listed}" for name in sorted(others.keys() - known)]
    settings = ClusterSettings()
    try:
        settings = ClusterSettings(**told)
    except ConfigError as wrong:
        problems += wrong.problems
    try:
        Settings(**{name: value for name, value in others.items() if name in known})
    except ConfigError as wrong:
        problems += wrong.problems
    if problems:
        raise ConfigError("node settings", problems)
    return settings
