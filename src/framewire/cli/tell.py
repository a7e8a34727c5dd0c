"""``framewire tell``: a message to a live cluster that wants no answer."""

from __future__ import annotations

import json
from typing import Any

import click

from framewire.cli.letters import letter, letter_options
from framewire.cli.live import cluster_options, join
from framewire.operation.observing import Observer

__all__ = ["tell"]


@click.command()
@letter_options
@click.option("--broadcast", is_flag=True, help="To every handler on every node, or with --node on that one.")
@click.option("--receipt/--no-receipt", default=True, help="Whether to wait until a node has it; it is waited.")
@cluster_options()
def tell(
    message: str,
    payload: str,
    *,
    app: str | None,
    node: str | None,
    broadcast: bool,
    receipt: bool,
    as_json: bool,
    **told: Any,
) -> None:
    """Send a message to a live cluster that wants no answer.

    MESSAGE and PAYLOAD are as for `framewire ask`. A broadcast is not confirmed.

    Exit status: 0 if a node has it, 5 if nobody handles it, 6 if no receipt came in time, 7 if no node was found,
    3 if the module cannot be loaded, 2 if the command line is wrong.

    Example: framewire tell orders.cancel '{"number": 7}' --app shop.messages --rendezvous tcp://host:7400
    """
    timeout = told["timeout"]
    sent = letter(message, payload, app)

    async def main(observer: Observer) -> dict[str, Any]:
        options = sent.options(await observer.find(), node)
        if broadcast:
            await observer.hub.broadcast(sent.payload, ttl=timeout, **options)
        elif receipt:
            await observer.hub.send(sent.payload, timeout=timeout, **options)
        else:
            await observer.hub.tell(sent.payload, ttl=timeout, **options)
        return {"flow": sent.flow.decode(), "confirmed": receipt and not broadcast}

    found = join(told, main)
    if as_json:
        click.echo(json.dumps(found))
    else:
        click.echo(f"{'A node has it' if found['confirmed'] else 'Sent'}; it is flow {found['flow']}.")
