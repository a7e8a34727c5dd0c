"""``framewire node``: runs a user's program as a node, or as several."""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from framewire.config import Configuration, Flag
    from framewire.errors import FramewireError

__all__ = ["node"]

log = logging.getLogger("framewire.operation")


@click.command()
@click.option("--app", metavar="MODULE:NAME", help="What runs on the node: shop.orders:app.")
@click.option("--config", "file", metavar="FILE", help="The file to read; framewire.toml unless given.")
@click.option("--set", "told", multiple=True, metavar="KEY=VALUE", help="Any option, such as cluster.misses=5.")
@click.option("--workers", metavar="N", help="Processes to use all cores with; those that die are started again.")
@click.option("--reload-workers", is_flag=True, default=None, help="On SIGHUP, start the workers anew, one by one.")
@click.option("--rendezvous", multiple=True, metavar="ADDRESS", help="A rendezvous server of the cluster.")
@click.option(
    "--peer", "peers", multiple=True, metavar="ADDRESS", help="A node of it, where there is no rendezvous."
)
@click.option(
    "--bind", metavar="ADDRESS", help="Where the node listens: any port of the way to its server unless given."
)
@click.option("--identity", metavar="NAME", help="What other nodes know it by.")
@click.option("--keys", metavar="KEYS.toml", help="The keys of its domains.")
@click.option("--capture", metavar="DIR", help="Record it there: a directory, or a URI.")
@click.option("--health", metavar="HOST:PORT", help="Answer /live and /ready there.")
@click.option("--metrics", metavar="HOST:PORT", help="Answer /metrics there, for Prometheus; may be the same.")
@click.option("--spans", is_flag=True, default=None, help="Make OpenTelemetry spans of what handlers do.")
@click.option("--log-format", type=click.Choice(["human", "json"]), help="Lines for people, or for machines.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="info unless given.")
@click.option("--reload", is_flag=True, help="For development: start anew when a Python file here changes.")
@click.option("--worker", type=int, hidden=True)
@click.option("--control", type=int, hidden=True)
def node(
    *,
    file: str | None,
    told: tuple[str, ...],
    reload: bool,
    worker: int | None,
    control: int | None,
    **named: Any,
) -> None:
    """Run a program as a node until it is interrupted.

    NAME is an actor, a class of actors, or a function that is called with the node, and may return what else to
    host. All options can also be in framewire.toml or in variables: see `framewire config show`.

    SIGTERM and Ctrl-C drain: nothing more is taken, what runs is finished and answered. A second one ends at once.
    SIGHUP has the keys read anew, or with --reload-workers the workers started anew.

    Exit status: 0 if it was stopped and nothing was left undone, 2 if the configuration is wrong, 3 if the app
    cannot be loaded or started, 4 if an address or the identity is taken, 8 if the time for draining was over
    before everything was handled, 1 for anything else.

    Example: framewire node --app shop.orders:app --rendezvous tcp://host:7400 --workers 4 --health '*:8080'
    """
    from framewire.cli.settings import flags, one_paragraph  # noqa: PLC0415 - not needed for the help
    from framewire.config import load  # noqa: PLC0415 - same
    from framewire.operation.logs import set_up  # noqa: PLC0415 - same

    given = flags(told, {_KEYS[name]: value for name, value in named.items()})
    with one_paragraph():
        config = load(file=file, flags=given)
        if config["node.app"] is None:
            raise click.UsageError(
                "Name what is to run: --app MODULE:NAME, or app in the table [node] of the file."
            )
        if config["node.reload_workers"] and not config["node.workers"]:
            raise click.UsageError("--reload-workers is for several processes; say how many with --workers N.")
    set_up(config["log.level"], config["log.format"], worker=worker)
    if worker is None and (reload or config["node.workers"]):
        status = _supervise(config, file, given, reload=reload)
    else:
        status = _work(config, worker, control)
    _end(status)


_KEYS = {
    "app": "node.app",
    "workers": "node.workers",
    "reload_workers": "node.reload_workers",
    "identity": "node.identity",
    "spans": "node.spans",
    "rendezvous": "cluster.rendezvous",
    "peers": "cluster.peers",
    "bind": "cluster.bind",
    "keys": "security.keys",
    "capture": "capture.path",
    "health": "endpoints.health",
    "metrics": "endpoints.metrics",
    "log_format": "log.format",
    "log_level": "log.level",
}


def _work(config: Configuration, worker: int | None, control: int | None) -> int:
    import socket  # noqa: PLC0415 - not needed for the help

    from framewire.errors import FramewireError  # noqa: PLC0415 - same
    from framewire.node import run  # noqa: PLC0415 - same
    from framewire.operation.apps import AppError, load_app  # noqa: PLC0415 - same
    from framewire.operation.exits import Exit  # noqa: PLC0415 - same
    from framewire.operation.http import CannotListenError  # noqa: PLC0415 - same
    from framewire.operation.running import Running  # noqa: PLC0415 - same

    async def main() -> Exit:
        line = None if control is None else socket.socket(fileno=control)
        return await Running(config, app, worker=worker, control=line).run()

    try:
        app = load_app(config["node.app"])
        return run(main())
    except AppError as problem:
        return _failed(config, problem, Exit.APP)
    except CannotListenError as problem:
        return _failed(config, problem, Exit.LISTEN)
    except FramewireError as problem:
        return _failed(config, problem, Exit.USAGE)


def _failed(config: Configuration, problem: FramewireError, status: int) -> int:
    """Tell what ended the node: to people as every command does, to machines as everything else that is logged."""
    from framewire.cli.settings import Wrong  # noqa: PLC0415 - only where something went wrong

    cause = problem.__cause__ if isinstance(problem.__cause__, Exception) else None
    if config["log.format"] == "json":
        log.critical("%s", problem, exc_info=cause)
        return status
    if cause is not None:
        _show_trace(cause)
    raise Wrong(str(problem), status) from None


def _show_trace(cause: Exception) -> None:
    """The program's own traceback, from where the program begins."""
    import traceback  # noqa: PLC0415 - only where something went wrong

    ours = (str(Path(__file__).parents[1]), "<frozen", str(Path(os.__file__).parent / "importlib"))
    frames = [frame for frame in traceback.extract_tb(cause.__traceback__) if not frame.filename.startswith(ours)]
    click.echo("".join(traceback.format_list(frames)), err=True, nl=False)


def _supervise(config: Configuration, file: str | None, given: list[Flag], *, reload: bool) -> int:
    import asyncio  # noqa: PLC0415 - not needed for the help

    from framewire.operation.exits import Exit  # noqa: PLC0415 - same
    from framewire.operation.http import CannotListenError  # noqa: PLC0415 - same
    from framewire.operation.supervising import Supervisor  # noqa: PLC0415 - same

    def command(number: int, control: int) -> list[str]:
        same = [f"--set={flag.key}={flag.value}" for flag in given]
        named = [] if file is None else [f"--config={file}"]
        own = [f"--worker={number}", f"--control={control}"]
        return [sys.executable, "-m", "framewire", "node", *named, *same, *own]

    async def main() -> int:
        return await Supervisor(config, command, watched=Path.cwd() if reload else None).run()

    try:
        return asyncio.run(main())
    except CannotListenError as problem:
        return _failed(config, problem, Exit.LISTEN)


def _end(status: int) -> None:
    """End with a status, even where a handler still runs in a thread: nothing could stop that."""
    logging.shutdown()
    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
