"""Signs of life, given and taken on a thread of their own."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import zmq
from tests.cluster.clustering import Named, handled_by, make_node, served
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run, until

import framewire as fw
from framewire.cluster.liveness import Liveness
from framewire.cluster.service import HEARTBEAT, parse, seconds, service_message, time_span
from framewire.cluster.settings import ClusterSettings
from framewire.wire import decode, encode

PEER = b"peer"


@contextlib.contextmanager
def watching(heartbeat=0.05, misses=4):
    """A watcher, and the publisher of a peer's heartbeats."""
    context = zmq.Context()
    watcher = Liveness(
        context,
        ClusterSettings(heartbeat=heartbeat, misses=misses),
        b"watcher",
        ["tcp://127.0.0.1:*"],
        None,
        lost=lambda peer: told.append(("lost", peer)),
        found=lambda peer: told.append(("found", peer)),
    )
    told = []
    publisher = context.socket(zmq.PUB)
    publisher.bind("tcp://127.0.0.1:*")
    watcher.start()
    try:
        yield watcher, publisher, told
    finally:
        watcher.stop()
        context.destroy(0)


def uri_of(publisher):
    return publisher.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")


def beat(publisher, identity=PEER, interval=0.05):
    publisher.send_multipart(
        encode(service_message(HEARTBEAT, interval=time_span(interval), socket_identity=identity, health_uri="x"))
    )


def test_heartbeats_come_at_the_interval_that_they_promise():
    with watching() as (watcher, _, _), zmq.Context() as context, context.socket(zmq.SUB) as listener:
        listener.setsockopt(zmq.SUBSCRIBE, b"")
        listener.connect(watcher.uri)
        heard = []
        while len(heard) < 3:
            assert listener.poll(10_000)
            heard.append(decode(listener.recv_multipart()))
    said = parse(heard[0])
    assert heard[0].message_id == HEARTBEAT
    assert seconds(said.interval) == 0.05
    assert said.socket_identity == b"watcher"
    assert said.health_uri == watcher.uri


def test_a_silent_peer_is_lost_once_and_not_before_its_misses():
    with watching(misses=4) as (watcher, publisher, told):
        began = time.monotonic()
        watcher.watch(PEER, uri_of(publisher), 0.05)
        until(lambda: told)
        assert time.monotonic() - began >= 0.2
        watcher.watch(b"another", uri_of(publisher), 0.05)
        until(lambda: ("lost", b"another") in told)
    assert told == [("lost", PEER), ("lost", b"another")]


def test_a_peer_that_gives_signs_of_life_is_not_lost_and_is_found_again_if_it_was():
    with watching() as (watcher, publisher, told):
        watcher.watch(PEER, uri_of(publisher), 0.05)
        watcher.watch(b"silent", uri_of(publisher), 0.2)

        def kept_alive():
            beat(publisher)
            return ("lost", b"silent") in told

        until(kept_alive)
        assert ("lost", PEER) not in told
        until(lambda: ("lost", PEER) in told)

        def found():
            beat(publisher)
            return ("found", PEER) in told

        until(found)


def test_the_way_to_a_lost_peer_is_made_anew_again_and_again():
    """Where a cable was pulled nothing ever comes over the old connection, and nobody says so."""
    with watching(misses=2) as (watcher, _, told), socket.create_server(("127.0.0.1", 0)) as silent:
        watcher.watch(PEER, f"tcp://127.0.0.1:{silent.getsockname()[1]}", 0.05)
        silent.settimeout(10)
        connections = [silent.accept()[0] for _ in range(4)]
        assert told == [("lost", PEER)]
        for connection in connections:
            connection.close()


def test_the_interval_that_a_peer_promises_counts():
    with watching(heartbeat=0.05, misses=2) as (watcher, publisher, told):
        watcher.watch(PEER, uri_of(publisher), 0.05)
        until(lambda: told)

        def found():
            beat(publisher, interval=600)
            return ("found", PEER) in told

        until(found)
        watcher.watch(b"silent", uri_of(publisher), 0.2)
        until(lambda: ("lost", b"silent") in told)
    assert told.count(("lost", PEER)) == 1


def test_a_peer_that_is_ignored_is_not_lost():
    with watching() as (watcher, publisher, told):
        watcher.watch(PEER, uri_of(publisher), 0.05)
        watcher.ignore(PEER)
        watcher.watch(b"silent", uri_of(publisher), 0.1)
        until(lambda: told)
    assert told == [("lost", b"silent")]


def test_what_is_no_heartbeat_does_no_harm():
    with watching() as (watcher, publisher, told):
        watcher.watch(b"bad address", "nowhere", 0.05)
        watcher.watch(PEER, uri_of(publisher), 0.05)
        until(lambda: told)

        def found():
            publisher.send_multipart([b"nonsense"])
            publisher.send_multipart(encode(service_message(HEARTBEAT, interval=time_span(1))))
            beat(publisher, b"a stranger")
            beat(publisher)
            return ("found", PEER) in told

        until(found)


def test_thousands_of_peers_can_be_told_of_at_once():
    with watching(heartbeat=5.0, misses=10) as (watcher, publisher, told):
        for number in range(5000):
            watcher.watch(b"%d" % number, uri_of(publisher), 600.0)
        watcher.watch(PEER, uri_of(publisher), 0.0)
        until(lambda: told)
        assert told == [("lost", PEER)]
        assert len(watcher._watched) == 5001


def test_only_so_many_addresses_are_listened_at_where_nothing_is_heard_and_others_have_their_turn(monkeypatch):
    monkeypatch.setattr("framewire.cluster.liveness._MAX_UNHEARD", 2)
    with watching() as (watcher, publisher, told), contextlib.ExitStack() as silent:
        most = []
        monkeypatch.setattr(
            watcher, "_open", lambda ear, opening=watcher._open: (opening(ear), most.append(unheard()))
        )

        def unheard():
            return len(watcher._unheard)

        for number in range(7):
            place = silent.enter_context(socket.create_server(("127.0.0.1", 0)))
            watcher.watch(b"made up %d" % number, f"tcp://127.0.0.1:{place.getsockname()[1]}", 300.0)
        watcher.watch(PEER, uri_of(publisher), 0.05)
        watcher.watch(b"a member", "tcp://127.0.0.1:9", 300.0, signed=True)
        until(lambda: b"a member" in watcher._watched)
        assert PEER not in watcher._watched
        assert PEER in watcher._queued

        def heard():
            beat(publisher)
            return PEER in watcher._watched and watcher._ears[uri_of(publisher), False].heard > 0

        until(heard)
        assert max(most) <= 2
        assert ("lost", PEER) not in told
        assert {("lost", b"made up %d" % number) for number in range(6)} <= set(told)
        watcher.watch(b"made up 8", "tcp://127.0.0.1:9", 300.0)
        watcher.ignore(b"made up 8")
        until(lambda: not watcher._commands.qsize() and b"made up 8" not in watcher._queued)


def test_a_process_that_stood_still_does_not_blame_the_others():
    with watching(heartbeat=0.02, misses=3) as (watcher, publisher, told):
        watcher.watch(PEER, uri_of(publisher), 0.1)
        halt, halted = threading.Event(), threading.Event()

        def stand_still():
            halted.set()
            halt.wait(10)

        watcher._tell(stand_still)
        assert halted.wait(10)
        time.sleep(0.5)  # longer than the peer may be silent: this is the standing still itself
        halt.set()
        watcher._tell(halted.clear)
        until(lambda: not halted.is_set())
        assert told == []


def ignore_a_peer_whose_heartbeat_is_there():
    """What a process must survive; see the test below."""
    with watching() as (watcher, publisher, told):
        watcher.watch(PEER, uri_of(publisher), 0.05)
        until(lambda: told)

        def found():
            beat(publisher)
            return ("found", PEER) in told

        until(found)
        for _ in range(20):
            halt, halted = threading.Event(), threading.Event()
            watcher._tell(lambda halt=halt, halted=halted: (halted.set(), halt.wait(10)))
            assert halted.wait(10)
            for _ in range(5):
                beat(publisher)
            time.sleep(0.02)  # for them to get there: nothing tells when they have
            watcher.ignore(PEER)
            watcher.watch(PEER, uri_of(publisher), 60.0)
            halt.set()
        until(lambda: not watcher._commands.qsize())


def test_a_peer_may_be_ignored_while_its_heartbeat_is_there():
    script = f"from {__name__} import ignore_a_peer_whose_heartbeat_is_there as survive; survive()"
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_a_node_whose_loop_is_blocked_is_not_lost_but_reported_as_stalled():
    stalls = []

    async def main(server):
        release = threading.Event()
        blocked = threading.Thread(target=lambda: asyncio.run(other_node(server, release)))
        async with make_node(server, misses=3) as one:
            blocked.start()
            try:
                await handled_by(1, one)
                asking = asyncio.create_task(one.hub.ask(Question(), Answer))
                await eventually(lambda: stalls)
                await asyncio.sleep(1.0)  # longer than the misses: this is the blocking itself
                assert not asking.done()
                release.set()
                assert (await asking).text == "done"
            finally:
                release.set()
                await asyncio.to_thread(blocked.join, 10)

    async def other_node(server, release):
        async with make_node(server, misses=3, stall_after=0.2) as other:
            other.on_stall(stalls.append)

            @other.handler(Question)
            async def block(_):
                release.wait(10)
                return Answer("done")

            await eventually(release.is_set)
            await eventually(lambda: other.stats().totals["handled"])

    run(served(main))
    assert stalls[0].handler.endswith("block")


def test_asks_that_wait_for_a_node_that_gives_no_sign_of_life_end_as_unreachable():
    async def main(server):
        async with make_node(server, stop_timeout=0) as one, make_node(server, misses=2) as two:

            @one.handler(Question)
            async def never(_):
                await asyncio.Event().wait()

            await handled_by(1, two)
            asking = asyncio.create_task(two.hub.ask(Question(), Answer, timeout=15))
            await eventually(lambda: one.stats().actors[-1].busy)
            began = time.monotonic()
            one._transport._liveness.stop()
            one._transport._liveness.stop = lambda: None  # a thread ends once
            with pytest.raises(fw.Unreachable, match="is gone"):
                await asking
            assert time.monotonic() - began < 10, "it did not end by its own timeout"

    run(served(main))


def test_hosting_goes_on_after_a_peer_is_lost():
    async def main(server):
        async with make_node(server) as one, make_node(server) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            one._transport._lost(two.identity)
            assert one.stats().peers == []
            one._transport._found(two.identity)
            await handled_by(1, one)
            assert (await one.hub.ask(Question(), Answer)).text == "two"

    run(served(main))
