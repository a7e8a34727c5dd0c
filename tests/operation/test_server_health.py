"""Whether a rendezvous server is well: told over HTTP by a thread beside it."""

import contextlib
import json
import threading
import time

import pytest
from tests.cluster.clustering import free_ports, rendezvous
from tests.node.running import until
from tests.operation.programs import page

from framewire.cluster import Rendezvous
from framewire.operation.http import CannotListenError
from framewire.operation.server_health import ServerHealth

ANYWHERE = "127.0.0.1:0"


def pages(health):
    """The status and what is told of both pages."""
    found = (page(f"127.0.0.1:{health.port}", path) for path in ("/live", "/ready"))
    return [(status, json.loads(body)) for status, body in found]


def test_a_server_that_serves_is_live_and_ready():
    with rendezvous() as server, ServerHealth(server, ANYWHERE) as health:
        until(lambda: server.pulse is not None)
        assert pages(health) == [(200, {"live": True}), (200, {"ready": True, "server": "ready"})]


def test_a_server_that_does_not_serve_yet_is_live_and_not_ready():
    with contextlib.closing(Rendezvous("tcp://127.0.0.1:*")) as server, ServerHealth(server, ANYWHERE) as health:
        assert pages(health) == [(200, {"live": True}), (503, {"ready": False, "server": "starting"})]


def test_a_server_that_stops_is_live_and_not_ready_any_more():
    with rendezvous() as server, ServerHealth(server, ANYWHERE) as health:
        until(lambda: server.pulse is not None)
        server.stop()
        assert pages(health) == [(200, {"live": True}), (503, {"ready": False, "server": "draining"})]


@pytest.mark.parametrize(("heartbeat", "later", "live"), [(0.2, 4.0, True), (0.2, 6.0, False), (10.0, 25.0, True)])
def test_a_server_that_stands_still_is_neither(heartbeat, later, live):
    with rendezvous() as server:
        until(lambda: server.pulse is not None)
        with ServerHealth(server, ANYWHERE, heartbeat, clock=lambda: server.pulse + later) as health:
            assert [status for status, _ in pages(health)] == ([200, 200] if live else [503, 503])
            assert health.phase == ("ready" if live else "silent")


def test_a_server_comes_round_at_least_with_every_heartbeat():
    with rendezvous() as server:
        until(lambda: server.pulse is not None)
        first = server.pulse
        until(lambda: server.pulse > first)
        assert time.monotonic() - server.pulse < 5


def test_an_address_that_is_taken_is_told_and_no_thread_is_left():
    taken, port = free_ports(0)
    with taken, contextlib.closing(Rendezvous("tcp://127.0.0.1:*")) as server:
        with pytest.raises(CannotListenError, match=rf"rendezvous.health: cannot listen at 127.0.0.1:{port}"):
            ServerHealth(server, f"127.0.0.1:{port}").__enter__()
        until(lambda: not [each for each in threading.enumerate() if each.name == "framewire health"])
