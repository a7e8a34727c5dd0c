"""What decoding on Spark costs, beside a plain scan of the same frames and beside the Python codec, in one run.

    python bench/spark.py [--messages N ...] [--rounds N] [--warm N] [--json FILE] [--check]

The captures are made up by ``framewire synth``. The yardstick reads every frame and adds up their lengths, and does
nothing else; the Python codec makes the same columns in ``mapInArrow``. What is decoded is what is scanned: frames
and their time, without the other columns of a capture. All results go to Spark's ``noop`` sink.

Rounds are interleaved, and a row shows medians over them. Two rounds before them warm the JVM up: in the second it
is still compiling, and decoding takes a third longer than in those that follow. What the very first took is told
beside.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from framewire.security import DomainKey, KeyRing
from framewire.spark import decode, session, verify
from framewire.spark.columns import DECODED
from framewire.wire import WireError
from framewire.wire import decode as decode_one

SAME = ", ".join(f"{name} {kind}" for name, kind in DECODED.items())
PLAIN = [name for name in DECODED if name not in ("version", "version_raw", "callback_points", "routing", "error")]
KINDS = {"binary": pa.binary(), "int": pa.int32(), "bigint": pa.int64(), "string": pa.string()} | {
    "array<binary>": pa.list_(pa.binary()),
    DECODED["callback_points"]: pa.list_(
        pa.struct([("identity", pa.binary()), ("version", pa.int32()), ("partition", pa.binary())])
    ),
    DECODED["routing"]: pa.list_(pa.struct([("uri", pa.string()), ("identity", pa.binary())])),
}
ARROW = pa.schema([(name, KINDS[kind]) for name, kind in DECODED.items()])
GOALS = {"decode": ("at most", 3.0), "decode and verify": ("at most", 5.0), "Python codec": ("at least", 4.0)}
GROWTH = 4.3


def made_up(folder, count):
    target = Path(folder) / str(count)
    command = [
        sys.executable,
        "-m",
        "framewire",
        "synth",
        "--messages",
        str(count),
        "--seed",
        "1",
        "-o",
        str(target),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    captures = target / "captures"
    return str(captures if captures.exists() else target)


def every_domain(rows):
    """A ring with a key for each domain of the messages, so that every signature is computed."""
    found = decode(rows).where("domain <> ''").select("domain", "identity").distinct().collect()
    identities = {}
    for row in found:
        identities.setdefault(row["domain"], []).append(bytes(row["identity"]))
    return KeyRing([DomainKey(domain, b"k" * 32) for domain in identities], identities)


def by_python(batches):
    """The same table by the Python codec, as a user would write it."""
    for batch in batches:
        rows = [row_of(frames) for frames in batch.column("frames").to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, ARROW)


def row_of(frames):
    try:
        message = decode_one(frames)
    except WireError as problem:
        return {"error": problem.reason}
    row = {name: getattr(message, name) for name in PLAIN}
    row["version"] = message.version if isinstance(message.version, int) else None
    row["version_raw"] = message.version.to_bytes(2, "little") if row["version"] is not None else message.version
    row["callback_points"] = [
        {"identity": each.identity, "version": each.version, "partition": each.partition}
        if isinstance(each.version, int)
        else {"identity": each.identity, "version": None, "partition": each.partition}
        for each in message.callback_points
    ]
    row["routing"] = [{"uri": each.uri, "identity": each.identity} for each in message.routing]
    return row


def plans(captures):
    rows = captures.select("at", "frames")
    touched = F.aggregate("frames", F.lit(0), lambda sum_, frame: sum_ + F.length(frame))
    decoded = decode(rows).drop("frames")
    return {
        "scan": rows.select("at", touched.alias("size")),
        "decode": decoded,
        "decode and verify": verify(decoded, every_domain(rows)),
        "Python codec": rows.select("frames").mapInArrow(by_python, SAME),
    }


def seconds(plan):
    started = time.perf_counter()
    plan.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def measured(spark, folder, counts, rounds):
    """The seconds of every round, for each count and kind."""
    work = {count: plans(spark.read.parquet(made_up(folder, count))) for count in counts}
    taken = {count: {name: [] for name in work[count]} for count in counts}
    for _ in range(rounds):
        for count in counts:
            for name, plan in work[count].items():
                taken[count][name].append(seconds(plan))
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, nargs="+", default=[1_000_000, 4_000_000], help="how many messages")
    parser.add_argument("--rounds", type=int, default=3, help="how many rounds to take the median of (3)")
    parser.add_argument("--warm", type=int, default=2, help="how many rounds before them warm the JVM up (2)")
    parser.add_argument("--master", default="local[2]", help="where to run (local[2])")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    options = parser.parse_args()
    counts = sorted(options.messages)
    spark = session(options.master)
    with tempfile.TemporaryDirectory() as folder:
        every = measured(spark, folder, counts, options.warm + options.rounds)
    first = {name: times[0] for name, times in every[counts[0]].items()}
    taken = {
        count: {name: times[options.warm :] for name, times in kinds.items()} for count, kinds in every.items()
    }
    print(f"Spark {spark.version}, {options.master}, Python {platform.python_version()}, {options.rounds} rounds")
    spark.stop()
    rows = []
    for count in counts:
        for name, times in taken[count].items():
            beside = taken[count]["decode" if name == "Python codec" else "scan"]
            ratio = median(mine / other for mine, other in zip(times, beside, strict=True))
            bound, goal = GOALS.get(name, ("", None))
            met = goal is None or (ratio <= goal if bound == "at most" else ratio >= goal)
            verdict = f" ({bound} {goal:g})  {'ok' if met else 'missed'}" if goal else ""
            print(f"{count:>10,} {name:<18} {median(times):8.2f} s   {ratio:5.2f}x{verdict}")
            wanted = f"{bound} {goal:g}" if goal else None
            told = {"messages": count, "kind": name, "seconds": median(times), "ratio": ratio}
            rows.append(told | {"wanted": wanted, "met": met})
    if options.warm:
        ratio = first["decode"] / first["scan"]
        print(f"{counts[0]:>10,} {'the first time':<18} {first['decode']:8.2f} s   {ratio:5.2f}x")
        told = {"messages": counts[0], "kind": "decode, the first time", "seconds": first["decode"], "ratio": ratio}
        rows.append(told | {"wanted": None, "met": True})
    for few, many in pairwise(counts):
        times = zip(taken[many]["decode"], taken[few]["decode"], strict=True)
        ratio, goal = median(more / less for more, less in times), GROWTH * many / few / 4
        print(f"{many:,} messages against {few:,}: {ratio:.2f}x (at most {goal:.2f})")
        wanted = f"at most {goal:g}"
        rows.append({"messages": many, "kind": "growth", "ratio": ratio, "wanted": wanted, "met": ratio <= goal})
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 1 if options.check and not all(row["met"] for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
