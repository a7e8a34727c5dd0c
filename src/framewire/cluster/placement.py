"""Where a node listens and what it advertises, where the configuration leaves that open.

Others reach a node at the address from which its packets to the rendezvous server leave. The host's own name says
less: on many hosts it stands for a loopback address, or for one of another network.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from framewire.cluster.addresses import is_everywhere, is_loopback, tcp_parts
from framewire.cluster.resolver import Resolver
from framewire.cluster.settings import ClusterSettings
from framewire.errors import ConfigError

__all__ = ["LOOPBACK", "Placement", "check_advertised", "place", "source_of"]

log = logging.getLogger("framewire.cluster")

LOOPBACK = "tcp://127.0.0.1:*"
START_S = 5.0
"""That a start waits for the names of servers and peers, where it depends on them."""
_FAR_AWAY = ("tcp://192.0.2.1:9", "tcp://[2001:db8::1]:9")
"""Addresses that nobody has. The route to them is the default route; nothing is sent."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where to listen, and the host that is advertised where that is everywhere."""

    bind: str
    host: str | None
    servers: tuple[tuple[str, tuple[str, ...]], ...]
    """The rendezvous servers and peers of the configuration, each with its numeric addresses, as far as they are
    known; none where nothing depends on them."""


async def place(settings: ClusterSettings, resolver: Resolver) -> Placement:
    """Decide where a node listens; waits up to ``START_S`` for its servers' names to be looked up."""
    bind = settings.bind
    health = settings.health or bind
    open_ended = (
        bind is not None
        and health is not None
        and (
            (is_everywhere(bind) and not settings.advertise)
            or (is_everywhere(health) and not (settings.advertise_health or settings.advertise))
        )
    )
    places = (settings.advertise or bind, settings.advertise_health or settings.advertise or health)
    if bind is not None and not open_ended and not any(is_loopback(uri) for uri in places if uri):
        return Placement(bind, None, ())
    uris = _targets(settings)
    if not uris and bind is None:
        # V1 nodes need not reach this node, but some answer over connections of their own.
        return await _place_by_v1_nodes(settings, resolver)
    numbers = await _looked_up(uris, resolver, START_S)
    servers = tuple((uri, numbers.get(uri, ())) for uri in uris)
    targets = [number for _, found in servers for number in found if not is_loopback(number)]
    unknown = [uri for uri, found in servers if not found]
    if bind is None:
        if not targets and not unknown:
            return Placement(LOOPBACK, None, servers)
        host = _source(targets, unknown)
        return Placement(f"tcp://{host}:*", host, servers)
    if not open_ended:
        return Placement(bind, None, servers)
    only_loopback = bool(uris) and not targets and not unknown
    if only_loopback:
        return Placement(bind, "127.0.0.1", servers)
    if "0.0.0.0" in bind:  # noqa: S104 - told apart
        targets = [number for number in targets if "[" not in number]
    return Placement(bind, _source(targets, unknown), servers)


async def _place_by_v1_nodes(settings: ClusterSettings, resolver: Resolver) -> Placement:
    uris = [uri for uri in settings.v1_nodes if tcp_parts(uri) is not None]
    numbers = await _looked_up(uris, resolver, START_S)
    targets = [number for found in numbers.values() for number in found if not is_loopback(number)]
    unknown = [uri for uri in uris if not numbers.get(uri)]
    if not targets and not unknown:
        return Placement(LOOPBACK, None, ())
    host = _source(targets, unknown)
    return Placement(f"tcp://{host}:*", host, ())


def check_advertised(advertised: Iterable[str], servers: Iterable[tuple[str, tuple[str, ...]]]) -> None:
    """Raise ``ConfigError`` if a loopback address would be told to servers or peers on other addresses."""
    for uri in filter(is_loopback, advertised):
        for server, numbers in servers:
            if numbers and not any(map(is_loopback, numbers)):
                raise ConfigError("cluster settings", [unreachable_detail(uri, server)])


def unreachable_detail(uri: str, server: str) -> str:
    """Describe that a loopback address is advertised to a server elsewhere, and what to do."""
    return (
        f"bind: this node would be advertised at {uri} to {server}, which is not on loopback, so no other host "
        "could reach it; leave bind out, or give bind='tcp://0.0.0.0:*', or say where others reach it: "
        "advertise='tcp://host:*'"
    )


def source_of(uri: str) -> str | None:
    """Return the local address of the route to a numeric address; None where there is no route."""
    parts = tcp_parts(uri)
    if parts is None:
        return None
    host = parts[0].strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, int(parts[1])))  # of a datagram socket: chooses the route, sends nothing
            found = str(probe.getsockname()[0])
    except OSError:
        return None
    return f"[{found}]" if ":" in found else found


def _source(targets: list[str], unknown: list[str]) -> str:
    for target in targets:
        host = source_of(target)
        if host is not None:
            return host
    for target in _FAR_AWAY:
        host = source_of(target)
        if host is not None:
            if unknown:
                log.warning(
                    "%s could not be looked up, so this node advertises %s, the address of the default route; if "
                    "that is wrong, give advertise='tcp://host:*'",
                    ", ".join(unknown),
                    host,
                )
            return host
    where = ", ".join([*targets, *unknown]) or "other hosts"
    detail = f"advertise: this host has no route to {where}; say where others reach it: advertise='tcp://host:*'"
    raise ConfigError("cluster settings", [detail])


def _targets(settings: ClusterSettings) -> list[str]:
    servers = [server if isinstance(server, str) else server[0] for server in settings.rendezvous]
    return [uri for uri in (*servers, *settings.peers) if tcp_parts(uri) is not None]


async def _looked_up(uris: list[str], resolver: Resolver, limit: float) -> dict[str, tuple[str, ...]]:
    """Return the numeric addresses of each; waits until one is elsewhere, all are known, or the time is over."""
    loop = asyncio.get_running_loop()
    found: dict[str, tuple[str, ...]] = {}
    enough = asyncio.Event()

    def note(uri: str, numbers: tuple[str, ...]) -> None:
        found[uri] = numbers
        if len(found) == len(set(uris)) or any(not is_loopback(number) for number in numbers):
            enough.set()

    for uri in dict.fromkeys(uris):

        def told(numbers: tuple[str, ...], uri: str = uri) -> None:
            loop.call_soon_threadsafe(note, uri, numbers)

        resolver.resolve(uri, told, trusted=True)
    if uris:
        try:
            async with asyncio.timeout(limit):
                await enough.wait()
        except TimeoutError:
            log.warning("no answer from a name server about %s within %g s", ", ".join(uris), limit)
    return dict(found)
