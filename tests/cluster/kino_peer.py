"""A node and a rendezvous server as kino's protocol describes them, on pyzmq alone.

This shares nothing with framewire, so that one cannot agree with the other's mistakes: frames, protobuf and BSON
are put together and taken apart by hand.
"""

import asyncio
import contextlib
import struct
import time
import uuid
from dataclasses import dataclass, field

import zmq

NO_FLOW = b"00000000-0000-0000-0000-000000000000"
EXCEPTION, RECEIPT = b"KINO.EXCEPTION", b"KINO.RCPTCONFIRM"


@dataclass
class Letter:
    """A V5 message; callback points are identities, all of version 1 and without a partition."""

    identity: bytes
    body: bytes = b""
    correlation: bytes = NO_FLOW
    distribution: int = 0
    receiver: bytes = b""
    receiver_node: bytes = b""
    callback_receiver: bytes = b""
    callback_node: bytes = b""
    callback_key: int = 0
    points: list = field(default_factory=list)
    routes: list = field(default_factory=list)
    hops: int = 0
    ttl: int = 0

    def frames(self, socket_id=b""):
        points, routes = len(self.points), len(self.routes)
        return [
            socket_id,
            b"",
            self.body,
            *(part for route in self.routes for part in route),
            *(part for point in self.points for part in (b"", b"\x01\x00", point)),
            self.callback_node,
            struct.pack("<q", self.callback_key),
            b"",
            b"",
            struct.pack("<4H", 18 + 3 * points if routes else 0, routes, 2, self.hops),
            struct.pack("<4H", 18 if points else 0, points, 3, 0),
            self.receiver,
            self.callback_receiver,
            self.receiver_node,
            b"",
            b"\x01\x00",
            self.identity,
            struct.pack("<4H", 0, self.distribution, 0, 0),
            self.correlation,
            struct.pack("<q", self.ttl),
            struct.pack("<4H", 18 + 3 * points + 2 * routes, 1, 0, 0),
            b"\x05\x00",
        ]

    @classmethod
    def read(cls, frames):
        def at(offset):
            return frames[len(frames) - offset]

        def lanes(offset):
            return struct.unpack("<4H", at(offset)[:8])

        first_route, routes, step, hops = lanes(13)
        first_point, points, point_step, _ = lanes(12)
        return cls(
            at(6),
            at(lanes(2)[0]),
            at(4),
            lanes(5)[1],
            at(11),
            at(9),
            at(10),
            at(17),
            struct.unpack("<q", at(16)[:8])[0],
            [at(first_point + number * point_step) for number in range(points)],
            [(at(first_route + number * step + 1), at(first_route + number * step)) for number in range(routes)],
            hops,
            struct.unpack("<q", at(3)[:8])[0],
        )


# --- protobuf by hand


def number(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def chunk(tag, value):
    raw = value.encode() if isinstance(value, str) else value
    return number(tag << 3 | 2) + number(len(raw)) + raw


def fields(raw):
    """Every field as (tag, value), in order."""
    at, found = 0, []

    def take():
        nonlocal at
        value = shift = 0
        while True:
            byte = raw[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(raw):
        key = take()
        if key & 7 == 0:
            found.append((key >> 3, take()))
        else:
            size = take()
            found.append((key >> 3, raw[at : at + size]))
            at += size
    return found


def milliseconds(value):
    return number(1 << 3) + number(value << 1) + number(2 << 3) + number(4)


def contract(identity):
    return number(1 << 3) + number(1) + chunk(2, identity) + chunk(3, b"")


# --- BSON by hand


def bson(**texts):
    inside = b"".join(
        b"\x02" + name.encode() + b"\0" + struct.pack("<i", len(text.encode()) + 1) + text.encode() + b"\0"
        for name, text in texts.items()
    )
    return struct.pack("<i", len(inside) + 5) + inside + b"\0"


def bson_texts(raw):
    """The text fields of a document; what else is in it must not be there."""
    end, at, found = struct.unpack_from("<i", raw)[0], 4, {}
    while raw[at] != 0:
        kind, stop = raw[at], raw.index(b"\0", at + 1)
        name = raw[at + 1 : stop].decode()
        if kind != 2:
            break
        size = struct.unpack_from("<i", raw, stop + 1)[0]
        found[name] = raw[stop + 5 : stop + 4 + size].decode()
        at = stop + 5 + size
    assert at < end
    return found


class KinoNode:
    """A node of one actor and one hub. ``live`` must run for as long as it should answer."""

    def __init__(self, unicast, broadcast, handlers):
        self.identity = str(uuid.uuid4()).encode()
        self.actor = b"\x01" + str(uuid.uuid4()).encode()
        self.hub = b"\x00" + str(uuid.uuid4()).encode()
        self.handlers = handlers
        self.heard = []
        self.nodes = {}
        self.answers = {}
        self._context = zmq.Context()
        self._front = self._socket(zmq.ROUTER, {zmq.ROUTING_ID: self.identity, zmq.ROUTER_MANDATORY: 1})
        self._back = self._socket(zmq.ROUTER, {zmq.ROUTER_MANDATORY: 1})
        self._health = self._socket(zmq.PUB)
        self._dealer = self._socket(zmq.DEALER)
        self._listener = self._socket(zmq.SUB, {zmq.SUBSCRIBE: b""})
        self.uri, self.health_uri = (self._bound(socket) for socket in (self._front, self._health))
        self._dealer.connect(unicast)
        self._listener.connect(broadcast)
        self._connected = set()
        self._outbox = []
        self._next_beat = 0.0
        self._key = 0

    def _socket(self, kind, options=None):
        made = self._context.socket(kind)
        for name, value in {zmq.LINGER: 500, **(options or {})}.items():
            made.setsockopt(name, value)
        return made

    @staticmethod
    def _bound(socket):
        socket.bind("tcp://127.0.0.1:*")
        return socket.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")

    async def live(self):
        while True:
            self.step()
            await asyncio.sleep(0.005)

    def step(self):
        """Do what there is to do now."""
        if time.monotonic() >= self._next_beat:
            self._next_beat = time.monotonic() + 0.2
            beat = chunk(1, milliseconds(200)) + chunk(2, self.identity) + chunk(3, self.health_uri)
            self._health.send_multipart(Letter(b"KINO.HEARTBEAT", beat).frames())
        while self._listener.poll(0):
            self._serve(Letter.read(self._listener.recv_multipart()))
        while self._front.poll(0):
            self._receive(Letter.read(self._front.recv_multipart()))
        outbox, self._outbox = self._outbox, []
        for node, letter in outbox:
            self.post(node, letter)

    # --- discovery

    def say(self, identity, body):
        self._dealer.send_multipart(Letter(identity, body).frames())

    def register(self):
        actor = chunk(1, self.actor) + b"".join(chunk(2, contract(identity)) for identity in self.handlers)
        routes = chunk(3, actor) + chunk(3, chunk(1, self.hub))
        health = chunk(1, self.health_uri) + chunk(2, milliseconds(200))
        self.say(b"KINO.REGEXTROUTE", chunk(1, self.uri) + chunk(2, self.identity) + routes + chunk(4, health))

    def ask_for_routes(self):
        self.say(b"KINO.REQCLUSTROUTES", chunk(1, self.uri) + chunk(2, self.identity))

    def leave(self):
        self.say(b"KINO.UNREGNODE", chunk(1, self.uri) + chunk(2, self.identity))

    def _serve(self, letter):
        said = fields(letter.body)
        self.heard.append((letter.identity, said))
        first = dict(reversed(said))
        if letter.identity == b"KINO.REGEXTROUTE" and first[2] != self.identity:
            assert fields(first[4])[0][1], "without health a kino node refuses to register"
            routes = [fields(route) for tag, route in said if tag == 3]
            node = self.nodes.setdefault(first[2], {"uri": first[1].decode(), "handles": set(), "hubs": set()})
            for route in routes:
                contracts = [dict(fields(value))[2] for tag, value in route if tag == 2]
                node["handles"].update(contracts)
                if route[0][1][0] == 0:
                    node["hubs"].add(route[0][1])
        elif letter.identity == b"KINO.UNREGNODE":
            self.nodes.pop(first[2], None)
        elif self._must_answer(letter.identity, first):
            self.register()

    def _must_answer(self, identity, first):
        if identity == b"KINO.REQCLUSTROUTES":
            return first[2] != self.identity
        if identity == b"KINO.REQNODEROUTES":
            return first[2] == self.identity
        wanted = identity == b"KINO.DISCOVMSGROUTE" and first[1] != self.identity
        return wanted and dict(fields(first[4]))[2] in self.handlers

    # --- messages

    def post(self, node, letter):
        """Send a letter to a node, now or when there is a connection."""
        uri = self.nodes[node]["uri"]
        if uri not in self._connected:
            self._connected.add(uri)
            self._back.connect(uri)
        sent = Letter(**{**vars(letter), "hops": letter.hops + 1})
        sent.routes = [*letter.routes, (self.uri.encode(), self.identity)]
        try:
            self._back.send_multipart(sent.frames(node), zmq.NOBLOCK)
        except zmq.ZMQError:
            self._outbox.append((node, letter))

    def ask(self, node, identity, body, *points, **options):
        """Send a letter with a callback; the key under which the answer will be found."""
        self._key += 1
        self.post(
            node,
            Letter(
                identity,
                body,
                str(uuid.uuid4()).encode(),
                callback_receiver=self.hub,
                callback_node=self.identity,
                callback_key=self._key,
                points=[*points, EXCEPTION],
                **options,
            ),
        )
        return self._key

    def _receive(self, letter):
        if letter.receiver == self.hub:
            self.answers[letter.callback_key] = letter
            return
        if RECEIPT in letter.points:
            self._reply(letter, RECEIPT, b"")
            letter.points.remove(RECEIPT)
        try:
            answer = self.handlers[letter.identity](letter)
        except ValueError as problem:
            document = bson(Message=str(problem), ExceptionType="System.ArgumentException", StackTrace="   at Kino")
            answer = (EXCEPTION, document.ljust(1024, b"\0"))
        if answer is not None:
            self._reply(letter, *answer)

    def _reply(self, letter, identity, body):
        if identity in letter.points:
            reply = Letter(**{**vars(letter), "identity": identity, "body": body, "distribution": 0, "ttl": 0})
            reply.hops, reply.routes = 0, list(letter.routes)
            reply.receiver, reply.receiver_node = letter.callback_receiver, letter.callback_node
            self.post(letter.callback_node, reply)

    def close(self):
        self._context.destroy(500)


class KinoRendezvous:
    """A server that repeats to all what anyone tells it; its two addresses have nothing to do with each other."""

    def __init__(self):
        self._context = zmq.Context()
        self._inbox, self._speaker = self._context.socket(zmq.ROUTER), self._context.socket(zmq.PUB)
        self.unicast, self.broadcast = (KinoNode._bound(socket) for socket in (self._inbox, self._speaker))
        self._next_beat = 0.0

    async def live(self):
        while True:
            if time.monotonic() >= self._next_beat:
                self._next_beat = time.monotonic() + 0.2
                self.tell(Letter(b"KINO.HEARTBEAT", chunk(1, milliseconds(200))).frames())
            while self._inbox.poll(0):
                frames = self._inbox.recv_multipart()
                self.tell(Letter(b"KINO.PONG").frames() if frames[-6] == b"KINO.PING" else frames[1:])
            await asyncio.sleep(0.005)

    def tell(self, frames):
        self._speaker.send_multipart(frames)

    def close(self):
        self._context.destroy(0)


@contextlib.asynccontextmanager
async def living(*peers):
    """Peers that do their part for as long as they are needed."""
    tasks = [asyncio.create_task(peer.live()) for peer in peers]
    try:
        yield
        for task in tasks:
            assert not task.done() or task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for peer in peers:
            peer.close()
