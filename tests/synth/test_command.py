import json
import os
import pty
import subprocess
import sys

from click.testing import CliRunner
from tests.synth.reading import MadeUp

from framewire.cli import main

FRAMEWIRE = [sys.executable, "-m", "framewire"]


def synth(*arguments):
    return CliRunner().invoke(main, ["synth", *map(str, arguments)])


def test_it_writes_captures_and_truth_and_says_what_is_in_them(tmp_path):
    done = synth("--messages", 2000, "--nodes", 3, "-o", tmp_path / "made")
    assert done.exit_code == 0, done.output
    made = MadeUp(tmp_path / "made")
    assert len(made.rows) == 2000
    said = dict(line.rsplit(maxsplit=1) for line in done.output.splitlines() if len(line.split()) == 2)
    assert said["rows"] == "2,000"
    assert int(said["flows"]) == len(made.flows)
    assert int(said["files"]) == len(made.segments)
    outcomes = [row["outcome"] for row in made.truth("flows")]
    assert all(
        int(said[f"  {name}"]) == outcomes.count(name) for name in ("completed", "failed", "expired", "open")
    )


def test_all_problems_are_told_with_the_names_of_the_options(tmp_path):
    done = synth("--nodes", 1, "--loss", 2, "--skew-ms", -1, "-o", tmp_path / "made")
    assert done.exit_code == 2
    for option in ("--nodes: 1; must be", "--loss: 2.0; must be", "--skew-ms: -1.0; must be"):
        assert option in done.output
    assert not (tmp_path / "made").exists()


def test_versions_and_times_that_make_no_sense_are_said_so(tmp_path):
    assert "'five' is not like 5:0.8" in synth("--versions", "five", "-o", tmp_path / "made").output
    assert "'soon' is not a time" in synth("--start", "soon", "-o", tmp_path / "made").output


def test_the_options_that_were_used_are_kept_with_the_truth(tmp_path):
    options = ("--seed", 9, "--versions", "5:0.5,4:0.5", "--start", "2025-05-05T05:05:05", "--quiet")
    done = synth("--messages", 100, *options, "-o", tmp_path)
    assert (done.exit_code, done.output) == (0, "")
    kept = json.loads((tmp_path / "truth" / "options.json").read_text())
    assert (kept["messages"], kept["seed"], kept["versions"]) == (100, 9, {"5": 0.5, "4": 0.5})
    assert kept["start"] == "2025-05-05 05:05:05+00:00"


def test_a_directory_that_cannot_be_written_is_a_plain_error(tmp_path):
    (tmp_path / "file").write_text("")
    done = synth("--messages", 100, "-o", tmp_path / "file" / "made")
    assert done.exit_code == 10
    assert "cannot be written" in done.output


def test_on_a_terminal_there_is_a_bar(tmp_path):
    command = [*FRAMEWIRE, "synth", "--messages", "3000", "--nodes", "2", "-o", str(tmp_path / "made")]
    ours, theirs = pty.openpty()
    try:
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
            said, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert b"3000/3000" in os.read(ours, 1 << 16).replace(b" ", b"")
        assert b"captures:" in said
    finally:
        os.close(ours)
        os.close(theirs)


def test_the_command_line_does_not_load_numpy_before_it_needs_it():
    code = "import sys, framewire.cli.synth; print([m for m in ('numpy', 'pyarrow', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
