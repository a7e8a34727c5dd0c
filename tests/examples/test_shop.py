"""The shop is a project of its own, as a user would have it: its tests are run as its owner would run them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.documented import shown_in, understood

SHOP = Path(__file__).parents[2] / "examples" / "shop"


def plain_environment():
    return {key: value for key, value in os.environ.items() if not key.startswith(("FRAMEWIRE_", "PYTEST_"))}


def ran(*arguments):
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=SHOP,
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_shops_own_tests_pass():
    done = ran("pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 passed" in done.stdout


def test_its_configuration_is_right():
    done = ran("framewire", "config", "check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", list(shown_in((SHOP / "README.md").read_text())))
def test_the_commands_of_its_readme_exist(line):
    understood(line)
