"""Whatever goes wrong in a command is one paragraph and a status of its own, and a traceback only for who asks."""

import re
import socket
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from py4j.protocol import Py4JError

from framewire.cli import main
from framewire.cli.failures import failure
from framewire.errors import (
    BadBody,
    ConfigError,
    Expired,
    NoRoute,
    RemoteError,
    Unreachable,
    UsageError,
    WireError,
)
from framewire.operation.apps import AppError
from framewire.operation.exits import Exit
from framewire.operation.http import CannotListenError
from framewire.operation.observing import NoClusterError


def run(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


def process(script, *arguments):
    """The command line in a process of its own, after something was done to it."""
    code = f"import sys\n{script}\nfrom framewire.cli import main\nmain({[*map(str, arguments)]!r}, 'framewire')"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def one_paragraph(told):
    (paragraph,) = re.findall(r"^Error: (.*)", told, re.DOTALL | re.MULTILINE)
    assert "\n\n" not in paragraph.strip(), told
    assert not re.search(r"^Error: ", paragraph, re.MULTILINE), told
    assert "Traceback" not in told, told
    return True


@pytest.fixture
def broken(monkeypatch):
    """``framewire doctor``, which fails with what it is given."""

    def fail_with(problem):
        def fail(_):
            raise problem

        monkeypatch.setattr("framewire.cli.doctor.examined", fail)

    return fail_with


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (UsageError("no"), Exit.USAGE),
        (ConfigError("file", ["a", "b"]), Exit.USAGE),
        (AppError("no"), Exit.APP),
        (CannotListenError("address", ["taken"]), Exit.LISTEN),
        (NoRoute("no"), Exit.NO_ROUTE),
        (Expired("no"), Exit.NO_ANSWER),
        (Unreachable("no"), Exit.NO_ANSWER),
        (NoClusterError("no"), Exit.NO_CLUSTER),
        (RemoteError("no"), Exit.FAILED),
        (BadBody("no"), Exit.FAILED),
        (WireError("too_few_frames", "frames"), Exit.FAILED),
        (PermissionError(13, "Permission denied", "lake/x"), Exit.FILES),
        (ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql"), Exit.LACKING),
        (ModuleNotFoundError("No module named 'nicegui'", name="nicegui"), Exit.LACKING),
        (ModuleNotFoundError("No module named 'framewire.nowhere'", name="framewire.nowhere"), Exit.FAULT),
        (ZeroDivisionError("division by zero"), Exit.FAULT),
        (KeyError("customer"), Exit.FAULT),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_kind_of_failure_has_its_status_and_one_paragraph(broken, problem, status):
    broken(problem)
    result = run("doctor")
    assert result.exit_code == status
    assert one_paragraph(result.stderr)


def test_the_statuses_are_distinct_and_each_says_what_it_means():
    assert len({status.value for status in Exit}) == len(Exit.__members__)
    assert all(status.meaning.endswith(".") for status in Exit)


def test_a_fault_of_our_own_says_so_and_how_to_see_where_it_is(broken):
    broken(ZeroDivisionError("division by zero"))
    told = run("doctor").stderr
    assert told.startswith("Error: ZeroDivisionError: division by zero\n")
    assert "a fault of framewire's own" in told
    assert "framewire --debug" in told


@pytest.mark.parametrize("line", [["--debug", "doctor"], ["doctor", "--debug"], ["doctor", "--json", "--debug"]])
def test_debug_shows_the_traceback_wherever_it_stands(broken, line):
    broken(ZeroDivisionError("division by zero"))
    result = run(*line)
    assert result.exit_code == Exit.FAULT
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.count("ZeroDivisionError: division by zero") == 2


def test_debug_shows_what_an_error_was_made_of(tmp_path):
    target = tmp_path / "file"
    target.write_text("")
    plain = run("synth", "--messages=10", "-o", target / "made")
    assert one_paragraph(plain.stderr)
    told = run("synth", "--messages=10", "-o", target / "made", "--debug").stderr
    assert "NotADirectoryError" in told
    assert told.rstrip().endswith(plain.stderr.strip())


def test_what_comes_after_two_dashes_is_not_asked_for_the_traceback():
    result = run("query", "--", "--debug")
    assert "Traceback" not in result.stderr
    assert result.exit_code == Exit.USAGE


def test_nothing_in_an_error_can_play_tricks_on_a_terminal(broken):
    broken(UsageError("red \x1b[31m and \r back"))
    assert not re.search(r"[\x1b\r]", run("doctor").stderr)


def test_a_package_that_is_missing_is_told_with_how_to_get_it(tmp_path):
    (tmp_path / "captures").mkdir()
    missing = {
        "duckdb": ["query", "select 1", "--lake", tmp_path],
        "pyarrow": ["capture", "stats", tmp_path / "captures"],
        "numpy": ["synth", "--messages=10", "-o", tmp_path / "made"],
        "pyspark": ["pipeline", "run", "--captures", tmp_path / "captures", "--lake", tmp_path / "lake"],
    }
    for package, command in missing.items():
        done = process(f"sys.modules[{package!r}] = None", *command)
        assert done.returncode == Exit.LACKING, (package, done.stderr)
        assert one_paragraph(done.stderr)
        assert re.search(rf"needs {package}.*pip install 'framewire\[spark\]'", done.stderr), done.stderr


def test_an_address_that_is_taken_has_a_status_of_its_own():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("rendezvous", f"tcp://127.0.0.1:{taken.getsockname()[1]}")
    assert result.exit_code == Exit.LISTEN
    assert one_paragraph(result.stderr)


def test_a_cluster_that_is_not_there_has_a_status_of_its_own():
    result = run("ps", "--rendezvous", "tcp://127.0.0.1:9", "--wait", "0.3")
    assert result.exit_code == Exit.NO_CLUSTER
    assert one_paragraph(result.stderr)


@pytest.mark.parametrize(
    "command",
    [
        ["query", "select 1", "--lake", "nowhere"],
        ["flow", "3f2a", "--lake", "nowhere"],
        ["replay", "--lake", "nowhere", "--dry-run"],
        ["capture", "stats", "nowhere"],
        ["capture", "tail", "nowhere", "--no-follow"],
        ["capture", "export", "nowhere"],
        ["capture", "recover", "nowhere"],
        ["capture", "prune", "nowhere", "--older-than", "1d"],
        ["pipeline", "status", "--lake", "nowhere"],
        ["pipeline", "prune", "--lake", "nowhere", "--keep", "messages=30d"],
        ["pipeline", "export-traces", "--lake", "nowhere"],
        ["config", "check", "--config", "nowhere.toml"],
        ["inspect", "--verify", "nowhere.toml", "nowhere.jsonl"],
        ["node", "--app", "nowhere"],
        ["ask", "a", "{", "--reply", "b"],
        ["tell", "a", "--app", "nowhere_such"],
    ],
    ids=" ".join,
)
def test_what_is_not_there_or_wrong_is_the_callers_to_mend(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    result = run(*command)
    assert result.exit_code in (Exit.USAGE, Exit.APP), result.output
    assert one_paragraph(result.stderr)


def test_a_lake_with_a_broken_file_is_told_in_a_paragraph(tmp_path):
    folder = tmp_path / "lake" / "flows" / "date=2026-03-01" / "bucket=08h00"
    folder.mkdir(parents=True)
    (folder / "part.parquet").write_bytes(b"PAR1 this is no Parquet PAR1")
    result = run("query", "select * from flows", "--lake", tmp_path / "lake")
    assert result.exit_code in (Exit.FAILED, Exit.FILES, Exit.USAGE)
    assert one_paragraph(result.stderr)


def test_of_what_spark_says_the_line_is_shown_that_says_something():
    said = "An error occurred while calling o44.create.\n: java.io.IOException: no room\n\tat a\n\tat b"
    told = failure(Py4JError(said))
    assert (told.exit_code, told.message.partition("\n")[0]) == (
        Exit.FAILED,
        "Spark failed: java.io.IOException: no room",
    )
    assert "at a" not in told.message


def test_errors_of_the_command_line_stay_what_click_makes_of_them():
    wrong = click.UsageError("no")
    assert failure(wrong) is wrong
