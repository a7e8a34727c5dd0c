"""docs/tutorial.md, followed word by word: its files written, its commands run, its processes stopped by Ctrl-C."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = re.compile(
    r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$|^## ([^\n]*)$|(Ctrl-C in terminal \d)', re.DOTALL | re.MULTILINE
)
SPARK = "See it as tables"
LONGEST = 280


def free_ports():
    """The first of three ports in a row that nobody has: what a rendezvous server needs."""
    for _ in range(100):
        first = random.randint(20_000, 30_000)  # noqa: S311 - no secret
        taken = [socket.socket() for _ in range(3)]
        try:
            for number, each in enumerate(taken):
                each.bind(("127.0.0.1", first + number))
        except OSError:
            continue
        else:
            return first
        finally:
            for each in taken:
                each.close()
    raise AssertionError("no ports are free")


class Reader:
    """Somebody who follows the page, with several terminals, of which the fourth is the one in front."""

    def __init__(self, directory):
        self.directory = directory
        self.port = str(free_ports())
        self.terminals = {}
        self.said = ""
        paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        outer = {"MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "PYTEST_ADDOPTS", "PYTHON"}  # of `make PYTHON=… test`
        mine = {name: value for name, value in os.environ.items() if name not in outer}
        self.environment = mine | {"PATH": paths, "COLUMNS": "200"}

    def type(self, commands):
        """Run a block of commands, see how it ends, and stay where it leads."""
        wanted = int(found[1]) if (found := re.search(r"# exit status (\d+)", commands)) else 0
        script = f"set -e\n{self.mine(commands)}\npwd > .where"
        done = subprocess.run(
            ["bash", "-c", script],  # noqa: S607 - the shell of the reader
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        assert done.returncode == wanted, (commands, done.stdout)
        self.said = done.stdout
        if wanted == 0:
            (where,) = self.directory.rglob(".where")
            self.directory = where.parent
            where.unlink()
        for file in self.directory.glob("framewire.toml"):  # let a new project use ports that nobody else has
            file.write_text(self.mine(file.read_text()))

    def mine(self, text):
        return text.replace("7400", self.port)

    def begin(self, terminal, command):
        log = self.directory.parent / f"{terminal}.log"
        with log.open("w") as said:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {self.mine(command)}"],  # noqa: S607 - as above
                cwd=self.directory,
                env=self.environment,
                stdout=said,
                stderr=said,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
            )
        self.terminals[terminal] = (process, log)

    def interrupt(self, terminal):
        process, _ = self.terminals[terminal]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0

    def sees(self, pattern, terminal=None):
        """Wait for what a terminal is to show; the one in front has already shown it."""
        deadline = time.monotonic() + 60
        while True:
            said = self.said if terminal is None else self.terminals[terminal][1].read_text()
            if re.search(self.mine(pattern), " ".join(said.split())):
                break
            assert terminal is not None, (pattern, said)
            assert time.monotonic() < deadline, (pattern, said)
            time.sleep(0.05)

    def leave(self):
        for process, _ in self.terminals.values():
            if process.poll() is None:
                process.kill()
                process.wait(60)


def expected(text):
    """What a block shows, with … for whatever differs from time to time."""
    return ".*?".join(re.escape(" ".join(part.split())) for part in text.split("…"))


def follow(directory, until=None):
    reader = Reader(directory)
    try:
        for language, title, block, heading, key in STEPS.findall((ROOT / "docs" / "tutorial.md").read_text()):
            if heading and heading == until:
                break
            if key:
                reader.interrupt(key.removeprefix("Ctrl-C in "))
            elif language == "sh" and title.startswith("terminal"):
                reader.begin(title, block.strip())
            elif language == "sh" and title != "first":
                reader.type(block)
            elif language == "py" and title:
                (reader.directory / title).write_text(reader.mine(block))
            elif language == "text":
                reader.sees(expected(block), title or None)
        assert not any(process.poll() is None for process, _ in reader.terminals.values())
        return reader
    finally:
        reader.leave()


@pytest.mark.timeout(300)
def test_the_tutorial_does_what_it_says(tmp_path):
    reader = follow(tmp_path, until=SPARK)
    assert len(reader.terminals) == 3
    assert (reader.directory / "captures").is_dir()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_tutorial_does_what_it_says_to_its_end(tmp_path):
    reader = follow(tmp_path)
    assert (reader.directory / "report.html").stat().st_size > 10_000


def test_the_code_that_the_tutorial_shows_is_that_of_a_new_project():
    page = (ROOT / "docs" / "tutorial.md").read_text()
    real = (ROOT / "src" / "framewire" / "cli" / "skeleton" / "actors.py.txt").read_text()
    real = real.format(module="greeter", name="greeter")
    (shown,) = [block for language, title, block, *_ in STEPS.findall(page) if (language, title) == ("py", "")]
    for part in shown.strip().split("\n\n"):
        head, _, rest = part.partition("\n")
        assert head in real
        assert rest in real
