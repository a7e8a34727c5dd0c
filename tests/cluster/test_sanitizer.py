"""The compiled channel under gcc's sanitizers: its own tests, with every access to memory checked."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "framewire" / "cluster" / "_zmqio.c"
GCC = shutil.which("gcc")

# Loaded before anything of framewire, so that the tests find the checked build in place of the installed one.
PLUGIN = """
import importlib.util, pathlib, sys
path = pathlib.Path(__file__).with_name("_zmqio.so")
spec = importlib.util.spec_from_file_location("framewire.cluster._zmqio", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.modules[spec.name] = module

def pytest_sessionfinish():
    from framewire.cluster import channel
    print("checked build in use:", channel._CompiledChannel is module.Channel)
"""


def library(name):
    found = subprocess.run([GCC, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


@pytest.mark.long
@pytest.mark.skipif(GCC is None, reason="there is no gcc here")
def test_the_compiled_channel_is_clean_under_the_sanitizers(tmp_path):
    asan = library("libasan.so")
    if not Path(asan).is_absolute():
        pytest.skip("gcc has no address sanitizer here")
    subprocess.run(
        [
            *(
                GCC,
                "-shared",
                "-fPIC",
                "-O1",
                "-g",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-missing-field-initializers",
            ),
            *("-Wno-cast-function-type", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
            *(f"-I{sysconfig.get_path('include')}", str(SOURCE), "-o", str(tmp_path / "_zmqio.so")),
        ],
        check=True,
    )
    (tmp_path / "checked_build.py").write_text(PLUGIN)
    tests = str(Path(__file__).with_name("test_channel.py"))
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "checked_build", "-p", "no:cacheprovider", tests],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path),
            "PYTHONMALLOC": "malloc",  # or Python's own allocator would hide what is read beyond its objects
            "LD_PRELOAD": asan,
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",  # what Python itself never frees is no news
            "FRAMEWIRE_PURE": "",
        },
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "checked build in use: True" in result.stdout
