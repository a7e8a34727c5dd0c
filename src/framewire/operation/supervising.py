"""Keeps the processes of a program running: as many as were asked for, each a node of its own.

A process that dies, or that somebody else tells to stop, is started again, later each time it ends early. One that
stops itself is done. A program that cannot even begin is not tried again: what is wrong with it does not get
better by trying. In development all are started anew whenever files change; in operation, one by one on SIGHUP, if
asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from framewire.config import Configuration
from framewire.operation.control import SupervisorEnd
from framewire.operation.exits import Exit
from framewire.operation.status import Endpoints, Phase, Report
from framewire.operation.watching import changes

__all__ = ["Supervisor"]

log = logging.getLogger("framewire.operation")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_HOPELESS = (Exit.USAGE, Exit.APP, Exit.LISTEN)
"""What does not get better by trying again."""
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 30.0
_STEADY = 10.0
"""Seconds that a process must have run for its end to be the first in a row."""
_GRACE = 10.0
"""Seconds beyond the time for draining after which a process is killed."""
_COMING_BACK = 60.0
"""Seconds that a worker has to be ready again, so that the next may be started anew."""

Command = Callable[[int, int], list[str]]
"""The command of a worker, by its number and the descriptor of its line."""


class _Worker:
    """One place for a process, and the process that is in it now."""

    def __init__(self, number: int, ready: Callable[[], None]) -> None:
        self.number = number
        self._ready = ready
        self.phase = Phase.GONE
        self.process: asyncio.subprocess.Process | None = None
        self.line: SupervisorEnd | None = None
        self.restarts = 0
        self.was_ready = False
        """Whether any process here ever was."""
        self.is_begun = False
        """Whether the one that is here now has come so far that there is something to drain."""
        self.listens = False
        """Whether it has said anything, so that it can be told something."""
        self.was_signalled = False
        """Whether it was told to stop by a signal that the supervisor has not sent."""
        self.renew = asyncio.Event()
        """Set when the process that is here now is to make room for another; after that there is another event."""
        self.is_new = False
        """Whether the process that is here was started after the last order to make room."""
        self.came_back, self.failed = asyncio.Event(), asyncio.Event()
        """Set when such a process is ready, or has ended before it was."""

    def told(self, report: Report) -> None:
        """Take note of what the process says of itself."""
        self.listens = True
        self.was_signalled = self.was_signalled or report.signalled
        self.enter(report.phase)

    def enter(self, phase: Phase) -> None:
        self.phase = phase
        if phase in (Phase.JOINING, Phase.READY):  # the app is hosted: nothing is wrong with the program
            self.was_ready = self.is_begun = True
            self._ready()
        if phase is Phase.READY and self.is_new:
            self.came_back.set()

    def make_room(self) -> None:
        """Have the process that is here make room for another."""
        self.is_new = False
        self.came_back.clear()
        self.failed.clear()
        self.renew.set()

    def stop(self) -> None:
        """Tell the process to stop: a second signal would end it at once, so it gets none where it can be told."""
        if self.line is not None and self.listens:
            self.line.stop()
        else:
            self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    async def report(self) -> Report:
        told = await self.line.ask() if self.line is not None else None
        if told is None:
            return Report(self.phase if self.line is None else Phase.SILENT, restarts=self.restarts)
        told.restarts = self.restarts
        return told


class Supervisor:
    """Runs workers until a signal ends it, or there is no hope for them."""

    def __init__(self, config: Configuration, command: Command, *, watched: Path | None = None) -> None:
        self._config = config
        self._command = command
        self._watched = watched
        self._stop = asyncio.Event()
        self._proven = asyncio.Event()
        """Set once a worker has hosted the app: what is wrong with a program is told by one of them, not by all."""
        count = max(1, config["node.workers"])
        self._workers = [_Worker(number + 1, self._proven.set) for number in range(count)]
        self._endpoints = Endpoints(config, self._reports)
        self._rolling: asyncio.Task[None] | None = None
        self._roll_again = False
        self._killing = False
        self._hopeless: int | None = None
        self._patience = config["node.stop_timeout"] + _GRACE

    async def run(self) -> int:
        """Keep them running; the status that the whole ends with."""
        await self._endpoints.start()
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._signalled, number)
        loop.add_signal_handler(signal.SIGHUP, self._hung_up)
        watching = asyncio.create_task(self._watch(), name="framewire reload")
        try:
            ends = await asyncio.gather(*map(self._keep, self._workers))
        finally:
            watching.cancel()
            if self._rolling is not None:
                self._rolling.cancel()
            for number in (*_SIGNALS, signal.SIGHUP):
                loop.remove_signal_handler(number)
            await self._endpoints.close()
        return max(ends) if self._hopeless is None else self._hopeless

    # --- one place

    async def _keep(self, worker: _Worker) -> int:
        early = 0
        if worker is not self._workers[0]:
            await self._pause(None, self._proven)
            if self._stop.is_set():
                return Exit.OK
        while True:
            began = asyncio.get_running_loop().time()
            renew = worker.renew = asyncio.Event()
            try:
                status = await self._run_once(worker, renew)
            except OSError as problem:  # no more processes, or no more descriptors: there may be later
                log.error("worker %d cannot be started: %s", worker.number, problem)  # noqa: TRY400 - that says it all
                status = Exit.FAILED
            if self._stop.is_set():
                return self._last_status(worker, status)
            if renew.is_set():
                early = 0
            elif status == Exit.OK and not worker.was_signalled:
                log.info("worker %d has stopped itself", worker.number)
                worker.enter(Phase.DONE)
                return status
            elif status in _HOPELESS and self._watched is not None:
                log.error("worker %d cannot begin; waiting for a change", worker.number)
                await self._pause(None, renew)
            elif status in _HOPELESS and not worker.was_ready:
                self._give_up(status)
                return status
            else:
                early = 1 if asyncio.get_running_loop().time() - began > _STEADY else early + 1
                delay = min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** (early - 1))
                why = "told to stop from outside" if worker.was_signalled else _why(status)
                log.error("worker %d ended: %s; starting it again in %.1f s", worker.number, why, delay)
                await self._pause(delay, renew)
                worker.restarts += 1
            if self._stop.is_set():
                return Exit.OK

    @staticmethod
    def _last_status(worker: _Worker, status: int) -> int:
        if status in (Exit.OK, Exit.UNDONE):
            return status
        return Exit.UNDONE if worker.is_begun else Exit.OK

    async def _run_once(self, worker: _Worker, renew: asyncio.Event) -> int:
        ours, theirs = socket.socketpair()
        try:
            # In a session of its own: Ctrl-C in a terminal is for the supervisor, which then tells the workers.
            worker.process = await asyncio.create_subprocess_exec(
                *self._command(worker.number, theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        worker.line = SupervisorEnd(ours, told=worker.told)
        await worker.line.start()
        worker.is_begun = worker.listens = worker.was_signalled = False
        worker.is_new = not renew.is_set()
        worker.enter(Phase.STARTING)
        log.info("worker %d is process %d", worker.number, worker.process.pid)
        try:
            return await self._ended(worker, worker.process, renew)
        finally:
            line, worker.line = worker.line, None
            await line.close()
            worker.enter(Phase.GONE)
            if worker.is_new:
                worker.failed.set()

    async def _ended(self, worker: _Worker, process: asyncio.subprocess.Process, renew: asyncio.Event) -> int:
        """Wait for a process; where it is to end, help it to."""
        ending = asyncio.create_task(process.wait())
        told = [asyncio.create_task(event.wait()) for event in (self._stop, renew)]
        try:
            await asyncio.wait([ending, *told], return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                if self._killing:
                    worker.signal(signal.SIGKILL)
                else:
                    worker.stop()
                done, _ = await asyncio.wait([ending], timeout=self._patience)
                if not done:
                    log.error("worker %d does not end; killing it", worker.number)
                    worker.signal(signal.SIGKILL)
            return await ending
        finally:
            for each in told:
                each.cancel()

    async def _pause(self, seconds: float | None, event: asyncio.Event) -> None:
        """Wait, until it is time, or told to stop, or something has happened."""
        waits = [asyncio.create_task(each.wait()) for each in (self._stop, event)]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    # --- all of them

    def _give_up(self, status: int) -> None:
        if self._hopeless is None:
            self._hopeless = status
        self._stop.set()

    async def _watch(self) -> None:
        if self._watched is None:
            return
        async for files in changes(self._watched, self._config.file):
            log.info("%s changed; starting anew", files[0] if len(files) == 1 else f"{len(files)} files have")
            for worker in self._workers:
                worker.make_room()

    def _hung_up(self) -> None:
        """Start the workers anew one by one, or have them read their keys anew, as was asked for."""
        if not self._config["node.reload_workers"]:
            self._rekey()
        elif self._rolling is None or self._rolling.done():
            self._rolling = asyncio.create_task(self._roll(), name="framewire rolling restart")
        else:
            self._roll_again = True

    async def _roll(self) -> None:
        """Start the workers anew, each once the one before it is ready; leave the others where one is not."""
        self._roll_again = True
        while self._roll_again:
            self._roll_again = False
            log.info("starting the workers anew, one by one")
            for worker in self._workers:
                if worker.phase is not Phase.DONE and not await self._renewed(worker):
                    if not self._stop.is_set():
                        log.error("worker %d is not ready again; the others stay as they are", worker.number)
                    return
            log.info("all workers were started anew")

    async def _renewed(self, worker: _Worker) -> bool:
        worker.make_room()
        waits = [asyncio.create_task(each.wait()) for each in (worker.came_back, worker.failed, self._stop)]
        try:
            limit = self._patience + _COMING_BACK
            await asyncio.wait(waits, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        return worker.came_back.is_set()

    def _rekey(self) -> None:
        for worker in self._workers:
            if worker.is_begun:  # one that is still starting reads the keys as they are now
                worker.signal(signal.SIGHUP)

    def _signalled(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._stop.is_set():
            log.warning("%s again: killing the workers", name)
            self._killing = True
            for worker in self._workers:
                worker.signal(signal.SIGKILL)
            return
        log.info("stopping on %s", name)
        self._stop.set()

    async def _reports(self) -> Mapping[str, Report]:
        found = await asyncio.gather(*(worker.report() for worker in self._workers))
        return {str(worker.number): report for worker, report in zip(self._workers, found, strict=True)}


def _why(status: int) -> str:
    if status >= 0:
        return f"status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
