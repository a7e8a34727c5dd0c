"""``python -m tests.chaos``: nodes and servers in trouble, and the account of every ask."""

import secrets

import click
from tests.chaos import storm
from tests.chaos.journal import REPLIED
from tests.chaos.rolling import rolling_restart


@click.command()
@click.option("--seed", type=int, default=None, help="What goes wrong; any other number unless given.")
@click.option("--seconds", type=click.FloatRange(1), default=180.0, show_default=True, help="About how long.")
@click.option(
    "--rate", type=click.FloatRange(1), default=40.0, show_default=True, help="Asks a second of each node."
)
@click.option(
    "--rolling", type=click.FloatRange(0), default=0.0, help="Asks a second of a rolling restart besides."
)
def main(seed, seconds, rate, rolling):
    """Trouble a cluster of 5 nodes and 2 servers; exit with 1 where a promise is broken.

    Example: python -m tests.chaos --seed 7 --seconds 60
    """
    if seed is None:
        seed = secrets.randbelow(1_000_000)
    click.echo(f"seed {seed}")
    report = storm.run(seed, seconds, rate=rate, tell=click.echo)
    click.echo(str(report))
    wrong = bool(report.problems)
    if rolling:
        rolled = rolling_restart(rolling)
        click.echo(str(rolled))
        wrong |= bool(rolled.account.problems) or set(rolled.account.outcomes) != {REPLIED}
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
