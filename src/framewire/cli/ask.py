"""``framewire ask``: a message to a live cluster, and the answer."""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any

import click

from framewire.cli.letters import letter, letter_options, pretty
from framewire.cli.live import cluster_options, join
from framewire.node.payloads import type_of
from framewire.operation.observing import Observer
from framewire.operation.sending import plain

__all__ = ["ask"]


@click.command()
@letter_options
@click.option(
    "--reply", "replies", multiple=True, required=True, metavar="MESSAGE", help="What counts as the answer."
)
@cluster_options()
def ask(
    message: str,
    payload: str,
    replies: tuple[str, ...],
    *,
    app: str | None,
    node: str | None,
    as_json: bool,
    **told: Any,
) -> None:
    """Send a message to a live cluster, wait for the answer, and show it as JSON.

    MESSAGE is a name such as orders.place, with a version as orders.place@2 and a partition as orders.place@2[eu].
    PAYLOAD is JSON, {} unless given, or - to read it from the standard input. With --app it is written and read by
    the message types of that module; without, the JSON itself is the body.

    Exit status: 0 if there was an answer, 1 if the handler failed, 5 if nobody handles it, 6 if no answer came in
    time, 7 if no node was found, 3 if the module cannot be loaded, 2 if the command line is wrong.

    Example: framewire ask orders.place@2 '{"article": "tea"}' --reply orders.placed@2 --app shop.messages
    """
    timeout = told["timeout"]
    sent = letter(message, payload, app, replies)

    async def main(observer: Observer) -> dict[str, Any]:
        nodes = await observer.find()
        began = perf_counter()
        answer: Any = await observer.hub.ask(
            sent.payload, *sent.replies, timeout=timeout, **sent.options(nodes, node)
        )
        return {
            "message": str(type_of(type(answer)).message_id),
            "payload": plain(answer),
            "flow": sent.flow.decode(),
            "seconds": perf_counter() - began,
        }

    found = join(told, main)
    click.echo(json.dumps(found) if as_json else pretty(found["payload"]))
