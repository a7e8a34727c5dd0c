import os
import re
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner
from tests.docs import documented

from framewire import __version__
from framewire.cli import main

try:
    from framewire.cluster import _zmqio
except ImportError:
    _zmqio = None

FRAMEWIRE = [sys.executable, "-m", "framewire"]


def run(*arguments, stdin=b"", **settings):
    return subprocess.run(
        [*FRAMEWIRE, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        **settings,
    )


@pytest.mark.parametrize(("pure", "channel"), [("1", "pure Python"), ("", "compiled" if _zmqio else "pure Python")])
def test_the_version_is_told_and_which_channel_is_in_use(pure, channel):
    result = run("--version", env={**os.environ, "FRAMEWIRE_PURE": pure})
    assert result.stdout.decode() == f"framewire {__version__} ({channel} channel)\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_the_commands(arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    assert re.search("inspect +Show recorded messages", result.output)


def test_the_help_of_every_command_has_an_example_that_the_command_takes():
    for path, _ in documented.every_command():
        told = CliRunner().invoke(main, [*path[1:], "--help"], terminal_width=200)
        assert told.exit_code == 0, path
        (example,) = re.findall(r"Example: (.*)", told.output) or [""]
        assert " ".join(path) in example, path
        documented.understood(example)


def test_an_unknown_command_is_a_usage_error():
    result = CliRunner().invoke(main, ["inspekt"])
    assert result.exit_code == 2
    assert "No such command 'inspekt'" in result.stderr


def test_help_and_version_load_nothing_heavy():
    script = (
        "import sys\n"
        "from framewire.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "sys.exit(' '.join({'rich', 'msgspec', 'framewire.wire'} & sys.modules.keys()))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=60)
    assert result.stderr.decode().strip() == ""


def test_json_does_not_load_rich(vectors):
    script = (
        "import sys\n"
        "from framewire.cli import main\n"
        f"try: main(['inspect', '--json', {str(vectors / 'v5.jsonl')!r}])\n"
        "except SystemExit: sys.exit('rich' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=60)
    assert result.returncode == 0


def test_the_command_line_runs_as_a_process(vectors):
    result = run("inspect", vectors / "v5.jsonl", "--brief", "--limit", "2")
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr == b"2 messages\n"


def test_a_piped_table_has_no_colour_and_no_need_of_a_terminal(vectors):
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "TERM")}
    result = run("inspect", stdin=(vectors / "edge_v5.jsonl").read_bytes(), env=environment)
    assert result.returncode == 1
    assert b"\x1b" not in result.stdout
    assert max(map(len, result.stdout.decode().splitlines())) == 100


def test_an_output_that_is_not_unicode_is_still_written(vectors):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for option in ("--full", "--brief", "--json"):
        result = run("inspect", option, vectors / "edge_v5.jsonl", env=environment)
        assert result.returncode == 1
        assert b"Traceback" not in result.stderr
        assert b"callback_divisor_0" in result.stdout


@pytest.mark.parametrize("options", [[], ["--brief"], ["--json"]])
def test_a_reader_that_goes_away_ends_it_quietly(vectors, tmp_path, options):
    endless = tmp_path / "recording.jsonl"
    endless.write_bytes((vectors / "v5.jsonl").read_bytes().splitlines(keepends=True)[0] * 1000)
    with subprocess.Popen(
        [*FRAMEWIRE, "inspect", *options, endless], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


def heed_interrupts():
    # A shell has those that it starts in the background ignore interrupts, and that is inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupt_ends_it_quietly(vectors):
    with subprocess.Popen(
        [*FRAMEWIRE, "inspect", "--brief"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - nothing else runs here
    ) as process:
        process.stdin.write((vectors / "v5.jsonl").read_bytes().splitlines(keepends=True)[0])
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b""
