"""The peers, and an environment of its own for each: what does not install here is told and left out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PEERS", "Peer", "Unavailable", "environment", "prepared"]

HERE = Path(__file__).parent
BUILD = Path("build/peers")


class Unavailable(Exception):  # noqa: N818 - it is an answer, not a mistake
    """Why a peer cannot be measured on this machine."""


@dataclass(frozen=True)
class Peer:
    name: str
    module: str
    installs: tuple[str, ...] = ()
    """Of the Python registry; none for what runs in framewire's own environment."""
    programs: tuple[str, ...] = ()
    """That must be on the PATH, by the names of their Debian packages."""
    variables: dict[str, str] = field(default_factory=dict)
    local: bool = False
    """Whether it can be asked within one process, too."""
    remote: bool = True
    serves: bool = True
    """Whether there is a server whose start and memory can be measured apart from the client's."""


PEERS = (
    Peer("framewire", "framewire_peer", local=True),
    Peer("framewire, signed", "framewire_peer", variables={"FRAMEWIRE_BENCH_SIGNED": "1"}),
    Peer("raw pyzmq", "pyzmq_peer"),
    Peer("libzmq in C", "libzmq_peer"),
    Peer("NATS", "nats_peer", ("nats-py", "uvloop"), ("nats-server",)),
    Peer("Pyro5", "pyro_peer", ("pyro5",)),
    Peer("xoscar", "xoscar_peer", ("xoscar", "uvloop")),
    Peer("aiozmq.rpc", "aiozmq_peer", ("aiozmq", "msgpack")),
    Peer("gRPC asyncio", "grpc_peer", ("grpcio", "uvloop")),
    Peer("Ray", "ray_peer", ("ray",), serves=False),
    Peer("zerorpc", "zerorpc_peer", ("zerorpc",)),
    Peer("Thespian", "thespian_peer", ("thespian",), serves=False),
    Peer("Dramatiq", "dramatiq_peer", ("dramatiq[redis]",), ("redis-server",)),
    Peer("Dask actors", "dask_peer", ("distributed",)),
    Peer("Pykka", "pykka_peer", ("pykka",), local=True, remote=False),
)


def prepared(peer: Peer) -> list[str]:
    """The command that runs a peer's module, once all that it needs is there."""
    missing = [program for program in peer.programs if shutil.which(program) is None]
    if missing:
        raise Unavailable(f"{', '.join(missing)} is not installed: apt-get install {' '.join(missing)}")
    if peer.module == "libzmq_peer":
        _compiled(HERE / "libzmq.c", BUILD / "libzmq" / "libzmq")
    python = _environment(peer) if peer.installs else Path(sys.executable)
    return [str(python), str(HERE / f"{peer.module}.py")]


def _compiled(source: Path, program: Path) -> None:
    if program.exists() and program.stat().st_mtime >= source.stat().st_mtime:
        return
    program.parent.mkdir(parents=True, exist_ok=True)
    compiler = shutil.which("cc")
    if compiler is None:
        raise Unavailable("there is no C compiler")
    made = subprocess.run(
        [compiler, "-O2", "-o", program, source, "-lzmq"], capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise Unavailable("libzmq's headers are not installed: apt-get install libzmq3-dev")


def _environment(peer: Peer) -> Path:
    place = BUILD / peer.module.removesuffix("_peer")
    python = place.absolute() / "bin" / "python"
    done = place / ".ready"
    told = "\n".join(peer.installs)
    if not done.exists() or done.read_text(encoding="utf-8") != told:
        venv.create(place, with_pip=True, clear=True, symlinks=True)
        made = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.installs],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise Unavailable(
                "it does not install: " + (made.stderr.strip().splitlines() or ["no reason given"])[-1]
            )
        done.write_text(told, encoding="utf-8")
    return python


def environment(peer: Peer) -> dict[str, str]:
    """The variables that a peer's processes get."""
    # A script finds what lies beside it; some need the bench that has the frames, too.
    return {**os.environ, "PYTHONPATH": str(HERE.parents[1]), **peer.variables}
