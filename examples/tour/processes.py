"""The programs that the demo starts, each in a process group of its own, and how they all come to an end.

They are started without the event loop's help: whoever is interrupted in the middle of an await must still know of
every process that there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tour.stage import BrokenPromiseError

__all__ = ["Processes", "Program", "eventually", "last_words"]

_LOOK = 0.02
_GRACE = 8.0
"""Seconds that programs have for an orderly end."""
_LAST_WORDS = 3


async def eventually(condition: Callable[[], object], seconds: float, otherwise: Callable[[], str] | str) -> None:
    """Wait until something is true; where it does not become true in time, that is the end of the demo."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            told = otherwise if isinstance(otherwise, str) else otherwise()
            raise BrokenPromiseError(f"{told} (waited for {seconds:.0f} s)")
        await asyncio.sleep(_LOOK)


def last_words(said: str) -> str:
    """The end of what a program wrote, in one line."""
    return " / ".join(line.strip() for line in said.strip().splitlines()[-_LAST_WORDS:]) or "it said nothing"


class Program:
    """A process that runs, what it has written so far, and what it is told."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], output: Path, complaints: Path) -> None:
        self.name = name
        self._process = process
        self._output = output
        self._complaints = complaints

    @property
    def output(self) -> str:
        return self._output.read_text(errors="replace")

    @property
    def complaints(self) -> str:
        """What it wrote to its standard error, where logs go."""
        return self._complaints.read_text(errors="replace")

    @property
    def status(self) -> int | None:
        """How it ended; None while it runs.

        It is only looked at: until ``close``, its number is not given to anybody else, whom a signal might hit.
        """
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        if self._process.stdin is None:
            raise ValueError(f"{self.name} was started without a standard input")
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and to all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    async def said(self, pattern: str, seconds: float = 60) -> re.Match[str]:
        """Wait until it has written something."""
        found: list[re.Match[str]] = []

        def looked() -> bool:
            found.extend(re.finditer(pattern, self.output + self.complaints))
            return bool(found) or self.status is not None

        await eventually(looked, seconds, lambda: f"{self.name} is not ready: {self.last_words()}")
        if not found:
            raise BrokenPromiseError(f"{self.name} ended with status {self.status}: {self.last_words()}")
        return found[0]

    async def ended(self, seconds: float = 60) -> int:
        """Wait for its end; its status."""
        status: list[int | None] = []

        def looked() -> bool:
            status.append(self.status)
            return status[-1] is not None

        await eventually(looked, seconds, lambda: f"{self.name} does not end: {self.last_words()}")
        return status[-1] or 0

    def last_words(self) -> str:
        """The end of what it wrote, for when something went wrong."""
        return last_words(self.output + self.complaints)

    def close(self) -> None:
        """End what is left of it, and wait until nobody of its group remains."""
        self.signal(signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + _GRACE
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                os.killpg(self.pid, 0)
                time.sleep(_LOOK)
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()


class Processes:
    """All programs of the demo. At the end of ``async with`` none is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs: list[Program] = []

    def start(
        self, name: str, *command: str, cwd: Path, also: Mapping[str, str] | None = None, listens: bool = False
    ) -> Program:
        """Start Python with some arguments; with ``listens`` it can be told things."""
        output, complaints = (self._folder / f"{name}-{len(self._programs)}.{kind}" for kind in ("out", "log"))
        with output.open("wb") as said, complaints.open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - our own programs
                [sys.executable, *command],
                cwd=cwd,
                env={**_environment(), **(also or {})},
                stdin=subprocess.PIPE if listens else subprocess.DEVNULL,
                stdout=said,
                stderr=log,
                start_new_session=True,
            )
        program = Program(name, process, output, complaints)
        self._programs.append(program)
        return program

    def framewire(self, name: str, *arguments: str, cwd: Path, also: Mapping[str, str] | None = None) -> Program:
        """Start a command of framewire's, as anybody would type it."""
        return self.start(name, "-m", "framewire", *arguments, cwd=cwd, also=also)

    async def command(
        self, *arguments: str, width: int, colour: bool, cwd: Path, seconds: float = 60
    ) -> tuple[int, str]:
        """Run a command of framewire's to its end; its status, and what it said."""
        shown = {"COLUMNS": str(width)} | ({"FORCE_COLOR": "1"} if colour else {})
        program = self.framewire(arguments[0], *arguments, cwd=cwd, also=shown)
        status = await program.ended(seconds)
        return status, program.output or program.complaints

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not awaited: whoever is impatient and interrupts again must not leave anybody behind.
        running = [program for program in self._programs if program.status is None]
        for program in running:
            program.signal(signal.SIGTERM)
            program.signal(signal.SIGCONT)
        deadline = time.monotonic() + _GRACE
        while any(program.status is None for program in running) and time.monotonic() < deadline:
            time.sleep(_LOOK)  # noqa: ASYNC251 - see above
        for program in self._programs:
            program.close()


def _environment() -> dict[str, str]:
    """What programs are to find: nothing of framewire's own, which would be taken for the shop's configuration."""
    return {key: value for key, value in os.environ.items() if not key.startswith("FRAMEWIRE_")}
