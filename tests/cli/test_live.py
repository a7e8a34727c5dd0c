"""The commands that ask a live cluster: real nodes in processes of their own, and what the commands say of them."""

import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios

import msgspec
import pytest
from click.testing import CliRunner
from tests.cluster.clustering import rendezvous
from tests.node.running import until
from tests.operation.programs import SHOP, client, program, write
from tests.operation.test_running import Order, Ordered

import framewire as fw
from framewire.cli import main

STUCK = """
    import asyncio, time, msgspec, framewire as fw

    @fw.message("stuck.stick")
    class Stick(msgspec.Struct):
        seconds: float

    @fw.message("stuck.wait")
    class Wait(msgspec.Struct):
        pass

    class Stuck(fw.Actor):
        concurrency = 10

        @fw.handles(Stick)
        async def stick(self, stick: Stick):
            time.sleep(stick.seconds)

        @fw.handles(Wait)
        async def wait(self, _):
            await asyncio.Event().wait()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A rendezvous server, two nodes shop-1 and shop-2, and the directory that their program is in."""
    directory = tmp_path_factory.mktemp("cluster")
    write(directory, "shop.py", SHOP)
    with rendezvous() as server:
        options = [f"--rendezvous={server.uri}", "--identity=shop", "--workers=2"]
        with program(directory, "node", "--app=shop:app", *options) as running:
            running.says("is ready", 2)
            yield server, directory


@pytest.fixture
def command(cluster, monkeypatch):
    """A command against the cluster, run in this process."""
    server, directory = cluster
    monkeypatch.chdir(directory)
    monkeypatch.syspath_prepend(directory)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments, stdin=None, there=server.uri):
        return CliRunner().invoke(main, [*map(str, arguments), f"--rendezvous={there}"], input=stdin)

    return run


def data(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


# --- ps, routes, pending, dead, ping


def test_ps_shows_every_node_and_not_those_who_look(command):
    result = command("ps")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("shop")] == ["shop-1", "shop-2"]
    assert "framewire-cli" not in result.stdout
    nodes = data(command("ps", "--json"))["nodes"]
    assert [node["node"] for node in nodes] == ["shop-1", "shop-2"]
    assert all(node["uri"].startswith("tcp://127.0.0.1:") and node["pid"] and not node["problem"] for node in nodes)


def test_nodes_are_named_by_how_they_begin(command):
    assert [node["node"] for node in data(command("ps", "shop-2", "--json"))["nodes"]] == ["shop-2"]
    result = command("ps", "shop-9")
    assert (result.exit_code, result.stderr) == (
        5,
        "Error: NoRoute: there is no node 'shop-9'; there are shop-1, shop-2\n",
    )


def test_routes_show_who_handles_what(command):
    found = data(command("routes", "--json"))["routes"]
    assert [(each["message"], each["node"], each["handler"]) for each in found] == [
        ("shop.order v2", "shop-1", "Shop.order"),
        ("shop.order v2", "shop-2", "Shop.order"),
        ("shop.scan v1", "shop-1", "Shop.scan"),
        ("shop.scan v1", "shop-2", "Shop.scan"),
    ]
    assert "shop.order v2" in command("routes", "shop.o*").stdout
    assert "shop.scan" not in command("routes", "shop.o*").stdout
    assert "FRAMEWIRE.NODEINFO v1" in command("routes", "--all").stdout


def test_pending_shows_what_is_waited_for_and_for_how_long(command, cluster):
    server, _ = cluster
    with client(server, identity="waiting") as hub:
        promise = hub.start(Order("tea", 30), Ordered, correlation_id=b"my-flow")
        until(lambda: hub.stats().pending and hub.stats().pending[0].sent_to)
        found = data(command("pending", "--json"))
        (waiting,) = found["pending"]
        assert found["total"] == 1
        assert (waiting["node"], waiting["message"], waiting["flow"]) == ("waiting", "shop.order v2", "my-flow")
        assert waiting["sent_to"] in ("shop-1", "shop-2")
        assert 0 < waiting["age"] < 30
        assert "my-flow" in command("pending", "waiting").stdout
        promise.cancel()
    assert data(command("pending", "--json"))["pending"] == []


def test_dead_shows_how_many_died_of_what_and_the_last_of_them(command):
    before = data(command("dead", "--json"))["counts"].get("bad_body", 0)
    assert command("tell", "shop.order@2", '"no order"').exit_code == 0
    found = data(command("dead", "--json", "--reason", "bad_body"))
    assert found["counts"]["bad_body"] == before + 1
    assert found["letters"][0]["message"] == "shop.order v2"
    assert "not a Order as msgpack" in found["letters"][0]["detail"]
    assert "bad_body" in command("dead").stdout


def test_ping_tells_how_long_the_event_loops_take(command):
    nodes = data(command("ping", "-n", 3, "--json"))["nodes"]
    assert [(node["node"], node["answers"]) for node in nodes] == [("shop-1", 3), ("shop-2", 3)]
    assert all(0 < node["least"] <= node["mean"] <= node["most"] < 5 for node in nodes)


def test_a_node_whose_event_loop_stands_still_is_shown_and_told(tmp_path):
    write(tmp_path, "stuck.py", STUCK)
    with rendezvous() as server:
        options = [f"--rendezvous={server.uri}", "--identity=stuck", "--set=node.stall_after=0.1"]
        with program(tmp_path, "node", "--app=stuck:Stuck", *options) as running, client(server) as hub:
            stick = type("Stick", (bytes,), {})
            hub.tell(fw.message("stuck.stick", codec="raw")(stick)(b"\x81\xa7seconds\x06"))
            running.says("the event loop has stood still")
            there = [f"--rendezvous={server.uri}", "--timeout=0.5"]
            shown = CliRunner().invoke(main, ["ping", "stuck", "-n", "1", *there])
            assert shown.exit_code == 6
            assert "its event loop stands still" in shown.stdout
            until(lambda: CliRunner().invoke(main, ["ping", "stuck", *there]).exit_code == 0)
            (node,) = [
                each
                for each in json.loads(CliRunner().invoke(main, ["ps", "--json", *there]).stdout)["nodes"]
                if each["node"] == "stuck"
            ]
            assert node["stalls"] >= 1
            assert node["stalled"]["Stuck.stick"] >= 1
            assert running.stop() == 0


def test_what_is_of_a_domain_is_shown_to_those_who_have_its_key(tmp_path):
    keys, secret = tmp_path / "keys.toml", os.urandom(32).hex()
    keys.touch(0o600)
    keys.write_text(
        f'[shop]\nkey = "hex:{secret}"\nidentities = ["shop.*"]\n'
        f'[operators]\nkey = "hex:{secret}"\nidentities = ["FRAMEWIRE.*"]\n'
    )
    write(tmp_path, "shop.py", SHOP)
    with rendezvous() as server:
        there = f"--rendezvous={server.uri}"
        options = [there, "--identity=shop", f"--keys={keys}"]
        with program(tmp_path, "node", "--app=shop:app", *options) as running:
            running.says("is ready")

            def shown(*arguments):
                result = CliRunner().invoke(main, [*arguments, "--json", there])
                assert secret not in result.output
                return data(result)

            (node,) = shown("ps", f"--keys={keys}")["nodes"]
            assert node["problem"] is None
            (node,) = shown("ps")["nodes"]
            assert node["problem"].startswith("does not tell")
            routes = shown("routes", f"--keys={keys}")["routes"]
            assert [(each["message"], each["domain"]) for each in routes] == [
                ("shop.order v2", "shop"),
                ("shop.scan v1", "shop"),
            ]
            assert shown("routes")["routes"] == []
            asked = ["ask", "shop.order@2", '{"article": "tea"}', "--reply=shop.ordered@2", "--json", there]
            assert CliRunner().invoke(main, asked).exit_code == 5
            assert running.stop() == 0


# --- ask, tell, trace


def test_ask_writes_and_reads_by_the_types_of_the_module(command):
    answer = data(command("ask", "shop.order", '{"article": "tea"}', "--reply=shop.ordered", "--app=shop"))
    assert answer["article"] == "tea"
    asked = ["ask", "shop.scan", '"cup"', "--reply", "shop.ordered v2", "--app=shop", "--json"]
    found = data(command(*asked))
    assert (found["message"], found["payload"]["article"]) == ("shop.ordered v2", "cup")
    assert found["seconds"] > 0


def test_ask_reads_the_payload_from_the_standard_input(command):
    arguments = ["ask", "shop.order@2", "-", "--reply=shop.ordered@2", "--app=shop"]
    assert data(command(*arguments, stdin='{"article": "pot"}'))["article"] == "pot"


def test_ask_without_a_module_sends_json_and_shows_what_comes(command, cluster):
    server, _ = cluster

    class Echo(fw.Actor):
        @fw.handles(fw.message("echo.ask", codec="raw")(type("Raw", (bytes,), {})))
        async def echo(self, asked):
            return Order(asked.decode(), 1.5)

    with client(server) as hub:
        hub.host(Echo())
        assert data(command("ask", "echo.ask", "[1]", "--reply=shop.order@2")) == {"article": "[1]", "seconds": 1.5}


def test_ask_addresses_a_node(command):
    nodes = {node["node"]: node["pid"] for node in data(command("ps", "--json"))["nodes"]}
    for name, pid in nodes.items():
        asked = ["ask", "shop.order", '{"article": "tea"}', "--reply=shop.ordered", "--app=shop", f"--node={name}"]
        assert {data(command(*asked))["pid"] for _ in range(2)} == {pid}
    both = command("ask", "shop.order", "--reply=shop.ordered", "--app=shop", "--node=shop", '{"article": "tea"}')
    assert (both.exit_code, both.stderr) == (2, "Error: --node: 'shop' may be shop-1, shop-2: say which\n")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["shop.order", '{"article": "nothing"}', "--app=shop"], 1, "RemoteError: ValueError in Shop.order: "),
        (["shop.order@9", "--reply=x"], 5, "NoRoute: shop.order v9: nobody handles it; asked"),
        (
            ["shop.order", '{"article": "a", "seconds": 9}', "--app=shop", "--timeout=0.2"],
            6,
            "Expired: shop.order v2",
        ),
        (["shop.order", '{"article": 1}', "--app=shop"], 2, "payload: not a Order: Expected `str`, got `int`"),
        (["shop.order", "{", "--app=shop"], 2, "payload: not a Order: "),
        (["shop.order", "{"], 2, "payload: not JSON: "),
        (["shop.nothing", "--app=shop"], 2, "message: shop has no 'shop.nothing'; it has shop.order v2, "),
        (["shop.order@3", "--app=shop"], 2, "message: shop has no 'shop.order@3'"),
        (["shop.order", "--app=no_such_module"], 3, "app: there is no module 'no_such_module'"),
        (["shop.order@2", '"x"', "--reply=y"], 1, "--app MODULE has its type"),
    ],
)
def test_what_goes_wrong_has_a_status_of_its_own_and_one_paragraph(command, arguments, status, said):
    reply = [] if any(each.startswith("--reply") for each in arguments) else ["--reply=shop.ordered"]
    result = command("ask", *arguments, *reply)
    assert result.exit_code == status
    assert said in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stdout == ""


def test_tell_is_confirmed_unless_told_otherwise(command):
    told = ["tell", "shop.order", '{"article": "tea"}', "--app=shop", "--json"]
    assert data(command(*told))["confirmed"] is True
    assert data(command(*told, "--no-receipt"))["confirmed"] is False
    assert data(command(*told, "--broadcast"))["confirmed"] is False
    assert command(*told[:-1]).stdout.startswith("A node has it; it is flow ")
    assert command("tell", "shop.nothing").exit_code == 5


def test_a_broadcast_reaches_every_node_or_the_one_that_is_named(command):
    def handled():
        routes = data(command("routes", "shop.order", "--json"))["routes"]
        return {each["node"]: each["handled"] for each in routes}

    broadcast = ["tell", "shop.order", '{"article": "tea"}', "--app=shop", "--broadcast"]
    before = handled()
    command(*broadcast)
    until(lambda: handled() == {node: count + 1 for node, count in before.items()})
    before, one = handled(), min(before)
    command(*broadcast, f"--node={one}")
    until(lambda: handled() == {node: count + (node == one) for node, count in before.items()})


def test_trace_shows_every_step_on_every_node_in_order(command):
    found = data(command("trace", "shop.scan", '"cup"', "--app=shop", "--reply=shop.ordered", "--json"))
    assert found["answer"]["payload"]["article"] == "cup"
    assert found["problem"] is None
    steps = found["steps"]
    assert steps[0]["step"] == "received"
    assert steps[0]["after"] == 0
    assert [step["after"] for step in steps] == sorted(step["after"] for step in steps)
    assert {"received", "routed", "handled", "replied"} == {step["step"] for step in steps}
    handlers = [step["detail"].split()[1] for step in steps if step["step"] == "handled"]
    assert sorted(handlers) == ["Shop.order", "Shop.scan"]
    assert "by Shop.scan in" in command("trace", "shop.scan", '"cup"', "--app=shop").stdout


def test_trace_shows_the_way_of_what_failed_too(command):
    result = command(
        "trace", "shop.order", '{"article": "nothing"}', "--app=shop", "--reply=shop.ordered", "--json"
    )
    assert result.exit_code == 1
    assert json.loads(result.stdout)["problem"] == "RemoteError: nobody orders nothing"
    assert "RemoteError: ValueError in Shop.order" in result.stderr


@fw.message("regions.place")
class Place(msgspec.Struct):
    article: str = ""


class Regions(fw.Actor):
    @fw.handles(Place, partitions=[f"region-{number}" for number in range(20)])
    async def place(self, _):
        pass


def test_the_partitions_of_one_handler_are_one_row():
    with rendezvous() as server, fw.Client(rendezvous=[server.uri], identity="regions") as client:
        client.host(Regions())

        def shown(*arguments):
            return CliRunner().invoke(main, [*arguments, f"--rendezvous={server.uri}"])

        [row] = data(shown("routes", "--json"))["routes"]
        assert (row["message"], row["handler"]) == ("regions.place v1 [20 partitions]", "Regions.place")
        [row] = data(shown("trace", "regions.place@1[region-7]", "--dry-run", "--json"))["routes"]
        assert (row["message"], row["handler"]) == ("regions.place v1 [region-7]", "Regions.place")
        nobody = shown("trace", "regions.place@1[region-70]", "--dry-run")
        assert nobody.exit_code == 5
        assert "region-12], regions.place v1 [region-13] and 15 more." in " ".join(nobody.stderr.split())


def test_a_dry_run_tells_who_would_get_it_and_sends_nothing(command):
    before = data(command("routes", "shop.scan", "--json"))["routes"]
    found = data(command("trace", "shop.scan", "--dry-run", "--json"))
    assert found["sent"] is False
    assert [(each["node"], each["handler"]) for each in found["routes"]] == [
        ("shop-1", "Shop.scan"),
        ("shop-2", "Shop.scan"),
    ]
    assert [
        each["node"]
        for each in data(command("trace", "shop.scan", "--dry-run", "--node=shop-2", "--json"))["routes"]
    ]
    assert data(command("routes", "shop.scan", "--json"))["routes"] == before
    assert "one of these, in turn" in command("trace", "shop.scan", "--dry-run").stdout
    nobody = command("trace", "shop.order@7", "--dry-run")
    assert nobody.exit_code == 5
    assert "Known: shop.order v2" in nobody.stderr


# --- watching, finding, errors


def test_watch_looks_again_until_it_is_interrupted(cluster):
    server, directory = cluster
    arguments = ["ps", "--json", "--watch", "--every=0.2", f"--rendezvous={server.uri}"]
    with subprocess.Popen(
        [sys.executable, "-m", "framewire", *arguments],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - as in test_main
    ) as process:
        ups = [json.loads(process.stdout.readline())["nodes"][0]["uptime"] for _ in range(3)]
        assert ups == sorted(set(ups))
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b""


def test_watch_on_a_terminal_draws_the_table_again_and_gives_the_screen_back(cluster):
    server, directory = cluster
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 160, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "framewire", "ps", "--watch", "--every=0.2", f"--rendezvous={server.uri}"],
        cwd=directory,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environ,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - as in test_main
    )
    os.close(theirs)
    shown = b""
    try:
        while shown.count(b"shop-2") < 3:
            shown += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the terminal is gone with the process
            while more := os.read(ours, 65536):
                shown += more
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.wait(10)
        os.close(ours)
    assert shown.index(b"\x1b[?1049h") < shown.index(b"shop-1")
    assert shown.rindex(b"\x1b[?1049l") > shown.rindex(b"shop-2")
    assert b"Traceback" not in shown


def test_the_file_names_the_cluster(cluster, monkeypatch, tmp_path):
    server, _ = cluster
    # The bind address is that of the node that the file is for; whoever looks listens elsewhere.
    (tmp_path / "framewire.toml").write_text(
        f'[cluster]\nrendezvous = ["{server.uri}"]\nbind = "{server.uri}"\n[node]\nidentity = "shop-1"\n'
    )
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["ps", "--json"])
    assert [node["node"] for node in data(result)["nodes"]] == ["shop-1", "shop-2"]


def test_a_cluster_that_is_not_there_has_a_status_of_its_own(command):
    result = command("ps", "--wait=0.3", there="tcp://127.0.0.1:1")
    assert result.exit_code == 7
    assert "no node was found through tcp://127.0.0.1:1 in 0.3 s" in result.stderr


def test_where_the_cluster_is_must_be_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["ps"])
    assert result.exit_code == 2
    assert "cluster.rendezvous or cluster.peers: missing" in result.stderr
    result = CliRunner().invoke(main, ["ps", "--rendezvous=x", "--peer=y", "--set=node.a=b"])
    assert result.exit_code == 2
    assert result.stderr.count("\n  - ") == 3


@pytest.mark.parametrize(
    "name", ["node", "ps", "routes", "pending", "dead", "ping", "ask", "tell", "trace", "rendezvous"]
)
def test_help_has_an_example_and_tells_the_statuses(name):
    shown = CliRunner().invoke(main, [name, "--help"]).output
    assert f"Example: framewire {name} " in shown
    assert "Exit status: " in shown
