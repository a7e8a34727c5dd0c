"""Programs for ``framewire node``, and processes that run them."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.cluster.clustering import HEARTBEAT

import framewire as fw

SHOP = Path(__file__).with_name("shop.py").read_text()


def write(directory, name, source):
    path = directory / name
    path.write_text(textwrap.dedent(source))
    return path


class Program:
    """``framewire COMMAND`` as a process of its own; what it writes to the standard error is in a file."""

    def __init__(self, directory, *arguments, module="framewire", warnings="error", **variables):
        self._said = directory / f"stderr-{time.monotonic_ns()}"
        environ = {name: value for name, value in os.environ.items() if not name.startswith("FRAMEWIRE_")}
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-W", warnings, "-m", module, *map(str, arguments)],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environ | {"PYTHONDONTWRITEBYTECODE": "1"} | variables,
                start_new_session=True,  # so that it has a group that can be sent a signal as a terminal does
            )

    @property
    def said(self):
        return self._said.read_text()

    def says(self, text, times=1, seconds=60):
        """Wait until it has said something, so many times."""
        deadline = time.monotonic() + seconds
        while self.said.count(text) < times:
            assert self.process.poll() is None or self.said.count(text) >= times, self.said
            assert time.monotonic() < deadline, f"{text!r} was not said:\n{self.said}"
            time.sleep(0.02)
        return self.said

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM, seconds=40):
        self.send(number)
        return self.process.wait(seconds)

    def ended(self, seconds=60):
        return self.process.wait(seconds)

    def close(self):
        self.process.kill()
        self.process.communicate(timeout=10)


@contextlib.contextmanager
def program(directory, *arguments, **variables):
    made = Program(directory, *arguments, **variables)
    with contextlib.closing(made):
        yield made


@contextlib.contextmanager
def client(server, **options):
    """A blocking client of a cluster."""
    told = {"rendezvous": [server.uri], "heartbeat": HEARTBEAT, "misses": 10, "route_grace": 20, "timeout": 30}
    with contextlib.closing(fw.Client(**told | options)) as made:
        yield made


def page(address, path):
    """The status and the text of a page."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()
