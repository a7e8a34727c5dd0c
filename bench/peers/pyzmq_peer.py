"""pyzmq and nothing else, with the frames of a V5 message: what the format costs without anybody looking at it."""

import signal
import sys

import zmq
from bench.cluster import raw_frames
from contract import main

BODY = 3
"""Which frame of what a ROUTER hands over it is."""


def serve(ready):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    server = zmq.Context().socket(zmq.ROUTER)
    server.set_hwm(200_000)
    port = server.bind_to_random_port("tcp://127.0.0.1")
    ready(f"tcp://127.0.0.1:{port}")
    notes = 0
    while True:
        frames = server.recv_multipart()
        body = frames[BODY]
        if body[:1] == b"n":
            notes += 1
            continue
        if body == b"count":
            frames[BODY] = b"%d" % notes
        server.send_multipart(frames)


class Asking:
    def __init__(self, address):
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.set_hwm(200_000)
        self.socket.connect(address)
        self.noted = 0

    def send(self, body, kind=b"q"):
        frames = raw_frames(kind)
        frames[BODY - 1] = body
        return frames

    def ask(self, body):
        self.socket.send_multipart(self.send(body))
        return self.socket.recv_multipart()[BODY - 1]

    def one_by_one(self, body, count):
        import time  # noqa: PLC0415 - so that all that is timed stands here

        frames, times = self.send(body), []
        for _ in range(count):
            began = time.perf_counter()
            self.socket.send_multipart(frames)
            self.socket.recv_multipart()
            times.append(time.perf_counter() - began)
        return times

    def asks(self, body, count, outstanding):
        frames = self.send(body)
        outstanding = min(outstanding, count)
        for _ in range(outstanding):
            self.socket.send_multipart(frames)
        for _ in range(count - outstanding):
            self.socket.recv_multipart()
            self.socket.send_multipart(frames)
        for _ in range(outstanding):
            self.socket.recv_multipart()

    def tells(self, body, count):
        frames = self.send(b"n" + body[1:], b"n")
        for _ in range(count):
            self.socket.send_multipart(frames)
        self.noted += count
        assert int(self.ask(b"count")) == self.noted

    def close(self):
        self.socket.close(0)


if __name__ == "__main__":
    main(serve, Asking)
