"""Addresses as they are written in a configuration: what is one, and what it stands for."""

from __future__ import annotations

import re
import socket

from framewire.errors import ConfigError

__all__ = ["any_port", "can_bind", "can_connect", "candidates", "next_port", "reachable"]

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


def reachable(bound: str, advertise: str | None) -> str:
    """Where others reach what is bound here."""
    if advertise:
        return advertise.replace(":*", f":{bound.rpartition(':')[2]}")
    if bound.startswith(("tcp://0.0.0.0:", "tcp://[::]:")):
        try:
            host = socket.gethostbyname(socket.gethostname())
        except OSError as problem:
            detail = f"advertise: this host does not know its own address ({problem}); say where others reach it"
            raise ConfigError("cluster settings", [detail]) from None
        return f"tcp://{host}:{bound.rpartition(':')[2]}"
    return bound
