"""How eagerly libzmq's thread may interrupt the event loop.

It is woken for each message. Where there are many, taking the processor from the event loop at once makes the two
take turns message by message, and much of the time goes into that; as a batch thread it waits until a processor is
free, or for its turn, and finds many. Where there are few, that wait is all that it brings. So the thread is told
which of the two it is, by what the last turns had (bench/cluster.py).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

import zmq

__all__ = ["Pace", "make_context"]

_MANY = 4
"""Messages in a turn that are many."""
_NAMED = 0.2
"""Seconds that libzmq's thread has to start; without it, all goes on as well, only not as fast."""
_MAX_SOCKETS = 20_000
"""There is one for each peer (links.py), of which 10,000 may be known, and a few besides."""
_SURE = 32
"""Turns by which those with many must outnumber the others, or the other way round, before anything is changed."""


def make_context() -> tuple[zmq.Context[zmq.Socket[bytes]], Pace]:
    """A context, and what sets the pace of its thread."""
    before = _threads().keys()
    made: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    made.set(zmq.MAX_SOCKETS, _MAX_SOCKETS)
    made.socket(zmq.PAIR).close(0)  # libzmq starts its thread with the first socket
    return made, Pace(_new_io_threads(before))


class Pace:
    """Keeps count of what the turns of an event loop had."""

    def __init__(self, threads: Iterable[int]) -> None:
        self._threads = tuple(threads) if hasattr(os, "SCHED_BATCH") else ()
        self._balance = 0
        self.hurried = False
        """Whether there is much to do."""

    def turn(self, messages: int) -> None:
        """So many messages were sent or received together."""
        if messages >= _MANY:
            if self._balance < _SURE:
                self._balance += 1
            elif not self.hurried:
                self._change(hurried=True)
        elif self._balance > 0:
            self._balance -= 1
        elif self.hurried:
            self._change(hurried=False)

    def _change(self, *, hurried: bool) -> None:
        self.hurried = hurried
        for thread in self._threads:
            try:
                os.sched_setscheduler(thread, os.SCHED_BATCH if hurried else os.SCHED_OTHER, os.sched_param(0))
            except OSError:  # not allowed here; then all stays as it is
                self._threads = ()


def _new_io_threads(before: AbstractSet[int]) -> set[int]:
    """A thread gives itself its name when it first runs, which may be a moment after it was started."""
    deadline = time.monotonic() + _NAMED
    while True:
        now = _threads()
        found = {thread for thread in now.keys() - before if now[thread].startswith("ZMQbg/IO")}
        if found or not now or time.monotonic() > deadline:
            return found
        time.sleep(0.0005)


def _threads() -> dict[int, str]:
    found = {}
    for task in Path("/proc/self/task").glob("*"):
        with contextlib.suppress(OSError):  # it has just ended
            found[int(task.name)] = (task / "comm").read_text()
    return found
