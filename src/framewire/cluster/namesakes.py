"""Two nodes of one identity: found, told of, and the newer one refused.

Identities are how nodes address each other, so messages for one of two namesakes reach the other. A node with a
configured identity therefore asks, by kino's own messages, whether a node of that identity is there
(KINO.REQNODEROUTES, which every node answers), and announces nothing of itself before it knows. A node that answers
and gives signs of life is the older one, and the newer one does not start. One that was killed does neither, so it
can be started again at once, at any address.

Two that could not hear of each other when they were started both go on, and both tell of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum, auto

import zmq

from framewire.cluster import service
from framewire.cluster.curve import PLAIN, Mechanism
from framewire.cluster.resolver import Dialer, Resolver, is_name
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.sockets import CannotListenError, Reader, make_socket
from framewire.errors import ConfigError, WireError
from framewire.wire import decode
from framewire.wire.message import readable

__all__ = ["Namesakes"]

log = logging.getLogger("framewire.cluster")

CONNECT_S = 1.0
"""That a start waits for a server; without one, it goes on, and the check is made when there is one."""
ASK_EVERY_S = 0.05
"""Between questions, until the first of them was heard back."""
PROBE_S = 30.0
"""Between questions at most, while nothing tells that a server is there."""
ASK_S = 1.0
"""After which it is taken that questions are not heard back."""
ANSWER_S = 0.3
"""That another node has to answer, from when the question was heard back."""
PROBATION_S = 5.0
"""After the check in which a node that hears of another makes it again: that one may have been slow to answer."""
TELL_EVERY_S = 10.0
"""Between two reports of one thing."""
MAX_SILENCE_S = 10.0
"""For which a namesake may be silent before it is taken to be gone, whatever it says of itself."""
_LARGEST = 65_536
_MAX_TOLD = 100
"""Addresses of namesakes that are remembered."""
_ABOUT_THIS_NODE = frozenset((service.UNREGISTER_MESSAGE_ROUTE.identity, service.UNREGISTER_NODE.identity))


class _Phase(Enum):
    UNCHECKED = auto()
    ASKING = auto()
    HELD = auto()
    REFUSED = auto()


class Namesakes:
    """Finds other nodes of this one's identity. Until ``is_held``, nothing may be announced.

    ``ask`` sends the question, ``hold`` announces the node, ``tell`` reports a namesake, ``refuse`` stops the node.
    ``allows`` tells whether a namesake may be listened to at a numeric address that was announced unsigned.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        settings: ClusterSettings,
        identity: bytes,
        uri: str,
        *,
        checked: bool,
        resolver: Resolver,
        mechanism: Mechanism = PLAIN,
        allows: Callable[[str], bool] = lambda _: True,
        ask: Callable[[], None],
        hold: Callable[[], None],
        tell: Callable[[str], None],
        refuse: Callable[[ConfigError], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = context
        self._settings = settings
        self._identity = identity
        self._uri = uri
        self._resolver = resolver
        self._mechanism = mechanism
        self._allows = allows
        self._ask = ask
        self._hold = hold
        self._tell = tell
        self._refuse = refuse
        self._phase = _Phase.UNCHECKED if checked else _Phase.HELD
        self._was_held = not checked
        self._held_at = -PROBATION_S
        self._told_at: dict[str, float] = {}
        self._last_told_at = -TELL_EVERY_S
        self._newer: set[str] = set()
        """Addresses of namesakes that have asked while this node already had its identity."""
        self._timer: asyncio.TimerHandle | None = None
        self._asked_until = 0.0
        self._heard_back = False
        self._has_rival = False
        self._listener: _Listener | None = None
        self._began = asyncio.Event()
        self._ended = asyncio.Event()
        if not checked:
            self._ended.set()
        self.refusal: ConfigError | None = None

    @property
    def is_held(self) -> bool:
        """Whether the identity is this node's, so that it may announce itself."""
        return self._phase is _Phase.HELD

    def may_say(self, message: bytes) -> bool:
        """Whether a service message may be sent now: others must not take a node to be moved or gone by mistake."""
        if message == service.REGISTER_EXTERNAL_ROUTE.identity:
            return self.is_held
        return self._was_held or message not in _ABOUT_THIS_NODE

    def knows(self, uri: str) -> bool:
        """Whether another node of this identity was heard of at an address."""
        return uri in self._told_at

    async def settled(self) -> None:
        """Wait for the check to end, not long where there is no server; raise ``ConfigError`` if it is refused."""
        if self._ended.is_set():
            return
        if self._phase is _Phase.UNCHECKED:
            self._probe(ASK_EVERY_S)
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._began.wait()
        except TimeoutError:
            log.warning(
                "no rendezvous server is there yet, so it is not known whether another node has the identity %r; "
                "this one announces itself when that is known",
                self._name,
            )
            self._ended.set()  # whoever starts the node waits no longer
            return
        await self._ended.wait()  # timers of the check see to it
        if self.refusal is not None:
            raise self.refusal

    @property
    def _name(self) -> str:
        return readable(self._identity)

    # --- what happens

    def connected(self) -> None:
        """A server is there."""
        if self._phase is _Phase.UNCHECKED:
            self._begin()

    def probe(self) -> None:
        """Ask whether a server is there: there is a connection, but nothing tells that it works."""
        if self._phase is _Phase.UNCHECKED:
            self._cancel()
            self._probe(ASK_EVERY_S)

    def heard_question(self) -> None:
        """Somebody has asked for a node of this identity, and whoever is connected to that server has heard it."""
        self.connected()
        if self._phase is _Phase.ASKING and not self._heard_back:
            self._heard_back = True
            self._wait(ANSWER_S)

    def heard_request(self, uri: str) -> bool:
        """A node of this identity asks what there is; whether it is another, so that it is to be answered."""
        if uri == self._uri:
            self.connected()
            return False
        if self._phase is _Phase.HELD:
            self._report(uri)
            if len(self._newer) >= _MAX_TOLD:
                self._newer.clear()
            self._newer.add(uri)
        elif uri < self._uri:
            self._has_rival = True  # both have just come: the other is to be first, and will be heard of
        return self.is_held

    def heard_registration(self, uri: str, health_uri: str, interval: float, *, signed: bool = False) -> None:
        """A node of this identity announces itself; ``signed`` where that was signed."""
        if uri == self._uri or self._phase is _Phase.REFUSED:
            return
        self._report(uri)
        if self._phase is _Phase.HELD:
            if uri not in self._newer and self._loop.time() - self._held_at < PROBATION_S:
                self._begin()
            return
        if not (signed or is_name(health_uri) or not health_uri or self._allows(health_uri)):
            return  # whoever made it up has this node connect to its own machine
        if self._listener is None:
            self._cancel()
            if not health_uri:
                self._be_refused(uri, "answers")
                return
            allows = _everything if signed else self._allows
            self._listener = _Listener(
                self._context, health_uri, self._identity, self._resolver, self._mechanism, allows, trusted=signed
            )
            self._listener.heard = lambda: self._be_refused(uri, f"gives signs of life at {health_uri}")
            silence = max(interval, 0.05) * self._settings.misses
            self._wait(min(1.0 + silence, MAX_SILENCE_S))

    # --- the check

    def _probe(self, delay: float) -> None:
        """Ask until a question is heard back: nothing else tells that an old kino's server is there."""
        self._ask()
        self._timer = self._loop.call_later(delay, self._probe, min(2 * delay, PROBE_S))

    def _begin(self) -> None:
        self._cancel()
        self._phase = _Phase.ASKING
        self._began.set()
        self._heard_back = self._has_rival = False
        self._asked_until = self._loop.time() + ASK_S
        self._ask_again()

    def _ask_again(self) -> None:
        self._ask()
        over = self._loop.time() >= self._asked_until
        self._timer = self._loop.call_later(ASK_EVERY_S, self._end if over else self._ask_again)

    def _wait(self, seconds: float) -> None:
        self._cancel()
        self._timer = self._loop.call_later(seconds, self._end)

    def _end(self) -> None:
        """Nobody has answered, or nobody who lives."""
        self._cancel()
        if self._listener is not None:
            log.info("a node called %s was announced, but gives no sign of life", self._name)
            self._stop_listening()
        if self._has_rival:
            self._has_rival = False
            self._ask()
            self._wait(3 * ANSWER_S)
            return
        self._phase = _Phase.HELD
        if not self._was_held:
            self._was_held = True
            self._held_at = self._loop.time()
        self._ended.set()
        self._hold()

    def _be_refused(self, uri: str, sign: str) -> None:
        if self._phase is _Phase.REFUSED:
            return
        self._phase = _Phase.REFUSED
        self._cancel()
        self._ask()  # so that the other one hears of this one, too
        self._loop.call_soon(self._stop_listening)  # it is what calls
        problem = (
            f"identity: {self._name!r} is the identity of another node, at {uri}, which {sign}; stop that one, or "
            "give this one an identity of its own"
        )
        self.refusal = CannotListenError("node settings", [problem])
        log.error("this node, at %s, is refused: %s", self._uri, problem)
        started = self._ended.is_set()
        self._began.set()
        self._ended.set()
        if started:
            self._refuse(self.refusal)

    def _report(self, uri: str) -> None:
        now = self._loop.time()
        if now - self._told_at.get(uri, -TELL_EVERY_S) < TELL_EVERY_S or now - self._last_told_at < 1.0:
            return
        if len(self._told_at) >= _MAX_TOLD:
            self._told_at.clear()
        self._told_at[uri] = self._last_told_at = now
        detail = (
            f"there are two nodes of the identity {self._name!r}: this one at {self._uri}, and one at {uri}. "
            "Messages for one reach the other; stop one of them, or give it an identity of its own"
        )
        log.error("%s", detail)
        self._tell(detail)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def close(self) -> None:
        """Find nobody any more."""
        self._cancel()
        self._stop_listening()


def _everything(_: str) -> bool:
    return True


class _Listener:
    """Listens for the signs of life of a node of one identity at one address, and calls ``heard`` for each."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        uri: str,
        identity: bytes,
        resolver: Resolver,
        mechanism: Mechanism,
        allows: Callable[[str], bool],
        *,
        trusted: bool,
    ) -> None:
        self._identity = identity
        self.heard: Callable[[], None] = lambda: None
        source = make_socket(
            context, zmq.SUB, SUBSCRIBE=b"", CONNECT_TIMEOUT=1000, MAXMSGSIZE=_LARGEST, **mechanism.connecting
        )
        self._reader = Reader(source, self._take, 100, _LARGEST)
        loop = asyncio.get_running_loop()
        dialer = Dialer(source, resolver, lambda: loop.call_soon_threadsafe(dialer.settle), allows, trusted=trusted)
        try:
            dialer.connect(uri)
        except zmq.ZMQError as problem:
            log.debug("a namesake cannot be listened to at %s: %s", uri, problem)

    def _take(self, frames: list[bytes]) -> None:
        try:
            message = decode(frames)
            if message.message_id != service.HEARTBEAT:
                return
            beat = service.parse(message)
        except (WireError, ValueError):
            return
        if beat.socket_identity == self._identity:
            self.heard()

    def close(self) -> None:
        """Listen no more."""
        self._reader.close()
