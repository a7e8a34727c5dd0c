from pathlib import Path

import pytest
from click.testing import CliRunner

from framewire.cli import main

VECTORS = Path(__file__).parents[1] / "data" / "vectors"


@pytest.fixture
def inspect(monkeypatch):
    """``framewire inspect`` run in this process, on a terminal of a given width."""

    def run(*arguments, stdin=b"", columns=100):
        monkeypatch.setenv("COLUMNS", str(columns))
        return CliRunner().invoke(main, ["inspect", *map(str, arguments)], input=stdin)

    return run


@pytest.fixture
def vectors():
    return VECTORS
