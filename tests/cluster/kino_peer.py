"""A node and a rendezvous server as kino's protocol describes them, on pyzmq alone."""

import asyncio
import contextlib
import time
import uuid

import zmq
from tests.cluster.kino_wire import (
    EXCEPTION,
    RECEIPT,
    Letter,
    bson,
    chunk,
    contract,
    fields,
    milliseconds,
    repeated,
)


class KinoNode:
    """A node of one actor and one hub. ``live`` must run for as long as it should answer.

    Like kino's, it can be asked what it knows of routes.
    """

    def __init__(self, unicast, broadcast, handlers):
        self.identity = str(uuid.uuid4()).encode()
        self.actor = b"\x01" + str(uuid.uuid4()).encode()
        self.hub = b"\x00" + str(uuid.uuid4()).encode()
        self.handlers = {
            **handlers,
            b"KINO.REQMSGROUTES": self._message_routes,
            b"KINO.REQEXTROUTES": self._external_routes,
            b"KINO.REQINTROUTES": self._internal_routes,
        }
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
        elif letter.identity == b"KINO.UNREGMSGROUTE" and first[2] in self.nodes:
            for route in (fields(route) for tag, route in said if tag == 3):
                contracts = [dict(fields(value))[2] for tag, value in route if tag == 2]
                assert contracts, "a kino node fails on a route without contracts"
                self.nodes[first[2]]["handles"].difference_update(contracts)
                self.nodes[first[2]]["hubs"].discard(route[0][1])
        elif self._must_answer(letter.identity, first):
            self.register()

    def _must_answer(self, identity, first):
        if identity == b"KINO.REQCLUSTROUTES":
            return first[2] != self.identity
        if identity == b"KINO.REQNODEROUTES":
            return first[2] == self.identity
        wanted = identity == b"KINO.DISCOVMSGROUTE" and first[1] != self.identity
        return wanted and dict(fields(first[4]))[2] in self.handlers

    # --- what it knows of routes

    def _message_routes(self, letter):
        asked = dict(fields(letter.body))
        wanted, kind = dict(fields(asked[1]))[2], asked.get(2, 0)
        there = [name for name, node in self.nodes.items() if wanted in node["handles"] and kind != 1]
        body = chunk(1, asked[1]) + repeated(2, [chunk(1, name) + chunk(2, b"\x01there") for name in there])
        if wanted in self.handlers and kind != 2:
            body += chunk(3, chunk(1, self.identity) + chunk(2, self.actor))
        return b"KINO.MSGROUTES", body

    def _external_routes(self, _):
        body = b""
        for name, node in self.nodes.items():
            handled = [chunk(1, contract(message)) + chunk(2, b"\x01there") for message in sorted(node["handles"])]
            body += chunk(
                1, chunk(1, name) + chunk(2, node["uri"]) + repeated(3, node["hubs"]) + repeated(4, handled)
            )
        return b"KINO.EXTROUTES", body

    def _internal_routes(self, _):
        handled = [chunk(1, contract(message)) + chunk(2, self.actor) for message in self.handlers]
        return b"KINO.INTROUTES", chunk(1, chunk(1, self.hub)) + repeated(2, handled)

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
        if letter.identity not in self.handlers:
            self._disown(letter)
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

    def _disown(self, letter):
        wanted = contract(letter.identity)
        route = chunk(1, letter.receiver) + chunk(2, wanted)
        self.say(b"KINO.UNREGMSGROUTE", chunk(1, self.uri) + chunk(2, self.identity) + chunk(3, route))
        self.say(b"KINO.DISCOVMSGROUTE", chunk(1, self.identity) + chunk(2, self.uri) + chunk(4, wanted))

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
        self.leader = None
        """Another server that leads; then this one says nothing but that."""
        self._next_beat = 0.0

    async def live(self):
        while True:
            if time.monotonic() >= self._next_beat:
                self._next_beat = time.monotonic() + 0.2
                self._answer(Letter(b"KINO.HEARTBEAT", chunk(1, milliseconds(200))).frames())
            while self._inbox.poll(0):
                frames = self._inbox.recv_multipart()
                self._answer(Letter(b"KINO.PONG").frames() if frames[-6] == b"KINO.PING" else frames[1:])
            await asyncio.sleep(0.005)

    def _answer(self, frames):
        if self.leader is not None:
            frames = Letter(b"KINO.RNDZVNOTLEADER", chunk(1, self.leader.place())).frames()
        self.tell(frames)

    def place(self):
        return chunk(1, self.broadcast) + chunk(2, self.unicast) + chunk(3, "")

    def reconfigure(self, *servers):
        self.tell(Letter(b"KINO.RNDZVRECONFIG", repeated(1, [server.place() for server in servers])).frames())

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
