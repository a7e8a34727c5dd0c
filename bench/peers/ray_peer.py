"""Ray actors: one driver and one actor on this machine."""

import os
import signal
import threading
from collections import deque

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from contract import main


class Echo:
    def __init__(self):
        self.notes = 0

    async def answer(self, body):
        return body

    async def note(self, _):
        self.notes += 1

    async def count(self):
        return self.notes


def serve(ready):
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    ready("of the client's own")
    ended.wait()


class Asking:
    def __init__(self, _):
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            object_store_memory=1 << 29,
            _node_ip_address="127.0.0.1",
        )
        self.echo = ray.remote(Echo).options(max_concurrency=1000).remote()
        self.noted = 0

    def ask(self, body):
        return ray.get(self.echo.answer.remote(body))

    def asks(self, body, count, outstanding):
        waiting = deque()
        for _ in range(count):
            if len(waiting) >= outstanding:
                ray.get(waiting.popleft())
            waiting.append(self.echo.answer.remote(body))
        ray.get(list(waiting))

    def tells(self, body, count):
        for _ in range(count):
            self.echo.note.remote(body)
        self.noted += count
        assert ray.get(self.echo.count.remote()) <= self.noted
        while ray.get(self.echo.count.remote()) < self.noted:
            pass

    def close(self):
        ray.shutdown()


if __name__ == "__main__":
    main(serve, Asking)
