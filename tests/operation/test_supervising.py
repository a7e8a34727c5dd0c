"""``framewire node --workers``: processes that are kept running, and started anew when files change."""

import json
import os
import re
import signal

from tests.cluster.clustering import free_ports
from tests.node.running import until
from tests.operation.programs import SHOP, client, page, program, write
from tests.operation.shop import Order, Ordered

import framewire as fw


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pids(running):
    return [int(pid) for pid in re.findall(r"worker \d+ is process (\d+)", running.said)]


def answering(hub, count):
    """The processes that answer, asked until there are so many."""
    found = set()

    def enough():
        try:
            found.add(hub.ask(Order("tea"), Ordered, timeout=5).pid)
        except fw.MessageError:
            return False
        return len(found) >= count

    until(enough, 60)
    return found


def test_every_worker_is_a_node_that_answers_and_all_drain(shop, server):
    with program(shop, "node", "--app=shop:app", "--workers=2", f"--rendezvous={server.uri}") as running:
        running.says("is ready", 2)
        with client(server) as hub:
            assert answering(hub, 2) == set(pids(running))
            slow = [hub.start(Order("cup", 1.0), Ordered) for _ in range(4)]
            assert answering(hub, 2)
            assert running.stop() == 0
            assert {each.result(20).article for each in slow} == {"cup"}
        assert not any(map(is_alive, pids(running)))


def test_an_interrupt_from_a_terminal_reaches_the_workers_once(shop, server):
    with program(shop, "node", "--app=shop:app", "--workers=1", f"--rendezvous={server.uri}") as running:
        running.says("is ready")
        with client(server) as hub:
            slow = hub.start(Order("cup", 1.0), Ordered)
            hub.ask(Order("pot"), Ordered)
            os.killpg(running.process.pid, signal.SIGINT)
            assert slow.result(20).article == "cup"
        assert running.ended() == 0
        assert running.said.count("stopping on SIGINT") == running.said.count("stopping on SIGTERM; what runs") == 1


def test_a_worker_that_is_killed_is_started_again(shop, server):
    taken, port = free_ports(1)
    taken.close()
    options = [f"--metrics=127.0.0.1:{port}", f"--rendezvous={server.uri}", "--identity=shop"]
    with program(shop, "node", "--app=shop:app", "--workers=2", *options) as running, client(server) as hub:
        running.says("is ready", 2)
        os.kill(pids(running)[0], signal.SIGKILL)
        running.says("worker 1 ended: killed by SIGKILL; starting it again in 0.5 s")
        running.says("is ready", 3)
        assert len(pids(running)) == 3
        assert set(pids(running)[1:]) <= answering(hub, 2)
        metrics = page(f"127.0.0.1:{port}", "/metrics")[1]
        assert 'framewire_worker_restarts_total{worker="1"} 1\n' in metrics
        assert 'framewire_worker_restarts_total{worker="2"} 0\n' in metrics
        assert 'framewire_info{worker="2",node="shop-2"' in metrics
        assert running.stop() == 0


def test_workers_whose_supervisor_is_killed_do_not_stay_behind(shop):
    with program(shop, "node", "--app=shop:app", "--workers=2") as running:
        running.says("is ready", 2)
        running.stop(signal.SIGKILL)
        until(lambda: not any(map(is_alive, pids(running))), 30)
        assert running.said.count("the supervisor is gone; stopping") == 2


def test_what_is_wrong_with_an_app_is_told_once_and_not_tried_again(shop):
    with program(shop, "node", "--app=shop:other", "--workers=3") as running:
        assert running.ended() == 3
        assert running.said.count("Error: app: shop has no 'other'") == 1
        assert len(pids(running)) == 1


def test_a_worker_that_dies_early_again_and_again_is_started_later_each_time(tmp_path):
    write(tmp_path, "dying.py", "import os\n\ndef app(node):\n    os._exit(9)\n")
    with program(tmp_path, "node", "--app=dying:app", "--workers=1") as running:
        for delay in ("0.5", "1.0", "2.0"):
            running.says(f"worker 1 ended: status 9; starting it again in {delay} s")
        assert running.stop() == 0


def test_a_worker_that_stops_itself_is_done(tmp_path):
    source = """
    import asyncio

    def app(node):
        asyncio.get_running_loop().call_later(0.1, lambda: asyncio.ensure_future(node.stop()))
    """
    write(tmp_path, "brief.py", source)
    with program(tmp_path, "node", "--app=brief:app", "--workers=2") as running:
        assert running.ended() == 0
        assert running.said.count("has stopped itself") == 2


def test_ready_tells_of_each_worker_and_a_second_signal_kills(shop, server):
    taken, port = free_ports(1)
    taken.close()
    options = [f"--health=127.0.0.1:{port}", f"--rendezvous={server.uri}"]
    with program(shop, "node", "--app=shop:app", "--workers=2", *options) as running, client(server) as hub:
        running.says("is ready", 2)
        both = '{"ready": true, "nodes": {"1": "ready", "2": "ready"}}\n'
        until(lambda: page(f"127.0.0.1:{port}", "/ready") == (200, both))
        slow = [hub.start(Order("cup", 60), Ordered) for _ in range(2)]
        assert answering(hub, 2)
        running.send(signal.SIGTERM)
        running.says("stopping on SIGTERM; what runs", 2)
        assert page(f"127.0.0.1:{port}", "/ready")[0] == 503
        assert running.stop() == 8
        assert not any(map(is_alive, pids(running)))
        for each in slow:
            each.cancel()


def test_it_is_started_anew_when_a_file_changes_and_waits_where_that_is_broken(shop, server):
    options = ["--reload", f"--rendezvous={server.uri}"]
    with program(shop, "node", "--app=shop:app", *options) as running, client(server) as hub:
        running.says("is ready")
        write(shop, "shop.py", SHOP.replace("Ordered(order.article,", "Ordered(order.article.upper(),"))
        running.says("is ready", 2)
        until(lambda: hub.ask(Order("tea"), Ordered).article == "TEA")
        write(shop, "shop.py", "import nothing_like_it\n")
        running.says("worker 1 cannot begin; waiting for a change")
        write(shop, "shop.py", SHOP)
        running.says("is ready", 3)
        assert hub.ask(Order("tea"), Ordered).article == "tea"
        assert running.stop() == 0


def health():
    """An address for the pages of health that is free now."""
    taken, port = free_ports(1)
    taken.close()
    return f"127.0.0.1:{port}"


def readiness(address):
    """What ``/ready`` answers: its status, and how far each node is."""
    status, text = page(address, "/ready")
    told = json.loads(text)
    assert told["ready"] == (status == 200)
    return status, told["nodes"]


def test_a_worker_that_is_told_to_stop_from_outside_is_started_again(shop, server):
    address = health()
    options = [f"--rendezvous={server.uri}", f"--health={address}", f"--metrics={address}"]
    with program(shop, "node", "--app=shop:app", "--workers=2", *options) as running, client(server) as hub:
        running.says("is ready", 2)
        stopped, other = pids(running)
        until(lambda: readiness(address) == (200, {"1": "ready", "2": "ready"}))
        slow = [hub.start(Order("cup", 1.0), Ordered) for _ in range(2)]
        assert answering(hub, 2) == {stopped, other}
        os.kill(stopped, signal.SIGTERM)
        until(lambda: readiness(address)[0] == 503)
        assert {each.result(20).pid for each in slow} == {stopped, other}
        running.says("worker 1 ended: told to stop from outside; starting it again in 0.5 s")
        running.says("is ready", 3)
        until(lambda: readiness(address) == (200, {"1": "ready", "2": "ready"}))
        assert answering(hub, 2) == {other, pids(running)[2]}
        assert 'framewire_worker_restarts_total{worker="1"} 1\n' in page(address, "/metrics")[1]
        assert running.stop() == 0


def test_ready_is_false_while_a_worker_that_should_be_there_is_not(shop):
    address = health()
    with program(shop, "node", "--app=shop:app", "--workers=2", f"--health={address}") as running:
        running.says("is ready", 2)
        until(lambda: readiness(address)[0] == 200)
        os.kill(pids(running)[1], signal.SIGKILL)
        until(lambda: readiness(address) == (503, {"1": "ready", "2": "gone"}))
        running.says("is ready", 3)
        until(lambda: readiness(address) == (200, {"1": "ready", "2": "ready"}))
        assert running.stop() == 0


def test_a_worker_that_has_stopped_itself_is_not_missed(tmp_path):
    source = """
    import asyncio

    def app(node):
        if node.identity == b"brief-1":
            asyncio.get_running_loop().call_later(0.1, lambda: asyncio.ensure_future(node.stop()))
    """
    write(tmp_path, "brief.py", source)
    address = health()
    options = ["--workers=2", "--identity=brief", f"--health={address}"]
    with program(tmp_path, "node", "--app=brief:app", *options) as running:
        running.says("worker 1 has stopped itself")
        until(lambda: readiness(address) == (200, {"1": "done", "2": "ready"}))
        assert running.stop() == 0


def test_a_signal_to_the_supervisor_and_to_its_workers_at_once_drains(shop, server):
    with program(shop, "node", "--app=shop:app", "--workers=2", f"--rendezvous={server.uri}") as running:
        running.says("is ready", 2)
        with client(server) as hub:
            slow = [hub.start(Order("cup", 1.0), Ordered) for _ in range(2)]
            assert answering(hub, 2) == set(pids(running))
            for pid in (running.process.pid, *pids(running)):  # as systemd does
                os.kill(pid, signal.SIGTERM)
            assert {each.result(20).article for each in slow} == {"cup"}
        assert running.ended() == 0
        assert "again: ending at once" not in running.said
        assert len(pids(running)) == 2


def test_workers_are_started_anew_one_by_one_and_no_ask_fails(shop, server):
    options = ["--workers=2", "--reload-workers", f"--rendezvous={server.uri}"]
    with program(shop, "node", "--app=shop:app", *options) as running, client(server) as hub:
        running.says("is ready", 2)
        before = answering(hub, 2)
        running.send(signal.SIGHUP)
        asked = 0
        while "all workers were started anew" not in running.said:
            assert hub.ask(Order("tea"), Ordered, timeout=20).article == "tea"
            asked += 1
        assert asked > 10
        until(lambda: not any(map(is_alive, before)))
        assert answering(hub, 2) == set(pids(running)[2:])
        events = re.findall(r"worker (\d) is process|node (\S+) is (ready)|(stopping) on SIGTERM", running.said)
        order = ["started" if worker else ready or stopping for worker, _, ready, stopping in events[-6:]]
        assert order == ["stopping", "started", "ready"] * 2
        assert running.stop() == 0


def test_where_a_worker_does_not_come_back_the_others_stay_as_they_are(shop, server):
    options = ["--workers=2", "--reload-workers", f"--rendezvous={server.uri}"]
    with program(shop, "node", "--app=shop:app", *options) as running, client(server) as hub:
        running.says("is ready", 2)
        stays = pids(running)[1]
        write(shop, "shop.py", "import nothing_like_it\n")
        running.send(signal.SIGHUP)
        running.says("worker 1 is not ready again; the others stay as they are")
        assert answering(hub, 1) == {stays}
        write(shop, "shop.py", SHOP)
        running.send(signal.SIGHUP)
        running.says("all workers were started anew")
        assert len(answering(hub, 2)) == 2
        assert not is_alive(stays)
        assert running.stop() == 0


def test_reloading_workers_needs_workers(shop):
    with program(shop, "node", "--app=shop:app", "--reload-workers") as running:
        assert running.ended() == 2
        assert "say how many with --workers N" in running.said
