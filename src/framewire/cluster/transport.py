"""A node's connection to other nodes over ZeroMQ, filling the seam in ``framewire.node.transport``."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

import zmq

from framewire.cluster import service
from framewire.cluster.addresses import any_port, can_connect, candidates, reachable
from framewire.cluster.announcing import Announcer
from framewire.cluster.connections import ConnectionNames
from framewire.cluster.curve import PLAIN, Doorkeeper, Mechanism
from framewire.cluster.discovery import Discovery
from framewire.cluster.intake import Intake
from framewire.cluster.links import Links, Traffic
from framewire.cluster.liveness import Liveness
from framewire.cluster.namesakes import Namesakes
from framewire.cluster.old_peers import V5, Formats, Guests
from framewire.cluster.open_paths import OpenPaths
from framewire.cluster.pace import make_context
from framewire.cluster.parting import LastCalls, Partings
from framewire.cluster.placement import Placement, check_advertised, place
from framewire.cluster.resolver import Resolver
from framewire.cluster.returning import Returning
from framewire.cluster.senders import Senders
from framewire.cluster.server_way import Arrivals
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.sockets import Reader, bind_first, make_socket
from framewire.cluster.strangers import Strangers, max_connections
from framewire.cluster.v1_nodes import V1Nodes
from framewire.cluster.vigil import vigil_at
from framewire.cluster.ways import Ways
from framewire.errors import (
    BadSignature,
    ConfigError,
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
from framewire.wire import MessageId, RouterAddress, decode, encode
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
_SLICE_S = 0.01
"""Seconds of a turn of the event loop that may go into nodes that have fallen silent together."""
_SLICE_ROUTES = 500
"""Routes of such a node that are forgotten before it is looked at how long that took."""
_MAX_MET = 1000
"""Nodes that are known only because they asked; the one that was met first makes room."""


class SocketTransport:
    """Sockets, discovery and liveness of one node."""

    def __init__(
        self, settings: ClusterSettings, keyring: KeyRing | None = None, *, check_identity: bool = False
    ) -> None:
        """``check_identity`` where the identity was configured, so that another node may have it, too."""
        self._settings = settings
        self._keyring = keyring
        if not settings.believes_unsigned and not _signs(keyring):
            raise ConfigError(
                "cluster settings",
                ["open: false, but there are neither domain keys (keyring) nor curve: nobody could be believed"],
            )
        self._check_identity = check_identity and bool(settings.rendezvous)
        self.refused: Callable[[ConfigError], None] = lambda _: None
        """Called when a node that runs finds out that an older one has its identity."""
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._doorkeeper: Doorkeeper | None = None
        self._refusal: ConfigError | None = None
        self._paths = OpenPaths()
        self._places: dict[bytes, tuple[str, str]] = {}
        self._unsure: set[bytes] = set()
        """Peers that nobody vouches for, where others sign: what belongs to a signed domain is not sent to them."""
        self._met: dict[bytes, None] = {}
        self._v1_nodes: V1Nodes | None = None
        self._formats = Formats(settings.wire_version)
        self._silent: deque[bytes] = deque()
        """Peers that gave no sign of life, and are still to be let go of."""
        self._connections = ConnectionNames()
        self._names = self._connections.known
        self.uri = ""
        self.joined = asyncio.Event()
        """Set once a rendezvous server was reached, or where none is named; also when this stops."""

    async def start(self, port: Port) -> None:
        self._port = port
        self._receive = port.receive
        self._receive_alike = port.receive_alike
        self._shunned = port.shunned
        self._identity = port.identity
        self._loop = asyncio.get_running_loop()
        self._resolver = Resolver()
        try:
            placement = await place(self._settings, self._resolver)
        except BaseException:
            self._resolver.close()
            raise
        context, self._pace = make_context()
        try:
            if self._settings.curve is not None:
                self._doorkeeper = Doorkeeper(context, self._settings.curve)
            mechanism = PLAIN if self._doorkeeper is None else self._doorkeeper.mechanism
            self._open(context, port, mechanism, placement)
        except BaseException:
            self._resolver.close()
            self._dismiss_doorkeeper()
            context.destroy(0)
            self._paths.close()
            raise
        self._context = context
        if not self._settings.rendezvous:
            self.joined.set()
        self._liveness.start()
        self._announcer.introduce()
        await self._namesakes.settled()

    @property
    def refusal(self) -> ConfigError | None:
        """Why this node has to stop; None while it need not."""
        return self._namesakes.refusal if self._context is not None else self._refusal

    def _dismiss_doorkeeper(self) -> None:
        if self._doorkeeper is not None:
            self._doorkeeper.close()
            self._doorkeeper = None

    def _open(
        self, context: zmq.Context[zmq.Socket[bytes]], port: Port, mechanism: Mechanism, placement: Placement
    ) -> None:
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
        bound = bind_first(front, candidates(self._paths.settle(placement.bind)))
        self.uri = reachable(bound, settings.advertise, placement.host)
        self._senders = Senders(RouterAddress(self.uri, port.identity))
        advertised = any_port(settings.advertise) if settings.advertise else None
        self._liveness = Liveness(
            context,
            settings,
            port.identity,
            candidates(self._paths.settle(settings.health or any_port(bound))),
            settings.advertise_health or advertised,
            host=placement.host,
            resolver=self._resolver,
            mechanism=mechanism,
            lost=lambda peer: self._loop.call_soon_threadsafe(self._lost, peer),
            found=lambda peer: self._loop.call_soon_threadsafe(self._found, peer),
            allows=self._allows,
            refused=lambda count, why: self._loop.call_soon_threadsafe(self._strange_beats, count, why),
        )
        self._liveness.max_unsigned = max_connections() if _signs(self._keyring) else None
        check_advertised((self.uri, self._liveness.uri), placement.servers)
        own = (bound, self.uri, self._liveness.uri)
        servers = (server if isinstance(server, str) else server[0] for server in settings.rendezvous)
        numbers = (number for _, found in placement.servers for number in found)
        self._strangers = Strangers(own, (*servers, *settings.peers, *numbers), self._loop.time)
        self._ways = Ways(
            context,
            settings,
            resolver=self._resolver,
            mechanism=mechanism,
            hear=self._hear,
            connected=self._connected,
            assumed=self._assumed,
            opened=self._check_advertised,
            reached=self.joined.set,
        )
        self._links = Links(
            context,
            settings,
            resolver=self._resolver,
            mechanism=mechanism,
            lost=self._cut_off,
            undelivered=self._undelivered,
            allows=lambda peer, number: self._is_vouched(peer) or self._strangers.allows(number),
            vouched=self._is_vouched,
            strangers=self._unsure,
            turn=self._pace.turn,
            alone=self._await_answer,
            max_queued=port.max_queued,
            max_queued_bytes=port.max_queued_bytes,
            introduction=self._introduction,
        )
        self._announcer = Announcer(
            settings,
            port,
            uri=self.uri,
            health_uri=self._liveness.uri,
            keyring=self._keyring,
            say=self._say,
            send=self._send_service,
        )
        self._namesakes = Namesakes(
            context,
            settings,
            port.identity,
            self.uri,
            checked=self._check_identity,
            resolver=self._resolver,
            mechanism=mechanism,
            allows=self._strangers.allows,
            ask=self._ask_for_namesakes,
            hold=self._announcer.introduce,
            tell=lambda detail: port.refused(b"", Reason.DUPLICATE_IDENTITY, detail),
            refuse=self.refused,
        )
        self._discovery = Discovery(
            settings,
            port,
            self._announcer,
            self._namesakes,
            keyring=self._keyring,
            admits=self._admits,
            learned=self._learned,
            announced=self._announced,
            knows=self._places.__contains__,
            spoke=self._note_format,
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
        self._admit: Callable[[list[bytes]], None] = self._take_named
        take_run: Callable[[list[list[bytes]]], bool] | None = self._take_run
        if settings.peer_rate is not None:
            self._admit = Intake(settings.peer_rate, port, self._take_named, self._loop.time).take
            take_run = None
        if settings.v1_nodes:
            self._v1_nodes = V1Nodes(
                context,
                settings,
                port,
                resolver=self._resolver,
                now=self._loop.time,
                take=self._admit,
                undelivered=port.undelivered,
                refused=lambda name, count: port.refused(name, Reason.OVERSIZED, self._too_large, count=count),
                domain_of=self._domain_of,
            )
        self._handshakes = Arrivals(front, lambda: None, port.turned_away) if mechanism.is_curve else None
        self._keep_vigil = vigil_at(int(front.getsockopt(zmq.FD)), settings.vigil)
        self._front = Reader(
            front,
            self._take,
            *limits,
            take_run=take_run,
            several=port.several,
            dropped=self._oversized,
            unread=self._without_memory,
            failed=lambda frames, problem: port.unread(frames[0], frames, problem),
        )

    def _await_answer(self) -> None:
        if self._port.awaited == 1:
            self._keep_vigil()

    @property
    def _too_large(self) -> str:
        settings = self._settings
        most = f"{settings.max_frames} frames (max_frames) or {settings.max_message_bytes} bytes"
        return f"more than {most} (max_message_bytes)"

    def _oversized(self, offenders: Counter[bytes]) -> None:
        for connection, count in offenders.items():
            peer = connection and self._connections.name(connection)
            self._port.refused(peer, Reason.OVERSIZED, self._too_large, count=count)

    def _without_memory(self, count: int) -> None:
        self._port.refused(b"", Reason.UNREAD, "there was no memory to receive it", count=count)

    def _is_vouched(self, peer: bytes) -> bool:
        return self._discovery.is_vouched(peer)

    def _allows(self, number: str) -> bool:
        return self._strangers.allows(number)

    def _strange_beats(self, count: int, why: str) -> None:
        self._port.refused(b"", Reason.MALFORMED, why, count=count)

    def uri_of(self, peer: bytes) -> str:
        """Where a peer is reached; empty where that is not known."""
        if self._v1_nodes is not None and peer in self._v1_nodes:
            return self._v1_nodes.uri_of(peer)
        return self._places.get(peer, ("", ""))[0]

    @property
    def traffic(self) -> Mapping[bytes, Traffic]:
        """What went to each peer."""
        if self._context is None:
            return {}
        return {**self._links.traffic, **(self._v1_nodes.traffic if self._v1_nodes is not None else {})}

    # --- what the node asks for

    def use_keys(self, keyring: KeyRing | None) -> None:
        """Sign and verify service messages with other keys from now on."""
        self._keyring = keyring
        if self._context is not None:
            self._announcer.use_keys(keyring)
            self._discovery.use_keys(keyring)
            unsure = [peer for peer in self._places if not self._discovery.is_vouched(peer)]
            self._unsure.clear()
            self._unsure.update(unsure if _signs(keyring) else ())
            self._liveness.max_unsigned = max_connections() if _signs(keyring) else None
            if self._v1_nodes is not None:
                self._v1_nodes.register()

    def send(self, peer: bytes, frames: list[bytes]) -> Room | None:
        if self._context is None:
            raise NodeStopped("this node is not connected")
        if self._unsure and peer in self._unsure and self._is_signed(frames[-6]):
            known = f"node {readable(peer)} is known only by what nobody signed"
            raise BadSignature(f"{known}: messages of signed domains are not sent to it")
        if self._v1_nodes is not None and peer in self._v1_nodes:
            return self._v1_nodes.send(peer, frames)
        formats = self._formats
        frames[-1] = formats.others.get(peer, formats.usual)
        return self._links.send(peer, frames)

    def announce(self, registrations: Iterable[Registration]) -> None:
        if self._context is not None:
            self._announcer.register(registrations)

    def withdraw(self, registrations: Iterable[Registration], grace: float | None = None) -> None:
        if self._context is not None:
            self._announcer.unregister(registrations, grace)

    def discover(self, message: MessageId, receiver: bytes) -> None:
        if self._context is not None:
            self._announcer.discover(message, receiver)

    async def settle(self) -> None:
        if self._context is not None and self._places:
            calls = LastCalls(self._port)
            self._receive = calls.receive
            self._receive_alike = calls.receive_alike
            await calls.over()

    async def stop(self) -> None:
        self.joined.set()
        if self._context is not None:
            await self._links.drained(_LINGER / 1000)
        context, self._context = self._context, None
        if context is None:
            return
        self._refusal = self._namesakes.refusal
        self._resolver.close()
        self._namesakes.close()
        self._announcer.leave()
        self._discovery.close()
        self._partings.close()
        self._returning.close()
        if self._handshakes is not None:
            self._handshakes.close()
        self._front.close()
        self._liveness.stop()
        self._links.close(_LINGER)
        if self._v1_nodes is not None:
            self._v1_nodes.close(_LINGER)
        self._ways.close(_LINGER)
        self._dismiss_doorkeeper()
        await asyncio.to_thread(context.term)
        self._paths.close()

    # --- what goes out and comes in

    def _send(self, peer: bytes, frames: list[bytes]) -> Room | None:
        frames[-1] = self._formats.of(peer)
        return self._links.send(peer, frames)

    def _say(self, frames: list[bytes]) -> None:
        if self._namesakes.may_say(frames[-6]):
            self._ways.say(frames)

    def _send_service(self, peer: bytes, frames: list[bytes]) -> Room | None:
        return self._send(peer, frames) if self._namesakes.may_say(frames[-6]) else None

    def _undelivered(self, frames: list[bytes], error: MessageError) -> None:
        # What nodes tell about themselves is said again to whoever comes back: it is no loss to one that is gone.
        if frames[-6] in _SERVICE:
            log.debug("not told to a node that cannot be reached: %s (%s)", readable(frames[-6]), error)
        else:
            self._links.count_drop(frames[0])
            self._port.undelivered(frames, error)

    def _send_back(self, frames: list[bytes]) -> None:
        """Send a message over the connection that its first frame names."""
        if self._v1_nodes is not None and frames[0] in self._v1_nodes:
            self._v1_nodes.send_back(frames[0], frames)
            return
        routing_id = self._connections.routing_id(frames[0])
        if routing_id is None:
            raise Unreachable("the connection of a V1 caller is not known any more; it must ask again")
        frames[0] = routing_id
        try:
            if self._front.send(frames):
                return
        except OSError as problem:
            raise Unreachable(f"the connection of a V1 caller is gone: {problem.strerror}") from None
        raise Overloaded("a V1 caller does not read its answers")

    def _take(self, frames: list[bytes]) -> None:
        connection = frames[0]
        frames[0] = self._names.get(connection) or self._connections.name(connection)
        self._admit(frames)

    def _take_named(self, frames: list[bytes]) -> None:
        if self._shunned and frames[0] in self._shunned and self._port.shuns(frames[0]):
            return
        if frames[-1] != V5 or len(frames) < 2 or not frames[-2]:  # V1 has no format frame, but nothing at n-2
            frames = self._upgraded(frames)
            if not frames:
                return
        if len(frames) < 17:
            self._receive(frames[0], frames)  # no message at all, and the node will say so
        elif frames[-6] in _SERVICE:
            if frames[-6] == service.PING.identity:
                self._senders.introduced(frames[0], frames)
            self._hear(frames, straight=True)
        else:
            asker = frames[-17]
            if asker and (asker not in self._places or asker in self._unsure) and asker != self._identity:
                self._meet(frames)
            if frames[-1] != V5:
                sender = self._sender_of(frames)
                if not self._discovery.is_vouched(sender):
                    self._note_format(sender, frames[-1])
            self._receive(frames[0], frames)

    def _take_run(self, run: list[list[bytes]]) -> bool:
        """Take in several that are alike where nothing special is about them: a look at the first tells."""
        first = run[0]
        if len(first) < 17 or first[-1] != V5 or not first[-2] or first[-6] in _SERVICE or self._shunned:
            return False
        asker = first[-17]
        if asker and (asker not in self._places or asker in self._unsure) and asker != self._identity:
            return False
        name = self._names.get(first[0]) or self._connections.name(first[0])
        for frames in run:
            frames[0] = name
        self._receive_alike(name, run)
        return True

    def _hear(self, frames: list[bytes], *, straight: bool = False) -> None:
        self._discovery.hear(frames, straight=straight)

    def _upgraded(self, frames: list[bytes]) -> list[bytes]:
        """The same in V5 where it is V1, and nothing where that cannot be; all else stays as it is."""
        try:
            message = decode(frames)
        except WireError:
            return frames  # the node will say so, and keep it
        if message.wire_version != 1:
            return frames
        try:
            answer = None if self._v1_nodes is None else self._v1_nodes.answer(message)
            raised = self._guests.upgraded(message, frames[0]) if answer is None else answer
            return encode(raised.replace(socket_identity=frames[0]))
        except UsageError as problem:
            self._port.undelivered(frames, NoRoute(f"it cannot be brought up from V1: {problem}"))
            return []

    def sender(self, peer: bytes, routing: tuple[RouterAddress, ...]) -> RouterAddress:
        return self._senders.sender(peer, routing)

    def _sender_of(self, frames: list[bytes]) -> bytes:
        """Return the node that a message comes from, as far as it tells."""
        try:
            message = decode(frames)
        except WireError:
            return b""
        if not message.routing:
            return message.callback_receiver_node_identity
        return self._port.sender_of(frames[0], message.routing)

    def _note_format(self, peer: bytes, last: bytes) -> None:
        if last == V5 or peer in self._places:
            self._formats.note(peer, last)

    # --- who comes and goes

    def _check_advertised(self, server: str, number: str) -> None:
        """Tell where a server is elsewhere that could not be checked when the node was started."""
        try:
            check_advertised((self.uri, self._liveness.uri), [(server, (number,))])
        except ConfigError as wrong:
            log.error("%s", "; ".join(wrong.problems))  # noqa: TRY400 - it is known where this comes from

    def _connected(self) -> None:
        self._discovery.connected()
        self._namesakes.connected()

    def _assumed(self) -> None:
        self._discovery.connected()
        self._namesakes.probe()

    def _ask_for_namesakes(self) -> None:
        self._announcer.introduce()
        self._announcer.ask_node(self._identity)

    def _admits(self, peer: bytes, uri: str, health_uri: str, signed: bool) -> bool:
        """Return whether a node that announces itself was elsewhere; ``ValueError`` where it is not admitted."""
        self._check_name(peer)
        known = self._places.get(peer)
        if known is None and len(self._places) >= _MOST_PEERS and not (signed and self._unsure):
            raise ValueError(f"there are {_MOST_PEERS} other nodes already")
        if not signed and known != (uri, health_uri):
            self._strangers.admit(uri, *([health_uri] if health_uri else []))
        return known is not None and known not in ((uri, health_uri), (uri, ""))

    def _learned(self, peer: bytes, uri: str, health_uri: str, interval: float, signed: bool) -> None:
        """Take note of where a node is that was admitted."""
        if signed:
            if peer not in self._places and len(self._places) >= _MOST_PEERS and self._unsure:
                self._gone(next(iter(self._unsure)), "a node that signs takes its place")
            self._unsure.discard(peer)
        elif _signs(self._keyring):
            self._unsure.add(peer)
        self._met.pop(peer, None)
        if self._places.get(peer, (uri, health_uri)) not in ((uri, health_uri), (uri, "")):
            self._gone(peer, "it has started anew")
        self._partings.end(peer)
        self._returning.told(peer)
        self._places[peer] = (uri, health_uri)
        self._links.learn(peer, uri)
        if health_uri:
            self._liveness.watch(peer, health_uri, interval, signed=signed)

    def _check_name(self, peer: bytes) -> None:
        """Raise ``ValueError`` where a node calls itself as this one calls a V1 node."""
        if self._v1_nodes is not None and peer in self._v1_nodes:
            raise ValueError(f"{readable(peer)!r} is a V1 node of this node's configuration")

    def _announced(self, peer: bytes, introduces: bool) -> None:
        if self._senders.announced(peer, introduces=introduces):
            self._links.introduce(peer)

    def _introduction(self, peer: bytes) -> list[bytes] | None:
        frames = self._senders.introduction(peer)
        if frames is not None:
            frames[-1] = self._formats.of(peer)
        return frames

    def _meet(self, frames: list[bytes]) -> None:
        """Find the way back to a node that waits for an answer and has not been heard of: its message tells it."""
        signed = self._is_signed(frames[-6])
        if not signed and (frames[-17] in self._places or not self._settings.believes_unsigned):
            return
        try:
            message = decode(frames)
            if self._keyring is not None:
                self._keyring.verify(message)
        except (WireError, BadSignature):
            return  # the node will say so
        asker = message.callback_receiver_node_identity
        if self._v1_nodes is not None and asker in self._v1_nodes:
            return
        uri = next((router.uri for router in message.routing if router.identity == asker), "")
        if asker == self._port.identity or not can_connect(uri):
            return
        if signed:
            self._unsure.discard(asker)
            if self._places.get(asker, (uri, ""))[0] != uri:
                self._gone(asker, "it has signed that it is elsewhere")
            self._discovery.vouch(asker, uri)
        else:
            try:
                self._strangers.admit(uri)
            except ValueError as problem:
                log.debug("node %s is not connected to: %s", readable(asker), problem)
                return
        if asker not in self._places:
            if len(self._places) >= _MOST_PEERS:
                return
            self._places[asker] = (uri, "")
            self._met[asker] = None
            if not signed and _signs(self._keyring):
                self._unsure.add(asker)
            self._links.learn(asker, uri)
            self._port.peer_registered(asker, ())
            self._announcer.ask_node(asker)
            if len(self._met) > _MAX_MET:
                self._gone(next(iter(self._met)), "others have asked since")

    def _domain_of(self, identity: bytes) -> str:
        return "" if self._keyring is None else self._keyring.domain_of(identity)

    def _is_signed(self, identity: bytes) -> bool:
        """Return whether a message belongs to a domain whose messages are signed."""
        ring = self._keyring
        return ring is not None and ring.is_signed(ring.domain_of(identity), identity)

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
        self._silent.append(peer)
        if len(self._silent) == 1:
            self._let_go()

    def _let_go(self) -> None:
        """Let go of nodes that have fallen silent, for as long as this turn of the event loop allows."""
        until = self._loop.time() + _SLICE_S
        while self._silent and self._context is not None:
            peer = self._silent[0]
            if self._port.routes_of(peer) > _SLICE_ROUTES:
                self._port.peer_shrinks(peer, _SLICE_ROUTES, left=False)
            else:
                self._returning.fell_silent(peer)
                if peer in self._places:
                    log.warning("node %s is gone", readable(peer))
                    self._gone(peer, "it gives no sign of life")
                self._silent.popleft()
            if self._silent and self._loop.time() >= until:
                self._loop.call_soon(self._let_go)
                return

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
        self._unsure.discard(peer)
        self._met.pop(peer, None)
        self._formats.forget(peer)
        self._announcer.forget(peer)
        self._discovery.forget(peer)
        self._senders.forget(peer)
        self._links.forget(peer, why)


def _signs(keyring: KeyRing | None) -> bool:
    """Return whether there is a domain in which nodes sign what they announce."""
    announced = service.REGISTER_EXTERNAL_ROUTE.identity
    return keyring is not None and any(keyring.is_signed(domain, announced) for domain in keyring.domains)
