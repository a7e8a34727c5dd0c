"""Host names of addresses, looked up on threads of their own: libzmq gets numbers only.

libzmq looks names up on its one I/O thread, which also carries all messages: while a name server does not answer,
nothing is sent or received. The same call blocks here, too, and cannot be cancelled. So each look-up has a thread;
one that takes longer than its deadline counts as unanswered, and another may begin beside it. Addresses that were
found stay in use while a name server does not answer.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import queue
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import zmq

from framewire.cluster.addresses import tcp_parts
from framewire.cluster.sockets import connect

__all__ = ["AddressBook", "Dialer", "Resolver", "is_name"]

log = logging.getLogger("framewire.cluster")

LOOKUP_TIMEOUT_S = 2.0
"""After this a look-up counts as unanswered, and another begins beside it."""
MAX_LOOKUPS = 4
"""Of one name at a time. The system asks again after some seconds, so one of them finds a server that is back."""
MAX_AGE_S = 30.0
"""Addresses that are older are looked up again before a new connection is made."""
MIN_AGE_S = 1.0
"""Between two look-ups of one name, whatever the reason."""
MAX_ADDRESSES = 16
"""Of one name that are used."""
MAX_NAMES = 1000
"""That are remembered."""
MAX_THREADS = 16
"""For names that other nodes announce unsigned; those of the configuration and signed ones do not wait."""
LOG_EVERY_S = 60.0
"""Between two warnings about one name."""

Found = Callable[[tuple[str, ...]], object]
"""Called once with the numeric addresses of a name; none where it was not found or nobody answered."""


def is_name(uri: str) -> bool:
    """Whether the host of an address has to be looked up."""
    parts = tcp_parts(uri)
    if parts is None:
        return False
    try:
        ipaddress.ip_address(parts[0].strip("[]"))
    except ValueError:
        return True
    return False


@dataclass(slots=True)
class _Entry:
    numbers: tuple[str, ...] = ()
    found_at: float = -math.inf
    tried_at: float = -math.inf
    running: int = 0
    waiting: list[tuple[str, Found]] = field(default_factory=list)
    warned_at: float = -math.inf


class Resolver:
    """Looks names up, and remembers what was found. Its methods may be called from any thread, and never block."""

    def __init__(
        self,
        look_up: Callable[[str], tuple[str, ...]] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look_up = look_up or _numbers_of
        self._now = now
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._running = 0
        self._closed = False

    def resolve(self, uri: str, found: Found, *, fresh: bool = False, trusted: bool = False) -> None:
        """Call ``found`` with the numeric addresses of an address: at once where they are known, or on a thread.

        ``fresh`` asks for a new look-up, because a connection was lost. ``trusted`` names, of the configuration or
        of nodes that sign, are looked up however many others are.
        """
        if not is_name(uri):
            found((uri,))
            return
        host, port = tcp_parts(uri) or ("", "")
        with self._lock:
            entry = self._entry(host)
            now = self._now()
            if entry is None or self._closed:
                numbers: tuple[str, ...] | None = ()
            elif now - entry.found_at < (MIN_AGE_S if fresh else MAX_AGE_S):
                numbers = entry.numbers
            elif self._begins(host, entry, now, trusted=trusted):
                entry.waiting.append((port, found))
                numbers = None
            else:
                numbers = entry.numbers
        if numbers is not None:
            found(_with_port(numbers, port))

    def known(self, uri: str) -> tuple[str, ...]:
        """Return the numeric addresses that were last found; none where none were."""
        if not is_name(uri):
            return (uri,)
        host, port = tcp_parts(uri) or ("", "")
        with self._lock:
            entry = self._entries.get(host)
            return _with_port(entry.numbers, port) if entry is not None else ()

    def close(self) -> None:
        """Call nobody back any more. A thread that waits for a name server ends when the system gives up."""
        with self._lock:
            self._closed = True
            self._entries.clear()

    def _entry(self, host: str) -> _Entry | None:
        """Return the entry of a name, a new one where there is room."""
        entry = self._entries.get(host)
        if entry is not None:
            return entry
        if len(self._entries) >= MAX_NAMES:
            idle = [name for name, each in self._entries.items() if not (each.running or each.waiting)]
            if not idle:
                return None
            del self._entries[min(idle, key=lambda name: self._entries[name].tried_at)]
        entry = self._entries[host] = _Entry()
        return entry

    def _begins(self, host: str, entry: _Entry, now: float, *, trusted: bool) -> bool:
        """Begin a look-up, or join one that is under way; False where it is too early, or there are too many."""
        if entry.running and now - entry.tried_at < LOOKUP_TIMEOUT_S:
            return True
        if now - entry.tried_at < MIN_AGE_S:
            return False
        if entry.running:
            self._warn(host, entry, now, f"no answer from a name server within {LOOKUP_TIMEOUT_S:g} s")
        if entry.running >= MAX_LOOKUPS or (self._running >= MAX_THREADS and not trusted):
            return False
        entry.tried_at = now
        entry.running += 1
        self._running += 1
        threading.Thread(target=self._run, args=(host, entry), name="framewire names", daemon=True).start()
        return True

    def _run(self, host: str, entry: _Entry) -> None:
        numbers: tuple[str, ...] = ()
        problem = "it has no address"
        try:
            numbers = self._look_up(host)
        except (OSError, UnicodeError) as error:
            problem = str(error)
        with self._lock:
            entry.running -= 1
            self._running -= 1
            if self._closed:
                return
            if numbers:
                entry.numbers, entry.found_at = numbers, self._now()
            else:
                self._warn(host, entry, self._now(), problem)
                if entry.running:
                    return  # the other look-up may have more luck
            waiting, entry.waiting = entry.waiting, []
            for port, found in waiting:
                found(_with_port(entry.numbers, port))

    def _warn(self, host: str, entry: _Entry, now: float, problem: str) -> None:
        if now - entry.warned_at < LOG_EVERY_S:
            return
        entry.warned_at = now
        log.warning(
            "the host name %s cannot be looked up: %s; %s. Check the name and this host's name servers",
            host,
            problem,
            "the addresses found before stay in use" if entry.numbers else "there is no connection until it can be",
        )


def _numbers_of(host: str) -> tuple[str, ...]:
    """Look a name up, for as long as the system takes: its IPv4 addresses, or IPv6 where there are none."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    by_family: dict[int, dict[str, None]] = {socket.AF_INET: {}, socket.AF_INET6: {}}
    for family, _, _, _, address in found:
        by_family.get(family, {})[str(address[0])] = None
    numbers = by_family[socket.AF_INET] or {f"[{number}]": None for number in by_family[socket.AF_INET6]}
    return tuple(sorted(numbers))[:MAX_ADDRESSES]  # name servers take turns with the order


def _with_port(numbers: Iterable[str], port: str) -> tuple[str, ...]:
    return tuple(f"tcp://{number}:{port}" for number in numbers)


class Dialer:
    """Connects one socket to addresses, which may have names; for the thread that uses the socket.

    A name with several addresses is connected to at each of them, so this is for sockets that tell their peers
    apart by what these say: ROUTER by identity, SUB by what is in a heartbeat. ``wake`` is called, on any thread,
    when ``settle`` has something to do. ``allows`` tells which numeric addresses of a name may be connected to;
    ``trusted`` where the addresses were signed.
    """

    def __init__(
        self,
        source: zmq.Socket[bytes],
        resolver: Resolver,
        wake: Callable[[], object] = lambda: None,
        allows: Callable[[str], bool] = lambda _: True,
        *,
        trusted: bool = False,
    ) -> None:
        self._source = source
        self._trusted = trusted
        self._resolver = resolver
        self._wake = wake
        self._allows = allows
        self._has_warned = False
        self._used: dict[str, tuple[str, ...]] = {}
        self._connections: Counter[str] = Counter()
        self._asked: dict[str, float] = {}
        self._found: queue.SimpleQueue[tuple[str, tuple[str, ...]]] = queue.SimpleQueue()

    @property
    def is_waiting(self) -> bool:
        """Whether a look-up is under way."""
        return bool(self._asked)

    def connect(self, uri: str) -> None:
        """Connect to an address, at once where its numbers are known; ``ZMQError`` where it is none."""
        self._used.setdefault(uri, ())
        if not is_name(uri):
            self._use(uri, (uri,))
            return
        self._use(uri, self._allowed(uri, self._resolver.known(uri)))
        self._ask(uri)

    def disconnect(self, uri: str) -> None:
        """Let go of an address; ``ZMQError`` where libzmq does not know it."""
        if uri in self._used:
            self._use(uri, ())
            del self._used[uri]

    def renew(self, uri: str) -> None:
        """Look a name up again, because its connection is lost; numbers stay as they are, libzmq tries them."""
        if uri in self._used and is_name(uri):
            self._ask(uri, fresh=True)

    def anew(self, uri: str) -> None:
        """Make the connections to an address anew, and look its name up again."""
        numbers = self._used.get(uri, ())
        for number in numbers:
            self._source.disconnect(number)
            connect(self._source, number)
        self.renew(uri)

    def settle(self) -> None:
        """Connect to what was found since."""
        while True:
            try:
                uri, numbers = self._found.get_nowait()
            except queue.Empty:
                return
            self._asked.pop(uri, None)
            if uri in self._used and numbers and not self._source.closed:
                try:
                    self._use(uri, self._allowed(uri, numbers))
                except zmq.ZMQError as problem:
                    log.warning("no connection to %s (%s): %s", uri, ", ".join(numbers), problem)

    def _ask(self, uri: str, *, fresh: bool = False) -> None:
        now = time.monotonic()
        if now - self._asked.get(uri, -math.inf) < LOOKUP_TIMEOUT_S:
            return
        self._asked[uri] = now
        self._resolver.resolve(uri, lambda numbers: self._note(uri, numbers), fresh=fresh, trusted=self._trusted)
        self.settle()

    def _note(self, uri: str, numbers: tuple[str, ...]) -> None:
        self._found.put((uri, numbers))
        self._wake()

    def _allowed(self, uri: str, numbers: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of a name's addresses that may be connected to."""
        allowed = tuple(filter(self._allows, numbers))
        if allowed != numbers and not self._has_warned:
            self._has_warned = True
            refused = ", ".join(number for number in numbers if number not in allowed)
            log.warning("no connection to %s at %s: an address of this machine that nobody signed", uri, refused)
        return allowed

    def _use(self, uri: str, numbers: tuple[str, ...]) -> None:
        before = self._used[uri]
        for number in numbers:
            if number not in before:
                if not self._connections[number]:
                    connect(self._source, number)
                self._connections[number] += 1
        self._used[uri] = numbers
        for number in before:
            if number not in numbers:
                self._connections[number] -= 1
                if not self._connections[number]:
                    del self._connections[number]
                    self._source.disconnect(number)


class AddressBook:
    """The numeric addresses of configured ones, kept up to date; for one thread.

    ``wake`` is called, on any thread, when something was found.
    """

    def __init__(self, resolver: Resolver, wake: Callable[[], object] = lambda: None) -> None:
        self._resolver = resolver
        self._wake = wake
        self._asked: dict[str, float] = {}
        self._fresh: dict[str, tuple[float, float]] = {}
        """When a name was last looked up because a connection was lost, and when it may be the next time."""

    def numbers(self, uri: str, *, fresh: bool = False) -> tuple[str, ...]:
        """Return the addresses as far as they are known, and look them up where that is due.

        ``fresh`` where a connection is lost: then it is looked up soon, and ever more seldom while nothing changes.
        """
        if not is_name(uri):
            return (uri,)
        known = self._resolver.known(uri)
        now = time.monotonic()
        if now - self._asked.get(uri, -math.inf) >= LOOKUP_TIMEOUT_S:
            self._asked[uri] = now
            self._resolver.resolve(
                uri,
                lambda numbers: self._note(uri, known, numbers),
                fresh=not known or (fresh and self._is_due(uri, now)),
                trusted=True,
            )
        return self._resolver.known(uri)

    def _is_due(self, uri: str, now: float) -> bool:
        last, following = self._fresh.get(uri, (-math.inf, -math.inf))
        if now < following:
            return False
        pause = 2 * (following - last) if now - last < MAX_AGE_S else MIN_AGE_S
        self._fresh[uri] = (now, now + min(pause, MAX_AGE_S))
        return True

    @property
    def is_waiting(self) -> bool:
        """Whether a look-up is under way."""
        return bool(self._asked)

    def _note(self, uri: str, before: tuple[str, ...], numbers: tuple[str, ...]) -> None:
        self._asked.pop(uri, None)
        if numbers != before:
            self._wake()
