"""``framewire pipeline`` as people start it: in a process of its own, with a Spark of its own."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from framewire.cli import main
from framewire.synth import Options, synthesise

START = [sys.executable, "-W", "ignore", "-m", "framewire", "pipeline"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("made")
    synthesise(Options(messages=1500, nodes=3, loss=0.05, tampered=0.2, malformed=0.05, seed=3), directory)
    return directory


def options(made, lake):
    local = ["--captures", made / "captures", "--lake", lake, "--keys", made / "truth" / "keys.toml"]
    return [*map(str, local), "--master", "local[2]", "--lost-after", "0s"]


def pipeline(*arguments):
    return CliRunner().invoke(main, ["pipeline", *map(str, arguments)])


@pytest.mark.long
@pytest.mark.timeout(500)
def test_a_lake_is_made_told_of_compacted_and_asked(made, tmp_path):
    lake = tmp_path / "lake"
    done = subprocess.run(
        [*START, "run", *options(made, lake), "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert (told["rows"], told["batches"], told["late"]) == (1500, 1, 0)
    found = told["attention"]
    assert all(found[name] for name in ("quarantined", "lost", "invalid_signatures", "failing_handlers"))
    assert found["slowest_edges"] == [], "no way has been taken often enough to be called slow"

    shown = pipeline("status", "--lake", lake, "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["rows"] == 1500

    put = subprocess.run(
        [*START, "compact", "--lake", str(lake), "--master", "local[2]"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert put.returncode == 0, put.stderr[-3000:]
    assert "0 buckets" in put.stdout

    asked = CliRunner().invoke(main, ["query", "select sum(rows) as n from flows", "--lake", str(lake), "--json"])
    assert json.loads(asked.output)["n"] > 0


@pytest.mark.long
@pytest.mark.timeout(500)
def test_a_continuous_pipeline_takes_in_what_comes_until_ctrl_c_and_then_sums_up(made, tmp_path):
    lake = tmp_path / "lake"
    command = [*START, "run", *options(made, lake), "--continuous", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        end = time.monotonic() + 300
        while not list(lake.glob("_state/batch-*.json")):
            assert process.poll() is None, process.stderr.read()[-3000:]
            assert time.monotonic() < end, "it took nothing in"
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err[-3000:]
    assert json.loads(out)["rows"] == 1500


def test_a_lake_that_is_not_there_is_told_in_one_paragraph(tmp_path):
    done = pipeline("status", "--lake", tmp_path / "none")
    assert done.exit_code == 2
    assert "is no lake; make one with: framewire pipeline run" in done.output


def test_retention_wants_a_table_and_a_time(tmp_path):
    assert "write it like messages=30d" in pipeline("prune", "--lake", tmp_path, "--keep", "messages").output
    assert "30x" in pipeline("prune", "--lake", tmp_path, "--keep", "messages=30x").output


@pytest.mark.parametrize("command", ["run", "compact", "prune", "status", "export-traces"])
def test_every_command_has_an_example(command):
    assert f"Example: framewire pipeline {command}" in " ".join(pipeline(command, "--help").output.split())
