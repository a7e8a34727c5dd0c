"""Where a node connects because of words that nobody signed: to which addresses, and how often.

Whoever reaches a node can name any address as that of a node. Addresses of the machine itself are refused unless
the node is there as well: services that listen there count on being reached by nobody else.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable

try:
    import resource
except ImportError:  # on Windows, which limits open files otherwise
    resource = None  # type: ignore[assignment]

__all__ = ["Strangers", "max_connections"]

_NEW_PER_S, _NEW_AT_ONCE = 100.0, 2000.0
"""Nodes that are made known without a signature, in a second and at once; honest ones announce themselves again."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_ANYWHERE = {ipaddress.ip_address("0.0.0.0"), ipaddress.ip_address("::")}  # noqa: S104 - to know where a node is


_SHARE, _LEAST = 8, 16
"""The share of the files that a process may open, and the least number, of connections of one kind to nodes that
nobody vouches for, where others sign: each takes two files, and there are two kinds, messages and heartbeats."""
_MANY_FILES = 65_536


def max_connections() -> int:
    """Return how many connections of one kind may be made to nodes that nobody vouches for, where others sign."""
    files = _MANY_FILES
    if resource is not None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            files = min(soft, _MANY_FILES)
    return max(_LEAST, files // _SHARE)


class Strangers:
    """What is allowed for nodes that nobody vouches for.

    ``own`` are the addresses where this node is, ``configured`` those of servers and peers that it was given: where
    one of them is on loopback, so is the cluster.
    """

    def __init__(self, own: Iterable[str], configured: Iterable[str], now: Callable[[], float]) -> None:
        self._own = frozenset(own)
        self._hosts = {_host(uri) for uri in (*self._own, *configured)}
        self._is_local = any(host is None or _is_loopback(host) for host in self._hosts - _ANYWHERE)
        self._now = now
        self._left, self._then = _NEW_AT_ONCE, now()

    def admit(self, *uris: str) -> None:
        """Raise ``ValueError`` where a node must not be connected to at these addresses, or not now."""
        for uri in uris:
            self._check(uri)
        now = self._now()
        self._left = min(_NEW_AT_ONCE, self._left + (now - self._then) * _NEW_PER_S)
        self._then = now
        if self._left < 1.0:
            raise ValueError(f"more than {_NEW_PER_S:g} new nodes a second announce themselves without a signature")
        self._left -= 1.0

    def allows(self, number: str) -> bool:
        """Return whether a node may be connected to at an address of its name, which was admitted before."""
        try:
            self._check(number)
        except ValueError:
            return False
        return True

    def _check(self, uri: str) -> None:
        if uri in self._own:
            raise ValueError(f"{uri} is the address of this node itself")
        host = _host(uri)
        if host is None or _is_loopback(host):
            if not self._is_local:
                raise ValueError(f"{uri} is reached from this machine alone, and this node is not on loopback")
        elif isinstance(host, str) or host in self._hosts or _ANYWHERE & self._hosts:
            return
        elif _is_of_this_machine(host):
            raise ValueError(f"{uri} is an address of this machine at which this node is not")


def _host(uri: str) -> _Address | str | None:
    """Return the host of an address, as a number where it is one; None for a file."""
    if not uri.startswith("tcp://"):
        return None
    name = uri.removeprefix("tcp://").rpartition(":")[0].strip("[]").partition("%")[0]
    if name == "localhost" or name.endswith(".localhost"):
        return ipaddress.IPv4Address("127.0.0.1")
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(name))  # such as 127.1, which the system understands
        except OSError:
            return name
    return getattr(found, "ipv4_mapped", None) or found


def _is_loopback(host: _Address | str) -> bool:
    return not isinstance(host, str) and (host.is_loopback or host in _ANYWHERE)


def _is_of_this_machine(host: _Address) -> bool:
    """Return whether something can listen at an address here."""
    with socket.socket(socket.AF_INET if host.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind((str(host), 0))
        except OSError:
            return False
    return True
