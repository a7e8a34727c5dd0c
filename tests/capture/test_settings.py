"""What a recorder can be told, and what it says to what it cannot."""

import subprocess
import sys

import pytest

import framewire as fw
from framewire.capture import Capture


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    with pytest.raises(fw.ConfigError) as caught:
        Capture(tmp_path, sample=2, bodies="some", on_full="explode", queue_records=0, spelling=1, directions="up")
    named = {problem.partition(":")[0] for problem in caught.value.problems}
    assert named == {"sample", "bodies", "on_full", "queue_records", "spelling", "directions"}


@pytest.mark.parametrize(
    "options",
    [
        {"identities": ("or*ers",)},
        {"identities": ("",)},
        {"bodies": -1},
        {"bodies": True},
        {"sample": float("nan")},
        {"seal_seconds": 0},
        {"batch_seconds": "1"},
        {"keep_bytes": 1.5},
        {"spool": 3},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(tmp_path, options):
    with pytest.raises(fw.ConfigError, match=next(iter(options))):
        Capture(tmp_path, **options)


@pytest.mark.parametrize("path", ["", None, 7])
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(fw.ConfigError, match="path"):
        Capture(path)


def test_a_uri_that_pyarrow_does_not_know_is_refused():
    with pytest.raises(fw.UsageError, match="floppy://a/captures"):
        Capture("floppy://a/captures")


def test_one_name_stands_for_a_list_of_one(tmp_path):
    settings = Capture(tmp_path, identities="orders.*", directions="dead").settings
    assert (settings.identities, settings.directions) == (("orders.*",), ("dead",))


def test_a_node_refuses_a_recorder_that_is_none():
    with pytest.raises(fw.UsageError, match="capture: 7"):
        fw.Node(capture=7)


def test_an_identity_that_is_too_long_for_a_directory_is_refused(tmp_path):
    with pytest.raises(fw.UsageError, match="identity: 200 bytes"):
        Capture(tmp_path).open(b"x" * 200)


def test_a_recorder_is_for_one_node(tmp_path):
    capture = Capture(tmp_path)
    capture.open(b"one")
    try:
        with pytest.raises(fw.UsageError, match="make one for each node"):
            capture.open(b"two")
    finally:
        capture.close()


def in_a_new_interpreter(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_nothing_is_imported_before_it_is_used():
    done = in_a_new_interpreter(
        "import sys, framewire, framewire.capture, framewire.cli.capture\n"
        "framewire.Capture, framewire.Node\n"
        "assert not {'pyarrow', 'numpy', 'pyspark'} & sys.modules.keys()"
    )
    assert done.returncode == 0, done.stderr


def test_without_pyarrow_the_error_says_what_to_install():
    done = in_a_new_interpreter(
        "import sys; sys.modules['pyarrow'] = None; import framewire; framewire.Capture('x')"
    )
    assert "UsageError: recording needs pyarrow" in done.stderr
    assert "pip install 'framewire[spark]'" in done.stderr
