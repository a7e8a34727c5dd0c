"""Pyro5: calls of remote objects; it has no asks that wait side by side but threads."""

import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from threading import local

import Pyro5
import Pyro5.api
from contract import main

Pyro5.config.SERIALIZER = "marshal"  # its fastest, and the only one that knows bytes as bytes
Pyro5.config.THREADPOOL_SIZE = 100
THREADS = 32


@Pyro5.api.expose
class Echo:
    notes = 0

    def answer(self, body):
        return body

    @Pyro5.api.oneway
    def note(self, body):  # noqa: ARG002 - it is there to be sent
        Echo.notes += 1

    def count(self):
        return Echo.notes


def serve(ready):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with Pyro5.api.Daemon(host="127.0.0.1", port=0) as daemon:
        ready(str(daemon.register(Echo())))
        daemon.requestLoop()


class Asking:
    def __init__(self, address):
        self.address = address
        self.proxy = Pyro5.api.Proxy(address)
        self.threads = ThreadPoolExecutor(THREADS)
        self.mine = local()
        self.noted = 0

    def ask(self, body):
        return self.proxy.answer(body)

    def in_thread(self, body):
        if not hasattr(self.mine, "proxy"):
            self.mine.proxy = Pyro5.api.Proxy(self.address)
        self.mine.proxy.answer(body)

    def asks(self, body, count, outstanding):  # noqa: ARG002 - as many as there are threads
        for _ in self.threads.map(self.in_thread, repeat(body, count)):
            pass

    def tells(self, body, count):
        for _ in range(count):
            self.proxy.note(body)
        self.noted += count
        deadline = time.monotonic() + 60
        while self.proxy.count() < self.noted:
            if time.monotonic() > deadline:
                raise TimeoutError("not all tells came")
            time.sleep(0.001)

    def close(self):
        self.threads.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main(serve, Asking)
