"""Addresses as they are written in a configuration: what is one, and what it stands for."""

from __future__ import annotations

import ipaddress
import re

from framewire.errors import ConfigError

__all__ = [
    "any_port",
    "can_bind",
    "can_connect",
    "candidates",
    "is_everywhere",
    "is_loopback",
    "next_port",
    "reachable",
    "tcp_parts",
]

_TCP = re.compile(
    r"tcp://(?P<host>\[[0-9a-fA-F:.]+(?:%\w+)?\]|\*|[\w.-]+):(?P<first>\*|\d{1,5})(?:-(?P<last>\d{1,5}))?"
)
_IPC = re.compile(r"ipc://[^\0]{1,107}")  # what a Unix socket's path has room for
_PORTS = range(1, 0x10000)


def can_bind(uri: object) -> bool:
    """Whether something can listen at an address, which may leave the port open."""
    if not isinstance(uri, str):
        return False
    found = _TCP.fullmatch(uri)
    if found is None:
        return _IPC.fullmatch(uri) is not None
    if found["first"] == "*":
        return found["last"] is None
    first, last = int(found["first"]), int(found["last"] or found["first"])
    return first in _PORTS and last in _PORTS and first <= last


def can_connect(uri: object) -> bool:
    """Whether an address is that of one place."""
    if not isinstance(uri, str):
        return False
    found = _TCP.fullmatch(uri)
    if found is None:
        return _IPC.fullmatch(uri) is not None and uri != "ipc://*"
    return found["host"] != "*" and found["first"] != "*" and not found["last"] and int(found["first"]) in _PORTS


def candidates(uri: str) -> list[str]:
    """The addresses that a bind address stands for, to be tried in turn."""
    found = _TCP.fullmatch(uri)
    if found is None or found["last"] is None:
        return [uri]
    return [f"tcp://{found['host']}:{port}" for port in range(int(found["first"]), int(found["last"]) + 1)]


def next_port(uri: str, by: int = 1) -> str:
    """The address some ports further on; for ipc, a path with a suffix."""
    head, _, port = uri.rpartition(":")
    return f"{head}:{int(port) + by}" if port.isdigit() else f"{uri}.{by}"


def any_port(uri: str) -> str:
    """An address of the same host whose port is left open; for ipc, a path with a suffix."""
    return f"{uri.rpartition(':')[0]}:*" if uri.startswith("tcp:") else f"{uri}.health"


def tcp_parts(uri: str) -> tuple[str, str] | None:
    """Return the host and the port of a TCP address, IPv6 in its brackets; None for any other address."""
    found = _TCP.fullmatch(uri)
    return (found["host"], found["first"]) if found is not None and found["last"] is None else None


def is_everywhere(uri: str) -> bool:
    """Whether what is bound there listens at all addresses of its host, so that this is none to connect to."""
    return uri.startswith(("tcp://0.0.0.0:", "tcp://[::]:", "tcp://*:"))


def is_loopback(uri: str) -> bool:
    """Whether an address is reached from its own host only, as far as can be told without looking a name up."""
    found = _TCP.fullmatch(uri)
    if found is None:
        return False
    host = found["host"].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def reachable(bound: str, advertise: str | None, host: str | None = None) -> str:
    """Return where others reach what is bound here; ``host`` is where, if that listens at all addresses."""
    port = bound.rpartition(":")[2]
    if advertise:
        return advertise.replace(":*", f":{port}")
    if not is_everywhere(bound):
        return bound
    if host is None:
        detail = f"advertise: {bound} is no address that others reach; give one: advertise='tcp://host:*'"
        raise ConfigError("cluster settings", [detail])
    return f"tcp://{host}:{port}"
