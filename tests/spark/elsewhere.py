"""A program for the tests: decodes and verifies on another Spark, and writes down what it found.

    python elsewhere.py MASTER FRAMES KEY OUT [CONF=VALUE ...]

``FRAMES`` is a file with a line of JSON for each message. MASTER ``connect`` starts a Spark Connect server here.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")

from pyspark.sql import SparkSession  # noqa: E402 - the filter comes first

from framewire.security import DomainKey, KeyRing  # noqa: E402
from framewire.spark import decode, session, verify  # noqa: E402


def hexed(value):
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    return [hexed(one) for one in value] if isinstance(value, (list, tuple)) else value


def main(master, frames, key, out, *conf):
    spark = (
        SparkSession.builder.remote("local[2]").getOrCreate()
        if master == "connect"
        else session(master, **dict(setting.split("=", 1) for setting in conf))
    )
    cases = [[bytes.fromhex(frame) for frame in json.loads(line)] for line in Path(frames).read_text().splitlines()]
    ring = KeyRing([DomainKey("d", bytes.fromhex(key))], identities={"d": ["d.*"]})
    table = spark.createDataFrame(list(enumerate(cases)), "row int, frames array<binary>").repartition(4)
    rows = verify(decode(table), ring).drop("frames").orderBy("row").collect()
    Path(out).write_text(json.dumps([{name: hexed(row[name]) for name in row.asDict()} for row in rows]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
