"""Names for the addresses of a run, and a name server for them that can be silenced.

Processes that are to use it are started in mount namespaces of their own, where /etc/resolv.conf names that server.
Where this machine allows none, addresses are numbers, and nothing is silenced; the report says so.
"""

import random
import subprocess
from pathlib import Path

from tests.chaos.members import Told
from tests.chaos.name_server import DOMAIN

_MOUNT = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'


class Names:
    """The name server of a run. ``inside`` is what processes are started with that are to ask it."""

    def __init__(self, folder):
        self._file = Path(folder) / "resolv.conf"
        self._address = (
            f"127.{random.SystemRandom().randrange(1, 255)}.{random.SystemRandom().randrange(1, 255)}.53"
        )
        self._server = None
        self.inside = ()
        self.why_not = ""
        self.counts = {"asked": 0, "unanswered": 0}

    def open(self):
        """Start the server, or find out why there can be none."""
        self._file.write_text(f"nameserver {self._address}\noptions timeout:1 attempts:3\n")
        inside = ("unshare", "--mount", "sh", "-c", _MOUNT, str(self._file))
        try:
            subprocess.run([*inside, "true"], capture_output=True, check=True, timeout=20)
        except (OSError, subprocess.SubprocessError) as problem:
            self.why_not = f"this machine allows no mount namespaces: {problem}"
            return
        server = Told("tests.chaos.name_server", self._address)
        try:
            self.counts = server.answer()
        except AssertionError as problem:
            server.kill()
            self.why_not = f"no name server at {self._address}: {problem}"
            return
        self._server, self.inside = server, inside

    def uri(self, name, port):
        """The address of a port here, by name where names can be silenced."""
        return f"tcp://{name}.{DOMAIN}:{port}" if self.inside else f"tcp://127.0.0.1:{port}"

    def silence(self):
        """Answer nobody from now on."""
        self._tell("silent")

    def speak(self):
        """Answer again."""
        self._tell("answer")

    def _tell(self, how):
        if self._server is not None:
            self.counts = self._server.tell(how)

    def close(self):
        if self._server is not None:
            self.speak()
            self._server.kill()
            self._server = None

    def __str__(self):
        if self.why_not:
            return f"were not used; {self.why_not}"
        return f"{self.counts['asked']} questions, of which {self.counts['unanswered']} were not answered"
