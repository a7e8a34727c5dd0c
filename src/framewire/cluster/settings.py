"""Everything that the cluster side of a node can be told."""

from __future__ import annotations

import math
import re
import socket
from dataclasses import dataclass
from typing import get_args

from framewire.errors import ConfigError
from framewire.node.mailbox import Overflow

__all__ = ["ClusterSettings", "candidates", "next_port", "reachable"]

_ADDRESS = re.compile(
    r"(?P<host>tcp://(?:\[[0-9a-fA-F:]+\]|[^:\[\]]+)):(?P<ports>\*|\d+(?:-\d+)?)|ipc://.+|inproc://.+"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """How a node is connected to others, with what it does if it is not told."""

    bind: str = "tcp://127.0.0.1:*"
    """Where it listens: a port, a range such as 7500-7599, or * for any; loopback unless told otherwise."""
    advertise: str | None = None
    """Where others reach it, if that is not where it listens: behind NAT, or in a container."""
    rendezvous: tuple[str, ...] = ()
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
    max_message_bytes: int = 256 * 1024 * 1024
    max_frames: int = 10_000
    rediscover: float = 60.0
    """Seconds between questions to everyone about everything, in case something was missed."""

    def __post_init__(self) -> None:
        addresses = [("bind", self.bind), *(("rendezvous", uri) for uri in self.rendezvous)]
        addresses += [("peers", uri) for uri in self.peers]
        addresses += [("advertise", self.advertise)] if self.advertise else []
        problems = [
            f"{name}: {uri!r}; must be like tcp://host:port or ipc://path"
            for name, uri in addresses
            if not (isinstance(uri, str) and _ADDRESS.fullmatch(uri))
        ]
        policies = get_args(Overflow)
        for name, value, good, accepted in (
            ("heartbeat", self.heartbeat, self.heartbeat > 0 and math.isfinite(self.heartbeat), "positive seconds"),
            ("misses", self.misses, self.misses >= 1, "at least 1"),
            ("send_queue", self.send_queue, self.send_queue >= 1, "at least 1"),
            ("send_overflow", self.send_overflow, self.send_overflow in policies, ", ".join(policies)),
            ("max_message_bytes", self.max_message_bytes, self.max_message_bytes >= 1024, "at least 1024"),
            ("max_frames", self.max_frames, self.max_frames >= 32, "at least 32"),
            ("rediscover", self.rediscover, self.rediscover > 0, "positive seconds"),
        ):
            if not good:
                problems.append(f"{name}: {value!r}; must be {accepted}")
        if problems:
            raise ConfigError("cluster settings", problems)

    @property
    def patience(self) -> float:
        """Seconds of silence after which a peer is taken to be gone."""
        return self.heartbeat * self.misses


def candidates(uri: str) -> list[str]:
    """The addresses that a bind address stands for, to be tried in turn."""
    found = _ADDRESS.fullmatch(uri)
    if found and found["ports"] and "-" in found["ports"]:
        low, high = map(int, found["ports"].split("-"))
        return [f"{found['host']}:{port}" for port in range(low, high + 1)]
    return [uri]


def next_port(uri: str, by: int = 1) -> str:
    """The address some ports further on; for ipc, a path with a suffix."""
    head, _, port = uri.rpartition(":")
    return f"{head}:{int(port) + by}" if port.isdigit() else f"{uri}.{by}"


def reachable(bound: str, advertise: str | None) -> str:
    """Where others reach what is bound here."""
    if advertise:
        return advertise.replace(":*", f":{bound.rpartition(':')[2]}")
    for anywhere in ("tcp://0.0.0.0:", "tcp://[::]:"):
        if bound.startswith(anywhere):
            return f"tcp://{socket.gethostbyname(socket.gethostname())}:{bound.rpartition(':')[2]}"
    return bound
