"""Hosts of their own, each a network namespace with one address, joined by a bridge in one more.

Nothing is made outside of these namespaces, so removing them removes everything.
"""

import asyncio
import contextlib
import ctypes
import os
import shutil
import subprocess
import threading
import uuid
from pathlib import Path

import pytest

_NETWORK = 0x40000000  # CLONE_NEWNET


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=20, check=False)  # noqa: S607
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


class Network:
    """The hosts of one test by name."""

    def __init__(self):
        self.run_id = f"fw{uuid.uuid4().hex[:8]}"
        self._names = []

    def open(self):
        self._bridge = self._add("bridge")
        ip("-n", self._bridge, "link", "add", "bridge", "type", "bridge")
        ip("-n", self._bridge, "link", "set", "bridge", "up")

    def _add(self, name):
        full = f"{self.run_id}-{name}"
        ip("netns", "add", full)
        self._names.append(full)
        ip("-n", full, "link", "set", "lo", "up")
        return full

    def host(self, name):
        """Add a host; its address."""
        full = self._add(name)
        address = f"10.77.0.{len(self._names)}"
        ip("-n", self._bridge, "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", full)
        ip("-n", self._bridge, "link", "set", f"to-{name}", "master", "bridge")
        ip("-n", self._bridge, "link", "set", f"to-{name}", "up")
        ip("-n", full, "address", "add", f"{address}/24", "dev", "eth0")
        ip("-n", full, "link", "set", "eth0", "up")
        return address

    def cut(self, name):
        """Pull a host's cable."""
        ip("-n", self._bridge, "link", "set", f"to-{name}", "down")

    def heal(self, name):
        """Put it in again."""
        ip("-n", self._bridge, "link", "set", f"to-{name}", "up")

    def delay(self, name, milliseconds):
        """Let a host's packets travel for longer; a skip where this machine cannot."""
        command = ["tc", "-n", f"{self.run_id}-{name}", "qdisc", "add", "dev", "eth0", "root", "netem"]
        if shutil.which("tc") is None:
            pytest.skip("there is no tc on this machine")
        done = subprocess.run(
            [*command, "delay", f"{milliseconds}ms"], capture_output=True, text=True, timeout=20, check=False
        )
        if done.returncode:
            pytest.skip(f"this machine cannot delay packets: {done.stderr.strip()}")

    def inside(self, name, files=()):
        """What a command is started with so that it runs on a host; ``files`` maps paths to what is there instead.

        The files are mounted in the command's own mount namespace, which ``ip netns exec`` makes: nobody else sees
        them.
        """
        command = ["ip", "netns", "exec", f"{self.run_id}-{name}"]
        for path, instead in dict(files).items():
            command += ["sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', str(instead), path]
        return tuple(command)

    def run(self, name, main, seconds=60):
        """Run a coroutine on a host, in a thread of its own: a thread and those that it starts can be elsewhere."""
        outcome = []

        def there():
            libc = ctypes.CDLL(None, use_errno=True)
            with Path(f"/run/netns/{self.run_id}-{name}").open() as namespace:
                if libc.setns(namespace.fileno(), _NETWORK):
                    outcome.append(OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())))
                    main.close()
                    return
            try:
                asyncio.run(asyncio.wait_for(main, seconds))
            except BaseException as problem:  # noqa: BLE001 - raised again where the test is
                outcome.append(problem)

        thread = threading.Thread(target=there, name=f"host {name}")
        thread.start()
        thread.join(seconds + 10)
        assert not thread.is_alive()
        if outcome:
            raise outcome[0]

    def close(self):
        for name in self._names:
            with contextlib.suppress(OSError):
                ip("netns", "delete", name)


@contextlib.contextmanager
def network():
    """A network, or a skip that says why there can be none."""
    if shutil.which("ip") is None:
        pytest.skip("there is no ip command on this machine (package iproute2)")
    made = Network()
    with contextlib.closing(made):
        try:
            made.open()
        except OSError as problem:
            pytest.skip(f"this machine allows no network namespaces: {problem}")
        yield made
