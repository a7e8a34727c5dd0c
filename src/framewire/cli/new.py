"""``framewire new``: the beginning of a project, which runs and whose tests pass."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path

import click

__all__ = ["new"]

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_PLACES = {
    "README.md": "README.md",
    "Makefile": "Makefile",
    "pyproject.toml": "pyproject.toml",
    "framewire.toml": "framewire.toml",
    "gitignore": ".gitignore",
    "actors.py": "{module}/actors.py",
    "test_actors.py": "tests/test_actors.py",
}
"""The files of a project: what they are made from, and where they go."""


@click.command()
@click.argument("name")
@click.option(
    "--into", type=click.Path(path_type=Path), metavar="DIR", help="Where to; a directory NAME unless given."
)
def new(name: str, into: Path | None) -> None:
    """Start a project: an actor, its test, a framewire.toml, a Makefile.

    NAME is of small letters, digits and hyphens, and no directory of that name may have anything in it.

    Example: framewire new greeter && cd greeter && make test
    """
    module = name.replace("-", "_")
    if not _NAME.fullmatch(name) or keyword.iskeyword(module) or module in ("framewire", "tests"):
        raise click.UsageError(
            f"NAME: {name!r} cannot name a project; take small letters, digits and hyphens, such as my-shop"
        )
    target = into or Path(name)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise click.UsageError(f"{target} is there already, and not empty; nothing was changed")
    for source, place in _PLACES.items():
        _write(target / place.format(module=module), source, name, module)
    (target / module / "__init__.py").touch()
    click.echo(
        f"{target} is ready. Try:\n\n  cd {target}\n  make test\n  make rendezvous    # then, in other terminals:"
    )
    click.echo("  make run\n  make ask\n  make lake          # what happened, as tables")


def _write(path: Path, source: str, name: str, module: str) -> None:
    text = (files("framewire.cli") / "skeleton" / f"{source}.txt").read_text(encoding="utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(name=name, module=module), encoding="utf-8")
