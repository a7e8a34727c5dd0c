"""One day in a small shop, told in a minute and a half or less: `make demo`.

Four nodes and a rendezvous server are started, used, troubled and stopped; what they recorded becomes tables on
Spark, and a report. If a figure is not what it must be, the demo fails. The shop is in examples/shop, the story in
examples/tour.
"""

import asyncio
import logging
import signal
import sys
from pathlib import Path

import click
from rich.console import Console

import framewire as fw

sys.path.insert(0, str(Path(__file__).parent / "shop"))

from tour.stage import BrokenPromiseError, Stage
from tour.story import Options, tell

_PAGE = 110
"""Columns where there is no terminal to tell how many it has."""


@click.command()
@click.option("--no-spark", is_flag=True, help="Only the shop: no tables, no report.")
@click.option("--seed", default=8, show_default=True, help="Decides whose bank says no.")
def main(*, no_spark: bool, seed: int) -> None:
    """Tell what framewire does by what happens in a small shop.

    It leaves a lake in build/demo/lake and a report in demo-report.html, below the working directory, and nothing
    else. Exit status: 0, or 1 if something was not as it must be, 129, 130 or 143 if it was interrupted.

    Example: python examples/demo.py --no-spark
    """
    # What happens is told by the story; the log of the customers' node would tell it once more.
    logging.getLogger("framewire").addHandler(logging.NullHandler())
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _PAGE
    stage = Stage(console)
    sys.exit(fw.run(_told(stage, Options(seed=seed, spark=not no_spark))))


async def _told(stage: Stage, options: Options) -> int:
    """Tell the story, unless a signal ends it; the status that the demo ends with."""
    loop, telling = asyncio.get_running_loop(), asyncio.create_task(tell(stage, options))
    received: list[int] = []

    def interrupted(number: int) -> None:
        received.append(number)
        telling.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupted, number)
    try:
        await telling
    except (BrokenPromiseError, fw.FramewireError, OSError) as problem:
        stage.end(str(problem), failed=True)
        return 1
    except asyncio.CancelledError:
        if not received:
            raise
        stage.end("Interrupted. Every process was ended, and everything was tidied up.")
        return 128 + received[0]
    stage.end(f"All figures are right, and nothing is left open. It took {stage.seconds:.0f} s.")
    return 0


if __name__ == "__main__":
    main()
