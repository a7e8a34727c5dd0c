"""``framewire completion``: what makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]

_VARIABLE = "_FRAMEWIRE_COMPLETE"
"""How the shell tells the command line that it wants completions: the name that click expects."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Write a script that makes SHELL complete the commands and options of framewire.

    For every new shell: put the line of the example into ~/.bashrc; in zsh the same with zsh into ~/.zshrc, after
    compinit; for fish write it once to ~/.config/fish/completions/framewire.fish.

    Example: eval "$(framewire completion bash)"
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"this version of click has no completion for {shell}")
    click.echo(found(ctx.find_root().command, {}, "framewire", _VARIABLE).source())
