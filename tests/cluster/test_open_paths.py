"""Sockets whose path was left open: where they are, and that nothing remains of them."""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from tests.cluster.clustering import Named, handled_by, make_node, uri_of
from tests.node.messages import Answer, Question
from tests.node.running import run

import framewire as fw
from framewire.cluster import Rendezvous
from framewire.cluster.open_paths import OpenPaths


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """The directory for temporary files, and the one that the process is in."""
    temporary, working = tmp_path / "temporary", tmp_path / "working"
    temporary.mkdir()
    working.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(working)
    yield temporary
    assert not list(working.iterdir()), "something was made where the process is"
    assert not list(temporary.iterdir()), "something was left behind"


def test_a_node_and_a_server_leave_nothing_behind(places):
    async def main():
        server = Rendezvous("ipc://*", broadcast="ipc://*")
        serving = threading.Thread(target=server.run, name="framewire rendezvous")
        serving.start()
        told = {"bind": "ipc://*", "health": "ipc://*", "heartbeat": 0.2, "signals": False}
        try:
            at = [(server.uri, server.broadcast)]
            async with fw.Node(rendezvous=at, **told) as one, fw.Node(rendezvous=at, **told) as two:
                await two.host(Named("two"))
                await handled_by(1, one)
                assert (await one.hub.ask(Question(), Answer)).text == "two"
                assert uri_of(one).startswith(f"ipc://{places}/framewire-")
                assert len(list(places.iterdir())) == 3
        finally:
            server.stop()
            await asyncio.to_thread(serving.join, 10)

    run(main())


def test_a_node_that_cannot_start_leaves_nothing_behind(tmp_path):
    async def main():
        with pytest.raises(fw.ConfigError, match="cannot listen"):
            await make_node(bind="ipc://*", health=f"ipc://{tmp_path}/no/such/directory").start()

    run(main())


def test_a_server_that_cannot_start_leaves_nothing_behind(tmp_path):
    with pytest.raises(fw.ConfigError, match="cannot listen"):
        Rendezvous("ipc://*", broadcast=f"ipc://{tmp_path}/no/such/directory")


def test_other_addresses_stay_as_they_are():
    paths = OpenPaths()
    assert [paths.settle(uri) for uri in ("tcp://*:1", "ipc://a/*")] == ["tcp://*:1", "ipc://a/*"]
    paths.close()


def test_each_address_is_another_and_closing_twice_is_fine(places):
    paths = OpenPaths()
    assert paths.settle("ipc://*") != paths.settle("ipc://*")
    assert len(list(places.iterdir())) == 1
    paths.close()
    paths.close()


def test_what_was_never_closed_is_removed_when_the_process_ends(places):
    code = "from framewire.cluster.open_paths import OpenPaths; kept = OpenPaths(); print(kept.settle('ipc://*'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(places)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.startswith(f"ipc://{places}/framewire-")
    assert not Path(done.stdout.strip().removeprefix("ipc://")).parent.exists()
