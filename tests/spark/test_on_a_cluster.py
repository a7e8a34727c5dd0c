"""docs/spark-cluster.md, run: its job, by spark-submit, on a master and two workers that have nothing of ours."""

import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pyspark
import pytest
from tests.spark.test_elsewhere import cluster  # noqa: F401 - a fixture

from framewire.spark.asking import asked_of, open_lake
from framewire.spark.java import java_home
from framewire.spark.replay import Choice, chosen, tables_to_replay
from framewire.spark.stories import stories, tables_of_stories
from framewire.synth import Options, synthesise

PAGE = Path(__file__).parents[2] / "docs" / "spark-cluster.md"
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "600m",
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


def submit(master, job, *arguments):
    conf = [part for name, value in CONF.items() for part in ("--conf", f"{name}={value}")]
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", master, *conf]
    environ = os.environ | {"JAVA_HOME": str(java_home()), "PYSPARK_DRIVER_PYTHON": sys.executable}
    return subprocess.run(
        [*command, str(job), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env=environ,
    )


@pytest.mark.long
@pytest.mark.timeout(580)
def test_the_job_of_the_page_makes_a_lake_that_is_true_and_that_our_tools_read(cluster, tmp_path):  # noqa: F811
    (code,) = re.findall(r"```py\n(# job\.py.*?)```", PAGE.read_text(), re.DOTALL)
    job, lake = tmp_path / "job.py", tmp_path / "lake"
    job.write_text(code)
    synthesise(Options(messages=4000, nodes=4, seed=5), tmp_path)
    done = submit(cluster, job, tmp_path / "captures", lake)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "4000 rows" in done.stdout

    sql = "select hex(correlation_id), outcome from {} order by all"
    true = duckdb.sql(sql.format(f"'{tmp_path}/truth/flows.parquet'")).fetchall()
    with open_lake(str(lake), ["flows"]) as connection:
        assert list(asked_of(connection, sql.format("flows")).rows) == true

    with open_lake(str(lake), tables_to_replay) as connection:
        begun = {each.flow for each in chosen(connection, Choice()) if each.flow is not None}
    assert len(begun) == len(true), "each flow has one message that began it"

    with open_lake(str(lake), tables_of_stories) as connection:
        told = list(stories(connection, "true"))
    assert len(told) == len(true)
    assert all(story.legs for story in told)
