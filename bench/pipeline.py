"""What the pipeline costs: against a plain scan, by size, and for a small increment onto a large lake.

    python bench/pipeline.py --messages 1000000 --larger 4000000

Every figure is a ratio of times from one run on one machine; absolute times mean little.
"""

from __future__ import annotations

import argparse
import datetime as dt
import resource
import shutil
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from framewire.security import KeyRing
from framewire.spark import Pipeline, session
from framewire.synth import Options, synthesise

START = dt.datetime(2025, 1, 1, 8, tzinfo=dt.UTC)


def made(directory: Path, name: str, messages: int, begin: dt.datetime, rate: float) -> Path:
    target = directory / name
    synthesise(Options(messages=messages, start=begin, rate=rate), target)
    return target


def scan(spark: SparkSession, captures: Path) -> float:
    """Read every byte of every frame, and do nothing with it."""
    began = time.perf_counter()
    spark.read.parquet(str(captures)).agg(F.max(F.xxhash64("frames"))).collect()
    return time.perf_counter() - began


def whole(spark: SparkSession, made_up: Path, captures: Path, lake: Path) -> float:
    keys = KeyRing.from_file(made_up / "truth" / "keys.toml")
    began = time.perf_counter()
    Pipeline(str(captures), str(lake), keys=keys, spark=spark).run()
    return time.perf_counter() - began


def dependencies(spark: SparkSession, lake: Path) -> tuple[float, int]:
    """The graph of who calls whom, as Jaeger's job makes it: spans grouped by trace, on plain RDDs."""
    began = time.perf_counter()
    hops = spark.read.parquet(str(lake / "hops")).where("flow is not null").select("flow", "from_name", "to_name")
    links = (
        hops.rdd.map(lambda row: (row[0], (row[1], row[2])))
        .groupByKey()
        .flatMap(lambda trace: [(link, 1) for link in trace[1]])
        .reduceByKey(lambda one, other: one + other)
        .collect()
    )
    return time.perf_counter() - began, sum(count for _, count in links)


def edges(spark: SparkSession, lake: Path) -> float:
    began = time.perf_counter()
    spark.read.parquet(str(lake / "edges")).groupBy("from_name", "to_name").agg(F.sum("received")).collect()
    return time.perf_counter() - began


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--messages", type=int, default=100_000)
    asked.add_argument("--larger", type=int, default=400_000, help="what is compared with --messages, and the lake")
    asked.add_argument("--increment", type=int, default=100_000)
    asked.add_argument("--rate", type=float, default=28.0, help="rows a second; 28 are 100,000 an hour")
    asked.add_argument("--master", default="local[*]")
    options = asked.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="framewire-bench-"))
    spark = session(options.master, spark_sql_shuffle_partitions=16)
    try:
        compare(spark, directory, options)
    finally:
        spark.stop()
        shutil.rmtree(directory)


def compare(spark: SparkSession, directory: Path, options: argparse.Namespace) -> None:
    small = made(directory, "small", options.messages, START, 20_000)
    large = made(directory, "large", options.larger, START, options.rate)
    end = START + dt.timedelta(seconds=options.larger / options.rate)
    more = made(directory, "more", options.increment, end, options.rate)
    whole(spark, small, small / "captures", directory / "warm")
    scan(spark, small / "captures")

    plain = min(scan(spark, small / "captures") for _ in range(3))
    first = whole(spark, small, small / "captures", directory / "lake-small")
    times = f"{first / plain:.1f} times the scan"
    print(f"{options.messages:,} messages: scan {plain:.1f} s, pipeline {first:.1f} s: {times}")
    second = whole(spark, large, large / "captures", directory / "lake")
    print(f"{options.larger:,} messages: pipeline {second:.1f} s: {second / first:.1f} times the smaller one")
    alone = whole(spark, more, more / "captures", directory / "lake-alone")
    # The keys of both are the same: they come from the seed.
    shutil.copytree(more / "captures", large / "captures", dirs_exist_ok=True)
    onto = whole(spark, large, large / "captures", directory / "lake")
    print(
        f"{options.increment:,} more: {onto:.1f} s onto {options.larger:,}, {alone:.1f} s onto nothing: "
        f"{onto / alone:.2f} times"
    )
    graph, links = dependencies(spark, directory / "lake-small")
    asked = edges(spark, directory / "lake-small")
    print(f"dependency graph of {links:,} hops: {graph:.1f} s with RDDs, {asked:.2f} s from edges")
    print(f"Python's memory: {megabytes():,.0f} MB")


if __name__ == "__main__":
    main()
