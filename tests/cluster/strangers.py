"""What the tests of attacks share: clusters that are open, signed or encrypted, and processes that are attacked."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

from fuzz import zmtp
from tests.cluster.attacked_process import ring
from tests.cluster.curves import Keys
from tests.cluster.processes import end, line_of

ROOT = Path(__file__).parents[2]
MODES = ("open", "signed", "curve")
"""Without keys, with a signed domain, and with CURVE."""


class Cluster:
    """What the members of one cluster are told, by how it is protected."""

    def __init__(self, mode, folder):
        self.mode = mode
        self._key = secrets.token_hex(32)
        self._keys = Keys(folder, "member") if mode == "curve" else None

    @property
    def node_options(self):
        """For a node in this process."""
        if self.mode == "signed":
            return {"keyring": ring(self._key)}
        return self.server_options

    @property
    def server_options(self):
        """For a server in this process."""
        return {"curve": self._keys.of("member")} if self._keys else {}

    def written(self, kind):
        """For a process."""
        if self._keys:
            told = self._keys.of("member")
            return {"curve": {name: str(getattr(told, name)) for name in ("key", "cluster", "allowed")}}
        return {"key": self._key} if self.mode == "signed" and kind == "node" else {}


class Attacked:
    """A process that is attacked."""

    def __init__(self, kind, cluster, **options):
        told = json.dumps({**options, **cluster.written(kind)})
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.attacked_process", kind, told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ,
        )
        said = line_of(self.process.stdout)
        assert said, self.process.stderr.read().decode()
        self.places = json.loads(said)

    @property
    def uri(self):
        return self.places["uri"]

    @property
    def is_alive(self):
        return self.process.poll() is None

    @property
    def files(self):
        """How many files it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    @property
    def memory(self):
        """Bytes that it has in memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]) * 4096

    def close(self):
        end(self.process)


@contextlib.contextmanager
def attacked(kind, cluster, **options):
    made = Attacked(kind, cluster, **options)
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def intruder(mode, uri, identity=b"stranger"):
    """A stranger that speaks to a node by hand; None where it is not let in, which only CURVE does."""
    try:
        made = zmtp.connect(uri, b"DEALER", identity)
    except ConnectionError:
        made = None
    assert (made is None) == (mode == "curve")
    with made or contextlib.nullcontext():
        yield made
