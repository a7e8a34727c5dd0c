"""What a node tells the others of itself, and what it asks them: service messages, through every way that it has.

Nothing that is said is confirmed. So a node says all that it has whenever that may have been missed, and also what
it has no longer.

An actor that is gone is taken off with an empty receiver identity, which for kino means all actors of the node for
those messages, and then the actors that still handle them are announced again. An unregistration with the actor's
own identity and several messages would break kino's routing table until its process is restarted. Which actors are
gone is in a field of our own (``actors``), so framewire nodes forget only those.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from framewire.cluster import service
from framewire.cluster.settings import ClusterSettings
from framewire.errors import MessageError, UsageError
from framewire.node.transport import Port, Registration
from framewire.routing import HUB, Route
from framewire.security import KeyRing
from framewire.wire import Message, MessageId, encode

__all__ = ["Announcer"]

log = logging.getLogger("framewire.cluster")

_REMEMBERED = 1000
"""Receivers that are gone, of which others are told when they ask."""
_MAX_ROUTES, _MAX_CONTRACTS = 1000, 2000
"""Receivers, and what they handle, that are told in one message: others take messages of a few MB, in slices."""
_MAX_STRAIGHT = 1000
"""Peers that are told everything straight."""
_STRAIGHT_AT_ONCE = 100
"""Of these that are told in one turn of the event loop: each may need a socket, which takes about 50 µs."""
_MOST_SAID = 10_000
"""Questions and withdrawals that are remembered so that they are not repeated at once."""


class Announcer:
    """One node's voice: ``say`` reaches whoever listens, ``send`` a single peer."""

    def __init__(
        self,
        settings: ClusterSettings,
        port: Port,
        *,
        uri: str,
        health_uri: str,
        keyring: KeyRing | None,
        say: Callable[[list[bytes]], None],
        send: Callable[[bytes, list[bytes]], object],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._port = port
        self._uri = uri
        self._health_uri = health_uri
        self._keyring = keyring
        self._say_to_all = say
        self._send = send
        self._straight: dict[bytes, None] = {}
        self._said: dict[Hashable, float] = {}
        self._withdrawn: dict[Route, tuple[MessageId, ...]] = {}
        self._written: dict[str, tuple[tuple[list[Registration], list[bytes]], KeyRing | None, list[Message]]] = {}
        """All that was told in a domain the last time, and as which messages: nodes repeat it often."""

    # --- to whom, and in which domains

    @property
    def domains(self) -> list[str]:
        """The domains that this node speaks in; without keys there is only the nameless one.

        That is the last: where somebody is known by a signature, others believe no less about it (``Discovery``).
        """
        return [""] if self._keyring is None else [*sorted(self._keyring.domains), ""]

    def domain_of(self, message: MessageId) -> str:
        """The domain in which others are told who handles a message."""
        return "" if self._keyring is None else self._keyring.domain_of(message.identity)

    def use_keys(self, keyring: KeyRing | None) -> None:
        """Speak with other keys from now on; where domains come or go, take leave of the old and join the new."""
        before, domains = self._keyring, self.domains
        left = set(domains) - ({""} if keyring is None else {"", *keyring.domains})
        for domain in left:
            self._unregister_in(domain, self._port.registrations)
        self._keyring = keyring
        self._written.clear()
        if self.domains != domains or _identities(before) != _identities(keyring):
            self.introduce()

    def include(self, peer: bytes) -> None:
        """Tell a peer everything straight, too: it is not known to hear what servers say."""
        if len(self._straight) < _MAX_STRAIGHT:
            self._straight[peer] = None

    def forget(self, peer: bytes) -> None:
        """Say nothing more to a peer that is gone."""
        self._straight.pop(peer, None)

    # --- what this node has

    def introduce(self) -> None:
        """Tell all that this node has and has no longer, and ask for all that there is."""
        for domain in self.domains:
            self.tell_all_in(domain)
        self._say(
            service.service_message(
                service.REQUEST_CLUSTER_ROUTES,
                requestor_uri=self._uri,
                requestor_node_identity=self._port.identity,
            ),
            self.domains,
        )

    def register(self, registrations: Iterable[Registration]) -> None:
        """Tell of receivers."""
        registered = list(registrations)
        self._said.clear()  # what was withdrawn may be here again, and may go again
        for route, _ in registered:
            self._withdrawn.pop(route, None)
        for domain in self.domains:
            self.register_in(domain, registered)

    def unregister(self, registrations: Iterable[Registration], grace: float | None = None) -> None:
        """Tell of receivers that are gone, or never were; without an identity, all that handled the message.

        What other actors of this node still handle is announced again after that. ``grace`` is for how many seconds
        those are to be waited for that have left in good order.
        """
        gone = [(route, messages) for route, messages in registrations if self._is_news((route, messages))]
        self._withdrawn |= {route: messages for route, messages in gone if route.receiver}
        for forgotten in tuple(self._withdrawn)[: len(self._withdrawn) - _REMEMBERED]:
            del self._withdrawn[forgotten]
        named = {message for route, messages in gone if _is_actor(route) for message in messages}
        still = _of_messages(self._port.registrations, named)
        never = self._never_here(gone, still) if grace is None and still else set()
        for domain in self.domains:
            self._unregister_in(domain, [each for each in gone if each[0] not in never], grace)
            self.register_in(domain, still, [route.receiver for route in never])

    def _never_here(self, gone: list[Registration], still: list[Registration]) -> set[Route]:
        """Return actors that were addressed here in vain, all of whose messages others handle.

        Kino need not hear of them, and would forget those others for a moment. A node that is known by a signature
        is not believed in no domain that an actor is gone as a whole.
        """
        here = {route for route, _ in self._port.registrations}
        handled = {message for _, messages in still for message in messages}
        return {
            route
            for route, messages in gone
            if _is_actor(route)
            and route not in here
            and handled.issuperset(messages)
            and (self._keyring is None or all(map(self.domain_of, messages)))
        }

    def tell_all_in(self, domain: str) -> None:
        """Tell all that this node has in a domain, after what it has no longer."""
        registered = list(self._port.registrations)
        taken_off: list[Registration] = []
        gone: list[bytes] = []
        if self._withdrawn:
            here = {route for route, _ in registered}
            handled = {message for _, messages in registered for message in messages}
            for route, messages in self._withdrawn.items():
                # Kino must not forget, not even for a moment, what another actor handles.
                unhandled = tuple(message for message in messages if message not in handled)
                taken_off.append((route, messages if _is_hub(route) else unhandled))
                if len(unhandled) < len(messages) and route not in here and self._concerns(messages, domain):
                    gone.append(route.receiver)
        self._unregister_in(domain, taken_off)
        all_there_is = (registered, gone)
        known, ring, written = self._written.get(domain, (None, None, []))
        if known != all_there_is or ring is not self._keyring:
            written = list(self._registrations(domain, registered, gone))
            self._written[domain] = (all_there_is, self._keyring, written)
        for message in written:
            self._say(message, [domain])

    def _concerns(self, messages: Iterable[MessageId], domain: str) -> bool:
        return any(self.domain_of(message) == domain for message in messages)

    def register_in(self, domain: str, registrations: Iterable[Registration], gone: Iterable[bytes] = ()) -> None:
        """Tell of receivers in one domain; nothing where none of them has to do with it.

        ``gone`` are actors that have left, though what they handled is still handled here.
        """
        for message in self._registrations(domain, registrations, gone):
            self._say(message, [domain])

    def _registrations(
        self, domain: str, registrations: Iterable[Registration], gone: Iterable[bytes]
    ) -> Iterator[Message]:
        health = service.body("Health", uri=self._health_uri, interval=service.time_span(self._settings.heartbeat))
        for routes in _in_parts(self._routes(registrations, domain)):
            yield service.service_message(
                service.REGISTER_EXTERNAL_ROUTE,
                uri=self._uri,
                node_identity=self._port.identity,
                routes=routes,
                health=health,
                gone=gone,
                introduces=True,
            )
            gone = ()

    def leave(self) -> None:
        """Take leave of everyone."""
        message = service.service_message(service.UNREGISTER_NODE, uri=self._uri, node_identity=self._port.identity)
        self._say(message, self.domains, at_once=True)

    def _unregister_in(
        self, domain: str, registrations: Iterable[Registration], grace: float | None = None
    ) -> None:
        told = {} if not grace else {"grace": service.time_span(grace)}
        for routes in _in_parts(self._withdrawals(registrations, domain)):
            message = service.service_message(
                service.UNREGISTER_MESSAGE_ROUTE,
                uri=self._uri,
                node_identity=self._port.identity,
                routes=routes,
                **told,
            )
            self._say(message, [domain])

    def _withdrawals(self, registrations: Iterable[Registration], domain: str) -> Iterator[Any]:
        """Yield entries of an unregistration, each with contracts: kino fails on one without."""
        actors: dict[tuple[MessageId, ...], list[bytes]] = {}
        hubs: list[Registration] = []
        for route, messages in registrations:
            if _is_hub(route):
                hubs.append((route, messages))
            else:
                actors.setdefault(messages, []).append(route.receiver)
        yield from (entry for entry in self._routes(hubs, domain) if entry.contracts)
        for messages, receivers in actors.items():
            for start in range(0, len(receivers), _MAX_ROUTES):
                named = receivers[start : start + _MAX_ROUTES]
                for entry in self._routes([(Route(b""), messages)], domain):
                    entry.actors.extend(() if b"" in named else named)  # an empty one stands for all
                    yield entry

    def _routes(self, registrations: Iterable[Registration], domain: str) -> Iterator[Any]:
        for route, messages in registrations:
            hub = _is_hub(route)
            ours = [message for message in messages if hub or self.domain_of(message) == domain]
            if ours or hub:  # an actor that handles nothing is nobody's concern, and kino fails on it
                for start in range(0, max(len(ours), 1), _MAX_CONTRACTS):
                    contracts = [service.contract(message) for message in ours[start : start + _MAX_CONTRACTS]]
                    yield service.body("RouteRegistration", receiver_identity=route.receiver, contracts=contracts)

    # --- what it wants to know

    def discover(self, message: MessageId, receiver: bytes) -> None:
        """Ask who handles a message, or where a hub is; the same question not more than once a heartbeat."""
        if not self._is_news((message, receiver)):
            return
        question: dict[str, Any] = {
            "requestor_node_identity": self._port.identity,
            "requestor_uri": self._uri,
            "contract": service.contract(message),
        }
        hub = bool(receiver) and receiver[0] == HUB
        if hub:
            question["receiver_identity"] = receiver
        domains = self.domains if hub else [self.domain_of(message)]
        self._say(service.service_message(service.DISCOVER_MESSAGE_ROUTE, **question), domains)

    def ask_node(self, identity: bytes) -> None:
        """Ask one node to tell what it has."""
        self._say(
            service.service_message(service.REQUEST_NODE_ROUTES, target_uri="", target_node_identity=identity),
            self.domains,
        )

    def ask_straight(self, identity: bytes) -> None:
        """The same over the way to that node itself, as soon as there is one."""
        asked = service.service_message(service.REQUEST_NODE_ROUTES, target_uri="", target_node_identity=identity)
        for domain in self.domains:
            with contextlib.suppress(UsageError, MessageError):
                said = asked if self._keyring is None else self._keyring.sign(asked, domain=domain)
                self._send(identity, encode(said, self._settings.wire_version))

    # --- how

    def _is_news(self, words: Hashable) -> bool:
        """Whether this has not been said just now; what is said again and again is said twice a heartbeat."""
        now = self._loop.time()
        last = self._said.get(words)
        if last is not None and now - last < self._settings.heartbeat / 2:
            return False
        if len(self._said) >= _MOST_SAID:
            self._said.clear()
        self._said[words] = now
        return True

    def _say(self, message: Message, domains: Iterable[str], *, at_once: bool = False) -> None:
        for domain in domains:
            try:
                said = message if self._keyring is None else self._keyring.sign(message, domain=domain)
            except UsageError as problem:
                log.warning("not announced: %s", problem)
                continue
            frames = encode(said, self._settings.wire_version)
            self._say_to_all(frames)
            if self._straight:
                peers = tuple(self._straight)
                self._say_straight(frames, peers, len(peers) if at_once else _STRAIGHT_AT_ONCE)

    def _say_straight(self, frames: list[bytes], peers: tuple[bytes, ...], most: int) -> None:
        """Send to so many peers now, and to the others in the next turns; all that is said takes the same turns."""
        for peer in peers[:most]:
            if peer in self._straight:
                with contextlib.suppress(MessageError):  # gone, or too slow; it will ask again
                    self._send(peer, list(frames))
        if len(peers) > most:
            self._loop.call_soon(self._say_straight, frames, peers[most:], most)


def _in_parts(routes: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield as many routes together as fit into one message."""
    part: list[Any] = []
    contracts = 0
    for route in routes:
        size = len(route.contracts) + len(route.actors)
        if part and (len(part) >= _MAX_ROUTES or contracts + size > _MAX_CONTRACTS):
            yield part
            part, contracts = [], 0
        part.append(route)
        contracts += size
    if part:
        yield part


def _is_hub(route: Route) -> bool:
    return route.receiver[:1] == bytes([HUB])


def _is_actor(route: Route) -> bool:
    return bool(route.receiver) and not _is_hub(route)


def _of_messages(registrations: Iterable[Registration], messages: set[MessageId]) -> list[Registration]:
    """Return the registrations that have to do with some messages, with no others."""
    found = ((route, tuple(filter(messages.__contains__, handled))) for route, handled in registrations)
    return [(route, handled) for route, handled in found if handled]


def _identities(keyring: KeyRing | None) -> dict[str, tuple[bytes, ...]]:
    return {} if keyring is None else dict(keyring.identities)
