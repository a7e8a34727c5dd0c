"""Writes the reference of all commands into docs/cli.md when the site is built, from the commands themselves.

There is no copy of it in the repository that could say something else than the program does.
"""

# ruff: noqa: INP001 - MkDocs loads this file by its path

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import click

from framewire.cli import main
from framewire.operation.exits import Exit

__all__ = ["commands", "on_page_markdown", "reference", "statuses"]


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """What MkDocs calls with the text of every page."""
    if page.file.src_uri != "cli.md":
        return markdown
    return markdown.replace("<!-- commands -->", reference()).replace("<!-- statuses -->", statuses())


def statuses() -> str:
    """The table of exit statuses."""
    rows = [f"| {status.value} | {status.meaning} |" for status in Exit]
    return "\n".join(["| status | what it means |", "|---|---|", *rows])


def commands(group: click.Command = main, path: str = "framewire") -> Iterator[tuple[str, click.Command]]:
    """Every command with the words that call it, the groups before what is in them."""
    yield path, group
    if isinstance(group, click.Group):
        context = click.Context(group, info_name=path)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None and not command.hidden:
                yield from commands(command, f"{path} {name}")


def reference() -> str:
    """A section for each command."""
    return "\n\n".join(_section(path, command) for path, command in commands() if command is not main)


def _section(path: str, command: click.Command) -> str:
    depth = "#" * (path.count(" ") + 2)  # they are below a heading of their own
    context = click.Context(command, info_name=path, **command.context_settings)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    rows = [row for row in (_row(each, context) for each in command.get_params(context)) if row]
    table = ["", "| option | |", "|---|---|", *rows] if rows else []
    told, example = _text(command)
    called = ["```text", usage, "```", *table, "", '```sh title="for example"', example, "```"]
    return "\n".join([f"{depth} {path}", told, "", *called])


def _text(command: click.Command) -> tuple[str, str]:
    """The help of a command as Markdown, and its example."""
    flat = [" ".join(part.replace("\b", "").split()) for part in dedent(command.help or "").strip().split("\n\n")]
    examples = [part.removeprefix("Example: ") for part in flat if part.startswith("Example: ")]
    return "\n\n".join(_escaped(part) for part in flat if not part.startswith("Example: ")), examples[0]


def _row(parameter: click.Parameter, context: click.Context) -> str:
    record = parameter.get_help_record(context)
    if record is None or not isinstance(parameter, click.Option) or "--help" in parameter.opts:
        return ""
    names, meaning = record
    return f"| `{names}` | {_escaped(meaning)} |"


def _escaped(text: str) -> str:
    """Help as Markdown that shows the same characters; what stands between backquotes stays as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<>\[\]|])", r"\\\1", part) for part in parts)
