"""What the pipeline costs: against a plain scan, by size, and for a small increment onto a large lake.

    python bench/pipeline.py [--messages N] [--larger N] [--increment N] [--json FILE] [--check]

The captures are made up by ``framewire synth``. The yardstick reads every frame and adds up their lengths, as in
``bench/spark.py``. Every figure is a ratio of times from one run on one machine; absolute times mean little.
``--larger 0`` leaves the growth and the increment out.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from pyspark.sql import functions as F  # noqa: N812

from framewire.security import KeyRing
from framewire.spark import Pipeline, session
from framewire.synth import Options, synthesise

START = dt.datetime(2025, 1, 1, 8, tzinfo=dt.UTC)
WARM = 20_000
GOALS = {"pipeline against scan": 15.0, "growth": 4.5, "increment": 1.5}


def made(directory, name, messages, rate, begin=START):
    target = directory / name
    synthesise(Options(messages=messages, start=begin, rate=rate), target)
    return target


def seconds(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def scan(spark, made_up):
    """Read every byte of every frame, and do nothing with it."""
    touched = F.aggregate("frames", F.lit(0), lambda sum_, frame: sum_ + F.length(frame))
    rows = spark.read.parquet(str(made_up / "captures")).select("at", touched.alias("size"))
    return seconds(lambda: rows.write.format("noop").mode("overwrite").save())


def whole(spark, made_up, lake):
    keys = KeyRing.from_file(made_up / "truth" / "keys.toml")
    return seconds(Pipeline(str(made_up / "captures"), str(lake), keys=keys, spark=spark).run)


def dependencies(spark, lake):
    """The graph of who calls whom, as Jaeger defines it: spans grouped by trace, on plain RDDs."""
    hops = spark.read.parquet(str(lake / "hops")).where("flow is not null").select("flow", "from_name", "to_name")
    links = (
        hops.rdd.map(lambda row: (row[0], (row[1], row[2])))
        .groupByKey()
        .flatMap(lambda trace: [(link, 1) for link in trace[1]])
        .reduceByKey(lambda one, other: one + other)
    )
    return seconds(links.collect)


def asked(spark, lake):
    """The same graph, asked of the table that the pipeline keeps."""
    edges = spark.read.parquet(str(lake / "edges")).groupBy("from_name", "to_name").agg(F.sum("received"))
    return seconds(edges.collect)


def compare(spark, directory, options):
    """One line of figures at a time: what was compared, both times, and their ratio."""
    whole(spark, made(directory, "warm", WARM, options.rate), directory / "lake-warm")
    small = made(directory, "small", options.messages, options.rate)
    scan(spark, small)
    plain = median(scan(spark, small) for _ in range(3))
    first = whole(spark, small, directory / "lake-small")
    yield "pipeline against scan", first, plain
    lake = directory / "lake-small"
    yield "RDDs against edges", dependencies(spark, lake), asked(spark, lake)
    if not options.larger:
        return
    large = made(directory, "large", options.larger, options.rate)
    yield "growth", whole(spark, large, directory / "lake"), first
    end = START + dt.timedelta(seconds=options.larger / options.rate)
    more = made(directory, "more", options.increment, options.rate, end)
    alone = whole(spark, more, directory / "lake-alone")
    # The keys of both are the same: they come from the seed.
    shutil.copytree(more / "captures", large / "captures", dirs_exist_ok=True)
    yield "increment", whole(spark, large, directory / "lake"), alone


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=1_000_000, help="rows of the smaller lake (1,000,000)")
    parser.add_argument(
        "--larger", type=int, default=4_000_000, help="rows of the larger lake (4,000,000); 0 for none"
    )
    parser.add_argument("--increment", type=int, default=100_000, help="rows that come on top of it (100,000)")
    parser.add_argument("--rate", type=float, default=280.0, help="rows a second (280: a million in an hour)")
    parser.add_argument("--master", default="local[2]", help="where to run (local[2])")
    parser.add_argument("--memory", default="4g", help="memory of the driver, whatever the size (4g)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    options = parser.parse_args()
    spark = session(options.master, spark_driver_memory=options.memory)
    rows = []
    with tempfile.TemporaryDirectory(prefix="framewire-bench-") as directory:
        for kind, mine, other in compare(spark, Path(directory), options):
            goal = GOALS.get(kind)
            if kind == "growth" and goal is not None:
                goal *= options.larger / options.messages / 4
            met = goal is None or mine / other <= goal
            verdict = "" if goal is None else f" (at most {goal:g})  {'ok' if met else 'missed'}"
            print(f"{kind:<22} {mine:8.1f} s / {other:8.1f} s  {mine / other:7.2f}x{verdict}", flush=True)
            rows.append({"kind": kind, "seconds": mine, "against": other, "ratio": mine / other, "met": met})
    spark.stop()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 1 if options.check and not all(row["met"] for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
