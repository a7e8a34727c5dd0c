"""libzmq in C (libzmq.c), with the frames of a V5 message: the limit for all that send them."""

import subprocess
from pathlib import Path

from bench.cluster import raw_frames
from contract import main

PROGRAM = Path("build/peers/libzmq/libzmq")
START = 100
"""Asks that are made and not counted, so that connecting is not what is measured."""


def serve(ready):
    with subprocess.Popen([PROGRAM, "serve"], stdout=subprocess.PIPE) as server:
        ready(server.stdout.readline().decode().strip("\0\n"))


class Asking:
    def __init__(self, address):
        self.address = address

    def run(self, kind, body, count, outstanding=1):
        frames = b"".join(
            b"%d\n%b" % (len(frame), frame) for frame in raw_frames(b"n" if kind == "tells" else b"q")
        )
        told = [PROGRAM, kind, self.address, str(count), str(outstanding), str(len(body))]
        found = subprocess.run(told, input=frames, stdout=subprocess.PIPE, check=True, timeout=120).stdout
        return [int(line) / 1e9 for line in found.split()]

    def ask(self, body):
        self.run("ask", body, 1)
        return body

    def one_by_one(self, body, count):
        return self.run("ask", body, count + START)[START:]

    def asks(self, body, count, outstanding):
        return self.run("asks", body, count, outstanding)[0]

    def tells(self, body, count):
        return self.run("tells", body, count)[0]

    def close(self):
        pass


if __name__ == "__main__":
    main(serve, Asking)
