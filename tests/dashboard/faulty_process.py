"""A dashboard with faults: ``held`` has a lake that answers when it may, ``broken`` a page that cannot be made.

    python -m tests.dashboard.faulty_process (held|broken) LAKE DIRECTORY

A held lake answers once there is a file ``open`` in the directory, or a file ``left`` and nobody looks any more;
then it makes a file ``answered``.
"""

import sys
import time
from pathlib import Path

from nicegui import Client, app

from framewire.config import Flag, load
from framewire.dashboard.board import Board
from framewire.dashboard.questions import Questions
from framewire.dashboard.serving import listen, serve
from framewire.dashboard.watching import Watch

SECONDS = 60
NOWHERE = "tcp://127.0.0.1:1"


class Held(Questions):
    """A lake whose answers wait."""

    def __init__(self, lake, directory):
        super().__init__(lake)
        self._directory = directory

    async def ask(self, key, question):
        return await super().ask(key, lambda lake: (self._wait(), question(lake))[1])

    def _wait(self):
        deadline = time.monotonic() + SECONDS
        while not self._may_answer() and time.monotonic() < deadline:
            time.sleep(0.02)
        (self._directory / "answered").touch()

    def _may_answer(self):
        if (self._directory / "open").exists():
            return True
        return (self._directory / "left").exists() and not Client.instances


class Broken(Watch):
    """A cluster that cannot be looked at, for a fault of the dashboard's own."""

    @property
    def look(self):
        raise RuntimeError("<b>a fault</b> that a test has put here")

    @look.setter
    def look(self, look):
        pass


def main(kind, lake, directory):
    config = load(flags=[Flag("cluster.rendezvous", "--rendezvous", NOWHERE)])
    watch = (Broken if kind == "broken" else Watch)(config, wait=0.5)
    questions = Held(lake, Path(directory)) if kind == "held" else Questions(lake)
    board = Board(lake, questions, watch, rendezvous=(NOWHERE,))

    def begin():
        app.config.reconnect_timeout = 0.2  # whoever has left is given up at once

    app.on_startup(begin)
    with listen("127.0.0.1", 0) as listener:
        sys.stdout.write(f"The dashboard is at http://127.0.0.1:{listener.getsockname()[1]}/\n")
        sys.stdout.flush()
        serve(board, listener, host="127.0.0.1", token=None, show=None)


if __name__ == "__main__":
    main(*sys.argv[1:])
