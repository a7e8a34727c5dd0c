"""Actors of Dask: a scheduler, a worker and a client, each a process."""

import signal
import threading
from collections import deque

from contract import main
from distributed import Client, LocalCluster


class Echo:
    def __init__(self):
        self.notes = 0

    def answer(self, body):
        return body

    def note(self, _):
        self.notes += 1

    def count(self):
        return self.notes


def serve(ready):
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        ready(cluster.scheduler_address)
        ended.wait()


class Asking:
    def __init__(self, address):
        self.client = Client(address)
        self.echo = self.client.submit(Echo, actor=True).result()

    def ask(self, body):
        return self.echo.answer(body).result()

    def asks(self, body, count, outstanding):
        waiting = deque()
        for _ in range(count):
            if len(waiting) >= outstanding:
                waiting.popleft().result()
            waiting.append(self.echo.answer(body))
        for each in waiting:
            each.result()

    def tells(self, body, count):
        for _ in [self.echo.note(body) for _ in range(count)]:
            pass
        self.noted = getattr(self, "noted", 0) + count
        while self.echo.count().result() < self.noted:
            pass

    def close(self):
        self.client.close()


if __name__ == "__main__":
    main(serve, Asking)
