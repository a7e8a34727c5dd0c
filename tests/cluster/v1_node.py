"""A V1 node in a thread of its own: sockets, and frames put together by hand from docs/wire.md, without the codec.

It behaves as the oldest kino does: a ROUTER that listens, handlers by message identity, answers that have the
callback receiver as their receiver and copy correlation id, callbacks and routing. It sends no heartbeats and
announces nothing; it knows no version of the wire, no node identities and no callback key.
"""

import contextlib
import struct
import threading

import zmq

NOTHING = b""


def i32(number):
    return struct.pack("<i", number)


def i64(number):
    return struct.pack("<q", number)


class Received:
    """One V1 message, read by its positions from the end."""

    def __init__(self, frames):
        self.frames = frames
        self.body, self.ttl, self.callback_receiver = frames[-1], frames[-3], frames[-4]
        self.correlation_id, self.distribution, self.receiver = frames[-7], frames[-8], frames[-9]
        self.identity, self.version, self.trace, self.hops = frames[-10], frames[-11], frames[-12], frames[-15]
        self.points = self._pairs(frames[-5], frames[-6])
        self.routing = self._pairs(frames[-13], frames[-14])

    def _pairs(self, offset, count):
        if not count:
            assert not offset
            return []
        first, number = struct.unpack("<i", offset)[0], struct.unpack("<i", count)[0]
        return [(self.frames[-first - 2 * i], self.frames[-first - 1 - 2 * i]) for i in range(number)]


def written(
    identity, version, body, *, receiver=b"", correlation_id=b"", points=(), callback_receiver=b"", routing=()
):
    """The frames of a V1 message; points and routing as pairs, the lowest first."""
    callbacks = [frame for pair in reversed(points) for frame in reversed(pair)]
    routers = [frame for pair in reversed(routing) for frame in reversed(pair)]
    start = 16 + 2 * len(points)
    return [
        *routers,
        *callbacks,
        i32(0),
        i32(len(routing)) if routing else NOTHING,
        i32(start) if routing else NOTHING,
        i64(0),
        version,
        identity,
        receiver,
        i32(0),
        correlation_id,
        i32(len(points)) if points else NOTHING,
        i32(16) if points else NOTHING,
        callback_receiver,
        i64(0),
        NOTHING,
        body,
    ]


class V1Node:
    """Handles what its functions are for, until it is closed; ``handlers`` are by message identity.

    A handler gets a ``Received`` and returns what to answer: (identity, version, body), or nothing. Where
    ``answers_to`` is an address and an identity, answers leave over a connection that this node makes to there, as
    kino's nodes do it; otherwise over the one that the question came in on.
    """

    def __init__(self, handlers, uri="tcp://127.0.0.1:*", answers_to=None):
        self.handlers = handlers
        self.received = []
        self.answers_to = answers_to
        self._context = zmq.Context()
        self._front = self._context.socket(zmq.ROUTER)
        self._front.linger = 0
        self._front.rcvhwm = 1  # what is not handled stays with the sender
        self._front.bind(uri)
        self.uri = self._front.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()
        self._orders = self._context.socket(zmq.PAIR)
        self._orders.bind("inproc://orders")
        self._control = self._context.socket(zmq.PAIR)
        self._control.connect("inproc://orders")
        self._back = None
        self._thread = threading.Thread(target=self._run, name="a V1 node")
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, frames):
        """Send frames over the connection of the last question."""
        self._control.send_multipart(frames)

    def close(self):
        with contextlib.suppress(zmq.ZMQError):
            self._control.send(b"stop")
            self._thread.join(10)
            assert not self._thread.is_alive()
            self._control.close(0)
            self._context.term()

    def _run(self):
        poller = zmq.Poller()
        poller.register(self._front, zmq.POLLIN)
        poller.register(self._orders, zmq.POLLIN)
        connection = b""
        while True:
            ready = dict(poller.poll())
            if self._orders in ready:
                order = self._orders.recv_multipart()
                if order == [b"stop"]:
                    break
                self._front.send_multipart([connection, *order])
            if self._front in ready:
                connection, *frames = self._front.recv_multipart()
                self._handle(connection, frames)
        for socket in (self._front, self._orders, self._back):
            if socket is not None:
                socket.close(0)

    def _handle(self, connection, frames):
        message = Received(frames)
        self.received.append(message)
        answer = self.handlers[message.identity](message)
        if answer is not None:
            self._answer(connection, message, answer)

    def _answer(self, connection, message, answer):
        identity, version, body = answer
        wanted = any(point[0] == identity for point in message.points)
        made = written(
            identity,
            version,
            body,
            receiver=message.callback_receiver if wanted else b"",
            correlation_id=message.correlation_id,
            points=message.points,
            callback_receiver=message.callback_receiver,
            routing=message.routing,
        )
        if self.answers_to is None:
            self._front.send_multipart([connection, *made])
            return
        uri, identity = self.answers_to
        if self._back is None:
            self._back = self._context.socket(zmq.DEALER)
            self._back.linger = 1000
            self._back.connect(uri)
        self._back.send_multipart([identity, b"", *made])
