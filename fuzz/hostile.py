"""Peers that misbehave, each in its own way: what ``fuzz/cluster.py`` lets loose on nodes and rendezvous servers.

Each is a function of a seeded generator, the addresses to attack, and until when; it returns how many messages it
sent that must be counted as bad. What breaks ZeroMQ's own protocol never becomes a message: libzmq ends such a
connection, and nobody has to count it.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import zmq
from fuzz import forging, zmtp
from fuzz.wire import mutated, seeds

from framewire.cluster import service
from framewire.errors import WireError
from framewire.wire import Message, MessageId, decode, encode

__all__ = ["ATTACKS", "Bad", "Targets"]

Frames = list[bytes]


@dataclass(frozen=True)
class Targets:
    """What is attacked: a node's two sockets, and a server's three. All but ``front`` and ``inbox`` only speak."""

    front: str
    health: str
    inbox: str
    broadcast: str
    relay: str

    @property
    def all(self) -> tuple[str, ...]:
        """Every address."""
        return (self.front, self.health, self.inbox, self.broadcast, self.relay)


@dataclass
class Bad:
    """What was sent that must be counted: at least as ``malformed``, and at most that and ``doubtful`` more."""

    sent: int = 0
    malformed: int = 0
    doubtful: int = 0
    """Messages by their frames, of which the node may still say that they make no sense."""
    oversized: int = 0

    def note(self, received: Frames, *, doubtful: bool = False) -> None:
        """Take down a message as its receiver gets it; ``doubtful`` where that has more to object to."""
        self.sent += 1
        try:
            message = decode(received)
        except WireError:
            self.malformed += 1
        else:
            self.doubtful += doubtful or message.identity.startswith(b"KINO.") or message.wire_version != 5


Attack = Callable[[random.Random, Targets, float], Bad]


@contextlib.contextmanager
def _zmq(kind: int, **options: object) -> Iterator[zmq.Socket[bytes]]:
    with zmq.Context() as context, context.socket(kind) as made:
        made.setsockopt(zmq.LINGER, 1000)
        for name, value in options.items():
            made.setsockopt(getattr(zmq, name), value)
        yield made


@contextlib.contextmanager
def _tcp(address: str) -> Iterator[socket.socket]:
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as made:
        yield made


def _patiently(made: zmq.Socket[bytes], frames: Frames) -> bool:
    """Send where there is room within a moment; a flood is the business of others."""
    if not made.poll(1000, zmq.POLLOUT):
        return False
    made.send_multipart(frames)
    return True


def broken_messages(rng: random.Random, targets: Targets, until: float) -> Bad:
    """Recorded messages with accidents, to the node."""
    recorded, bad = list(seeds()), Bad()
    with _zmq(zmq.DEALER, ROUTING_ID=b"hostile") as dealer:
        dealer.connect(targets.front)
        while time.monotonic() < until:
            for _ in range(20):
                sent = mutated(rng, rng.choice(recorded), rng.choice(recorded))[1:] or [b""]
                if _patiently(dealer, sent):
                    bad.note([b"hostile", *sent])
            time.sleep(0.02)
    return bad


def _service_messages(rng: random.Random) -> Iterator[Frames]:
    known = [service.REGISTER_EXTERNAL_ROUTE, service.UNREGISTER_MESSAGE_ROUTE, service.DISCOVER_MESSAGE_ROUTE]
    known += [service.REQUEST_CLUSTER_ROUTES, service.REQUEST_NODE_ROUTES, service.RENDEZVOUS_NOT_LEADER]
    known += [service.RENDEZVOUS_RECONFIGURED, service.UNREGISTER_NODE, service.HEARTBEAT, service.PING]
    while True:
        message_id = rng.choice(known)
        body = rng.randbytes(rng.randrange(40))
        yield encode(Message(message_id.identity, message_id.version, b"", (body,), b"flow"))


def broken_service_messages(rng: random.Random, targets: Targets, until: float) -> Bad:
    """Service messages that make no sense, to the server, which repeats to every node what looks like one."""
    bad, made = Bad(), _service_messages(rng)
    with _zmq(zmq.DEALER, ROUTING_ID=b"hostile too") as dealer:
        dealer.connect(targets.inbox)
        while time.monotonic() < until:
            for _ in range(5):
                frames = next(made)
                if rng.random() < 0.5:
                    frames = mutated(rng, frames, next(made)) or [b""]
                if _patiently(dealer, frames):
                    bad.note(frames, doubtful=True)
            time.sleep(0.02)
    return bad


def broken_heartbeats(rng: random.Random, targets: Targets, until: float) -> Bad:
    """A node that nobody can reach, with signs of life that are none."""
    bad, made = Bad(), _service_messages(rng)
    with _zmq(zmq.XPUB) as publisher, _zmq(zmq.DEALER) as dealer:
        port = publisher.bind_to_random_port("tcp://127.0.0.1")
        dealer.connect(targets.inbox)
        health = service.body("Health", uri=f"tcp://127.0.0.1:{port}", interval=service.time_span(1.0))
        told = service.service_message(
            service.REGISTER_EXTERNAL_ROUTE,
            uri="tcp://127.0.0.1:1",
            node_identity=b"hostile node",
            routes=[
                service.body(
                    "RouteRegistration",
                    receiver_identity=b"\x01nobody",
                    contracts=[service.contract(MessageId(b"hostile.message"))],
                )
            ],
            health=health,
        )
        while time.monotonic() < until and not publisher.poll(200):  # until the node listens, say where
            dealer.send_multipart(encode(told))
        alive = encode(
            service.service_message(
                service.HEARTBEAT, interval=service.time_span(1.0), socket_identity=b"hostile node", health_uri=""
            )
        )
        while time.monotonic() < until:
            publisher.send_multipart(alive)  # or nobody would listen for long
            for _ in range(5):
                frames = mutated(rng, next(made), next(made)) or [b""]
                publisher.send_multipart(frames)
                bad.note(frames, doubtful=True)
            time.sleep(0.02)
        time.sleep(0.2)  # what is published is gone with its socket
    return bad


def wrong_sockets(rng: random.Random, targets: Targets, until: float) -> Bad:
    """Sockets of every kind where they do not belong."""
    kinds = (zmq.SUB, zmq.PUB, zmq.PUSH, zmq.PULL, zmq.REQ, zmq.REP, zmq.PAIR, zmq.XSUB, zmq.XPUB)
    while time.monotonic() < until:
        with _zmq(rng.choice(kinds), LINGER=0) as made:
            made.connect(rng.choice(targets.all))
            time.sleep(0.02)
            with contextlib.suppress(zmq.ZMQError):
                made.send(rng.randbytes(rng.randrange(2000)), zmq.NOBLOCK)
            with contextlib.suppress(zmq.ZMQError):
                made.setsockopt(zmq.SUBSCRIBE, rng.randbytes(rng.randrange(5000)))
            time.sleep(0.02)
    return Bad()


def half_handshakes(rng: random.Random, targets: Targets, until: float) -> Bad:
    """Connections that stop in the middle of saying hello, or say something else, and stay."""
    waiting: list[contextlib.ExitStack] = []
    while time.monotonic() < until:
        stack = contextlib.ExitStack()
        with contextlib.suppress(OSError):
            made = stack.enter_context(_tcp(rng.choice(targets.all)))
            hello = zmtp.GREETING + zmtp.ready(rng.choice((b"DEALER", b"ROUTER", b"SUB", b"NONSENSE")))
            if rng.random() < 0.3:
                hello = rng.randbytes(rng.randrange(1, 200))
            made.sendall(hello[: rng.randrange(1, len(hello) + 1)])
        waiting.append(stack)
        if len(waiting) > 20:
            waiting.pop(0).close()
        time.sleep(0.02)
    for stack in waiting:
        stack.close()
    return Bad()


def slow_senders(rng: random.Random, targets: Targets, until: float) -> Bad:
    """A message that comes byte by byte, and its end never."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError), _tcp(rng.choice((targets.front, targets.inbox))) as made:
            made.sendall(zmtp.GREETING + zmtp.ready(b"DEALER"))
            for byte in b"\x01\x40" + rng.randbytes(60):
                if time.monotonic() > until:
                    break
                made.sendall(bytes([byte]))
                time.sleep(0.02)
    return Bad()


def huge_frames(rng: random.Random, targets: Targets, until: float) -> Bad:
    """Frames that promise more bytes than there is memory, and some that keep the promise."""
    bad = Bad()
    while time.monotonic() < until:
        size = rng.choice((2**62, 2**40, 2**31, 300 << 20, 20 << 20))
        with contextlib.suppress(OSError), _tcp(rng.choice((targets.front, targets.inbox))) as made:
            made.sendall(zmtp.GREETING + zmtp.ready(b"DEALER") + b"\x02" + struct.pack(">Q", size))
            made.sendall(rng.randbytes(65_536))
            time.sleep(0.02)
        with _zmq(zmq.DEALER) as dealer:
            dealer.connect(targets.front)
            if _patiently(dealer, [b"x"] * 12_000):  # too many frames, each of which is small
                bad.sent += 1
                bad.oversized += 1
            time.sleep(0.1)
    return bad


def claimed_numbers(rng: random.Random, targets: Targets, until: float) -> Bad:
    """Connections that claim the numbers of others as their names, beside some that need a number."""
    held: list[zmtp.Peer] = []
    while time.monotonic() < until:
        for name in (b"\0" + rng.randbytes(4), b"\0" + rng.randbytes(rng.randrange(250)), None):
            with contextlib.suppress(OSError):
                held.append(zmtp.connect(rng.choice((targets.front, targets.inbox)), identity=name))
        while len(held) > 20:
            held.pop(0).close()
        time.sleep(0.02)
    for peer in held:
        peer.close()
    return Bad()


def forged_announcements(rng: random.Random, targets: Targets, until: float) -> Bad:
    """Nodes that are not there, at addresses that are none of theirs, who come, have much and go."""
    bad = Bad()
    with zmtp.connect(targets.front, identity=b"forger") as forger:
        while time.monotonic() < until:
            # Not where something is published: what is no heartbeat would be heard, and counted, once more.
            node = b"forged %d" % rng.randrange(50)
            uri = rng.choice((targets.front, targets.inbox, "tcp://127.0.0.1:1"))
            messages = [b"forged.%d" % rng.randrange(1000) for _ in range(rng.randrange(200))]
            routes = [(b"\1" + rng.randbytes(4), messages)]
            for frames in (
                forging.announcement(node, uri, health=uri, interval=rng.random() - 0.5, routes=routes),
                forging.asks_for_routes(node, uri, rng.choice(messages or [b"x"])),
                forging.withdrawal(node, uri, routes),
                *([forging.farewell(node, uri)] if rng.random() < 0.3 else []),
            ):
                forger.send(frames)
                bad.note([b"forger", *frames], doubtful=True)
            time.sleep(0.02)
    return bad


def needless_topics(rng: random.Random, targets: Targets, until: float) -> Bad:
    """Listeners that subscribe to what nobody publishes, and say what nobody hears."""
    while time.monotonic() < until:
        place = rng.choice((targets.health, targets.broadcast, targets.relay))
        with contextlib.suppress(OSError), zmtp.connect(place, b"SUB") as listener:
            for _ in range(100):
                listener.send([b"\1" + rng.randbytes(rng.randrange(600))])
                listener.send([rng.randbytes(20), b"hello"])
        time.sleep(0.05)
    return Bad()


ATTACKS: tuple[Attack, ...] = (
    broken_messages,
    broken_service_messages,
    broken_heartbeats,
    wrong_sockets,
    half_handshakes,
    slow_senders,
    huge_frames,
    claimed_numbers,
    forged_announcements,
    needless_topics,
)
