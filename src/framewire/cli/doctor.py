"""``framewire doctor``: what is here, what is missing, and what to do about it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

__all__ = ["Finding", "doctor", "examined"]

_LEAST_PYTHON = (3, 11)
_LEAST_SPACE = 1 << 30
_GOOD, _LACKING, _BROKEN = "good", "lacking", "broken"
_MARKS = {_GOOD: ("✓", "green"), _LACKING: ("-", "yellow"), _BROKEN: ("✗", "red")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: str
    """good; lacking, where something works less well or not at all without it; broken, where it must be mended."""
    detail: str
    todo: str = ""
    """What to do about it."""


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=7400, help="The rendezvous port to try (7400).")
@click.option("--json", "as_json", is_flag=True, help="JSON for programs.")
def doctor(port: int, *, as_json: bool) -> None:
    """Check Python, the compiled parts, Java, Spark, ports and disk, and say what to do about each.

    Exit status: 0 if nothing is broken, 1 otherwise. What is only lacking is no failure.

    Example: framewire doctor
    """
    found = list(examined(port))
    if as_json:
        import json  # noqa: PLC0415 - only for programs

        click.echo(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        for finding in found:
            mark, colour = _MARKS[finding.state]
            click.echo(f"{click.style(mark, fg=colour)} {finding.what:<18} {finding.detail}")
            if finding.todo:
                click.echo(f"  {'':<18} {click.style(finding.todo, dim=True)}")
    if any(finding.state == _BROKEN for finding in found):
        raise SystemExit(1)


def examined(port: int) -> Iterator[Finding]:
    """Everything that matters, one after the other; an examination that fails is a finding itself."""
    examinations: tuple[Callable[[], Finding], ...] = (
        _python,
        _compiled_parts,
        _event_loop,
        _recording,
        _java,
        _spark,
        _dashboard,
        lambda: _listening(port),
        _descriptors,
        _disk,
    )
    for examine in examinations:
        try:
            yield examine()
        except Exception as problem:  # noqa: BLE001 - whatever is wrong here is what was asked for
            name = examine.__name__.strip("_<>").replace("_", " ")
            yield Finding(name, _BROKEN, f"{type(problem).__name__}: {problem}")


def _python() -> Finding:
    told = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < _LEAST_PYTHON:
        return Finding("Python", _BROKEN, told, "framewire needs Python 3.11 or newer")
    return Finding("Python", _GOOD, told)


def _compiled_parts() -> Finding:
    import zmq  # noqa: PLC0415 - not needed for the help

    from framewire.cluster import channel  # noqa: PLC0415 - same
    from framewire.wire import moulds  # noqa: PLC0415 - same

    libraries = f"pyzmq {zmq.__version__}, libzmq {zmq.zmq_version()}"
    missing = [name for name, part in (("channel", channel), ("moulds", moulds)) if not part.COMPILED]
    if not missing:
        return Finding("compiled parts", _GOOD, f"channel, moulds; {libraries}")
    detail = f"without {' and '.join(missing)}; {libraries}"
    return _uncompiled("compiled parts", detail, "messages take up to several times as long")


def _uncompiled(what: str, detail: str, price: str) -> Finding:
    """A compiled part is not in use, which has its price: it was switched off, never built, or built long ago."""
    if os.environ.get("FRAMEWIRE_PURE", "") not in ("", "0"):
        return Finding(what, _LACKING, detail, f"FRAMEWIRE_PURE is set, so {price}: unset it")
    todo = f"{price}; install a C compiler and Python's headers, then framewire again"
    return Finding(what, _LACKING, detail, todo)


def _event_loop() -> Finding:
    if (version := _version("uvloop")) is not None:
        return Finding("event loop", _GOOD, f"uvloop {version}, through fw.run and framewire node")
    return Finding("event loop", _LACKING, "asyncio's own", "pip install 'framewire[uvloop]' for a faster one")


def _recording() -> Finding:
    version = _version("pyarrow")
    if version is None:
        todo = "to record: pip install 'framewire[spark]'"
        return Finding("recording", _LACKING, "pyarrow is not installed", todo)
    from framewire.capture import ledger  # noqa: PLC0415 - loads pyarrow

    if ledger.COMPILED:
        return Finding("recording", _GOOD, f"pyarrow {version}, compiled recorder")
    return _uncompiled("recording", f"pyarrow {version}, without the compiled recorder", "recording takes longer")


def _java() -> Finding:
    from framewire.spark.java import LEAST, find_java, release_of  # noqa: PLC0415 - not needed for the help

    home = find_java()
    if home is not None:
        return Finding("Java", _GOOD, f"{release_of(home)} at {home}")
    todo = f"the pipeline installs one when it is first run; or install Java {LEAST} and set JAVA_HOME"
    return Finding("Java", _LACKING, f"none of {LEAST} or newer", todo)


def _spark() -> Finding:
    version = _version("pyspark")
    if version is None:
        todo = "for the pipeline: pip install 'framewire[spark]'"
        return Finding("Spark", _LACKING, "PySpark is not installed", todo)
    if version.split(".")[:2] != ["4", "3"]:
        todo = "framewire is made for 4.3: pip install 'framewire[spark]'"
        return Finding("Spark", _BROKEN, f"PySpark {version}", todo)
    other = os.environ.get("SPARK_HOME", "")
    if other:
        todo = "SPARK_HOME is set, and that Spark is used instead; unset it unless you mean to"
        return Finding("Spark", _LACKING, f"PySpark {version}, SPARK_HOME={other}", todo)
    return Finding("Spark", _GOOD, f"PySpark {version}")


def _dashboard() -> Finding:
    versions = {name: _version(name) for name in ("duckdb", "nicegui")}
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        todo = "pip install 'framewire[dashboard]'"
        return Finding("query, dashboard", _LACKING, f"{', '.join(missing)} not installed", todo)
    return Finding("query, dashboard", _GOOD, ", ".join(f"{name} {version}" for name, version in versions.items()))


def _listening(port: int) -> Finding:
    for number in (port, port + 1):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", number))
            except OSError as problem:
                todo = "a rendezvous server runs here already, or choose another port: --port, and the one after it"
                return Finding("ports", _LACKING, f"{number}: {problem.strerror}", todo)
    return Finding("ports", _GOOD, f"{port} and {port + 1} are free for a rendezvous server")


def _descriptors() -> Finding:
    import resource  # noqa: PLC0415 - not on every system

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    told = f"{soft} at most (could be {'any number' if hard == resource.RLIM_INFINITY else hard})"
    if soft != resource.RLIM_INFINITY and soft < 1024:
        return Finding("open files", _LACKING, told, "a node needs some for each peer: ulimit -n 4096")
    return Finding("open files", _GOOD, told)


def _disk() -> Finding:
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    told = f"{free / (1 << 30):,.1f} GiB free at {here}"
    if not os.access(here, os.W_OK):
        return Finding(
            "disk", _BROKEN, f"{here} cannot be written to", "captures and lakes need a directory that can"
        )
    if free < _LEAST_SPACE:
        return Finding("disk", _LACKING, told, "captures and Spark need more; see `framewire capture prune`")
    return Finding("disk", _GOOD, told)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
