"""One peer, once: its server and its client as processes of their own, and what they say."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.peers.environments import Peer, environment, prepared

__all__ = ["Failed", "once"]

_START = 60.0
_DRIVE = 240.0
_IDLE = 1.0
"""Seconds that a server has been idle when its memory is looked at."""


class Failed(Exception):  # noqa: N818 - as Unavailable
    """What went wrong with a peer."""


def once(peer: Peer) -> dict[str, float]:
    """Everything that is measured of a peer in one round."""
    command = prepared(peer)
    found: dict[str, float] = {}
    if peer.remote:
        with _server(peer, command) as (address, seconds, pid):
            if peer.serves:
                time.sleep(_IDLE)
                found |= {"start_s": seconds, "idle_mb": _memory(pid)}
            found |= _answer(peer, [*command, "drive", address])
    if peer.local:
        found |= _answer(peer, [*command, "local"])
    return found


@contextmanager
def _server(peer: Peer, command: list[str]) -> Iterator[tuple[str, float, int]]:
    began = time.perf_counter()
    with tempfile.TemporaryFile() as complaints:
        process = _started(peer, [*command, "serve"], complaints)
        try:
            told = process.stdout
            if told is None or not select.select([told], [], [], _START)[0] or not (line := told.readline()):
                raise Failed(f"its server did not start: {_last(complaints)}")
            yield json.loads(line)["address"], time.perf_counter() - began, process.pid
        finally:
            _end(process)


def _answer(peer: Peer, command: list[str]) -> dict[str, float]:
    with tempfile.TemporaryFile() as complaints:
        process = _started(peer, command, complaints)
        try:
            told, _ = process.communicate(timeout=_DRIVE)
        except subprocess.TimeoutExpired:
            raise Failed(f"it did not finish in {_DRIVE:.0f} s") from None
        finally:
            _end(process)
        lines = told.decode().strip().splitlines()
        if process.returncode or not lines:
            raise Failed(_last(complaints))
        found: dict[str, float] = json.loads(lines[-1])
        return found


def _started(peer: Peer, command: list[str], complaints: Any) -> subprocess.Popen[bytes]:
    # In a session of its own, so that whatever it starts can be ended with it.
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=complaints,
        env=environment(peer),
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last(complaints: Any) -> str:
    complaints.seek(0)
    lines = complaints.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "it says nothing"


def _memory(session: int) -> float:
    """What the processes of a session have for themselves, with their share of what they share, in MB."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[3]) != session:
                continue
            rollup = (stat.parent / "smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total * 1024 / 1e6
