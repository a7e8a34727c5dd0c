"""``framewire keys``: the keys with which members of a cluster connect to each other (CURVE)."""

from __future__ import annotations

import re
from pathlib import Path

import click

__all__ = ["keys"]

_NAME = re.compile(r"[A-Za-z0-9][\w.@-]*")


@click.group()
def keys() -> None:
    """Make the keys of CURVE, which encrypts connections and lets nobody in whose key is not allowed.

    Keys of domains, which sign messages, are in another file: see docs/security.md.

    Example: framewire keys new cluster orders-1 rendezvous-1
    """


@keys.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--directory",
    metavar="DIRECTORY",
    default=".",
    type=click.Path(path_type=Path),
    help="Where to write the files; here unless given.",
)
def new(names: tuple[str, ...], directory: Path) -> None:
    """Make a pair of keys for each NAME: NAME.key, the public one, and NAME.key_secret, for its owner alone.

    Make one pair for each node and rendezvous server, and one pair, named cluster for instance, that all of them
    share. Then copy the public keys of the members, but not that of the cluster, into the directory of allowed
    keys. No file is written over.

    Exit status: 0 if all were made, 2 if any could not be.

    Example: framewire keys new cluster orders-1 --directory /etc/framewire
    """
    from framewire.cli.settings import one_paragraph  # noqa: PLC0415 - not needed to show the help
    from framewire.cluster.curve import new_pair  # noqa: PLC0415 - same
    from framewire.security.curve import write_pairs  # noqa: PLC0415 - same

    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong:
        listed = ", ".join(map(repr, wrong))
        raise click.UsageError(
            f"{listed}: a name has letters, digits and . _ - @ in it, and is the name of a file."
        )
    if len(set(names)) < len(names):
        raise click.UsageError("A name is given twice, and a pair of keys is for one member.")
    with one_paragraph():
        for public, secret in write_pairs(directory, {name: new_pair() for name in names}):
            click.echo(f"{secret}  (mode 600: keep it to its owner)")
            click.echo(f"{public}  (public)")
