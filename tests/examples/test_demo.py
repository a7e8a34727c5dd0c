"""The demo tells the truth, can fail, and leaves nothing behind, however it ends."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from framewire.errors import WireError
from framewire.wire import decode

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOP_IS_OPEN = "have found every department"
PATIENCE = 240


class Demo:
    """The demo as a process. All that it starts inherits a mark, by which what is left of it can be found."""

    def __init__(self, folder, *options):
        self.folder = folder
        self._mark = f"DEMO_MARK={uuid.uuid4()}"
        name, _, value = self._mark.partition("=")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(EXAMPLES / "demo.py"), *options],
            cwd=folder,
            env={**os.environ, name: value},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = ""

    def until(self, words):
        """Read what it says until it says something."""
        for line in self._process.stdout:
            self.said += line
            if words in line:
                return
        raise AssertionError(f"it never said {words!r}:\n{self.said}")

    def end(self):
        """Its status."""
        rest, _ = self._process.communicate(timeout=PATIENCE)
        self.said += rest
        return self._process.returncode

    def signal(self, number):
        self._process.send_signal(number)

    def processes(self, having=""):
        """Those that it has started and that are still there, by their command lines."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if int(entry.name) != self._process.pid and self._mark in (entry / "environ").read_text():
                    command = (entry / "cmdline").read_text().replace("\0", " ")
                    if having in command:
                        found[int(entry.name)] = command
        return found

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    def close(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def demo(tmp_path):
    started = []

    def start(*options):
        started.append(Demo(tmp_path, *options))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_the_shop_is_opened_used_troubled_and_closed_and_nothing_is_left(demo):
    shop = demo("--no-spark")
    assert shop.end() == 0, shop.said
    assert "All figures are right, and nothing is left open." in shop.said
    assert shop.processes() == {}
    assert shop.files() == []


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), pytest.param(signal.SIGHUP, 129, marks=pytest.mark.long)],
)
def test_whoever_interrupts_it_finds_nothing_left(demo, number, status):
    shop = demo("--no-spark")
    shop.until(SHOP_IS_OPEN)
    assert len(shop.processes("framewire node")) == 4
    shop.signal(number)
    assert shop.end() == status, shop.said
    assert "Interrupted." in shop.said
    assert "Traceback" not in shop.said
    assert shop.processes() == {}
    assert shop.files() == []


def test_whoever_is_impatient_and_interrupts_twice_finds_nothing_left(demo):
    shop = demo("--no-spark")
    shop.until(SHOP_IS_OPEN)
    shop.signal(signal.SIGINT)
    shop.signal(signal.SIGTERM)  # two of a kind might come as one
    assert shop.end() in (130, 143), shop.said
    assert shop.processes() == {}
    assert shop.files() == []


@pytest.mark.long
def test_spark_is_ended_too_when_it_is_interrupted(demo):
    shop = demo()
    shop.until(SHOP_IS_OPEN)
    deadline = time.monotonic() + 60
    while not shop.processes("org.apache.spark"):
        assert time.monotonic() < deadline, "Spark does not start"
        time.sleep(0.05)
    shop.signal(signal.SIGINT)
    assert shop.end() == 130, shop.said
    assert shop.processes() == {}
    assert shop.files() == []


@pytest.mark.long
def test_it_fails_with_one_sentence_when_something_is_not_as_it_must_be(demo):
    shop = demo("--no-spark")
    shop.until(SHOP_IS_OPEN)
    [payment] = shop.processes("shop.nodes:payment")
    os.kill(payment, signal.SIGKILL)
    assert shop.end() == 1, shop.said
    assert "The demo failed: " in shop.said
    assert "Traceback" not in shop.said
    assert shop.processes() == {}
    assert shop.files() == []


@pytest.mark.long
def test_two_demos_can_run_at_once(demo):
    one, other = demo("--no-spark"), demo("--no-spark")
    assert one.end() == 0, one.said
    assert other.end() == 0, other.said


@pytest.mark.long
@pytest.mark.timeout(PATIENCE + 60)
def test_the_whole_of_it_keeps_a_lake_and_a_report_and_nothing_else(demo):
    shop = demo()
    assert shop.end() == 0, shop.said
    assert "All figures are right, and nothing is left open." in shop.said
    assert shop.processes() == {}
    assert {name for name in shop.files() if not name.startswith("build/demo/lake/")} == {"demo-report.html"}
    asked = [sys.executable, "-m", "framewire", "query", "select count(*) as n from flows", "--csv"]
    lake = ["--lake", str(shop.folder / "build" / "demo" / "lake")]
    answer = subprocess.run([*asked, *lake], capture_output=True, text=True, timeout=60, check=True)
    assert int(answer.stdout.split()[1]) > 300


def test_the_old_recordings_are_in_the_formats_that_the_story_says():
    # In a process of its own: other tests have other modules of the name shop.
    script = (
        "import json; from tour.strangers import recordings; told = recordings(); "
        "print(json.dumps([[[frame.hex() for frame in each.frames] for each in some] "
        "for some in (told.orders, told.archived, told.damaged)]))"
    )
    path = os.pathsep.join(map(str, (EXAMPLES, EXAMPLES / "shop")))
    said = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    orders, archived, damaged = (
        [[bytes.fromhex(frame) for frame in frames] for frames in some] for some in json.loads(said.stdout)
    )
    for pair in (orders, archived):
        assert [decode(frames).wire_version for frames in pair] == [1, 4]
    assert len(damaged) == 2
    for frames in damaged:
        with pytest.raises(WireError):
            decode(frames)
