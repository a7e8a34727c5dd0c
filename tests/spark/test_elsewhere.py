"""The same on Spark Connect and on a real cluster whose workers have nothing of ours; and no key in its logs."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import venv
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from tests.spark.elsewhere import hexed
from tests.spark.rows import expected, mutations, recorded
from tests.spark.test_signatures import spellings

from framewire.security import DomainKey, KeyRing
from framewire.spark.columns import DECODED
from framewire.spark.java import java_home
from framewire.wire import Message, encode

HERE = Path(__file__).parent
KEY = secrets.token_bytes(32)
RING = KeyRing([DomainKey("d", KEY)], identities={"d": ["d.*"]})
SIGNED = RING.sign(Message(b"d.order", body_frames=(b"body",)))


def cases():
    signed = [encode(SIGNED), encode(SIGNED.replace(body=b"other")), encode(Message(b"free"))]
    return [*signed, *recorded()[::5], *mutations(200, seed=7)]


def run_elsewhere(tmp_path, master, *conf):
    frames, out = tmp_path / "frames.jsonl", tmp_path / "out.json"
    lines = [json.dumps([frame.hex() for frame in frames]) for frames in cases()]
    frames.write_text("\n".join(lines))
    command = [sys.executable, str(HERE / "elsewhere.py"), master, str(frames), KEY.hex(), str(out), *conf]
    environ = os.environ | {"JAVA_HOME": str(java_home())}
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environ)
    assert done.returncode == 0, done.stderr[-3000:]
    assert_no_key_in(done.stdout + done.stderr)
    return json.loads(out.read_text())


def assert_no_key_in(text):
    assert not [spelling for spelling in spellings(KEY) if spelling in text]


def assert_same(rows):
    assert len(rows) == len(cases())
    for row, frames in zip(rows, cases(), strict=True):
        says = expected(frames)
        assert {name: row[name] for name in DECODED} == {name: hexed(says.get(name)) for name in DECODED}
    assert [row["signature_state"] for row in rows[:3]] == ["valid", "invalid", "unsigned"]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_spark_connect_gives_the_same(tmp_path):
    assert_same(run_elsewhere(tmp_path, "connect"))


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def wait_for(port, process, deadline=60):
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        assert process.poll() is None, "it ended by itself"
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nobody listens on {port}")


@pytest.fixture
def cluster(tmp_path):
    """A master and two workers, whose Python has neither PySpark nor framewire."""
    home = Path(pyspark.__file__).parent
    venv.create(tmp_path / "bare", with_pip=False)
    environ = os.environ | {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": str(tmp_path / "bare" / "bin" / "python"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    environ.pop("PYTHONPATH", None)

    def start(stack, name, *arguments):
        log = stack.enter_context((tmp_path / f"{name}.log").open("w"))
        command = [str(home / "bin" / "spark-class"), *arguments]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environ, cwd=tmp_path)
        stack.callback(end, process)
        return process

    port = free_port()
    with ExitStack() as stack:
        host = ("--host", "127.0.0.1", "--webui-port", "0")
        master = start(stack, "master", "org.apache.spark.deploy.master.Master", "--port", str(port), *host)
        wait_for(port, master)
        for number in (1, 2):
            own = (*host, "--cores", "1", "--memory", "700m", "--work-dir", str(tmp_path / f"work{number}"))
            start(
                stack, f"worker{number}", "org.apache.spark.deploy.worker.Worker", *own, f"spark://127.0.0.1:{port}"
            )
        yield f"spark://127.0.0.1:{port}"


def end(process):
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_cluster_with_nothing_of_ours_gives_the_same_and_logs_no_key(cluster, tmp_path):
    events = tmp_path / "events"
    events.mkdir()
    rows = run_elsewhere(
        tmp_path,
        cluster,
        "spark_driver_host=127.0.0.1",
        "spark_driver_memory=1g",
        "spark_executor_memory=600m",
        "spark_executor_cores=1",
        "spark_eventLog_enabled=true",
        f"spark.eventLog.dir={events.as_uri()}",
        "spark_eventLog_compress=false",
    )
    assert_same(rows)
    executors = {path.parent.name for path in tmp_path.glob("work*/app-*/*/stderr")}
    assert len(executors) == 2
    logged = [path for path in events.rglob("*") if path.is_file()]
    assert logged
    text = "".join(path.read_text(errors="replace") for path in [*logged, *tmp_path.glob("work*/app-*/*/stderr")])
    assert "signature_state" in text
    assert_no_key_in(text)
