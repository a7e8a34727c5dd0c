"""The site, built once as CI builds it, and a browser to read it in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.browser import browser, open_page  # noqa: F401 - fixtures

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target)]
    quiet = os.environ | {
        "NO_MKDOCS_2_WARNING": "1"
    }  # the theme's word about its own future, which is no fault of ours
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=110, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return target
