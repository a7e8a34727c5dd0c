import json
import os
import re
import selectors
import signal
import subprocess
import sys

import pytest
import zmq
from click.testing import CliRunner
from tests.cluster.clustering import free_ports
from tests.node.running import until
from tests.operation.programs import page, program

from framewire.cli import main
from framewire.cluster.service import HEARTBEAT, parse, seconds, service_message
from framewire.wire import MessageId, decode, encode

FRAMEWIRE = [sys.executable, "-m", "framewire"]


def line_of(stream):
    with selectors.DefaultSelector() as ready:
        ready.register(stream, selectors.EVENT_READ)
        assert ready.select(30), "the process says nothing"
    return stream.readline().decode()


@pytest.fixture
def server():
    process = subprocess.Popen([*FRAMEWIRE, "rendezvous", "tcp://127.0.0.1:*"], stderr=subprocess.PIPE)
    try:
        yield process, line_of(process.stderr)
    finally:
        process.kill()
        process.communicate(timeout=10)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_interrupted(server, number):
    process, said = server
    assert "listening at tcp://127.0.0.1:" in said
    process.send_signal(number)
    assert process.wait(10) == 0
    assert process.stderr.read() == b""


def test_what_is_said_to_it_is_heard_at_the_next_port(server):
    _, said = server
    port = int(said.split("listening at tcp://127.0.0.1:")[1].split(",")[0])
    with zmq.Context() as context, context.socket(zmq.SUB) as listener, context.socket(zmq.DEALER) as speaker:
        listener.setsockopt(zmq.SUBSCRIBE, b"")
        listener.connect(f"tcp://127.0.0.1:{port + 1}")
        speaker.connect(f"tcp://127.0.0.1:{port}")
        assert listener.poll(10_000)
        beat = decode(listener.recv_multipart())
        assert beat.message_id == HEARTBEAT
        assert seconds(parse(beat).interval) == 1.0
        news = encode(service_message(MessageId(b"KINO.UNREGNODE"), uri="tcp://a:1", node_identity=b"a"))
        speaker.send_multipart(news)
        heard = beat
        while heard.message_id == HEARTBEAT:
            assert listener.poll(10_000)
            frames = listener.recv_multipart()
            heard = decode(frames)
        assert frames == news


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        (["nowhere"], ["address: 'nowhere'"]),
        (["tcp://*:99999"], ["address: 'tcp://*:99999'"]),
        (
            ["tcp://*:7400", "--broadcast=x", "--partner=tcp://*:1", "--heartbeat=0"],
            ["rendezvous.broadcast: 'x'", "rendezvous.partners: ['tcp://*:1']", "rendezvous.heartbeat: 0;"],
        ),
    ],
)
def test_a_bad_command_line_is_told_all_at_once(arguments, problems):
    result = CliRunner().invoke(main, ["rendezvous", *arguments])
    assert result.exit_code == 2
    assert all(problem in result.stderr for problem in problems)


def test_a_port_that_is_taken_is_told():
    taken, port = free_ports(2)
    with taken:
        result = CliRunner().invoke(main, ["rendezvous", f"tcp://127.0.0.1:{port}"])
    assert result.exit_code == 4
    assert f"cannot listen at tcp://127.0.0.1:{port}: Address already in use" in result.stderr


def test_it_answers_orchestrators_where_it_is_told_to(tmp_path):
    (tmp_path / "framewire.toml").write_text(
        '[rendezvous]\naddress = "tcp://127.0.0.1:*"\nhealth = "127.0.0.1:0"\n'
    )
    with program(tmp_path, "rendezvous") as running:
        address = re.search(r"/live and /ready at http://(\S+)", running.says("listening at"))[1]
        assert page(address, "/live") == (200, '{"live": true}\n')
        until(lambda: page(address, "/ready")[0] == 200)
        assert running.stop() == 0


def test_an_address_for_orchestrators_that_is_taken_is_told():
    taken, port = free_ports(0)
    with taken:
        arguments = ["rendezvous", "tcp://127.0.0.1:*", f"--health=127.0.0.1:{port}"]
        result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 4
    assert f"rendezvous.health: cannot listen at 127.0.0.1:{port}" in result.stderr


def test_the_file_and_variables_tell_where(tmp_path):
    taken, port = free_ports(3)
    taken.close()
    (tmp_path / "framewire.toml").write_text(f'[rendezvous]\naddress = "tcp://127.0.0.1:{port}"\nheartbeat = 5\n')
    process = subprocess.Popen(
        [*FRAMEWIRE, "rendezvous"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        env={**os.environ, "FRAMEWIRE_LOG_FORMAT": "json"},
    )
    try:
        said = json.loads(line_of(process.stderr))
        speaks = f"tcp://127.0.0.1:{port + 1}"
        assert said["text"] == f"listening at tcp://127.0.0.1:{port}, speaking at {speaks}"
        process.terminate()
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate(timeout=10)


def test_without_an_address_it_says_how_to_give_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["rendezvous"])
    assert result.exit_code == 2
    assert "Say where: framewire rendezvous tcp://*:7400" in result.stderr


def test_quiet_says_nothing():
    process = subprocess.Popen(
        [*FRAMEWIRE, "rendezvous", "--quiet", "ipc://*"],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        with selectors.DefaultSelector() as ready:
            ready.register(process.stderr, selectors.EVENT_READ)
            assert not ready.select(1)
        process.terminate()
        assert process.communicate(timeout=10)[1] == b""
    finally:
        process.kill()
        process.wait(10)
