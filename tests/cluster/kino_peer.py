"""A node and a rendezvous server as kino's protocol describes them, on pyzmq alone."""

import asyncio
import contextlib
import time
import uuid

import zmq
from tests.cluster.kino_table import BrokenRouteError, ExternalTable, Known
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
    seconds,
)

SERVICE = frozenset(
    b"KINO." + name
    for name in (
        b"REGEXTROUTE",
        b"UNREGMSGROUTE",
        b"UNREGNODE",
        b"UNREGUNREACHABLENODE",
        b"REQCLUSTROUTES",
        b"REQNODEROUTES",
        b"DISCOVMSGROUTE",
        b"PING",
    )
)
"""What a node handles itself, though it may come over the socket for messages."""
MISSES = 10
"""Signs of life that may be missing from a node that was spoken to."""
CONNECT_S, MAX_CONNECT_S = 0.1, 5.0
"""That kino waits after it has connected, and that a busy machine may need: the first message is not lost."""


class KinoNode:
    """A node of one actor and one hub. ``live`` must run for as long as it should answer.

    Like kino's, it can be asked what it knows of routes, which it announces to nobody. What kino would throw, and
    log, is in ``errors``; messages that it would lose without a word are in ``lost``.
    """

    def __init__(self, unicast, broadcast, handlers):
        self.identity = str(uuid.uuid4()).encode()
        self.actor = b"\x01" + str(uuid.uuid4()).encode()
        self.hub = b"\x00" + str(uuid.uuid4()).encode()
        self.handlers = dict(handlers)
        self._local_handlers = {
            b"KINO.REQMSGROUTES": self._message_routes,
            b"KINO.REQEXTROUTES": self._external_routes,
            b"KINO.REQINTROUTES": self._internal_routes,
        }
        self.heard = []
        self.table = ExternalTable()
        self.answers = {}
        self.errors = []
        self.lost = []
        self._context = zmq.Context()
        self._front = self._socket(zmq.ROUTER, {zmq.ROUTING_ID: self.identity, zmq.ROUTER_MANDATORY: 1})
        self._back = self._socket(zmq.ROUTER, {zmq.ROUTER_MANDATORY: 1})
        self._health = self._socket(zmq.PUB)
        self._monitor = self._socket(zmq.SUB, {zmq.SUBSCRIBE: b""})
        self._dealer = self._socket(zmq.DEALER)
        self._listener = self._socket(zmq.SUB, {zmq.SUBSCRIBE: b""})
        self.uri, self.health_uri = (self._bound(socket) for socket in (self._front, self._health))
        self._dealer.connect(unicast)
        self._listener.connect(broadcast)
        self._seen = {}
        self._opening = {}
        self._turns = []
        self._next_beat = 0.0
        self._key = 0
        self._awaited = {}

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
        self._watch()
        while self._listener.poll(0):
            self._tried(self._serve, Letter.read(self._listener.recv_multipart()))
        while self._front.poll(0):
            self._tried(self._receive, Letter.read(self._front.recv_multipart()))
        for node in tuple(self._opening):
            self._opened(node)

    def _tried(self, call, letter):
        """Do what in kino is done within a try block that logs what is thrown."""
        try:
            call(letter)
        except (BrokenRouteError, KeyError, ValueError) as problem:
            self.errors.append(problem)

    # --- discovery

    def say(self, identity, body):
        self._dealer.send_multipart(Letter(identity, body).frames())

    def register(self):
        """Announce the actor and the hub; an actor without messages is not registered."""
        contracts = b"".join(chunk(2, contract(identity)) for identity in self.handlers)
        routes = (chunk(3, chunk(1, self.actor) + contracts) if contracts else b"") + chunk(3, chunk(1, self.hub))
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
        if self._must_answer(letter.identity, first):
            self.register()
        elif first.get(2) == self.identity:
            return
        elif letter.identity == b"KINO.REGEXTROUTE":
            health = dict(fields(first[4]))
            known = Known(first[1].decode(), health[1].decode(), seconds(health[2]))
            self.table.register(first[2], known, self._routes(said))
        elif letter.identity == b"KINO.UNREGNODE":
            self._forget(first[2])
        elif letter.identity == b"KINO.UNREGMSGROUTE":
            self.table.unregister(first[2], self._routes(said))

    @staticmethod
    def _routes(said):
        routes = [fields(route) for tag, route in said if tag == 3]
        if not routes:
            raise ValueError("without routes")
        return [
            (dict(reversed(route)).get(1, b""), [dict(fields(value))[2] for tag, value in route if tag == 2])
            for route in routes
        ]

    def _must_answer(self, identity, first):
        if identity == b"KINO.REQCLUSTROUTES":
            return first[2] != self.identity
        if identity == b"KINO.REQNODEROUTES":
            return first[2] == self.identity
        if identity != b"KINO.DISCOVMSGROUTE" or first[1] == self.identity:
            return False
        return first[3] == self.hub if 3 in first else dict(fields(first[4]))[2] in self.handlers

    def _forget(self, node):
        known = self.table.nodes.get(node)
        self.table.remove(node)
        self._opening.pop(node, None)
        if known is not None and self._seen.pop(node, None) is not None:
            self._monitor.disconnect(known.health_uri)
            if all(other.uri != known.uri for other in self.table.nodes.values()):
                self._back.disconnect(known.uri)

    def _watch(self):
        """Forget nodes that were spoken to and promise signs of life, but give none."""
        while self._monitor.poll(0):
            beat = dict(fields(Letter.read(self._monitor.recv_multipart()).body))
            if beat[2] in self._seen:
                self._seen[beat[2]] = time.monotonic()
        for node, seen in tuple(self._seen.items()):
            if time.monotonic() - seen > self.table.nodes[node].interval * MISSES:
                self._forget(node)

    # --- what it knows of routes

    def _message_routes(self, letter):
        asked = dict(fields(letter.body))
        wanted, kind = dict(fields(asked[1]))[2], asked.get(2, 0)
        there = [name for name in self.table.nodes if self.table.actors(name, wanted) and kind != 1]
        body = chunk(1, asked[1]) + repeated(
            2, [chunk(1, name) + repeated(2, sorted(self.table.actors(name, wanted))) for name in there]
        )
        if wanted in self.handlers and kind != 2:
            body += chunk(3, chunk(1, self.identity) + chunk(2, self.actor))
        return b"KINO.MSGROUTES", body

    def _external_routes(self, _):
        body = b""
        for name, node in self.table.nodes.items():
            handled = [
                chunk(1, contract(message)) + repeated(2, sorted(self.table.actors(name, message)))
                for message in sorted(self.table.handled_by(name))
            ]
            body += chunk(1, chunk(1, name) + chunk(2, node.uri) + repeated(3, node.hubs) + repeated(4, handled))
        return b"KINO.EXTROUTES", body

    def _internal_routes(self, _):
        handled = [chunk(1, contract(message)) + chunk(2, self.actor) for message in self.handlers]
        return b"KINO.INTROUTES", chunk(1, chunk(1, self.hub)) + repeated(2, handled)

    # --- messages

    def post(self, node, letter):
        """Send a letter to a node. One that is the first for that node waits for the connection.

        As in kino, where more follow before there is one, all of them are lost.
        """
        known = self.table.nodes[node]
        if node not in self._seen:
            self._back.connect(known.uri)
            self._monitor.connect(known.health_uri)
            self._seen[node] = time.monotonic()
            self._opening[node] = (time.monotonic(), [letter])
        elif node in self._opening:
            self._opening[node][1].append(letter)
        else:
            self._send(node, letter)

    def _opened(self, node):
        began, letters = self._opening[node]
        waited = time.monotonic() - began
        if waited < CONNECT_S:
            return
        if len(letters) > 1:
            del self._opening[node]
            self.lost += letters
        elif self._sent(node, letters[0]):
            del self._opening[node]
        elif waited > MAX_CONNECT_S:
            self.lost += letters
            self._forget(node)

    def _send(self, node, letter):
        if not self._sent(node, letter):
            self.lost.append(letter)
            self._forget(node)

    def _sent(self, node, letter):
        sent = Letter(**{**vars(letter), "hops": letter.hops + 1})
        sent.routes = [*letter.routes, (self.uri.encode(), self.identity)]
        # Lists are read bottom-up and written top-down: this node is now entry 0, and what came is reversed.
        try:
            self._back.send_multipart(sent.frames(node), zmq.NOBLOCK)
        except zmq.ZMQError:
            return False
        return True

    def ask(self, node, identity, body, *points, **options):
        """Send a letter to a node with a callback; the key under which the answer will be found."""
        letter = self._question(identity, body, points, options)
        self.post(node, letter)
        return letter.callback_key

    def ask_any(self, identity, body, *points):
        """The same with a letter that goes to any node that handles it, in turn; it may be lost."""
        letter = self._question(identity, body, points, {})
        self._tried(self._route, letter)
        return letter.callback_key

    def broadcast(self, identity, body):
        """Send a letter to all nodes that handle it."""
        self._tried(self._route, Letter(identity, body, str(uuid.uuid4()).encode(), distribution=1))

    def _question(self, identity, body, points, options):
        self._key += 1
        self._awaited[self._key] = {*points, EXCEPTION}
        return Letter(
            identity,
            body,
            str(uuid.uuid4()).encode(),
            callback_receiver=self.hub,
            callback_node=self.identity,
            callback_key=self._key,
            points=[*points, EXCEPTION],
            **options,
        )

    def _receive(self, letter):
        if letter.identity in SERVICE:
            if letter.identity != b"KINO.PING":
                self._serve(letter)
            return
        if RECEIPT in letter.points:
            # Confirmed by the node that it has come to, whether or not anyone handles it.
            confirmed = Letter(**{**vars(letter), "points": list(letter.points)})
            letter.points.remove(RECEIPT)
            self._reply(confirmed, RECEIPT, b"")
        self._route(letter)

    def _route(self, letter):
        from_network = letter.hops > 0
        if letter.receiver_node and letter.receiver_node != self.identity:
            if letter.receiver_node in self.table.nodes:
                self.post(letter.receiver_node, letter)
            else:
                self._unhandled(letter)
            return
        here = self._receiver(letter)
        if letter.distribution:
            nodes = [] if from_network else self.table.all(letter.identity)
            for copies, node in enumerate(nodes):  # one object for all, to which each adds a hop and a route
                routes = [*letter.routes, *[(self.uri.encode(), self.identity)] * copies]
                self.post(node, Letter(**{**vars(letter), "hops": letter.hops + copies, "routes": routes}))
            if here is not None:
                here(letter)
            elif not nodes:
                self._unhandled(letter)
            return
        there = None if letter.receiver_node else self.table.next(letter.identity)
        if here is not None and there is not None and not from_network:
            here, there = (here, None) if self._least_recent(there) == b"" else (None, there)
        if here is not None:
            here(letter)
        elif there is not None:
            self.post(there, letter)
        else:
            self._unhandled(letter)

    def _least_recent(self, node):
        """Return which of two destinations was used less recently: a node, or this one, which is empty."""
        self._turns += [each for each in (b"", node) if each not in self._turns]
        chosen = min((b"", node), key=self._turns.index)
        self._turns.remove(chosen)
        self._turns.append(chosen)
        return chosen

    def _receiver(self, letter):
        """Return what takes a letter on this node, if anything does."""
        if letter.receiver == self.hub:
            return self._take_answer
        handled = letter.identity in self.handlers or letter.identity in self._local_handlers
        return self._handle if handled and letter.receiver in (b"", self.actor) else None

    def _take_answer(self, letter):
        # All points of a key are gone with its first answer, whether or not that is one of them.
        if letter.identity in self._awaited.pop(letter.callback_key, ()):
            self.answers[letter.callback_key] = letter

    def _handle(self, letter):
        handler = self.handlers.get(letter.identity) or self._local_handlers[letter.identity]
        try:
            answer = handler(letter)
        except ValueError as problem:
            document = bson(Message=str(problem), ExceptionType="System.ArgumentException", StackTrace="   at Kino")
            answer = (EXCEPTION, document.ljust(1024, b"\0"))
        if answer is not None:
            self._reply(letter, *answer)

    def _unhandled(self, letter):
        wanted = contract(letter.identity)
        if letter.hops > 0:
            route = chunk(1, letter.receiver) + chunk(2, wanted)
            self.say(b"KINO.UNREGMSGROUTE", chunk(1, self.uri) + chunk(2, self.identity) + chunk(3, route))
        hub = chunk(3, letter.receiver) if letter.receiver[:1] == b"\x00" else b""
        self.say(b"KINO.DISCOVMSGROUTE", chunk(1, self.identity) + chunk(2, self.uri) + hub + chunk(4, wanted))
        self.lost.append(letter)

    def _reply(self, letter, identity, body):
        """Send what a handler returned: to the caller, or as a new message that still carries the callback."""
        reply = Letter(**{**vars(letter), "identity": identity, "body": body, "distribution": 0, "ttl": 0})
        reply.hops, reply.routes = 0, list(letter.routes)
        is_awaited = identity in letter.points
        reply.receiver = letter.callback_receiver if is_awaited else b""
        reply.receiver_node = letter.callback_node if is_awaited else b""
        self._route(reply)

    def close(self):
        self._context.destroy(500)


class RendezvousServer:
    """What a server of kino's says of itself and others, over whatever sockets it has: ``tell`` publishes."""

    leader = None
    """Another server that leads; then this one says nothing but that."""

    def _answer(self, frames):
        if self.leader is not None:
            frames = Letter(b"KINO.RNDZVNOTLEADER", chunk(1, self.leader.place())).frames()
        self.tell(frames)

    def place(self):
        return chunk(1, self.broadcast) + chunk(2, self.unicast) + chunk(3, "")

    def reconfigure(self, *servers):
        self.tell(Letter(b"KINO.RNDZVRECONFIG", repeated(1, [server.place() for server in servers])).frames())


class KinoRendezvous(RendezvousServer):
    """A server that repeats to all what anyone tells it; its two addresses have nothing to do with each other."""

    def __init__(self):
        self._context = zmq.Context()
        self._inbox, self._speaker = self._context.socket(zmq.ROUTER), self._context.socket(zmq.PUB)
        self.unicast, self.broadcast = (KinoNode._bound(socket) for socket in (self._inbox, self._speaker))
        self.errors = []
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
        for peer in peers:
            assert not peer.errors
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for peer in peers:
            peer.close()
