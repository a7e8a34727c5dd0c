"""Strangers without keys who attack a cluster while they are told to: ``stranger_process.py PLACES``, as JSON.

``PLACES`` are the addresses of nodes (``fronts``), of servers (``inboxes``), and where either publishes
(``publishers``). A line ``attack IDENTITY ...`` on its input lets them loose, in the names of these members;
``rest`` calls them off. Each is answered with what was done so far. When the input ends, so do they.

They hold 60 connections at most, and make about 150 a second.
"""

import contextlib
import json
import random
import sys
import threading
import time

from fuzz import forging, zmtp
from tests.chaos.member_process import say
from tests.chaos.messages import NUMBERED

NOWHERE = "tcp://127.0.0.1:1"
_PAUSE_S = 0.02
_MAX_HELD, _TOPICS = 20, 250


class Strangers:
    """One thread for each kind of attack."""

    def __init__(self, places):
        self._places = places
        self._random = random.SystemRandom()
        self._lock = threading.Lock()
        self._loose = threading.Event()
        self._victims = []
        self.counts = {"claimed": 0, "forged": 0, "topics": 0}
        for attack in (self._claim, self._forge, self._subscribe):
            threading.Thread(target=self._keep_up, args=(attack,), daemon=True).start()

    def attack(self, victims):
        self._victims = [identity.encode() for identity in victims]
        self._loose.set()

    def rest(self):
        self._loose.clear()

    def _keep_up(self, attack):
        while self._loose.wait():
            with contextlib.ExitStack() as held:
                for _ in range(_MAX_HELD):
                    with contextlib.suppress(OSError):  # who is attacked may be gone, stand still, or hang up
                        attack(held)
                    time.sleep(_PAUSE_S)
                    if not self._loose.is_set():
                        break

    def _did(self, what):
        with self._lock:
            self.counts[what] += 1

    def _connect(self, held, places, kind=b"DEALER", identity=None):
        return held.enter_context(zmtp.connect(self._random.choice(self._places[places]), kind, identity))

    def _claim(self, held):
        """Connect under the name of a member, or under a number that may be another connection's."""
        name = self._random.choice((self._random.choice(self._victims), b"\0" + self._random.randbytes(4), None))
        self._connect(held, self._random.choice(("fronts", "inboxes")), identity=name)
        self._did("claimed")

    def _forge(self, held):
        """Say of members that they are elsewhere, silent or gone, and of others that they do their work."""
        stranger = self._connect(held, self._random.choice(("fronts", "inboxes")))
        victim, made_up = self._random.choice(self._victims), b"made up %d" % self._random.randrange(20)
        routes = [(b"\1" + self._random.randbytes(16), [NUMBERED.identity])]
        for frames in (
            forging.announcement(victim, NOWHERE, health=NOWHERE, interval=0.0, routes=routes),
            forging.announcement(made_up, NOWHERE, health=NOWHERE, routes=routes),
            forging.withdrawal(victim, NOWHERE, [(b"", [NUMBERED.identity])]),
            forging.farewell(victim, NOWHERE),
            forging.farewell(made_up, NOWHERE),
        ):
            stranger.send(frames)
            self._did("forged")

    def _subscribe(self, held):
        """Listen for what nobody publishes."""
        listener = self._connect(held, "publishers", b"SUB")
        for _ in range(_TOPICS):
            listener.send([b"\1" + self._random.randbytes(80)])
            self._did("topics")


def main(places):
    strangers = Strangers(places)
    say(**strangers.counts)
    for line in sys.stdin:
        how, *victims = line.split()
        if how == "attack":
            strangers.attack(victims)
        else:
            strangers.rest()
        say(**strangers.counts)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
