"""A session that just works, and a Java that is found, fetched or asked for."""

import os
import sys

import pytest

from framewire.errors import ConfigError, UsageError
from framewire.spark import java, session, sessions
from framewire.spark.sessions import driver_memory


def fake_java(home, banner):
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    binary.chmod(0o755)
    return home


def test_the_session_is_local_and_set_up(spark):
    assert spark.sparkContext.master == "local[2]"
    assert spark.sparkContext.pythonExec == sys.executable
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.sparkContext.uiWebUrl is None


def test_the_environment_is_left_as_it_was(spark):
    assert spark.sparkContext.pythonExec == sys.executable
    assert os.environ.get("PYSPARK_PYTHON") != sys.executable


def test_the_jvm_of_a_brief_session_compiles_for_a_short_life(spark):
    told = list(spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
    assert "-XX:TieredStopAtLevel=1" in told
    assert any("log4j2" in each for each in told), "and keeps its quiet logs"


def test_the_classes_of_a_batch_are_kept_for_the_next(spark):
    assert int(spark.conf.get("spark.sql.codegen.cache.maxEntries")) >= 1000


@pytest.mark.parametrize(
    ("asked", "collectors"), [({}, ["-XX:+UseParallelGC"]), ({"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}, [])]
)
def test_a_collector_is_chosen_only_where_nobody_has_chosen_one(asked, collectors, monkeypatch):
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    told = sessions._preset(asked, local=True, brief=False)["spark.driver.defaultJavaOptions"]
    assert [option for option in told.split() if option.endswith("GC")] == collectors


def test_a_collector_that_the_environment_names_counts(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g -XX:+UseG1GC")
    assert sessions._collector_chosen({})
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xlog:gc*")
    assert not sessions._collector_chosen({})
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions -XX:+UseZGC\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert sessions._collector_chosen({})


def test_what_is_no_setting_of_spark_is_refused_all_at_once():
    with pytest.raises(ConfigError) as caught:
        session(shuffle_partitions=1, memory="1g")
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["shuffle.partitions", "memory"]


def test_memory_is_a_part_of_what_there_is():
    assert 1 << 30 <= driver_memory() <= 16 << 30


@pytest.mark.parametrize(
    ("banner", "release"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_401"', 8), ("nonsense", None)],
)
def test_the_release_of_a_java_is_what_it_says(tmp_path, banner, release):
    assert java.release_of(fake_java(tmp_path, banner)) == release


def test_a_java_that_is_named_comes_first(tmp_path):
    named = fake_java(tmp_path / "named", 'openjdk version "21.0.1"')
    assert java.find_java({"JAVA_HOME": str(named), "PATH": os.environ["PATH"]}) == named


def test_a_java_that_is_too_old_is_passed_over(tmp_path):
    old = fake_java(tmp_path / "old", 'java version "1.8.0_401"')
    newer = fake_java(tmp_path / "newer", 'openjdk version "17.0.1"')
    assert java.find_java({"JAVA_HOME": str(old), "PATH": str(newer / "bin")}) == newer


def test_what_install_jdk_installed_before_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(java, "_USUAL", ())
    home = fake_java(tmp_path / ".jre" / "jdk-17.0.1+12-jre", 'openjdk version "17.0.1"')
    assert java.find_java({"HOME": str(tmp_path)}) == home


def test_a_java_that_cannot_be_fetched_is_a_clear_error(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise OSError("the network is unreachable")

    monkeypatch.setattr(java, "_USUAL", ())
    monkeypatch.setattr("jdk.install", broken)
    with pytest.raises(
        UsageError, match=r"java: Spark needs Java 17 .*the network is unreachable; install Java 17"
    ):
        java.java_home({"HOME": str(tmp_path)})


def test_a_java_is_fetched_where_there_is_none(tmp_path, monkeypatch, caplog):
    fetched = fake_java(tmp_path / "fetched", 'openjdk version "17.0.1"')
    monkeypatch.setattr(java, "_USUAL", ())
    monkeypatch.setattr("jdk.install", lambda *_, **__: str(fetched))
    assert java.java_home({"HOME": str(tmp_path)}) == fetched
    assert "no Java 17 or newer was found; one is now being installed" in caplog.text
