"""What the commands share that send a message which a person has written: its name, its payload, its receiver."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from framewire.cli.live import chosen
from framewire.errors import UsageError
from framewire.operation.apps import load_module
from framewire.operation.observing import Seen
from framewire.operation.sending import Types

__all__ = ["Letter", "letter", "letter_options", "pretty"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Letter:
    """A message, ready to be sent, and what counts as the answer to it."""

    payload: Any
    replies: tuple[type, ...]
    flow: bytes

    def options(self, nodes: list[Seen], name: str | None) -> dict[str, Any]:
        """What a hub is told: the flow, and the node that a person has named, if any."""
        told: dict[str, Any] = {"correlation_id": self.flow}
        if name is not None:
            found = chosen(nodes, [name])
            exact = [node for node in found if node.name == name] or found
            if len(exact) > 1:
                raise UsageError(f"--node: {name!r} may be {', '.join(node.name for node in exact)}: say which")
            told["to_node"] = exact[0].identity
        return told


def letter_options(command: F) -> F:
    """What every one of them takes."""
    for option in (
        click.option(
            "--app", metavar="MODULE", help="The module that has the message types; else bodies are JSON."
        ),
        click.option("--node", metavar="NODE", help="Only to this node: its name, or how it begins."),
        click.argument("payload", default="{}", metavar="[PAYLOAD]"),
        click.argument("message", metavar="MESSAGE"),
    ):
        command = option(command)
    return command


def letter(message: str, payload: str, app: str | None, replies: tuple[str, ...] = ()) -> Letter:
    """What a person has written."""
    types = Types(None if app is None else load_module(app.partition(":")[0]))
    text = sys.stdin.read() if payload == "-" else payload
    return Letter(
        types.payload(types.named(message), text),
        tuple(types.named(reply).python_type for reply in replies),
        str(uuid.uuid4()).encode(),
    )


def pretty(value: Any) -> str:
    """JSON for people; everything beyond ASCII is escaped, for a peer may have sent what upsets a terminal."""
    return json.dumps(value, indent=2)
