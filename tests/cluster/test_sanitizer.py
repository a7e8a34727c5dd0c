"""What is compiled for messages, under gcc's sanitizers: its own tests, with every access to memory checked."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GCC = shutil.which("gcc")

# Loaded before anything of framewire, so that the tests find the checked build in place of the installed one.
PLUGIN = """
import importlib.util, pathlib, sys
path = pathlib.Path(__file__).with_name("checked.so")
spec = importlib.util.spec_from_file_location("framewire.{name}", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.modules[spec.name] = module

def pytest_sessionfinish():
    from framewire.capture import ledger
    from framewire.cluster import channel
    from framewire.wire import moulds
    in_use = {{
        "cluster._zmqio": channel._CompiledChannel,
        "wire._moulds": type(moulds._holes),
        "capture._ledger": ledger._CompiledLedger,
    }}["{name}"]
    print("checked build in use:", in_use.__module__ == spec.name and in_use in vars(module).values())
"""

# The sanitizer brings an allocator of its own in place of glibc's, so what glibc is told has no effect.
OF_GLIBC = "tests/cluster/test_channel.py::test_large_frames_take_the_same_memory_again"


def library(name):
    found = subprocess.run([GCC, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


@pytest.mark.long
@pytest.mark.skipif(GCC is None, reason="there is no gcc here")
@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("cluster._zmqio", "tests/cluster/test_channel.py"),
        ("wire._moulds", "tests/wire/test_moulds.py"),
        ("capture._ledger", "tests/capture/test_ledger.py"),
    ],
)
def test_it_is_clean_under_the_sanitizers(name, tests, tmp_path):
    source = ROOT / "src" / "framewire" / f"{name.replace('.', '/')}.c"
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
            *(f"-I{sysconfig.get_path('include')}", str(source), "-o", str(tmp_path / "checked.so")),
        ],
        check=True,
    )
    (tmp_path / "checked_build.py").write_text(PLUGIN.format(name=name))
    result = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-s", "-p", "checked_build", "-p", "no:cacheprovider"),
            *(tests, "--deselect", OF_GLIBC),
        ],
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
