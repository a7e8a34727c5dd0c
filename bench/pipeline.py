"""What the pipeline costs: against a plain scan, by size, for a small increment, and for skewed traffic.

    python bench/pipeline.py [--parts PART ...] [--json] [--check]

The captures are made up by ``framewire synth``. The yardstick reads every frame and adds up their lengths, as in
``bench/spark.py``. Every figure is a ratio of times from one run on one machine; absolute times mean little. Each
part stands alone, and none takes longer than it may: what is not done by then counts as missed. The JVM has done
all of it once before, as a pipeline that goes on has; what the first time takes is told, too. The scan and the
smaller size are medians of three. CPU seconds are those of Spark's JVM, compiling included: on a machine that does
other things, too, they tell more than times.

``floor`` is what nobody can go below who makes these tables of these captures with Spark: captures are decoded,
verified and written, what belongs together is brought together and sorted once, and all other tables, which are
there already, are copied. Nothing is worked out. ``commands`` is what somebody at a terminal waits for: both the
pipeline and the scan are processes, from their start to their end.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from statistics import median

from pyspark.sql import functions as F  # noqa: N812

from framewire.security import KeyRing
from framewire.spark import Pipeline, session
from framewire.spark.arriving import arriving
from framewire.spark.lake import Lake
from framewire.spark.periods import Periods
from framewire.spark.pipeline import SETTINGS
from framewire.spark.sessions import set_for_now
from framewire.spark.tables import TABLES
from framewire.synth import Options, synthesise

START = dt.datetime(2025, 1, 1, 8, tzinfo=dt.UTC)
GOALS = {"size": (15.0, 10.0), "growth": (4.5,), "increment": (1.5,)}
"""At most; where there are two, the second is what we are after."""
ABOUT = {
    "size": "all tables against a plain scan",
    "messages": "messages alone, decoded, verified and written, against a plain scan",
    "floor": "messages alone, one shuffle, one sort, and copies of all other tables, against a plain scan",
    "commands": "all tables against a plain scan, as commands of their own",
    "growth": "the larger size against the smaller",
    "increment": "onto the larger lake against onto none",
    "giant": "a third of all rows in one flow against even traffic",
    "hot": "nine tenths in one partition against even traffic",
    "jaeger": "who calls whom by RDDs against the table edges",
}
BELONGING = [
    *("strand", "content", "digest", "at", "direction", "peer", "reason", "exception", "answer"),
    *("node_name", "node", "message", "identity", "version", "partition", "flow", "correlation_id", "wire_version"),
]
"""What other tables are worked out from."""
GIANT = 10
"""Of so many messages one is in the giant flow. Each leaves three rows, so these are about a third of all."""


class Bench:
    """One session, captures as they are asked for, and the clock."""

    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.spark = session(options.master, spark_driver_memory=options.memory)
        self.sizes = []
        self.made = cache(self._made)
        self.small = cache(self._small)
        self.large = cache(self._large)

    def warm_up(self):
        """All of it once, in a new JVM; what is measured is what the JVM has seen before, as the plain scan."""
        captured = self.made("warm", self.options.messages)
        self.first = self.whole(captured, "lake-warm")
        self._grow(captured, self.options.messages, "lake-warm")

    def _made(self, name, messages, begin=START, **traffic):
        target = self.directory / name
        synthesise(Options(messages=messages, start=begin, rate=self.options.rate, **traffic), target)
        return target

    def timed(self, work):
        """Seconds, and the CPU seconds of the JVM; ``TimeoutError`` where it takes too long."""
        done, late = threading.Event(), threading.Event()

        def watch():
            if not done.wait(60 * self.options.minutes):
                late.set()
            # Again and again, as a pipeline that is planning its next job has none to cancel.
            while not done.wait(1):
                self.spark.sparkContext.cancelAllJobs()

        watcher = threading.Thread(target=watch, daemon=True)
        began, spent = time.perf_counter(), self._cpu()
        watcher.start()
        try:
            work()
        except Exception:
            if not late.is_set():
                raise
        finally:
            done.set()
            watcher.join()
        if late.is_set():
            raise TimeoutError
        return time.perf_counter() - began, self._cpu() - spent

    def _cpu(self):
        pid = self.spark._jvm.java.lang.ProcessHandle.current().pid()  # noqa: SLF001 - nobody else knows it
        told = Path(f"/proc/{pid}/stat")
        if not told.exists():
            return 0.0
        fields = told.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def whole(self, captured, lake):
        return self.timed(lambda: self._run(captured, lake))

    def _run(self, captured, lake):
        keys = KeyRing.from_file(captured / "truth" / "keys.toml")
        lake = str(self.directory / lake)
        Pipeline(str(captured / "captures"), lake, keys=keys, spark=self.spark).run()

    def _small(self):
        return self._sized("small", self.options.messages, self.options.rounds)

    def _large(self):
        return self._sized("large", self.options.larger)

    def _sized(self, name, messages, rounds=1):
        """Medians over rounds, each into a lake of its own; the last is kept."""
        captured, lake = self.made(name, messages), f"lake-{name}"
        taken = []
        for _ in range(rounds):
            shutil.rmtree(self.directory / lake, ignore_errors=True)
            taken.append(self.whole(captured, lake))
        times = tuple(median(each) for each in zip(*taken, strict=True))
        bytes_of = {"captures_bytes": captured / "captures", "lake_bytes": self.directory / lake}
        found = {what: size_of(folder) for what, folder in bytes_of.items()}
        self.sizes.append({"messages": messages, "seconds": times[0], **found})
        return times

    def scanned(self, captured):
        """A plain scan; the JVM has seen it before."""
        rows = plain_scan(self.spark, str(captured / "captures"))
        times = [self.timed(rows.write.format("noop").mode("overwrite").save) for _ in range(4)][1:]
        return tuple(median(each) for each in zip(*times, strict=True))

    def size(self):
        plain = self.scanned(self.made("small", self.options.messages))
        return self.small(), plain

    def messages(self):
        """The first table and no other: what all that comes after it can at best add nothing to."""
        captured = self.made("small", self.options.messages)
        lake = Lake(self.spark, str(self.directory / "lake-messages"), Periods())
        keys = KeyRing.from_file(captured / "truth" / "keys.toml")
        rows = arriving(self.spark.read.parquet(str(captured / "captures")), keys, START)
        filed = rows.withColumns(lake.periods.filing(lake.periods.bucket_of(F.col("at"))))
        with set_for_now(self.spark, SETTINGS):
            times = self._known(lambda: lake.write(filed, lake.staging("messages"), ["fault", "date", "bucket"]))
        return times, self.scanned(captured)

    def _known(self, work):
        """Medians over rounds of something that the JVM has not done in quite this way before."""
        work()
        return tuple(
            median(each) for each in zip(*(self.timed(work) for _ in range(self.options.rounds)), strict=True)
        )

    def floor(self):
        self.small()
        lake = Lake(self.spark, str(self.directory / "lake-small"), Periods())
        read = {name: self.spark.read.parquet(f"{lake.root}/{name}") for name in TABLES if name != "quarantine"}
        together = (
            read.pop("messages").select(*BELONGING).repartition("strand").sortWithinPartitions("strand", "at")
        )
        first, plain = self.messages()

        def rest():
            with set_for_now(self.spark, SETTINGS):
                together.write.format("noop").mode("overwrite").save()
                for name, rows in read.items():
                    lake.write(rows, lake.staging(name), TABLES[name].filed_under)

        return tuple(map(sum, zip(first, self._known(rest), strict=True))), plain

    def commands(self):
        captured = self.made("small", self.options.messages)
        captures, keys = str(captured / "captures"), str(captured / "truth" / "keys.toml")
        python, master = sys.executable, self.options.master
        run = [python, "-m", "framewire", "pipeline", "run", "--once", "--quiet", "--master", master]
        run += ["--captures", captures, "--keys", keys, "--lake", str(self.directory / "lake-command")]
        return self._as_command(run), self._as_command([python, __file__, "--scan", captures, "--master", master])

    def _as_command(self, command):
        began = time.perf_counter()
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60 * self.options.minutes)  # noqa: S603 - our own
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        return time.perf_counter() - began, None

    def growth(self):
        first = self.small()
        return self.large(), first

    def increment(self):
        self.large()
        captured, options = self.made("large", self.options.larger), self.options
        alone = self.whole(self._more(options.larger), "lake-alone")
        return self._grow(captured, options.larger, "lake-large"), alone

    def _more(self, messages):
        """What comes after so many messages."""
        end = START + dt.timedelta(seconds=messages / self.options.rate)
        return self.made(f"after-{messages}", self.options.increment, begin=end)

    def _grow(self, captured, messages, lake):
        # The keys of both are the same: they come from the seed.
        more = self._more(messages)
        shutil.copytree(more / "captures", captured / "captures", dirs_exist_ok=True)
        return self.whole(captured, lake)

    def giant(self):
        return self._skewed("giant", giant_flow=self.options.messages // GIANT)

    def hot(self):
        return self._skewed("hot", hot_partition=0.9)

    def _skewed(self, name, **traffic):
        """Even traffic is measured again afterwards, in a JVM that is as warm."""
        many = self.options.messages
        skewed = self.whole(self.made(name, many, **traffic), f"lake-{name}")
        return skewed, self.whole(self.made("small", many), f"lake-beside-{name}")

    def jaeger(self):
        """The graph of who calls whom, as Jaeger's job defines it: spans grouped by trace, on plain RDDs."""
        self.small()
        lake = self.directory / "lake-small"
        hops = self.spark.read.parquet(str(lake / "hops")).where("flow is not null")
        links = (
            hops.select("flow", "from_name", "to_name")
            .rdd.map(lambda row: (row[0], (row[1], row[2])))
            .groupByKey()
            .flatMap(lambda trace: [(link, 1) for link in trace[1]])
            .reduceByKey(lambda one, other: one + other)
        )
        edges = self.spark.read.parquet(str(lake / "edges"))
        asked = edges.groupBy("from_name", "to_name").agg(F.sum("received"))
        return self.timed(links.collect), self.timed(asked.collect)


def plain_scan(spark, captures):
    """Read every byte of every frame, and do nothing with it."""
    touched = F.aggregate("frames", F.lit(0), lambda sum_, frame: sum_ + F.length(frame))
    return spark.read.parquet(captures).select("at", touched.alias("size"))


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def gigabytes(text):
    return float(text.rstrip("gG")) if text[-1] in "gG" else float(text.rstrip("mM")) / 1024


def goals_of(part, options):
    scale = options.larger / options.messages / 4 if part == "growth" else 1.0
    return [goal * scale for goal in GOALS.get(part, ())]


def judged(bench, part, options):
    """One part as a row of the results."""
    row = {"part": part, "about": ABOUT[part], "messages": options.messages, "larger": options.larger}
    try:
        (mine, my_cpu), (other, other_cpu) = getattr(bench, part)()
    except TimeoutError:
        return row | {"seconds": None, "ratio": None, "met": False}
    ratio = mine / other
    goals = goals_of(part, options)
    told = [{"at_most": goal, "met": ratio <= goal} for goal in goals]
    times = {"seconds": mine, "against": other, "cpu": my_cpu, "against_cpu": other_cpu}
    return row | times | {"ratio": ratio, "goals": told, "met": all(each["met"] for each in told[:1])}


def line(row, options):
    if row["ratio"] is None:
        return f"{row['part']:<10} not done in {options.minutes:g} minutes: missed"
    verdicts = [f"(at most {each['at_most']:g}: {'ok' if each['met'] else 'missed'})" for each in row["goals"]]
    times = f"{row['seconds']:8.1f} s / {row['against']:7.1f} s  {row['ratio']:7.2f}x"
    cpu = [] if row["cpu"] is None else [f"CPU {row['cpu']:.1f} s / {row['against_cpu']:.1f} s"]
    return "  ".join([f"{row['part']:<10} {times}", *verdicts, *cpu, row["about"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=list(ABOUT), help="what to measure (all)")
    parser.add_argument("--messages", type=int, default=1_000_000, help="rows of the smaller lake (1,000,000)")
    parser.add_argument(
        "--larger", type=int, default=4_000_000, help="rows of the larger lake (4,000,000); 0: none"
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of the smaller size, for the median (3)")
    parser.add_argument("--increment", type=int, default=100_000, help="rows that come on top of it (100,000)")
    parser.add_argument("--rate", type=float, default=280.0, help="rows a second (280: a million in an hour)")
    parser.add_argument("--master", default="local[2]", help="where to run (local[2])")
    parser.add_argument("--memory", default="4g", help="memory of the driver, whatever the size (4g)")
    parser.add_argument("--minutes", type=float, default=30.0, help="what one run of a pipeline may take (30)")
    usual = Path("bench/results/pipeline.json")
    parser.add_argument(
        "--json", type=Path, nargs="?", const=usual, metavar="FILE", help=f"write results ({usual})"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave captures and lakes there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    parser.add_argument("--scan", metavar="CAPTURES", help="only a plain scan of these")
    options = parser.parse_args()
    if options.scan:
        plain_scan(session(options.master), options.scan).write.format("noop").mode("overwrite").save()
        return 0
    large = {"growth", "increment"}
    parts = options.parts or [part for part in ABOUT if options.larger or part not in large]
    if not options.larger and large & set(parts):
        parser.error("growth and increment need --larger")
    rows = []
    with tempfile.TemporaryDirectory(prefix="framewire-bench-") as scratch:
        directory = options.keep or scratch
        bench = Bench(options, Path(directory))
        bench.warm_up()
        first = f"{'first':<10} {bench.first[0]:8.1f} s  CPU {bench.first[1]:.1f} s"
        print(f"{first}  {options.messages:,} messages in a new JVM, without which nothing below is", flush=True)
        for part in parts:
            rows.append(judged(bench, part, options))
            print(line(rows[-1], options), flush=True)
        bench.spark.stop()
    if options.json:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        used = {"master": options.master, "memory_gb": gigabytes(options.memory), "cores": os.cpu_count()}
        told = {"machine": machine, **used, "first_seconds": bench.first[0], "sizes": bench.sizes, "rows": rows}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return 1 if options.check and not all(row["met"] for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
