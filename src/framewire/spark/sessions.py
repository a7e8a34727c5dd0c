"""A Spark session that just works: the right Python, a Java, enough memory, UTC and quiet logs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from framewire.errors import ConfigError
from framewire.spark.java import java_home

__all__ = ["driver_memory", "session", "set_for_now"]

_GIB = 1 << 30
_QUIET = Path(__file__).with_name("log4j2.properties")


_BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Compile plainly. The second flag gives plain code the room that the JVM gives to all code otherwise."""
_LASTING = (
    "-XX:ReservedCodeCacheSize=512m -XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 "
    "-XX:Tier4CompileThreshold=75000 -XX:Tier4BackEdgeThreshold=200000"
)
"""Room for what is compiled twice, first plainly and then well: a pipeline is hundreds of generated classes. And
what is compiled well is called five times as often as the JVM would ask for: rows, and not what plans queries."""
_COLLECTOR = "-XX:+UseParallelGC"
"""Nobody waits for an answer within milliseconds, and the usual collector makes writing any reference dearer."""
_CLASSES_KEPT = 1000
"""Spark keeps 100 of the classes that it makes. A batch of a pipeline has 260, so each would make them anew."""


def session(
    master: str | None = None, *, app_name: str = "framewire", brief: bool = False, **conf: object
) -> SparkSession:
    """A session, on this machine unless ``master`` names a cluster or (``sc://…``) a Spark Connect server.

    ``brief`` is for what takes a minute or less on this machine: the JVM then spends half as much on itself, as it
    compiles for such a run and not for hours to come. It counts for the first session of a process, which has the
    JVM started.

    ``conf`` are Spark's own settings; as a name in Python has no dots, ``_`` stands for ``.``:
    ``session(spark_sql_shuffle_partitions=8)``.
    """
    settings = _settings(conf)
    master = master or os.environ.get("MASTER") or "local[*]"
    if master.startswith("sc://"):
        builder = SparkSession.builder.remote(master)
        preset = {"spark.sql.session.timeZone": "UTC"}
        return _configured(builder, app_name, preset | settings).getOrCreate()
    local = master.startswith("local")
    builder = _configured(
        SparkSession.builder.master(master), app_name, _preset(settings, local=local, brief=brief) | settings
    )
    with _environment(_needed(local=local)):
        spark = builder.getOrCreate()
    if local:
        _write_no_checksums(spark)
    return spark


@contextmanager
def set_for_now(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Settings for as long as something runs: the session is its owner's. Queries take them along."""
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)


def _settings(conf: Mapping[str, object]) -> dict[str, str]:
    settings = {name.replace("_", "."): _text(value) for name, value in conf.items()}
    unknown = [name for name in settings if not name.startswith("spark.")]
    if unknown:
        problems = [f"{name}: not a setting of Spark; those begin with spark_ (or spark.)" for name in unknown]
        raise ConfigError("session", problems)
    return settings


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _configured(builder: SparkSession.Builder, app_name: str, settings: Mapping[str, str]) -> SparkSession.Builder:
    builder = builder.appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def _collector_chosen(settings: Mapping[str, str]) -> bool:
    """Whether somebody has named a collector: a JVM that is told of two does not start."""
    told = [settings.get("spark.driver.extraJavaOptions", "")]
    told += [os.environ.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")]
    folder = os.environ.get("SPARK_CONF_DIR")
    with suppress(OSError):
        told.append((Path(folder) / "spark-defaults.conf").read_text() if folder else "")
    return any(re.search(r"-XX:\+Use\w*GC\b", each) for each in told)


def _preset(settings: Mapping[str, str], *, local: bool, brief: bool) -> dict[str, str]:
    options = [f"-Dlog4j2.configurationFile={_QUIET.as_uri()}", _BRIEF if brief else _LASTING]
    if local and not _collector_chosen(settings):
        options.append(_COLLECTOR)
    preset = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.codegen.cache.maxEntries": str(_CLASSES_KEPT),
        # What a sort or a window does not keep in memory is on disk in dozens of parts where a flow is large. Each
        # keeps the buffer that it was written with, of 1 MB, and takes 2 MB more to be read ahead.
        "spark.shuffle.spill.diskWriteBufferSize": "64k",
        "spark.unsafe.sorter.spill.read.ahead.enabled": "false",
        # Else PySpark tells the JVM for each part of an expression which line of Python it is from.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.driver.defaultJavaOptions": " ".join(options),
    }
    if local:
        preset["spark.driver.memory"] = f"{driver_memory() // (1 << 20)}m"
        # Spark's own 200 are for a cluster: on one machine their tasks take longer to start than to run.
        preset["spark.sql.shuffle.partitions"] = str(4 * (os.cpu_count() or 2))
        preset["spark.driver.host"] = "localhost"
        preset["spark.driver.bindAddress"] = "127.0.0.1"
    return preset


def driver_memory() -> int:
    """Half of what this machine, or the container around us, has: at least 1 GiB, at most 16."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (allowed := limit.read_text().strip()).isdigit():
        memory = min(memory, int(allowed))
    return min(max(memory // 2, _GIB), 16 * _GIB)


def _write_no_checksums(spark: SparkSession) -> None:
    """Let files on this machine have no second one with checksums beside them: Parquet has its own.

    For each file that it makes, Hadoop starts a process to say who may read it, and a batch of a pipeline makes a
    hundred. What has such a file already is still checked.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - see Files
    here = jvm.java.net.URI.create("file:///")
    jvm.org.apache.hadoop.fs.FileSystem.get(here, spark._jsc.hadoopConfiguration()).setWriteChecksum(False)  # noqa: SLF001


def _needed(*, local: bool) -> dict[str, str]:
    """What the JVM must find in its environment when it starts.

    A local session works with this very Python. On a cluster the workers have a Python of their own, and a path of
    this machine would be nonsense there.
    """
    needed = {"JAVA_HOME": str(java_home())}
    if local:
        needed |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return needed


@contextmanager
def _environment(needed: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in needed}
    os.environ.update(needed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
