"""The pipeline in a process of its own: Spark starts while the shop is open, and begins to work when it is told to.

Each line that it writes is a JSON object, for the demo to read. When nobody is there any more to tell it anything,
it ends.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from framewire.errors import FramewireError
from framewire.security import KeyRing

_SHORT_RUN: dict[str, Any] = {
    # Spark would make code of every query, and plan it again while it runs: a run of seconds is over before that
    # pays. With these it takes two thirds of the processor's time.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": 1,
    "spark.default.parallelism": 1,
    "spark.driver.memory": "1g",
}


def say(**facts: Any) -> None:
    print(json.dumps(facts, default=str), flush=True)


def main(captures: str, lake: str, keys: str) -> None:
    """Start Spark, wait for a line, and bring the lake up to date."""
    began = time.monotonic()
    from framewire.spark import Pipeline, session  # noqa: PLC0415 - what takes so long is told how long it took

    spark = session("local[2]", app_name="framewire demo", brief=True, **_SHORT_RUN)
    say(started=round(time.monotonic() - began, 1))
    if not sys.stdin.readline():
        return
    pipeline = Pipeline(captures, lake, keys=KeyRing.from_file(keys), lost_after="1s", spark=spark)
    made = pipeline.run()
    say(rows=made.rows, segments=made.segments, seconds=round(made.seconds, 1))
    spark.stop()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except FramewireError as problem:
        sys.exit(str(problem))
