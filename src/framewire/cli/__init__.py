"""The command line: ``framewire COMMAND``.

A command's module is imported when the command runs, so that ``framewire --help`` and shell completion do not
wait for what they do not use. Whatever goes wrong in a command ends up here, and is told in one paragraph.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from framewire._version import __version__

__all__ = ["main"]

_COMMANDS = {
    "ask": "Send a message to a live cluster, and show the answer.",
    "capture": "Look at what nodes have recorded, and take care of it.",
    "completion": "Write what makes a shell complete commands and options.",
    "config": "Check framewire.toml and variables, or show what they amount to.",
    "dashboard": "Look at a live cluster and at a lake in a browser.",
    "dead": "Show the dead letters of a live cluster.",
    "doctor": "Check what this machine has, and say what to do about the rest.",
    "flow": "Show what happened in one flow, message by message.",
    "inspect": "Show recorded messages, frame by frame.",
    "keys": "Make the keys with which members of a cluster connect.",
    "new": "Start a project: an actor, its test, a configuration and a Makefile.",
    "node": "Run a program as a node, or as several.",
    "pending": "Show the asks that are still open in a live cluster.",
    "ping": "Ask the event loops of nodes whether they come round.",
    "pipeline": "Turn captures into tables of flows, hops, losses and more.",
    "ps": "Show the nodes of a live cluster, and how they are.",
    "query": "Ask a lake a question in SQL.",
    "rendezvous": "Run a server through which nodes find each other.",
    "replay": "Send recorded messages to a live cluster again.",
    "report": "Write a report on a lake: one HTML file that tells what happened.",
    "routes": "Show who handles what in a live cluster.",
    "synth": "Write the captures of a made-up cluster, and the truth about it.",
    "tell": "Send a message to a live cluster that wants no answer.",
    "trace": "Show the way of a message through a live cluster.",
}
"""Every command, with its line in the help. Command ``x`` is the function ``x`` of ``framewire.cli.x``."""


class _Commands(click.Group):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Whoever wants to see more of an error adds it at the end of what failed.
        ours = args[: args.index("--")] if "--" in args else args
        if "--debug" in ours:
            args = ["--debug", *(arg for arg in ours if arg != "--debug"), *args[len(ours) :]]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - same
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"{__name__}.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - same
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # click would import every command to ask for its help.
        found = [CompletionItem(name, help=told) for name, told in _COMMANDS.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # whoever read the output has seen enough
        except KeyboardInterrupt:
            from framewire.operation.exits import Exit  # noqa: PLC0415 - not needed for the help

            ctx.exit(Exit.INTERRUPTED)
        except Exception as problem:  # noqa: BLE001 - nobody is to see a traceback without having asked for it
            from framewire.cli.failures import failure, show_traceback  # noqa: PLC0415 - same

            if ctx.params["debug"]:
                show_traceback(problem)
            raise failure(problem) from None


def _tell_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from framewire.cluster.channel import COMPILED  # noqa: PLC0415 - loads ZeroMQ, which only this needs

        click.echo(f"framewire {__version__} ({'compiled' if COMPILED else 'pure Python'} channel)")
        ctx.exit()


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 116}


@click.group(cls=_Commands, invoke_without_command=True, context_settings=_SETTINGS)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_tell_version,
    help="Show the version, and whether the compiled channel is in use.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error, too; it can be anywhere on the line.")
@click.pass_context
def main(ctx: click.Context, *, debug: bool) -> None:  # noqa: ARG001 - what went wrong asks for it
    """Actor messaging over ZeroMQ, and every frame of it open to view.

    `framewire COMMAND --help` has the options of a command and an example.

    Example: framewire new greeter && cd greeter && make test
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
