"""``framewire dashboard``: a cluster and its history in a browser."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from framewire.config import Configuration

__all__ = ["dashboard"]

_SHORTEST_TOKEN = 16


@click.command()
@click.option("--lake", metavar="DIR", help="The lake to look into: a directory, or a URI.")
@click.option("--rendezvous", multiple=True, metavar="ADDRESS", help="A rendezvous server of the live cluster.")
@click.option("--peer", "peers", multiple=True, metavar="ADDRESS", help="A node of it, without a rendezvous.")
@click.option(
    "--bind", metavar="ADDRESS", help="Where to listen to nodes: any port of the way to the cluster unless given."
)
@click.option("--keys", metavar="KEYS.toml", help="The keys of the domains to look into.")
@click.option("--config", "file", metavar="FILE", help="The file to read; framewire.toml unless given.")
@click.option("--set", "told", multiple=True, metavar="KEY=VALUE", help="Any option of the file.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where browsers reach it.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8420, show_default=True, help="0 for any that is free."
)
@click.option("--token", metavar="TEXT", help="What browsers must know; made and printed where it is needed.")
@click.option("--app", metavar="MODULE", help="The program's module, whose message types read bodies.")
@click.option("--no-bodies", is_flag=True, help="Show no contents of messages.")
@click.option("--no-open", is_flag=True, help="Open no browser.")
def dashboard(
    *,
    lake: str | None,
    host: str,
    port: int,
    token: str | None,
    app: str | None,
    no_bodies: bool,
    no_open: bool,
    **cluster: Any,
) -> None:
    """Look at a live cluster and at a lake in a browser, until it is interrupted.

    Give --lake for history, --rendezvous (or --peer) for what happens now, or both. Nothing is changed in either.
    Only this machine can reach it. With another --host browsers need a token, which is in the address that is
    printed.

    Exit status: 0 if it was stopped, 2 if the command line is wrong, 3 if the module of --app cannot be loaded,
    4 if the address is taken.

    Example: framewire dashboard --lake lake/ --rendezvous tcp://host:7400
    """
    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise click.UsageError(f"--token must have at least {_SHORTEST_TOKEN} characters; left out, one is made.")
    from framewire.cli.settings import Wrong  # noqa: PLC0415 - only those who look wait for NiceGUI
    from framewire.dashboard.board import Board  # noqa: PLC0415 - same
    from framewire.dashboard.bodies import Bodies  # noqa: PLC0415 - same
    from framewire.dashboard.guard import is_local  # noqa: PLC0415 - same
    from framewire.dashboard.questions import Questions  # noqa: PLC0415 - same
    from framewire.dashboard.serving import listen, serve  # noqa: PLC0415 - same
    from framewire.dashboard.watching import Watch  # noqa: PLC0415 - same
    from framewire.operation.exits import Exit  # noqa: PLC0415 - same

    config = _configuration(cluster)
    there = {name: _places(config.told("cluster").get(name, ())) for name in ("rendezvous", "peers")}
    if lake is None and not any(there.values()):
        raise click.UsageError("Say what to look at: --lake lake/, --rendezvous tcp://host:7400, or both.")
    board = Board(
        lake=lake,
        questions=None if lake is None else Questions(lake),
        watch=Watch(config) if any(there.values()) else None,
        bodies=None if no_bodies else Bodies(None if app is None else _module(app)),
        **there,
    )
    if token is None and not is_local(host):
        import secrets  # noqa: PLC0415 - only where a token is made

        token = secrets.token_urlsafe(24)
    try:
        listener = listen(host, port)
    except OSError as problem:
        raise Wrong(
            f"cannot listen at {host} port {port}: {problem.strerror or problem}. Choose another with --port, or "
            "any that is free with --port 0.",
            Exit.LISTEN,
        ) from None
    with listener:
        address = f"http://{_named(host)}:{listener.getsockname()[1]}/" + (f"?token={token}" if token else "")
        click.echo(f"The dashboard is at {address} (Ctrl-C ends it)")
        serve(board, listener, host=host, token=token, show=None if no_open else address)


def _configuration(cluster: dict[str, Any]) -> Configuration:
    from framewire.cli.settings import configuration  # noqa: PLC0415 - as above

    named = {
        "cluster.rendezvous": cluster["rendezvous"],
        "cluster.peers": cluster["peers"],
        "cluster.bind": cluster["bind"],
        "security.keys": cluster["keys"],
    }
    return configuration(cluster["file"], cluster["told"], named)


def _places(told: Iterable[Any]) -> tuple[str, ...]:
    """Addresses; a server that broadcasts elsewhere than on its next port is told as a pair of them."""
    return tuple(each if isinstance(each, str) else each[0] for each in told)


def _module(name: str) -> ModuleType:
    from framewire.operation.apps import load_module  # noqa: PLC0415 - as above

    return load_module(name)


def _named(host: str) -> str:
    """How a browser on this machine calls a host that is listened on."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - told apart, not listened on
        return "localhost"
    return f"[{host}]" if ":" in host else host
