"""With which status a command ends, so that scripts and orchestrators can tell why."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Exit"]


class Exit(IntEnum):
    """Why a command ended. 128 and more is a signal, as everywhere."""

    OK = 0
    FAILED = 1
    """A message failed, or something that nobody foresaw."""
    USAGE = 2
    """The command line, the file, a variable or the keys are wrong."""
    APP = 3
    """The app cannot be loaded or started."""
    LISTEN = 4
    """An address is taken, or is none of this machine's."""
    NO_ROUTE = 5
    """Nobody handles the message, or there is no such node."""
    NO_ANSWER = 6
    """No answer came in time."""
    NO_CLUSTER = 7
    """No node was found."""
    UNDONE = 8
    """The node was stopped before everything was handled: the time for draining was over."""
