"""Dramatiq on Redis: tasks with results."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dramatiq
import redis
from contract import main
from dramatiq.brokers.redis import RedisBroker
from dramatiq.encoder import PickleEncoder
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

PORT = os.environ.get("FRAMEWIRE_BENCH_REDIS")


def tasks(port):
    dramatiq.set_encoder(PickleEncoder())
    store = RedisBackend(host="127.0.0.1", port=port)
    broker = RedisBroker(host="127.0.0.1", port=port)
    broker.add_middleware(Results(backend=store, store_results=True))
    dramatiq.set_broker(broker)

    @dramatiq.actor
    def answer(body):
        return body

    @dramatiq.actor(store_results=False)
    def note(_):
        redis.Redis(connection_pool=pool).incr("notes")

    pool = redis.ConnectionPool(host="127.0.0.1", port=port)
    return answer, note


if PORT:
    answer, note = tasks(int(PORT))


def serve(ready):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        told = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", directory]
        store = subprocess.Popen(["redis-server", *told], stdout=subprocess.DEVNULL)  # noqa: S607
        environment = os.environ | {"FRAMEWIRE_BENCH_REDIS": str(port)}
        workers = [sys.executable, "-m", "dramatiq", "dramatiq_peer", "--processes", "1", "--threads", "8"]
        work = subprocess.Popen(
            workers,
            env=environment,
            cwd=Path(__file__).parent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        try:
            time.sleep(0.5)
            ready(str(port))
            work.wait()
        finally:
            work.terminate()
            work.wait()
            store.terminate()
            store.wait()


class Asking:
    def __init__(self, address):
        self.answer, self.note = tasks(int(address))
        self.redis = redis.Redis(host="127.0.0.1", port=int(address))
        self.noted = 0

    def ask(self, body):
        return self.answer.send(body).get_result(block=True, timeout=30_000)

    def asks(self, body, count, outstanding):
        for first in range(0, count, outstanding):
            for told in [self.answer.send(body) for _ in range(min(outstanding, count - first))]:
                told.get_result(block=True, timeout=60_000)

    def tells(self, body, count):
        for _ in range(count):
            self.note.send(body)
        self.noted += count
        deadline = time.monotonic() + 60
        while int(self.redis.get("notes") or 0) < self.noted:
            if time.monotonic() > deadline:
                raise TimeoutError("not all tells came")
            time.sleep(0.005)

    def close(self):
        self.redis.close()


if __name__ == "__main__":
    main(serve, Asking)
