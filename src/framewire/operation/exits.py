"""With which status a command ends, so that scripts and orchestrators can tell why.

This is the one table of them: the commands end with it, and the reference of the command line is written from it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self

__all__ = ["Exit"]


class Exit(IntEnum):
    """Why a command ended. 128 and more is a signal, as everywhere."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Self:
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    OK = 0, "All is well."
    FAILED = 1, "It was done, and not all is well: a handler failed, or something is malformed, refused or broken."
    USAGE = 2, "The command line, the configuration, the keys or the question is wrong."
    APP = 3, "The app cannot be loaded or started."
    LISTEN = 4, "An address is taken, or is none of this machine's."
    NO_ROUTE = 5, "Nobody handles the message, or there is no such node."
    NO_ANSWER = 6, "No answer came in time."
    NO_CLUSTER = 7, "No node was found."
    UNDONE = 8, "The node was stopped before everything was handled: the time for draining was over."
    LACKING = 9, "A package that the command needs is not installed."
    FILES = 10, "A file or a directory cannot be read or written."
    FAULT = 70, "A fault of framewire's own: please report it."
    INTERRUPTED = 130, "Ctrl-C ended it."
