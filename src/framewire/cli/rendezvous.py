"""``framewire rendezvous``: the server through which nodes find each other."""

from __future__ import annotations

import logging
import signal

import click

__all__ = ["rendezvous"]


@click.command()
@click.argument("address", metavar="ADDRESS")
@click.option("--broadcast", metavar="ADDRESS", help="Where nodes listen to it; the next port unless given.")
@click.option(
    "--partner", "partners", metavar="ADDRESS", multiple=True, help="Another server to relay to and from."
)
@click.option("--heartbeat", metavar="SECONDS", default=1.0, show_default=True, help="Between signs of life.")
@click.option("--quiet", is_flag=True, help="Say nothing but errors.")
def rendezvous(
    address: str, broadcast: str | None, partners: tuple[str, ...], heartbeat: float, *, quiet: bool
) -> None:
    """Run a rendezvous server at ADDRESS, such as tcp://*:7400, until it is interrupted.

    It uses three ports: the one given for nodes that speak, the next for nodes that listen, and the one after
    for its partners. It keeps no state, so it may be stopped and started at any time.
    """
    from framewire.cluster.rendezvous import Rendezvous  # noqa: PLC0415 - not needed to show the help
    from framewire.errors import ConfigError  # noqa: PLC0415 - same

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.ERROR if quiet else logging.INFO)
    try:
        server = Rendezvous(address, broadcast=broadcast, partners=partners, heartbeat=heartbeat)
    except ConfigError as problem:
        raise click.UsageError(str(problem)) from None
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.stop())
    server.run()
