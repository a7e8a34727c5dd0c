"""``framewire doctor`` tells what is here, what is missing and what to do about it."""

import json
import os
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from framewire.cli import main
from framewire.cli.doctor import examined


def doctor(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "framewire", "doctor", *arguments],
        capture_output=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.fixture
def free_port():
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return tried.getsockname()[1]


def states(found):
    return {finding["what"]: finding["state"] for finding in json.loads(found.stdout)}


def test_a_machine_that_runs_these_tests_is_not_broken(free_port):
    found = doctor("--json", "--port", str(free_port))
    assert found.returncode == 0, found.stderr
    assert "broken" not in states(found).values()
    assert states(found)["Python"] == "good"


def test_compiled_parts_that_were_switched_off_are_told_with_what_to_do(free_port):
    found = doctor("--json", "--port", str(free_port), FRAMEWIRE_PURE="1")
    assert found.returncode == 0
    lacking = {each["what"]: each for each in json.loads(found.stdout) if "FRAMEWIRE_PURE" in each["todo"]}
    assert lacking.keys() == {"compiled parts", "recording"}
    assert lacking["compiled parts"]["detail"].startswith("without channel and moulds; pyzmq")
    assert all("unset it" in each["todo"] for each in lacking.values())


@pytest.mark.parametrize(
    ("part", "what", "told"),
    [
        ("cluster.channel", "compiled parts", "without channel;"),
        ("wire.moulds", "compiled parts", "without moulds;"),
        ("capture.ledger", "recording", "without the compiled recorder"),
    ],
)
def test_each_compiled_part_that_is_not_there_is_told_with_what_to_do(monkeypatch, free_port, part, what, told):
    monkeypatch.delenv("FRAMEWIRE_PURE", raising=False)
    for each in ("cluster.channel", "wire.moulds", "capture.ledger"):
        monkeypatch.setattr(f"framewire.{each}.COMPILED", each != part)
    lacking = [each for each in examined(free_port) if "C compiler" in each.todo]
    assert [each.what for each in lacking] == [what]
    assert told in lacking[0].detail


def test_a_port_that_is_taken_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = next(each for each in examined(port) if each.what == "ports")
    assert found.state == "lacking"
    assert str(port) in found.detail


def test_a_directory_that_cannot_be_written_is_a_failure(tmp_path, monkeypatch, free_port):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    result = CliRunner().invoke(main, ["doctor", "--port", str(free_port)])
    assert result.exit_code == 1
    assert "cannot be written to" in result.output


def test_an_examination_that_fails_does_not_hide_the_others(monkeypatch, free_port):
    def broken(_):
        raise OSError("the disk is gone")

    monkeypatch.setattr("shutil.disk_usage", broken)
    found = list(examined(free_port))
    assert [each.detail for each in found if each.state == "broken"] == ["OSError: the disk is gone"]
    assert len(found) == 10
