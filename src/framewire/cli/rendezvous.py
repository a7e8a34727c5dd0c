"""``framewire rendezvous``: the server through which nodes find each other."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from framewire.config import Configuration

__all__ = ["rendezvous"]


@click.command()
@click.argument("address", metavar="[ADDRESS]", required=False)
@click.option("--broadcast", metavar="ADDRESS", help="Where nodes listen to it; the next port unless given.")
@click.option(
    "--partner", "partners", metavar="ADDRESS", multiple=True, help="Another server to relay to and from."
)
@click.option("--heartbeat", metavar="SECONDS", help="Between signs of life; 1 unless given.")
@click.option("--health", metavar="HOST:PORT", help="Answer /live and /ready over HTTP, for orchestrators.")
@click.option("--config", "file", metavar="FILE", help="The file to read; framewire.toml unless given.")
@click.option("--set", "told", multiple=True, metavar="KEY=VALUE", help="Any option, such as log.level=debug.")
@click.option("--log-format", type=click.Choice(["human", "json"]), help="Lines for people, or for machines.")
@click.option("--quiet", is_flag=True, help="Say nothing but errors.")
def rendezvous(
    file: str | None, told: tuple[str, ...], log_format: str | None, *, quiet: bool, **named: Any
) -> None:
    """Run a rendezvous server at ADDRESS, such as tcp://*:7400, until it is interrupted.

    It uses three ports: the one given for nodes that speak, the next for nodes that listen, and the one after
    for its partners. It keeps no state, so it may be stopped and started at any time. All options can also be in
    the table [rendezvous] of framewire.toml or in variables: see `framewire config show`.

    Exit status: 0 if it was stopped, 2 if the configuration is wrong, 4 if an address is taken.

    Example: framewire rendezvous tcp://*:7400 --partner tcp://other:7400
    """
    from framewire.cli.settings import Wrong, flags, one_paragraph  # noqa: PLC0415 - not needed to show the help
    from framewire.cluster.rendezvous import Rendezvous  # noqa: PLC0415 - same
    from framewire.config import load  # noqa: PLC0415 - same
    from framewire.errors import ConfigError  # noqa: PLC0415 - same
    from framewire.operation.exits import Exit  # noqa: PLC0415 - same
    from framewire.operation.http import CannotListenError  # noqa: PLC0415 - same
    from framewire.operation.logs import set_up  # noqa: PLC0415 - same
    from framewire.operation.server_health import ServerHealth  # noqa: PLC0415 - same

    log = {"log.format": log_format, "log.level": "error" if quiet else None}
    given = flags(told, {f"rendezvous.{name}": value for name, value in named.items()} | log)
    with one_paragraph():
        config = load(file=file, flags=given)
        if config["rendezvous.address"] is None:
            raise click.UsageError("Say where: framewire rendezvous tcp://*:7400, or address in [rendezvous].")
    set_up(config["log.level"], config["log.format"])
    try:
        server = Rendezvous(config["rendezvous.address"], **_options(config))
    except CannotListenError as problem:
        raise Wrong(str(problem), Exit.LISTEN) from None
    except ConfigError as problem:
        raise Wrong(str(problem), Exit.USAGE) from None
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.stop())
    health = config["rendezvous.health"]
    try:
        with ServerHealth(server, health, config["rendezvous.heartbeat"]) if health else contextlib.nullcontext():
            server.run()
    except CannotListenError as problem:
        server.close()
        raise Wrong(str(problem), Exit.LISTEN) from None


def _options(config: Configuration) -> dict[str, Any]:
    return {name: config[f"rendezvous.{name}"] for name in ("broadcast", "partners", "heartbeat", "curve")}
