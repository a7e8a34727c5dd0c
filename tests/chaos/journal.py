"""What one node asked, handled and got, written down as it happens so that a kill loses none of it.

A line is one write to a file of the process's own: what was written before a ``kill -9`` is there after it. All
processes are on one machine, so the times of all journals are those of one clock that only goes forward.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

REPLIED, WRONG = "replied", "wrong answer"


class Journal:
    """Writes; a journal is closed by the end of its process, whatever that is."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def asked(self, number, timeout):
        self._write("asked", number, f"{timeout:.3f}")

    def ended(self, number, outcome):
        self._write("ended", number, outcome)

    def handled(self, number):
        self._write("handled", number, "")

    def close(self):
        os.close(self._file)

    def _write(self, what, number, more):
        os.write(self._file, f"{what}\t{number}\t{time.monotonic():.6f}\t{more}\n".encode())


@dataclass
class Ask:
    """One ask as its caller saw it. ``outcomes`` has one entry where all is well."""

    asked: float
    timeout: float
    outcomes: list = field(default_factory=list)
    """Each as (when, what)."""


@dataclass
class Entries:
    """What a journal holds."""

    asks: dict = field(default_factory=dict)
    handled: list = field(default_factory=list)


def read(path):
    """A journal as it is by now; a last line that is not whole belongs to a process that was killed over it."""
    found = Entries()
    for line in Path(path).read_bytes().decode().splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        what, number, at, more = line[:-1].split("\t")
        if what == "asked":
            found.asks[number] = Ask(float(at), float(more))
        elif what == "ended":
            found.asks[number].outcomes.append((float(at), more))
        else:
            found.handled.append(number)
    return found
