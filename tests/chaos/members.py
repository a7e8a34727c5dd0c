"""Nodes and rendezvous servers as processes that are told what to do, and whose journals outlive them."""

import json
import os
import random
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos import journal

ROOT = Path(__file__).parents[2]
PATIENT = 60.0
"""Seconds after which a process that says nothing is given up: only a broken one gets there."""


def free_ports(count):
    """Ports that nobody listens at, below those that the system gives to connections: they stay free meanwhile."""
    found = []
    while len(found) < count:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


class Told:
    """A process that answers lines with lines of JSON."""

    def __init__(self, module, *arguments, environment=(), inside=()):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(
            [*inside, sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            env={**os.environ, **dict(environment)},
        )
        self._rest = b""

    @property
    def pid(self):
        return self.process.pid

    def say(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, seconds=PATIENT):
        """The next line that it says."""
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                assert ready.select(deadline - time.monotonic()), f"a process says nothing: {self.errors()}"
                more = os.read(self.process.stdout.fileno(), 1 << 16)
                assert more, f"a process has ended: {self.errors()}"
                self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def tell(self, line, seconds=PATIENT):
        """Say something, and hear what it answers."""
        self.say(line)
        return self.answer(seconds)

    def errors(self):
        self._errors.seek(0)
        return self._errors.read().decode()[-4000:]

    def signal(self, number):
        self.process.send_signal(number)

    def ended(self, seconds=PATIENT):
        """Wait for its end; its exit code."""
        code = self.process.wait(seconds)
        self._close()
        return code

    def kill(self):
        """End it at once, be it standing still or gone already."""
        self.process.kill()
        self.process.wait(PATIENT)
        self._close()

    def _close(self):
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            stream.close()


class Members:
    """Nodes by name. One that is started again is another node: its number, and so its journal, is a new one.

    Without a ``folder`` there are no journals. ``inside`` is what a process is started with.
    """

    def __init__(self, folder, *, seed=0, signed=True, environment=None, inside=(), **settings):
        self._inside = inside
        self._folder = Path(folder) if folder else None
        self._seed = seed
        self._environment = {**(environment or {}), **({"CHAOS_KEY": secrets.token_hex(32)} if signed else {})}
        self.settings = settings
        self.identities = {}
        self.processes = {}
        self.killed = set()
        """The identities of those who were, with whatever they waited for."""
        self._lives = {}

    def begin(self, name, *, node=None, **options):
        """Start a process; ``ready`` waits until it is there."""
        life = self._lives[name] = self._lives.get(name, 0) + 1
        identity = f"{name}-{life}"
        told = {
            "identity": identity,
            "journal": str(self._folder / f"{identity}.journal") if self._folder else os.devnull,
            "seed": f"{self._seed}/{identity}",
            "node": {**self.settings, **(node or {})},
            **options,
        }
        started = Told(
            "tests.chaos.member_process", json.dumps(told), environment=self._environment, inside=self._inside
        )
        self.identities[name] = identity
        self.processes[name] = started

    def ready(self, *names):
        for name in names:
            assert self.processes[name].answer() == {"identity": self.identities[name]}

    def kill(self, name):
        self.processes.pop(name).kill()
        self.killed.add(self.identities.pop(name))

    def drain(self, name):
        """Ask a node to end in good order, and wait until it has."""
        self.processes[name].signal(signal.SIGTERM)
        self.drained(name)

    def drained(self, name):
        """Wait until a node has ended in good order, as it was asked to."""
        code = self.processes.pop(name).ended()
        assert code == 0, f"{name} ended with {code}"
        del self.identities[name]

    def tables(self, names=None):
        """Who answers, as far as each of them knows."""
        asked = list(self.processes if names is None else names)
        for name in asked:
            self.processes[name].say("table")
        return {name: set(self.processes[name].answer()["table"]) for name in asked}

    def settled(self, right, seconds):
        """Wait until all tables are right; how long that took, or None where it took longer than that."""
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            if all(table == right for table in self.tables().values()):
                return asked - began
            if asked - began > seconds:
                return None
            time.sleep(0.02)

    def quiet(self):
        """Let everyone finish asking; the number of promises that are still open at each."""
        for process in self.processes.values():
            process.say("quiet")
        return {name: process.answer()["pending"] for name, process in self.processes.items()}

    def counts(self):
        """Dead letters of those who are there, by reason."""
        return {name: process.tell("counts")["dead"] for name, process in self.processes.items()}

    def journals(self):
        """What every node that ever was has written down, by its identity."""
        return {path.stem: journal.read(path) for path in sorted(self._folder.glob("*.journal"))}

    def close(self):
        for name in tuple(self.processes):
            self.processes.pop(name).kill()


class Server:
    """A rendezvous server as a process, always at the same address."""

    def __init__(self, port, *, partners=(), heartbeat=1.0, inside=()):
        self._inside = inside
        self.uri = f"tcp://127.0.0.1:{port}"
        self._command = (
            "framewire",
            "rendezvous",
            self.uri,
            f"--heartbeat={heartbeat}",
            *(f"--partner={partner}" for partner in partners),
        )
        self.process = None

    def know(self, partner):
        """Relay to another server, and from it, once this one is started."""
        self._command += (f"--partner={partner.uri}",)

    def start(self):
        self.process = Told(*self._command, inside=self._inside)
        deadline = time.monotonic() + PATIENT
        while "listening at" not in self.process.errors():
            assert time.monotonic() < deadline, "the server does not begin"
            assert self.process.process.poll() is None, self.process.errors()
            time.sleep(0.02)

    def signal(self, number):
        self.process.signal(number)

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process = None
