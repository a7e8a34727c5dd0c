"""A node's connection to other nodes over ZeroMQ, filling the seam in ``framewire.node.transport``."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import zmq

from framewire.cluster import service
from framewire.cluster.addresses import any_port, can_connect, candidates, reachable
from framewire.cluster.announcing import Announcer
from framewire.cluster.curve import PLAIN, Doorkeeper, Mechanism
from framewire.cluster.discovery import Discovery
from framewire.cluster.intake import Intake
from framewire.cluster.links import Links, Traffic
from framewire.cluster.liveness import Liveness
from framewire.cluster.old_peers import V5, Formats, Guests, sender_of
from framewire.cluster.open_paths import OpenPaths
from framewire.cluster.pace import make_context
from framewire.cluster.parting import LastCalls, Partings
from framewire.cluster.returning import Returning
from framewire.cluster.server_way import Arrivals
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.sockets import Reader, bind_first, make_socket
from framewire.cluster.vigil import vigil_at
from framewire.cluster.ways import Ways
from framewire.errors import (
    BadSignature,
    MessageError,
    NodeStopped,
    NoRoute,
    Overloaded,
    Unreachable,
    UsageError,
    WireError,
)
from framewire.node.deadletters import Reason
from framewire.node.mailbox import Room
from framewire.node.transport import Port, Registration
from framewire.security import KeyRing
from framewire.wire import MessageId, decode, encode
from framewire.wire.message import readable

__all__ = ["SocketTransport"]

log = logging.getLogger("framewire.cluster")

_LINGER = 1000
"""Milliseconds that closing waits for what was sent to be on its way."""

_SERVICE = frozenset(
    message.identity
    for message in (
        service.REGISTER_EXTERNAL_ROUTE,
        service.UNREGISTER_MESSAGE_ROUTE,
        service.UNREGISTER_NODE,
        service.UNREGISTER_UNREACHABLE_NODE,
        service.REQUEST_CLUSTER_ROUTES,
        service.REQUEST_NODE_ROUTES,
        service.DISCOVER_MESSAGE_ROUTE,
        service.PING,
    )
)
"""What is not routed but heard, also where it comes straight from a peer."""

_TOLERATED = 2
"""How many times as large a single frame may be to be dropped alone; ZeroMQ ends the connection of a larger one."""
_MOST_PEERS = 10_000
"""Nodes that are known at a time: whoever makes up names must not fill the memory with them."""


class SocketTransport:
    """Sockets, discovery and liveness of one node."""

    def __init__(self, settings: ClusterSettings, keyring: KeyRing | None = None) -> None:
        self._settings = settings
        self._keyring = keyring
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._doorkeeper: Doorkeeper | None = None
        self._paths = OpenPaths()
        self._places: dict[bytes, tuple[str, str]] = {}
        self._formats = Formats(settings.wire_version)
        self.uri = ""

    async def start(self, port: Port) -> None:
        self._port = port
        self._receive = port.receive
        self._receive_alike = port.receive_alike
        self._shunned = port.shunned
        self._identity = port.identity
        self._loop = asyncio.get_running_loop()
        context, self._pace = make_context()
        try:
            if self._settings.curve is not None:
                self._doorkeeper = Doorkeeper(context, self._settings.curve)
            self._open(context, port, PLAIN if self._doorkeeper is None else self._doorkeeper.mechanism)
        except BaseException:
            self._dismiss_doorkeeper()
            context.destroy(0)
            self._paths.close()
            raise
        self._context = context
        self._liveness.start()
        self._announcer.introduce()

    def _dismiss_doorkeeper(self) -> None:
        if self._doorkeeper is not None:
            self._doorkeeper.close()
            self._doorkeeper = None

    def _open(self, context: zmq.Context[zmq.Socket[bytes]], port: Port, mechanism: Mechanism) -> None:
        settings = self._settings
        # What can fail comes first, and what the event loop would have to be told to forget comes last.
        front = make_socket(
            context,
            zmq.ROUTER,
            ROUTING_ID=port.identity,
            ROUTER_MANDATORY=1,
            RCVHWM=10_000,
            MAXMSGSIZE=settings.max_message_bytes * _TOLERATED,
            **mechanism.listening,
        )
        bound = bind_first(front, candidates(self._paths.settle(settings.bind)))
        self.uri = reachable(bound, settings.advertise)
        advertised = any_port(settings.advertise) if settings.advertise else None
        self._liveness = Liveness(
            context,
            settings,
            port.identity,
            candidates(self._paths.settle(settings.health or any_port(bound))),
            settings.advertise_health or advertised,
            mechanism=mechanism,
            lost=lambda peer: self._loop.call_soon_threadsafe(self._lost, peer),
            found=lambda peer: self._loop.call_soon_threadsafe(self._found, peer),
            refused=lambda count, why: self._loop.call_soon_threadsafe(self._strange_beats, count, why),
        )
        self._ways = Ways(context, settings, mechanism=mechanism, hear=self._hear, connected=self._connected)
        self._links = Links(
            context,
            settings,
            mechanism=mechanism,
            lost=self._cut_off,
            undelivered=self._undelivered,
            turn=self._pace.turn,
            alone=self._await_answer,
        )
        self._announcer = Announcer(
            settings,
            port,
            uri=self.uri,
            health_uri=self._liveness.uri,
            keyring=self._keyring,
            say=self._ways.say,
            send=self._send,
        )
        self._discovery = Discovery(
            settings,
            port,
            self._announcer,
            keyring=self._keyring,
            learned=self._learned,
            left=self._left,
            servers=self._ways.use,
            leader=self._ways.follow,
        )
        self._guests = Guests(
            port.identity, settings.versions, admit=port.admit, dismiss=port.dismiss, send=self._send_back
        )
        self._partings = Partings(settings.patience, port.peer_lost)
        self._returning = Returning(self._announcer, settings.patience, find=self._links.learn, drop=self._drop)
        limits = (settings.max_frames, settings.max_message_bytes)
        take: Callable[[list[bytes]], None] = self._take
        take_run: Callable[[list[list[bytes]]], bool] | None = self._take_run
        if settings.peer_rate is not None:
            take, take_run = Intake(settings.peer_rate, port, self._take, self._loop.time).take, None
        self._handshakes = Arrivals(front, lambda: None, port.turned_away) if mechanism.is_curve else None
        self._keep_vigil = vigil_at(int(front.getsockopt(zmq.FD)), settings.vigil)
        self._front = Reader(front, take, *limits, take_run=take_run, several=port.several, dropped=self._oversized)

    def _await_answer(self) -> None:
        if self._port.awaited == 1:
            self._keep_vigil()

    def _oversized(self, offenders: Counter[bytes]) -> None:
        settings = self._settings
        detail = f"more than {settings.max_frames} frames (max_frames) or {settings.max_message_bytes} bytes"
        for peer, count in offenders.items():
            self._port.refused(peer, Reason.OVERSIZED, f"{detail} (max_message_bytes)", count=count)

    def _strange_beats(self, count: int, why: str) -> None:
        self._port.refused(b"", Reason.MALFORMED, why, count=count)

    def uri_of(self, peer: bytes) -> str:
        """Where a peer is reached; empty where that is not known."""
        return self._places.get(peer, ("", ""))[0]

    @property
    def traffic(self) -> Mapping[bytes, Traffic]:
        """What went to each peer."""
        return self._links.traffic if self._context is not None else {}

    # --- what the node asks for

    def use_keys(self, keyring: KeyRing | None) -> None:
        """Sign and verify service messages with other keys from now on."""
        self._keyring = keyring
        if self._context is not None:
            self._announcer.use_keys(keyring)
            self._discovery.use_keys(keyring)

    def send(self, peer: bytes, frames: list[bytes]) -> Room | None:
        if self._context is None:
            raise NodeStopped("this node is not connected")
        formats = self._formats
        frames[-1] = formats.others.get(peer, formats.usual)
        return self._links.send(peer, frames)

    def announce(self, registrations: Iterable[Registration]) -> None:
        if self._context is not None:
            self._announcer.register(registrations)

    def withdraw(self, registrations: Iterable[Registration]) -> None:
        if self._context is not None:
            self._announcer.unregister(registrations)

    def discover(self, message: MessageId, receiver: bytes) -> None:
        if self._context is not None:
            self._announcer.discover(message, receiver)

    async def stop(self) -> None:
        if self._context is not None:
            if self._places:
                calls = LastCalls(self._receive)
                self._receive = calls.receive
                self._receive_alike = calls.receive_alike
                await calls.over()
            await self._links.drained(_LINGER / 1000)
        context, self._context = self._context, None
        if context is None:
            return
        self._announcer.leave()
        self._discovery.close()
        self._partings.close()
        self._returning.close()
        if self._handshakes is not None:
            self._handshakes.close()
        self._front.close()
        self._liveness.stop()
        self._links.close(_LINGER)
        self._ways.close(_LINGER)
        self._dismiss_doorkeeper()
        await asyncio.to_thread(context.term)
        self._paths.close()

    # --- what goes out and comes in

    def _send(self, peer: bytes, frames: list[bytes]) -> Room | None:
        frames[-1] = self._formats.of(peer)
        return self._links.send(peer, frames)

    def _undelivered(self, frames: list[bytes], error: MessageError) -> None:
        # What nodes tell about themselves is said again to whoever comes back: it is no loss to one that is gone.
        if frames[-6] in _SERVICE:
            log.debug("not told to a node that cannot be reached: %s (%s)", readable(frames[-6]), error)
        else:
            self._links.count_drop(frames[0])
            self._port.undelivered(frames, error)

    def _send_back(self, frames: list[bytes]) -> None:
        """Send a message over the connection that its first frame names."""
        try:
            if self._front.send(frames):
                return
        except OSError as problem:
            raise Unreachable(f"the connection of a V1 caller is gone: {problem.strerror}") from None
        raise Overloaded("a V1 caller does not read its answers")

    def _take(self, frames: list[bytes]) -> None:
        if self._shunned and frames[0] in self._shunned and self._port.shuns(frames[0]):
            return
        if frames[-1] != V5 or len(frames) < 2 or not frames[-2]:  # V1 has no format frame, but nothing at n-2
            frames = self._upgraded(frames)
            if not frames:
                return
        if len(frames) < 17:
            self._receive(frames[0], frames)  # no message at all, and the node will say so
        elif frames[-6] in _SERVICE:
            self._hear(frames, straight=True)
        else:
            asker = frames[-17]
            if asker and asker not in self._places and asker != self._identity:
                self._meet(frames)
            if frames[-1] != V5:
                self._note_format(sender_of(frames), frames[-1])
            self._receive(frames[0], frames)

    def _take_run(self, run: list[list[bytes]]) -> bool:
        """Take in several that are alike where nothing special is about them: a look at the first tells."""
        first = run[0]
        if len(first) < 17 or first[-1] != V5 or not first[-2] or first[-6] in _SERVICE or self._shunned:
            return False
        asker = first[-17]
        if asker and asker not in self._places and asker != self._identity:
            return False
        self._receive_alike(first[0], run)
        return True

    def _hear(self, frames: list[bytes], *, straight: bool = False) -> None:
        speaker = self._discovery.hear(frames, straight=straight)
        if speaker:
            self._note_format(speaker, frames[-1])

    def _upgraded(self, frames: list[bytes]) -> list[bytes]:
        """The same in V5 where it is V1, and nothing where that cannot be; all else stays as it is."""
        try:
            message = decode(frames)
        except WireError:
            return frames  # the node will say so, and keep it
        if message.wire_version != 1:
            return frames
        try:
            return encode(self._guests.upgraded(message, frames[0]))
        except UsageError as problem:
            self._port.undelivered(frames, NoRoute(f"it cannot be brought up from V1: {problem}"))
            return []

    def _note_format(self, peer: bytes, last: bytes) -> None:
        if last == V5 or peer in self._places:
            self._formats.note(peer, last)

    # --- who comes and goes

    def _connected(self) -> None:
        self._discovery.connected()

    def _learned(self, peer: bytes, uri: str, health_uri: str, interval: float) -> None:
        if peer not in self._places and len(self._places) >= _MOST_PEERS:
            raise ValueError(f"there are {_MOST_PEERS} other nodes already")
        if self._places.get(peer, (uri, health_uri)) not in ((uri, health_uri), (uri, "")):
            self._gone(peer, "it has started anew")
        self._partings.end(peer)
        self._returning.told(peer)
        self._places[peer] = (uri, health_uri)
        self._links.learn(peer, uri)
        if health_uri:
            self._liveness.watch(peer, health_uri, interval)

    def _meet(self, frames: list[bytes]) -> None:
        """Find the way back to a node that waits for an answer and has not been heard of: its message tells it."""
        if len(self._places) >= _MOST_PEERS:
            return
        try:
            message = decode(frames)
            if self._keyring is not None:
                self._keyring.verify(message)
        except (WireError, BadSignature):
            return  # the node will say so
        asker = message.callback_receiver_node_identity
        uri = next((router.uri for router in message.routing if router.identity == asker), "")
        if asker != self._port.identity and can_connect(uri):
            self._places[asker] = (uri, "")
            self._links.learn(asker, uri)
            self._port.peer_registered(asker, ())
            self._announcer.ask_node(asker)

    def _left(self, peer: bytes) -> None:
        self._returning.left(peer)
        if peer in self._places:
            self._front.drain()  # its last answers may be here already
            self._liveness.ignore(peer)
            self._port.peer_left(peer)
            self._partings.begin(peer)
            for frames in self._links.take_back(peer):
                if frames[-6] not in _SERVICE:
                    self._port.returned(frames)
            self._forget(peer, "it has left")

    def _lost(self, peer: bytes) -> None:
        if self._context is not None:
            self._returning.fell_silent(peer)
            if peer in self._places:
                log.warning("node %s is gone", readable(peer))
                self._gone(peer, "it gives no sign of life")

    def _cut_off(self, peer: bytes) -> None:
        uri, health_uri = self._places.get(peer, ("", ""))
        if not uri:
            self._links.forget(peer, "it cannot be reached")  # what waits for it must be told of all the same
            return
        log.warning("node %s cannot be reached at %s", readable(peer), uri)
        self._gone(peer, f"it cannot be reached at {uri}")
        if health_uri:
            self._returning.was_cut_off(peer, uri)

    def _drop(self, peer: bytes, why: str) -> None:
        self._links.take_back(peer)  # questions of ours, which nobody misses
        self._links.forget(peer, why)

    def _found(self, peer: bytes) -> None:
        if self._context is not None:
            self._returning.heard(peer)

    def _gone(self, peer: bytes, why: str) -> None:
        self._forget(peer, why)
        self._port.peer_lost(peer)

    def _forget(self, peer: bytes, why: str) -> None:
        self._places.pop(peer, None)
        self._formats.forget(peer)
        self._announcer.forget(peer)
        self._discovery.forget(peer)
        self._links.forget(peer, why)
