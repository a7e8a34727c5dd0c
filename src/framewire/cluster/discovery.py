"""How a node comes to know of others: what it makes of the service messages that it hears, and when it speaks up.

Every node hears every service message, its own included. After each (re)connection a node tells all that it has and
asks for all that there is, and it answers the same question of others.

A node that is known in a signed domain is vouched for: what is said of it without a signature counts only for
messages that belong to no domain. It does not move it, end it, change how long it may be silent, or give its
receivers to others.

What is heard is taken in bit by bit, in the order in which it came: whoever announces a million messages must not
make the event loop stand still, nor fill the memory with what waits.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from hashlib import blake2b
from typing import Any, ClassVar

from framewire.cluster import service
from framewire.cluster.addresses import can_connect
from framewire.cluster.announcing import Announcer
from framewire.cluster.namesakes import Namesakes
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.v1_messages import v1_name
from framewire.errors import BadSignature, WireError
from framewire.node.deadletters import Reason
from framewire.node.transport import Port, Registration
from framewire.routing import HUB, Route
from framewire.security import KeyRing
from framewire.wire import MessageId, decode
from framewire.wire.message import readable

__all__ = ["Discovery"]

_SETTLING = 0.05
"""Seconds that a server needs to take note of a new subscription."""
_PAUSE = 0.1
"""Seconds between two answers to the same question, at most: whoever asks in between is answered after it."""
_SLICE_S = 0.01
"""Seconds of each turn of the event loop that may go into what is heard; a little more where a message is large."""
_SLICE_ROUTES = 500
"""Messages and receivers that are taken in before it is looked at how long that took: a few milliseconds."""
_MAX_BYTES, _MAX_WAITING, _MAX_WAITING_BYTES = 4 << 20, 20_000, 32 << 20
"""Bytes of one service message, and how many of them, with how many bytes, may wait to be taken in."""
_MAX_KEPT_BYTES = 65_536
"""Bytes of a bad service message that is kept as a dead letter; of larger ones there is only the reason."""
_MAX_NAME_BYTES, _MAX_RECEIVER_BYTES, _MAX_URI_BYTES = 1024, 255, 512
"""Bytes of a message's identity and partition, of a receiver's identity, and of an address."""
_MAX_ROUTES_OF_NODE, _MAX_UNSIGNED_ROUTES = 50_000, 250_000
"""Messages and receivers of one node, and of all together that nobody vouches for; each takes about 400 bytes."""
_SHORT_BYTES, _MAX_APPLIED = 4096, 1000
"""Bytes of announcements that are always taken in anew, and how many longer ones are known again."""
_MAX_ANSWERED = 10_000
"""Questions of which it is remembered when they were answered."""
_OF_EACH_NODE = frozenset(
    (service.REQUEST_MESSAGE_ROUTES, service.REQUEST_EXTERNAL_ROUTES, service.REQUEST_INTERNAL_ROUTES)
)
"""Questions that each node answers for itself; older framewire nodes announce that they do."""


class Discovery:
    """Applies service messages. ``servers`` are those to talk to from now on, ``leader`` is one more.

    ``admits`` raises ``ValueError`` where a node must not be ``learned``, and tells whether it was elsewhere.
    ``spoke`` is called with a node that told of itself, and the last frame in which it did; ``announced`` with a
    node, and whether it introduces itself on the connections that it makes.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        port: Port,
        announcer: Announcer,
        namesakes: Namesakes,
        *,
        keyring: KeyRing | None,
        admits: Callable[[bytes, str, str, bool], bool],
        learned: Callable[[bytes, str, str, float, bool], None],
        announced: Callable[[bytes, bool], None],
        knows: Callable[[bytes], bool],
        spoke: Callable[[bytes, bytes], None],
        left: Callable[[bytes], None],
        servers: Callable[[list[tuple[str, str]]], None],
        leader: Callable[[tuple[str, str]], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._port = port
        self._announcer = announcer
        self._namesakes = namesakes
        self._keyring = keyring
        self._admits = admits
        self._learned = learned
        self._announced = announced
        self._knows = knows
        self._spoke = spoke
        self._left = left
        self._servers = servers
        self._leader = leader
        self._timers: set[asyncio.TimerHandle] = set()
        self._vouched: dict[bytes, tuple[str, str]] = {}
        self._owners: dict[bytes, bytes] = {}
        self._answered: dict[Hashable, float] = {}
        self._owed: set[Hashable] = set()
        self._waiting: deque[tuple[list[bytes], bool, int]] = deque()
        self._waiting_bytes = 0
        self._job: Iterator[None] | None = None
        self._turn: asyncio.Handle | None = None
        self._until = 0.0
        self._is_busy = False
        self._unsigned_routes: dict[bytes, int] = {}
        self._unsigned_total = 0
        self._body = b""
        """Of the message that is taken in now."""
        self._applied: dict[tuple[bytes, str, bool], tuple[int, int]] = {}
        """Long announcements that were taken in, and the counts of removals then: nodes repeat them often."""
        self._withdrawals = 0
        if settings.peers:
            self._keep_asking(settings.heartbeat)
        self._keep_asking(settings.rediscover)

    def use_keys(self, keyring: KeyRing | None) -> None:
        """Verify with other keys from now on; in domains that are new here, everyone will introduce themselves."""
        before, self._keyring = self._keyring, keyring
        self._applied.clear()
        if keyring is None or before is None or keyring.domains != before.domains:
            self._vouched.clear()
            self._owners.clear()

    def forget(self, peer: bytes) -> None:
        """Nobody vouches for a peer that is gone."""
        if self._vouched.pop(peer, None) is not None:
            for receiver in [receiver for receiver, owner in self._owners.items() if owner == peer]:
                del self._owners[receiver]
        self._unsigned_total -= self._unsigned_routes.pop(peer, 0)

    def vouch(self, peer: bytes, uri: str) -> None:
        """Take note of where a peer is that has signed a message, until it announces itself."""
        self._vouched.setdefault(peer, (uri, ""))

    def is_vouched(self, peer: bytes) -> bool:
        """Return whether a peer is known by a signature."""
        return peer in self._vouched

    # --- what it hears

    def hear(self, frames: list[bytes], *, straight: bool = False) -> None:
        """Take in a service message, now or when what came before it is done.

        To a peer from which it came straight, and not through a server, answers go the same way.
        """
        size = sum(map(len, frames))
        if size > _MAX_BYTES:
            detail = f"a service message of {size} bytes is ignored; at most {_MAX_BYTES}"
            self._port.refused(frames[0] if straight else b"", Reason.OVERSIZED, detail)
        elif len(self._waiting) >= _MAX_WAITING or self._waiting_bytes + size > _MAX_WAITING_BYTES:
            detail = f"{len(self._waiting)} service messages of {self._waiting_bytes} bytes wait already"
            self._port.refused(frames[0] if straight else b"", Reason.THROTTLED, detail)
        else:
            self._waiting.append((frames, straight, size))
            self._waiting_bytes += size
            self._work()

    @property
    def is_behind(self) -> bool:
        """Whether something that was heard has still to be taken in."""
        return self._job is not None or bool(self._waiting)

    def _work(self) -> None:
        """Take in what was heard, for as long as this turn of the event loop allows."""
        if self._is_busy:
            return  # taking in one message may let another come
        is_first = self._turn is None  # on a slow machine, too, each turn gets something done
        if self._turn is None:
            self._until = self._loop.time() + _SLICE_S
            self._turn = self._loop.call_soon(self._next_turn)
        self._is_busy = True
        try:
            while self.is_behind and (is_first or self._loop.time() < self._until):
                is_first = False
                if self._job is None:
                    frames, straight, size = self._waiting.popleft()
                    self._waiting_bytes -= size
                    self._job = self._take_in(frames, straight=straight)
                if next(self._job, self) is self:
                    self._job = None
        finally:
            self._is_busy = False

    def _next_turn(self) -> None:
        self._turn = None
        if self.is_behind:
            self._work()

    def _take_in(self, frames: list[bytes], *, straight: bool) -> Iterator[None]:
        """Take in a service message, and pause wherever others may have their turn."""
        try:
            message = decode(frames)
            take = self._HANDLERS.get(message.message_id)
            if take is None or message.domain not in self._announcer.domains:
                return
            if self._keyring is not None:
                self._keyring.verify(message, domain=message.domain)
            said, self._body = service.parse(message), message.body
            yield from take(self, said, message.domain) or ()
        except (WireError, BadSignature, ValueError) as problem:
            reason = Reason.BAD_SIGNATURE if isinstance(problem, BadSignature) else Reason.MALFORMED
            detail = f"a service message is ignored: {problem}"
            kept = frames if sum(map(len, frames)) <= _MAX_KEPT_BYTES else None
            self._port.refused(frames[0] if straight else b"", reason, detail, kept)
            return
        if message.message_id != service.REGISTER_EXTERNAL_ROUTE or said.node_identity == self._port.identity:
            return
        speaker: bytes = said.node_identity
        if not self._knows(speaker) or (speaker in self._vouched and not self._is_signed(message.domain)):
            return
        if straight:
            self._announcer.include(speaker)
        self._spoke(speaker, frames[-1])

    def _registered(self, said: Any, domain: str) -> Iterator[None]:
        node: bytes = said.node_identity
        if node == self._port.identity:
            self._namesake_registered(said, domain)
            return
        if not node or node[0] == 0 or len(node) > 255:
            raise ValueError(f"{node[:300]!r} is no identity of a node")
        health, interval = said.health.uri, service.seconds(said.health.interval)
        if max(len(said.uri), len(health)) > _MAX_URI_BYTES:
            raise ValueError(f"node {readable(node)} is at an address of more than {_MAX_URI_BYTES} bytes")
        if not (can_connect(said.uri) and (can_connect(health) or not health)):
            raise ValueError(f"node {readable(node)} is at {said.uri!r} and {health!r}: no addresses")
        place, signed = (said.uri, health), self._is_signed(domain)
        if not signed:
            yield from self._check_owners(said, domain)
        if signed:
            if self._admits(node, said.uri, health, True):
                yield from self._shrink(node, left=False)
            self._learned(node, said.uri, health, interval, True)
            self._vouched[node] = place
            self._unsigned_total -= self._unsigned_routes.pop(node, 0)
        elif self._vouched.get(node, place) not in (place, (said.uri, "")):  # a signed ask tells no health address
            raise self._unbelievable(node, f"is at {said.uri}", domain)
        elif node not in self._vouched:
            if not self._settings.believes_unsigned:
                raise self._closed(f"node {readable(node)}", domain)
            if self._admits(node, said.uri, health, False):
                yield from self._shrink(node, left=False)
            self._learned(node, said.uri, health, interval, False)
        if signed or node not in self._vouched:
            self._announced(node, bool(said.introduces))
        self._port.peer_registered(node, ())
        known = (_digest(self._body), domain, node in self._vouched)
        counts = (self._port.removals, self._withdrawals)
        if self._applied.get(known) == counts:
            return
        if signed or node not in self._vouched:
            for start in range(0, len(said.gone), _SLICE_ROUTES):
                gone = said.gone[start : start + _SLICE_ROUTES]
                self._take_off(node, [(Route(receiver), ()) for receiver in gone if receiver], signed=signed)
                yield
        for part in self._understood(said, domain):
            if not self._knows(node):
                return  # it is gone again
            self._check_room(node)
            if signed:
                self._owners.update((route.receiver, node) for route, _ in part)
            unsigned = node in self._vouched and not signed
            self._port.peer_registered(node, _of_no_domain(part) if unsigned else part)
            if node not in self._vouched:
                self._count(node)
            yield
        if known[0]:
            if len(self._applied) >= _MAX_APPLIED:
                self._applied.clear()
            self._applied[known] = counts

    def _shrink(self, node: bytes, *, left: bool) -> Iterator[None]:
        """Forget the routes of a node that is to be forgotten, up to the last few, bit by bit."""
        while self._port.routes_of(node) > _SLICE_ROUTES:
            self._port.peer_shrinks(node, _SLICE_ROUTES, left=left)
            yield

    def _namesake_registered(self, said: Any, domain: str) -> None:
        """Take in what a node of this one's identity says, which may be this one."""
        health, interval = said.health.uri, service.seconds(said.health.interval)
        if not (can_connect(said.uri) and (can_connect(health) or not health)):
            raise ValueError(f"a node of this one's identity is at {said.uri!r} and {health!r}: no addresses")
        if self._is_believed(domain):
            self._namesakes.heard_registration(said.uri, health, interval, signed=self._is_signed(domain))

    def _is_believed(self, domain: str) -> bool:
        """Whether what is said in a domain about this node's own identity counts: signed, where anything is."""
        return self._is_signed(domain) or not any(map(self._is_signed, self._announcer.domains))

    def _check_owners(self, said: Any, domain: str) -> Iterator[None]:
        """Raise ``BadSignature`` where a node claims receivers of one that is vouched for."""
        for count, route in enumerate(said.routes if self._owners else (), 1):
            owner = self._owners.get(route.receiver_identity, said.node_identity)
            if owner != said.node_identity:
                raise self._unbelievable(owner, f"shares receiver {readable(route.receiver_identity)}", domain)
            if not count % _SLICE_ROUTES:
                yield

    def _check_room(self, node: bytes) -> None:
        """Raise ``ValueError`` where a node has announced too much."""
        if self._port.routes_of(node) >= _MAX_ROUTES_OF_NODE:
            raise ValueError(f"node {readable(node)} has more than {_MAX_ROUTES_OF_NODE} messages and receivers")
        if node not in self._vouched and self._unsigned_total >= _MAX_UNSIGNED_ROUTES:
            raise ValueError(
                f"nodes without a signature have more than {_MAX_UNSIGNED_ROUTES} messages and receivers"
            )

    def _count(self, node: bytes) -> None:
        """Take note of how much a node has announced that nobody vouches for."""
        now = self._port.routes_of(node)
        self._unsigned_total += now - self._unsigned_routes.get(node, 0)
        self._unsigned_routes[node] = now

    def _unregistered(self, said: Any, domain: str) -> Iterator[None]:
        node: bytes = said.node_identity
        if node == self._port.identity or any(node == v1_name(uri) for uri in self._settings.v1_nodes):
            return
        signed = self._is_signed(domain)
        grace = service.seconds(said.grace) if said.HasField("grace") else None
        for part in self._understood(said, domain, named=True):
            # A hub is gone as a whole, whichever message it was that did not find it.
            gone = [
                (route, () if _is_hub(route.receiver) else messages)
                for route, messages in part
                if route.receiver or messages
            ]
            if not signed and node in self._vouched:
                gone = _of_no_domain(gone)
            self._take_off(node, gone, grace, signed=signed)
            yield

    def _take_off(self, node: bytes, gone: list[Registration], grace: float | None = None, *, signed: bool) -> None:
        """Forget what another node handles no longer."""
        if not gone:
            return
        for route, _ in gone if signed else ():
            if self._owners.get(route.receiver) == node:
                del self._owners[route.receiver]
        self._port.peer_unregistered(node, gone, grace)
        if node in self._unsigned_routes:
            self._count(node)

    def _understood(self, said: Any, domain: str, *, named: bool = False) -> Iterator[list[Registration]]:
        """Yield what a message tells of receivers and belongs to a domain, a slice at a time.

        ``named`` where a framewire node may tell which actors of its own an empty identity stands for.
        """
        found: list[Registration] = []
        count = 0
        for route in said.routes:
            contracts = route.contracts
            receivers = [route.receiver_identity]
            if named and not route.receiver_identity and route.actors:
                receivers = list(route.actors)
            longest = max(map(len, receivers))
            if longest > _MAX_RECEIVER_BYTES:
                raise ValueError(f"the identity of a receiver has {longest} bytes")
            total = len(contracts)
            for start in range(0, max(total, 1), _SLICE_ROUTES):
                messages = [service.message_id(one) for one in contracts[start : start + _SLICE_ROUTES]]
                if any(len(one.identity) + len(one.partition) > _MAX_NAME_BYTES for one in messages):
                    raise ValueError(f"a message's identity and partition have more than {_MAX_NAME_BYTES} bytes")
                ours = tuple(one for one in messages if self._is_of(domain, one))
                for receiver in receivers:
                    if ours or not total or _is_hub(receiver):  # a hub belongs to every domain
                        found.append((Route(receiver), ours))
                    count += 1 + len(messages)
                    if count >= _SLICE_ROUTES:
                        yield found
                        found, count = [], 0
        if found:
            yield found

    def _is_of(self, domain: str, message: MessageId) -> bool:
        """Return whether others may tell of a message in a domain; what each node is asked alone, none may."""
        return message not in _OF_EACH_NODE and self._announcer.domain_of(message) == domain

    def _node_unregistered(self, said: Any, domain: str) -> Iterator[None]:
        if said.node_identity == self._port.identity:
            if self._namesakes.knows(said.uri):
                self._answer_all(None)  # others take this node to have left, too
            return
        if said.node_identity in self._vouched and not self._is_signed(domain):
            raise self._unbelievable(said.node_identity, "has left", domain)
        yield from self._shrink(said.node_identity, left=True)
        self._announcer.forget(said.node_identity)
        self._left(said.node_identity)

    def _is_signed(self, domain: str) -> bool:
        """Whether what is said of nodes in a domain is signed."""
        ring = self._keyring
        return ring is not None and ring.is_signed(domain, service.REGISTER_EXTERNAL_ROUTE.identity)

    def _unbelievable(self, peer: bytes, what: str, domain: str) -> BadSignature:
        where = f"domain {domain!r}" if domain else "no domain"
        return BadSignature(
            f"that node {readable(peer)} {what} was said in {where}, and it is known by a signature"
        )

    def _closed(self, what: str, domain: str) -> BadSignature:
        where = f"domain {domain!r}" if domain else "no domain"
        return BadSignature(
            f"{what} was announced in {where} without a signature, and this node is closed (cluster.open = false)"
        )

    def _cluster_routes_requested(self, said: Any, domain: str) -> None:
        if not said.requestor_node_identity:
            self._answer_all(None)  # a server asks: there are others now who have not heard of this node
        elif said.requestor_node_identity != self._port.identity or (
            self._is_believed(domain) and self._namesakes.heard_request(said.requestor_uri)
        ):
            self._answer_all(domain)

    def _node_routes_requested(self, said: Any, domain: str) -> None:
        if said.target_node_identity == self._port.identity:
            self._namesakes.heard_question()
            self._answer_all(domain)

    def _route_wanted(self, said: Any, domain: str) -> None:
        if said.requestor_node_identity == self._port.identity:
            return
        wanted = service.message_id(said.contract)
        matching = self._port.registered(wanted, said.receiver_identity)
        if matching:
            asked = (domain, said.receiver_identity or wanted)
            self._answer(asked, lambda: self._announcer.register_in(domain, matching))

    def _reconfigured(self, said: Any, _: str) -> None:
        if not said.servers:
            raise ValueError("a new configuration without servers")
        if not self._settings.believes_unsigned:
            raise self._closed("new rendezvous servers", "")
        self._servers(list(map(_place, said.servers)))

    def _leader_named(self, said: Any, _: str) -> None:
        # A kino server that is not the leader repeats nothing of what it is told: without the leader nobody hears.
        if not self._settings.believes_unsigned:
            raise self._closed("another rendezvous server", "")
        self._leader(_place(said.leader))

    _HANDLERS: ClassVar[dict[MessageId, Callable[[Discovery, Any, str], Iterator[None] | None]]] = {
        service.REGISTER_EXTERNAL_ROUTE: _registered,
        service.UNREGISTER_MESSAGE_ROUTE: _unregistered,
        service.UNREGISTER_NODE: _node_unregistered,
        service.REQUEST_CLUSTER_ROUTES: _cluster_routes_requested,
        service.REQUEST_NODE_ROUTES: _node_routes_requested,
        service.DISCOVER_MESSAGE_ROUTE: _route_wanted,
        service.RENDEZVOUS_RECONFIGURED: _reconfigured,
        service.RENDEZVOUS_NOT_LEADER: _leader_named,
    }

    # --- when it speaks up

    def _answer(self, question: Hashable, answer: Callable[[], None]) -> None:
        """Answer a question; those who ask the same again and again are answered together."""
        if question in self._owed:
            return
        wait = self._answered.get(question, -math.inf) + _PAUSE - self._loop.time()
        if wait > 0:
            self._owed.add(question)
            self._later(wait, lambda: self._answer_now(question, answer))
        else:
            self._answer_now(question, answer)

    def _answer_now(self, question: Hashable, answer: Callable[[], None]) -> None:
        self._owed.discard(question)
        if len(self._answered) >= _MAX_ANSWERED:
            self._answered.clear()
        self._answered[question] = self._loop.time()
        answer()

    def _answer_all(self, domain: str | None) -> None:
        """Tell all in a domain, or in every one."""

        def tell() -> None:
            if domain is None:
                self._announcer.introduce()
            elif domain in self._announcer.domains:
                self._announcer.tell_all_in(domain)

        self._answer(domain, tell)

    def connected(self) -> None:
        """A server is there. It may be slow to take note of who listens, so it is told twice."""
        self._later(_SETTLING, self._announcer.introduce)
        self._later(max(2 * _SETTLING, self._settings.heartbeat / 2), self._announcer.introduce)

    def _keep_asking(self, interval: float) -> None:
        def again() -> None:
            self._announcer.introduce()
            self._later(interval, again)

        self._later(interval, again)

    def _later(self, delay: float, call: Callable[[], None]) -> None:
        def due() -> None:
            self._timers.discard(timer)
            call()

        timer = self._loop.call_later(delay, due)
        self._timers.add(timer)

    def close(self) -> None:
        """Speak up no more, and take in nothing that waits."""
        if self._turn is not None:
            self._turn.cancel()
        self._waiting.clear()
        self._job = None
        for timer in self._timers:
            timer.cancel()


def _of_no_domain(registrations: list[Registration]) -> list[Registration]:
    """What counts without a signature: hubs belong to every domain, and so does a receiver as a whole."""
    return [(route, messages) for route, messages in registrations if messages and not _is_hub(route.receiver)]


def _digest(body: bytes) -> bytes:
    """Return what a long announcement is known again by; empty for one that is taken in sooner than that."""
    return blake2b(body, digest_size=16).digest() if len(body) > _SHORT_BYTES else b""


def _is_hub(receiver: bytes) -> bool:
    return receiver[:1] == bytes([HUB])


def _place(server: Any) -> tuple[str, str]:
    place = (server.unicast_uri, server.broadcast_uri)
    if not all(map(can_connect, place)):
        raise ValueError(f"a server at {place!r}: no addresses")
    return place
