"""Thespian, with its processes that talk over TCP."""

import signal
import threading
import time

from contract import main
from thespian.actors import Actor, ActorSystem

BASE = "multiprocTCPBase"
MOST = 100
"""Open at a time: with more it holds messages back and gives some up."""


class Echo(Actor):
    notes = 0

    def receiveMessage(self, message, sender):  # noqa: N802 - its name
        if message == "count":
            self.send(sender, self.notes)
        elif isinstance(message, tuple):
            self.notes += 1
        elif isinstance(message, bytes):
            self.send(sender, message)


def serve(ready):
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    ready("of the client's own")
    ended.wait()


class Asking:
    def __init__(self, _):
        self.system = ActorSystem(BASE, {"Admin Port": 19_100 + time.time_ns() % 800})
        self.echo = self.system.createActor(Echo)
        self.noted = 0

    def ask(self, body):
        return self.system.ask(self.echo, body, 30)

    def asks(self, body, count, outstanding):
        outstanding = min(outstanding, count, MOST)
        for _ in range(outstanding):
            self.system.tell(self.echo, body)
        for _ in range(count - outstanding):
            self.listen()
            self.system.tell(self.echo, body)
        for _ in range(outstanding):
            self.listen()

    def listen(self):
        if self.system.listen(30) is None:
            raise TimeoutError("an answer did not come")

    def tells(self, body, count):
        for _ in range(count):
            self.system.tell(self.echo, (body,))
        self.noted += count
        deadline = time.monotonic() + 60
        while self.system.ask(self.echo, "count", 30) < self.noted:
            if time.monotonic() > deadline:
                raise TimeoutError("not all tells came")

    def close(self):
        self.system.shutdown()


if __name__ == "__main__":
    main(serve, Asking)
