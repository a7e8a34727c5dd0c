"""``framewire capture upgrade``: recordings of V1 and V4 as V5, with Spark."""

from __future__ import annotations

import sys

import click

from framewire._counts import counted

__all__ = ["upgrade"]


def _version(text: str) -> tuple[bytes, int]:
    raw, equals, number = text.rpartition("=")
    if not equals or not number.isascii() or not number.isdigit() or int(number) > 0xFFFF:
        raise click.BadParameter(f"{text!r} is no version; write it like 1.5=2, the number having 16 bits")
    return raw.encode(), int(number)


@click.command()
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@click.option("--master", metavar="URL", help="The Spark to use; one on this machine unless given.")
@click.option(
    "--ttl-unit",
    type=click.Choice(["ms", "ticks"]),
    default="ms",
    help="How V1 messages count their ttl; old .NET builds wrote ticks.",
)
@click.option(
    "--version",
    "versions",
    type=_version,
    multiple=True,
    metavar="TEXT=N",
    help="The number of a V1 message version that is neither N nor N.0.",
)
def upgrade(
    source: str, target: str, *, master: str | None, ttl_unit: str, versions: tuple[tuple[bytes, int], ...]
) -> None:
    """Write the messages recorded at SRC to DST, a new directory, those of V1 and V4 as V5.

    Each message becomes what framewire.wire.upgrade makes of it. What cannot be upgraded is written to
    DST/_refused as it was, with the reason; then the exit status is 1.

    Example: framewire capture upgrade captures/ captures-v5/
    """
    from framewire import spark as pipeline  # noqa: PLC0415 - Spark is only needed here

    session = pipeline.session(master)
    try:
        found = pipeline.upgrade(session, source, target, ttl_unit=ttl_unit, versions=dict(versions))
    finally:
        session.stop()
    click.echo(
        f"{counted(found.upgraded, 'message')} upgraded, {found.kept:,} kept as they were, "
        f"{found.refused:,} refused"
    )
    sys.exit(1 if found.refused else 0)
