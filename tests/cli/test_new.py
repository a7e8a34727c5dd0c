"""``framewire new`` starts a project that works."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from framewire.cli import main


def started(tmp_path, name="my-shop"):
    result = CliRunner().invoke(main, ["new", name, "--into", str(tmp_path / name)])
    assert result.exit_code == 0, result.output
    return tmp_path / name


def test_the_tests_of_a_new_project_pass(tmp_path):
    project = started(tmp_path)
    ran = subprocess.run(
        ["make", "test", f"PYTHON={sys.executable}"],  # noqa: S607 - whichever make there is
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout


def test_its_configuration_is_right_and_names_its_app(tmp_path):
    project = started(tmp_path)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FRAMEWIRE_")}
    checked = subprocess.run(
        [sys.executable, "-m", "framewire", "config", "show", "--told", "--json"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stderr
    assert '"my_shop.actors:app"' in checked.stdout


@pytest.mark.parametrize("name", ["", "Shop", "my shop", "1st", "-x", "shop/..", "class", "framewire", "tests"])
def test_a_name_that_no_project_can_have_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["new", "--", name])
    assert result.exit_code == 2
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_never_written_over(tmp_path):
    project = started(tmp_path)
    (project / "my_shop" / "actors.py").write_text("mine")
    result = CliRunner().invoke(main, ["new", "my-shop", "--into", str(project)])
    assert result.exit_code == 2
    assert "nothing was changed" in result.output
    assert (project / "my_shop" / "actors.py").read_text() == "mine"
