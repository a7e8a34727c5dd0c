"""zerorpc: calls over ZeroMQ on gevent; tells are asks whose answers nobody waits for until the end."""

import signal
import socket
from collections import deque

import gevent
import zerorpc
from contract import main

OPEN = 50
"""It keeps a hundred calls of a connection; with more it loses its heartbeat."""


class Echo:
    def answer(self, body):
        return body


def serve(ready):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    server = zerorpc.Server(Echo(), heartbeat=None)
    server.bind(address)
    gevent.signal_handler(signal.SIGTERM, server.stop)
    gevent.spawn_later(0.05, ready, address)
    server.run()


class Asking:
    def __init__(self, address):
        self.client = zerorpc.Client(timeout=60, heartbeat=None)
        self.client.connect(address)

    def ask(self, body):
        return self.client.answer(body)

    def asks(self, body, count, outstanding):
        waiting = deque()
        for _ in range(count):
            if len(waiting) >= min(outstanding, OPEN):
                waiting.popleft().get()
            waiting.append(self.client.answer(body, **{"async": True}))
        while waiting:
            waiting.popleft().get()

    def tells(self, body, count):
        self.asks(body, count, OPEN)

    def close(self):
        self.client.close()


if __name__ == "__main__":
    main(serve, Asking)
