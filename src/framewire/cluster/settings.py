"""Everything that the cluster side of a node can be told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from framewire.cluster.addresses import can_bind, can_connect
from framewire.cluster.v1_messages import V1Message, v1_handled
from framewire.errors import ConfigError, UsageError
from framewire.node.mailbox import Overflow
from framewire.security.curve import Curve

__all__ = ["ClusterSettings", "Server"]

Server = str | tuple[str, str]
"""A rendezvous server: where it listens, and where it speaks if that is not the next port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """How a node is connected to others, with what it does if it is not told."""

    bind: str | None = None
    """Where it listens: a port, a range such as 7500-7599, or * for any. None for any port of the local address of
    the route to its rendezvous server or peer, which is loopback where those are, and where there are none."""
    advertise: str | None = None
    """Where others reach it, if that is not where it listens: behind NAT, or in a container. Where it listens at
    all addresses (0.0.0.0), None is the local address of the route to its rendezvous server or peer."""
    health: str | None = None
    """Where its heartbeats are heard; any port of the same host unless told otherwise."""
    advertise_health: str | None = None
    """Where others hear them, if that is somewhere else."""
    rendezvous: tuple[Server, ...] = ()
    """The rendezvous servers; any of them will do."""
    peers: tuple[str, ...] = ()
    """Other nodes, for a cluster without rendezvous."""
    heartbeat: float = 1.0
    """Seconds between signs of life."""
    misses: int = 3
    """Signs of life that may be missing before a node is taken to be gone."""
    send_queue: int = 1000
    """Messages that wait for a peer that cannot take them."""
    send_overflow: Overflow = "wait"
    """What happens when there are more: wait, reject or drop_oldest."""
    vigil: float = 0.0002
    """Seconds that it looks for the answer to its only question before it goes to sleep; 0 for not at all."""
    max_message_bytes: int = 256 * 1024 * 1024
    max_frames: int = 10_000
    rediscover: float = 60.0
    """Seconds between questions to everyone about everything, in case something was missed."""
    wire_version: int = 5
    """The format that is written, 4 or 5, except to peers that are known to write an older one. All are read."""
    versions: Mapping[bytes, int] = field(default_factory=dict)
    """The numbers of those message versions in V1 that are neither N nor N.0."""
    v1_nodes: Mapping[str, Sequence[V1Message]] = field(default_factory=dict)
    """Nodes that know nothing but V1, by address, each with the messages that it handles: a text such as
    ``orders.place`` or ``orders.place 2.0``, or a message class."""
    curve: Curve | None = None
    """The keys of CURVE: with them, nobody gets anywhere whose key is not allowed."""
    open: bool = True
    """Whether nodes are believed that neither sign what they announce nor have a key of CURVE."""
    peer_rate: int | None = None
    """Messages that are taken from one connection in a second; more are dropped. None for any number."""

    def __post_init__(self) -> None:
        # A pair may be given as a list, as in the file.
        servers = (tuple(server) if isinstance(server, list) else server for server in self.rendezvous)
        object.__setattr__(self, "rendezvous", tuple(servers))
        problems = [
            f"{name}: {value!r}; must be {accepted}"
            for name, accepted, good in _RULES
            if not good(value := getattr(self, name))
        ]
        problems += [f"rendezvous: {server!r}; {_PLACE}" for server in self.rendezvous if not _is_server(server)]
        problems += [f"peers: {uri!r}; {_PLACE}" for uri in self.peers if not can_connect(uri)]
        if not problems:
            problems += self._v1_problems()
        if problems:
            raise ConfigError("cluster settings", problems)

    def _v1_problems(self) -> Iterator[str]:
        if self.v1_nodes and self.curve is not None:
            yield "v1_nodes: V1 nodes have no CURVE, so messages would leave in the clear; leave out one of the two"
        for uri, messages in self.v1_nodes.items():
            if not can_connect(uri):
                yield f"v1_nodes: {uri!r}; {_PLACE}"
            try:
                v1_handled(messages, self.versions)
            except UsageError as problem:
                yield f"v1_nodes: {uri}: {problem}"

    @property
    def believes_unsigned(self) -> bool:
        """Whether what is not signed may lead to a connection: with CURVE, it comes from members all the same."""
        return self.open or self.curve is not None

    @property
    def patience(self) -> float:
        """Seconds of silence after which a peer is taken to be gone."""
        return self.heartbeat * self.misses


def _is_server(server: object) -> bool:
    if isinstance(server, tuple):
        return len(server) == 2 and all(map(can_connect, server))
    return can_connect(server)


def _seconds(value: object) -> bool:
    return isinstance(value, int | float) and value > 0 and math.isfinite(value)


def _brief(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= _LONGEST_VIGIL


def _count(least: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and value >= least


def _or_none(good: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or good(value)


def _numbers(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(raw, bytes) and isinstance(number, int) and 0 <= number <= 0xFFFF
        for raw, number in value.items()
    )


def _advertised(value: object) -> bool:
    return isinstance(value, str) and can_connect(value.replace(":*", ":1"))


_LISTEN = "like tcp://host:port, tcp://host:7500-7599, tcp://host:* or ipc://path"
_LONGEST_VIGIL = 0.01
"""Nothing else on the event loop has its turn meanwhile."""
_PLACE = "must be like tcp://host:port or ipc://path"
_RULES: tuple[tuple[str, str, Callable[[object], bool]], ...] = (
    ("bind", _LISTEN, _or_none(can_bind)),
    ("advertise", "like tcp://host:port or tcp://host:*", _or_none(_advertised)),
    ("health", _LISTEN, _or_none(can_bind)),
    ("advertise_health", "like tcp://host:port or tcp://host:*", _or_none(_advertised)),
    ("heartbeat", "a positive number of seconds", _seconds),
    ("misses", "a whole number, at least 1", _count(1)),
    ("send_queue", "a whole number, at least 1", _count(1)),
    ("send_overflow", ", ".join(get_args(Overflow)), lambda value: value in get_args(Overflow)),
    ("vigil", "0 or more seconds, at most 0.01", _brief),
    ("max_message_bytes", "a whole number, at least 1024", _count(1024)),
    ("max_frames", "a whole number, at least 32", _count(32)),
    ("rediscover", "a positive number of seconds", _seconds),
    ("wire_version", "4 or 5", lambda value: value in (4, 5)),
    ("curve", "a Curve with key, cluster and allowed, or None", lambda value: isinstance(value, Curve | None)),
    ("open", "true or false", lambda value: isinstance(value, bool)),
    ("peer_rate", "a whole number of messages, at least 1, or None", _or_none(_count(1))),
    (
        "v1_nodes",
        "a mapping of addresses to lists of messages",
        lambda value: isinstance(value, Mapping),
    ),
    ("versions", "a mapping of V1 versions, as bytes, to numbers of 16 bits", _numbers),
)
