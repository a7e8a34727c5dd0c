"""``framewire capture``: what was recorded, and its upkeep."""

from __future__ import annotations

from importlib import import_module

import click

__all__ = ["capture"]

_COMMANDS = {
    "stats": "How much was recorded, when, by whom, and of what.",
    "tail": "Show messages while they are recorded.",
    "export": "Write recorded messages as JSON lines.",
    "recover": "Seal what a crash left open.",
    "prune": "Remove what is old, or too much.",
    "upgrade": "Write recordings of V1 and V4 anew as V5.",
}
"""Every command, with its line in the help. Command ``x`` is the function ``x`` of ``framewire.cli.capture_x``."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - same
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"framewire.cli.capture_{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - same
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands)
def capture() -> None:
    """Look at what nodes have recorded, and take care of it.

    A node records with Node(capture="captures/"). PATH is that directory, one file of it, or a URI such as
    s3://bucket/captures.

    Example: framewire capture stats captures/
    """
