"""``framewire node`` in one process: it serves, drains, and says how it ended."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cluster.clustering import free_ports, in_a_row, rendezvous
from tests.node.running import until
from tests.operation.programs import client, page, program, write
from tests.operation.shop import Order, Ordered

import framewire as fw
from framewire.cli import main
from framewire.operation.exits import Exit


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_and_on_a_signal_finishes_what_runs(shop, server, number):
    with program(shop, "node", "--app=shop:app", f"--rendezvous={server.uri}") as running, client(server) as hub:
        assert hub.ask(Order("tea"), Ordered) == Ordered("tea", running.process.pid)
        slow = hub.start(Order("cup", 1.0), Ordered)
        assert hub.ask(Order("pot"), Ordered).article == "pot"  # so the slow one has arrived
        running.send(number)
        running.says(f"stopping on {number.name}")
        assert slow.result(20).article == "cup"
        assert running.ended() == 0
        assert "nothing was left undone" in running.said


def test_when_the_time_for_draining_is_over_the_status_tells(shop, server):
    options = ["--set=node.stop_timeout=0.2", f"--rendezvous={server.uri}"]
    with program(shop, "node", "--app=shop:app", *options) as running, client(server) as hub:
        slow = hub.start(Order("cup", 60), Ordered)
        hub.ask(Order("pot"), Ordered)
        assert running.stop() == 8
        assert "1 messages were not handled" in running.said
        with pytest.raises(fw.NodeStopped):
            slow.result(20)


def test_a_second_signal_ends_it_at_once(shop, server):
    with program(shop, "node", "--app=shop:app", f"--rendezvous={server.uri}") as running, client(server) as hub:
        slow = hub.start(Order("cup", 60), Ordered, timeout=60)
        hub.ask(Order("pot"), Ordered)
        running.send(signal.SIGTERM)
        running.says("stopping on SIGTERM")
        assert running.stop() == 128 + signal.SIGTERM
        slow.cancel()


def test_a_handler_that_blocks_a_thread_for_ever_does_not_keep_the_process(tmp_path):
    write(
        tmp_path,
        "stuck.py",
        """
        import threading, msgspec, framewire as fw

        @fw.message("stuck.stick")
        class Stick(msgspec.Struct):
            pass

        class Stuck(fw.Actor):
            @fw.handles(Stick)
            def stick(self, _):
                print("stuck", flush=True)
                threading.Event().wait()

        async def app(node):
            await node.host(Stuck)
            await node.hub.tell(Stick())
        """,
    )
    with program(tmp_path, "node", "--app=stuck:app", "--set=node.stop_timeout=0.1") as running:
        assert running.process.stdout.readline() == b"stuck\n"
        running.says("is ready")
        assert running.stop() == 8


def test_an_app_that_never_gets_ready_can_be_stopped(tmp_path):
    source = """
    import asyncio

    async def app(node):
        print("here", flush=True)
        await asyncio.Event().wait()
    """
    write(tmp_path, "slow.py", source)
    with program(tmp_path, "node", "--app=slow:app") as running:
        assert running.process.stdout.readline() == b"here\n"
        assert running.stop() == 0
        assert "is ready" not in running.said


@pytest.mark.parametrize(
    ("source", "name", "status", "said"),
    [
        ("", "nowhere:app", 3, "Error: app: there is no module 'nowhere': not in "),
        ("", "shop:other", 3, "Error: app: shop has no 'other'; it has Shop, app\n"),
        ("", "shop", 2, "Error: app: 'shop'; must be module:name, such as shop.orders:app\n"),
        ("import nothing_like_it", "broken:app", 3, "Error: app: broken cannot be imported: ModuleNotFoundError: "),
        ("def app(node):\n    1 / 0", "broken:app", 3, "Error: app: app did not start: ZeroDivisionError: "),
        (
            "def app(node):\n    return 7",
            "broken:app",
            3,
            "Error: app: app did not start: it returned 7, which is no ",
        ),
        ("app = 7", "broken:app", 3, "Error: app: broken:app is 7; must be an actor, a class of actors, or "),
    ],
)
def test_an_app_that_cannot_be_loaded_or_started_is_told_in_one_paragraph(shop, source, name, status, said):
    write(shop, "broken.py", source)
    with program(shop, "node", "--app", name, "--log-level=error") as running:
        assert running.ended() == status
        assert said in running.said
        assert "Traceback" not in running.said
        assert ("broken.py" in running.said) == ("ZeroDivision" in said or "cannot be imported" in said)


def test_an_identity_that_is_taken_has_the_status_of_an_address_that_is(shop, server):
    options = ["node", f"--rendezvous={server.uri}", "--identity=same", "--app=shop:app"]
    with program(shop, *options) as first:
        first.says("is ready")
        with program(shop, *options) as second:
            assert second.ended() == 4
            assert "identity: 'same' is the identity of another node" in second.said
        assert first.stop() == 0


@pytest.mark.parametrize(
    "options",
    [["--bind=tcp://127.0.0.1:{0}"], ["--health=127.0.0.1:{0}"], ["--workers=1", "--metrics=127.0.0.1:{0}"]],
)
def test_an_address_that_is_taken_has_a_status_of_its_own(shop, options):
    taken, port = free_ports(1)
    with taken, program(shop, "node", "--app=shop:app", *(each.format(port) for each in options)) as running:
        assert running.ended() == 4
        assert re.search(f"cannot listen at .*127.0.0.1:{port}: .*ddress already in use", running.said)


def test_a_wrong_configuration_is_told_all_at_once(shop):
    (shop / "framewire.toml").write_text("[node]\ntimeout = 0\nwrokers = 2\n")
    with program(shop, "node", "--bind=nowhere", FRAMEWIRE_CLUSTER_MISSES="0") as running:
        assert running.ended() == 2
    assert running.said.count("\n  - ") == 4
    with program(shop, "node", "--config=/dev/null") as running:
        assert running.ended() == 2
    assert "Name what is to run" in running.said


def test_the_file_tells_what_to_run(shop, server):
    (shop / "framewire.toml").write_text(
        f'[node]\napp = "shop:Shop"\nidentity = "shop"\n[cluster]\nrendezvous = ["{server.uri}"]\n'
    )
    with program(shop, "node") as running, client(server) as hub:
        assert hub.ask(Order("tea"), Ordered, to_node=b"shop").article == "tea"
        assert running.stop() == 0


def test_health_tells_whether_it_is_there_takes_messages_and_drains(shop, server):
    taken, port = free_ports(1)
    taken.close()
    address = f"127.0.0.1:{port}"
    options = [f"--health={address}", f"--metrics={address}", f"--rendezvous={server.uri}"]
    with program(shop, "node", "--app=shop:app", *options) as running, client(server) as hub:
        running.says("is ready")
        assert page(address, "/live") == (200, '{"live": true}\n')
        assert page(address, "/ready") == (200, '{"ready": true, "nodes": {"node": "ready"}}\n')
        slow = hub.start(Order("cup", 2.0), Ordered)
        hub.ask(Order("pot"), Ordered)
        metrics = page(address, "/metrics")[1]
        assert 'framewire_handled_total{handler="Shop.order",message="shop.order v2"} 1\n' in metrics
        assert 'framewire_busy{actor="Shop"} 1\n' in metrics
        running.send(signal.SIGTERM)
        running.says("stopping on SIGTERM")
        assert page(address, "/ready") == (503, '{"ready": false, "nodes": {"node": "draining"}}\n')
        assert page(address, "/live")[0] == 200
        assert slow.result(20).article == "cup"
        assert running.ended() == 0


def test_logs_are_objects_for_machines(shop):
    with program(shop, "node", "--app=shop:app", "--log-format=json") as running:
        running.says("is ready")
        assert running.stop() == 0
    lines = [json.loads(line) for line in running.said.splitlines()]
    assert {line["level"] for line in lines} == {"info"}
    assert lines[0]["logger"] == "framewire.operation"
    assert lines[0]["pid"] == running.process.pid
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", lines[0]["at"])
    assert abs(time.time() - time.mktime(time.strptime(lines[0]["at"][:19], "%Y-%m-%dT%H:%M:%S"))) < 2 * 86_400


def test_what_ends_it_is_an_object_for_machines_too(tmp_path):
    write(tmp_path, "broken.py", "def app(node):\n    1 / 0\n")
    with program(tmp_path, "node", "--app=broken:app", "--log-format=json", "--workers=1") as running:
        assert running.ended() == 3
    lines = [json.loads(line) for line in running.said.splitlines()]
    (failure,) = [line for line in lines if line["level"] == "critical"]
    assert failure["text"] == "app: app did not start: ZeroDivisionError: division by zero"
    assert "broken.py" in failure["exception"]
    assert failure["worker"] == 1


def test_every_status_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    for status in Exit:
        assert f"\n| {status.value} | " in page


def test_what_it_does_is_recorded_where_it_is_told(shop, server):
    options = ["--capture=captures", f"--rendezvous={server.uri}"]
    with program(shop, "node", "--app=shop:app", *options) as running, client(server) as hub:
        hub.ask(Order("tea"), Ordered)
        assert running.stop() == 0
    assert list((shop / "captures").glob("recorder=*/date=*/segment-*.parquet"))


@pytest.mark.parametrize("workers", [0, 2])
def test_it_is_not_ready_before_a_rendezvous_server_was_reached(shop, workers):
    port = in_a_row(4)
    uri, address = f"tcp://127.0.0.1:{port}", f"127.0.0.1:{port + 3}"
    names = [str(number + 1) for number in range(workers)] or ["node"]
    options = [f"--rendezvous={uri}", f"--health={address}", f"--workers={workers}"]
    with program(shop, "node", "--app=shop:app", *options) as running:
        running.says(f"no rendezvous server was reached yet, so this node is not ready: {uri}", len(names))
        status, text = page(address, "/ready")
        assert (status, json.loads(text)["nodes"]) == (503, dict.fromkeys(names, "joining"))
        assert page(address, "/live")[0] == 200
        assert "is ready" not in running.said
        with rendezvous(uri) as server, client(server) as hub:
            running.says("is ready", len(names))
            until(lambda: page(address, "/ready")[0] == 200)
            assert hub.ask(Order("tea"), Ordered).article == "tea"
        # That the server is gone again says nothing against the node: those who know it go on asking.
        assert page(address, "/ready")[0] == 200
        assert running.stop() == 0


def test_one_that_has_not_reached_a_rendezvous_server_can_be_stopped(shop):
    uri = f"tcp://127.0.0.1:{in_a_row(2)}"
    with program(shop, "node", "--app=shop:app", f"--rendezvous={uri}") as running:
        running.says("no rendezvous server was reached yet")
        assert running.stop() == 0
        assert "nothing was left undone" in running.said


def test_health_and_ps_tell_the_same_of_a_node(tmp_path, server):
    source = """
    import asyncio, pathlib

    async def app(node):
        print("starting", flush=True)
        while not pathlib.Path("go").exists():
            await asyncio.sleep(0.01)
    """
    write(tmp_path, "slow.py", source)
    address = f"127.0.0.1:{in_a_row(1)}"

    def states():
        told = json.loads(page(address, "/ready")[1])["nodes"]["node"]
        done = CliRunner().invoke(main, ["ps", "--rendezvous", server.uri, "--json", "slow"])
        assert done.exit_code == 0, done.output
        return told, json.loads(done.stdout)["nodes"][0]["state"]

    options = [f"--rendezvous={server.uri}", f"--health={address}", "--identity=slow"]
    with program(tmp_path, "node", "--app=slow:app", *options) as running:
        assert running.process.stdout.readline() == b"starting\n"
        assert states() == ("starting", "starting")
        (tmp_path / "go").touch()
        running.says("is ready")
        assert states() == ("ready", "ready")
        assert running.stop() == 0


@pytest.mark.parametrize("command", [["node", "--app=shop:app"], ["rendezvous", "tcp://127.0.0.1:*"]])
def test_keys_that_others_can_read_have_the_status_of_a_wrong_configuration(shop, command):
    made = CliRunner().invoke(main, ["keys", "new", "cluster", "me", "--directory", str(shop)])
    assert made.exit_code == 0
    (shop / "allowed").mkdir()
    (shop / "me.key_secret").chmod(0o644)
    table = "cluster" if command[0] == "node" else "rendezvous"
    (shop / "framewire.toml").write_text(
        f'[{table}.curve]\nkey = "me.key_secret"\ncluster = "cluster.key_secret"\nallowed = "allowed"\n'
    )
    with program(shop, *command) as running:
        assert running.ended() == Exit.USAGE
        assert "me.key_secret others can get at these keys (mode 0644); run: chmod 600" in running.said


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        (None, 0o600, "cannot be read: No such file or directory"),
        ('[shop]\nkey = "hex:{}"\n', 0o644, "others can get at these keys (mode 0644)"),
        ('[shop]\nkey = "hex:0011"\n', 0o600, "has 2 bytes; it takes at least 32"),
    ],
    ids=["none", "mode", "short"],
)
def test_wrong_keys_of_domains_have_it_too(shop, text, mode, said):
    keys = shop / "keys.toml"
    if text is not None:
        keys.write_text(text.format(os.urandom(32).hex()))
        keys.chmod(mode)
    with program(shop, "node", "--app=shop:app", "--keys=keys.toml") as running:
        assert running.ended() == Exit.USAGE
        assert said in running.said
