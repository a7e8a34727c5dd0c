"""One question to captures, answered by what people would otherwise write: ``python -m bench.alternatives``.

The question: how many messages of each kind, and how many bytes of body. Each way is a process of its own, measured
from its start to the answer, so what starting costs shows where there is little to do. The Python codec decodes
every field; Catalyst leaves out what nobody asks for. Spark and DuckDB have both cores, pandas has one. What is not
done in so many minutes is told as that.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

Answer = dict[str, tuple[int, int]]
SIZES = [10_000, 1_000_000, 4_000_000, 16_000_000]


def _rows(frames: list[list[bytes]]) -> Iterator[dict[str, Any]]:
    from bench.spark import row_of  # noqa: PLC0415 - each way loads what it needs, and no more

    return map(row_of, frames)


def pandas(captures: str) -> Answer:
    import pandas as pd  # noqa: PLC0415 - see above

    parts = []
    for batch in ds.dataset(captures, format="parquet", partitioning=None).to_batches(columns=["frames"]):
        table = pd.DataFrame(list(_rows(batch.column("frames").to_pylist())))
        if len(table):
            table = table[table.get("error").isna()] if "error" in table else table
            sizes = table["body"].map(len)
            parts.append(pd.DataFrame({"identity": table["identity"], "size": sizes}))
    found = pd.concat(parts).groupby("identity")["size"].agg(["count", "sum"])
    return {name.decode("latin-1"): (int(row["count"]), int(row["sum"])) for name, row in found.iterrows()}


def duckdb(captures: str) -> Answer:
    import duckdb as db  # noqa: PLC0415 - see above
    from bench.spark import ARROW  # noqa: PLC0415 - same

    def decoded(frames: pa.Array) -> pa.Array:
        return pa.Table.from_pylist(list(_rows(frames.to_pylist())), ARROW).to_struct_array().combine_chunks()

    blob, text = "blob", "varchar"
    fields = {"identity": blob, "body": blob, "error": text}
    struct = db.struct_type(fields)

    def chosen(frames: pa.Array) -> pa.Array:
        whole = decoded(frames)
        return pa.StructArray.from_arrays([whole.field(name) for name in fields], list(fields))

    with db.connect() as connection:
        connection.create_function("decoded", chosen, [db.list_type("blob")], struct, type="arrow")
        found = connection.execute(
            "select m.identity, count(*), sum(octet_length(m.body)) from (select decoded(frames) m from "
            "read_parquet(?, hive_partitioning = false)) where m.error is null group by 1",
            [f"{captures}/**/*.parquet"],
        ).fetchall()
    return {name.decode("latin-1"): (count, int(size)) for name, count, size in found}


def _by_spark(captures: str, decode: Callable[[Any], Any]) -> Answer:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - see above

    from framewire.spark import session  # noqa: PLC0415 - same

    spark = session("local[2]")
    try:
        rows = decode(spark.read.parquet(captures).select("frames")).where("error is null")
        found = rows.groupBy("identity").agg(F.count("*"), F.sum(F.length("body"))).collect()
        return {bytes(row[0]).decode("latin-1"): (row[1], row[2]) for row in found}
    finally:
        spark.stop()


def map_in_arrow(captures: str) -> Answer:
    from bench.spark import SAME, by_python  # noqa: PLC0415 - see above

    return _by_spark(captures, lambda rows: rows.mapInArrow(by_python, SAME))


def framewire(captures: str) -> Answer:
    from framewire.spark import decode  # noqa: PLC0415 - see above

    return _by_spark(captures, decode)


WAYS: dict[str, Callable[[str], Answer]] = {
    "pandas": pandas,
    "DuckDB with a Python function": duckdb,
    "Spark, mapInArrow": map_in_arrow,
    "framewire.spark.decode": framewire,
}


def timed(way: str, captures: str, minutes: float) -> tuple[float, str | None]:
    """The seconds that a process took for it, and what it said; nothing where it took too long."""
    command = [sys.executable, "-m", "bench.alternatives", "--way", way, "--captures", captures]
    began = time.perf_counter()
    try:
        done = subprocess.run(  # noqa: S603 - our own
            command, capture_output=True, text=True, check=True, timeout=60 * minutes
        )
    except subprocess.TimeoutExpired:
        return math.inf, None
    return time.perf_counter() - began, done.stdout.strip()


def told(count: int, way: str, seconds: float, minutes: float) -> str:
    if math.isinf(seconds):
        return f"{count:>12,}  {way:<32} not done in {minutes:g} minutes"
    return f"{count:>12,}  {way:<32} {seconds:8.1f} s  {count / seconds:12,.0f} messages/s"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.alternatives", description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, nargs="+", default=SIZES, help="how many messages")
    parser.add_argument("--rounds", type=int, default=1, help="how many rounds to take the median of (1)")
    parser.add_argument("--minutes", type=float, default=10.0, help="what one way may take (10)")
    parser.add_argument("--output", type=Path, default=Path("bench/results/alternatives.json"), metavar="FILE")
    parser.add_argument("--way", choices=list(WAYS), help="answer this way, once")
    parser.add_argument("--captures", help="for --way")
    options = parser.parse_args()
    if options.way:
        print(json.dumps(WAYS[options.way](options.captures), sort_keys=True))
        return
    from bench.spark import made_up  # noqa: PLC0415 - see above

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in options.messages:
            captures = made_up(folder, count)
            rounds = [{way: timed(way, captures, options.minutes) for way in WAYS} for _ in range(options.rounds)]
            answers = {said for each in rounds for _, said in each.values()} - {None}
            if len(answers) > 1:
                raise SystemExit(f"they do not agree: {answers}")
            for way in WAYS:
                seconds = median(each[way][0] for each in rounds)
                rows.append({"way": way, "messages": count, "seconds": None if math.isinf(seconds) else seconds})
                print(told(count, way, seconds, options.minutes), flush=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    options.output.parent.mkdir(parents=True, exist_ok=True)
    found = {"machine": machine, "rounds": options.rounds, "minutes": options.minutes, "rows": rows}
    options.output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
